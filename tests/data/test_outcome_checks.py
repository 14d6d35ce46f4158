"""What times, entries, weights and upper bounds must hold: the borders of each rule."""

import numpy as np
import pytest

from softsurv.data.outcome_checks import LARGEST_WEIGHT, check_lengths, check_size_of_weights, check_values
from softsurv.errors import InvalidSurvivalDataError

GOOD = {"time": [0.0, 2.0, 3.0], "event": [True, False, True], "entry": None, "upper": None, "weight": None}


def columns(**changes):
    """Columns as arrays, those of GOOD but for the changes."""
    given = GOOD | changes
    return {name: None if values is None else np.array(values) for name, values in given.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"entry": [0.0, 1.9, 0.0]},  # an entry of 0 is none, also at time 0
        {"event": [False] * 3, "entry": [0.0, 2.0, 0.0], "upper": [1.5, 2.5, np.inf]},  # an interval from entry on
        {"weight": [0.0, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT]},
        {"upper": [np.inf, 2.5, 3.0]},
        {"time": [0.0, 0.0, 0.0], "event": [False] * 3, "upper": [1.0, np.inf, np.inf]},  # an interval from 0 on
    ],
    ids=str,
)
def test_the_borders_are_allowed_and_left_as_they_are(changes):
    given = columns(**changes)
    check_values(given)
    for name, values in columns(**changes).items():
        np.testing.assert_array_equal(given[name], values)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"time": [0.0, -1.0, 3.0]}, "time must be finite and >= 0, got -1 at row 1; drop the row or shift"),
        ({"time": [np.inf, 1.0, np.nan]}, "time must be finite and >= 0, got inf at row 0 and 1 more"),
        ({"time": [0.0, 0.0, 0.0]}, "time must be > 0 in at least one row, got only zeros"),
        ({"time": [0.0] * 3, "event": [False] * 3, "upper": [np.inf] * 3}, "got only zeros"),
        ({"entry": [0.0, 2.0, 0.0]}, "entry must be below time, got 2 at row 1"),
        ({"time": [1.0, 2.0, 3.0], "entry": [0.0, 0.0, 3.0], "upper": [np.inf] * 3}, "below time, got 3 at row 2"),
        ({"entry": [0.0, -0.1, 0.0]}, "entry must be finite and >= 0, got -0.1 at row 1; use 0 for no truncation"),
        ({"weight": [1.0, np.nan, 1.0]}, "weight must be finite and >= 0, got nan at row 1"),
        ({"weight": [0.0, 0.0, 0.0]}, "weight must be > 0 in at least one row"),
        ({"weight": [1e308, 1e308, 1e308]}, r"weight must have a finite sum, got up to 1e\+308; rescale it"),
        ({"weight": [1.0, 1e101, 1.0]}, "got 1e.101 at row 1; take another unit"),
        ({"upper": [np.inf, np.nan, np.inf]}, "upper must be known, got nan at row 1; use inf"),
        ({"upper": [np.inf, 2.0, np.inf]}, "upper must be above time where event is False, got 2 at row 1"),
        ({"upper": [np.inf, 3.0, 4.0]}, "upper must be inf or equal to time where event is True, got 4 at row 2"),
    ],
)
def test_each_fault_is_a_sentence_with_its_row(changes, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        check_values(columns(**changes))


def test_a_tiny_weight_is_in_a_wrong_unit():
    check_size_of_weights(np.array([0.0, 1.0]), "weight")
    with pytest.raises(InvalidSurvivalDataError, match=r"costs must be 0 or from 1e-100 to 1e\+100, got 1e-200 at"):
        check_size_of_weights(np.array([1e-200]), "costs")


def test_columns_are_as_long_as_the_table():
    given = {"X": [0, 1], "time": [1.0, 2.0], "weight": None, "entry": [0.0]}
    check_lengths(given, ("time", "weight"))
    with pytest.raises(InvalidSurvivalDataError, match="entry must have one value per row of X, 2, got 1"):
        check_lengths(given, ("time", "weight", "entry"))
