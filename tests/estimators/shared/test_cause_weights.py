"""How much each cause counts, by name, by code, or as given."""

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.shared.cause_weights import cause_weights

NAMES = ("relapse", "death", "other")


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        (None, [1, 1, 1]),
        ("death", [0, 1, 0]),
        (3, [0, 0, 1]),
        (np.int64(1), [1, 0, 0]),
        ({"death": 2.5, 1: 0.5}, [0.5, 2.5, 0]),
        ({"death": 0.0, "other": 1}, [0, 0, 1]),
    ],
)
def test_causes_count_as_said(given, weights):
    assert cause_weights(given, NAMES).tolist() == weights


def test_one_kind_of_event_counts_once():
    assert cause_weights(None, ()).tolist() == [1.0]
    with pytest.raises(InvalidParameterError, match="cause_weights needs data with causes, got 'death'; pass cause="):
        cause_weights("death", ())


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ([1.0, 2.0, 3.0], InvalidParameterError, r"must map causes to weights, such as \{'relapse': 1.0\}"),
        ({}, InvalidParameterError, "must be > 0 for some cause"),
        ({"death": 1.0, 2: 3.0}, InvalidParameterError, "must weigh each cause once, got 'death' and 2 for one"),
        ({"death": 0.0}, InvalidParameterError, "must be > 0 for some cause"),
        ({"death": -1.0}, InvalidParameterError, "cause_weights must be a finite number >= 0, got -1"),
        ({"death": "much"}, InvalidParameterError, "cause_weights must be a finite number >= 0"),
        ("fire", InvalidSurvivalDataError, "got 'fire'"),
        (4, InvalidSurvivalDataError, "got 4"),
        (0, InvalidSurvivalDataError, "got 0"),
    ],
    ids=str,
)
def test_what_names_no_cause_is_told(given, error, sentence):
    with pytest.raises(error, match=sentence):
        cause_weights(given, NAMES)
