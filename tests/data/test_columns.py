"""One column in, one checked array out: forms that columns come in, and the row and remedy of what is refused."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import torch

from softsurv.data.columns import (
    event_column,
    float_column,
    group_column,
    is_binary,
    likely_event,
    plain_array,
    require,
    series,
)
from softsurv.errors import InvalidSurvivalDataError

FORMS = {
    "list": lambda v: v,
    "tuple": tuple,
    "numpy": np.array,
    "float32": lambda v: np.array(v, np.float32),
    "swapped bytes": lambda v: np.array(v, ">f8"),
    "torch": torch.tensor,
    "bfloat16": lambda v: torch.tensor(v, dtype=torch.bfloat16),
    "pandas": lambda v: pd.Series(v, index=[7, 8, 9]),
    "nullable": lambda v: pd.Series(v, dtype="Float64"),
    "polars": polars.Series,
    "pyarrow": pyarrow.array,
    "decimals": lambda v: [Decimal(str(x)) for x in v],
    "fractions": lambda v: [Fraction(x) for x in v],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_numbers_becomes_doubles(form):
    found = float_column(FORMS[form]([1.0, 2.5, -4.0]), "time")
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.5, -4.0]


@pytest.mark.parametrize("values", [[1.0, None], np.ma.array([1.0, 2.0], mask=[0, 1]), pd.array([1, None], "Int64")])
def test_missing_numbers_are_nan(values):
    found = float_column(values, "time")
    assert found[0] == 1.0
    assert np.isnan(found[1])


def test_the_result_is_no_view_of_what_was_given():
    given = np.array([1.0, 2.0])
    float_column(given, "time")[0] = 9.0
    flags = np.array([True, False])
    event_column(flags)[0] = False
    assert (given[0], flags[0]) == (1.0, True)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("abc", "time must be one value per row, got 'abc'"),
        (3.0, "time must be one value per row, got 3.0"),
        ([[1.0], [2.0]], r"time must be one-dimensional, got shape \(2, 1\); pass one column"),
        ([[1.0], [2.0, 3.0]], "got rows of unequal length"),
        ([1.0, "x"], "time must be numbers, got"),
        (["1", "2", "old"], "time must be numbers, got 'old' at row 2"),  # the others read as numbers
        (["1", "2"], "time must be numbers, got '1' at row 0; convert the column"),
        ([True, False], "is time swapped with event"),
        (pd.to_datetime(["2020-01-01"]), "got datetime64.*; subtract the date of each row"),
        ([date(2020, 1, 1)], r"got datetime.date\(2020, 1, 1\) at row 0; take pd.to_datetime of the column, subtract"),
        ([1.0, pd.NaT], "got NaT at row 1; convert the column"),
        (pd.to_timedelta([12], unit="h"), r"got timedelta64.*; divide by a unit, such as pd.Timedelta\(days=1\)"),
        ([10**400], "time must hold numbers up to 1.8e308"),
    ],
    ids=str,
)
def test_what_is_no_column_of_numbers_is_told_with_its_row(values, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        float_column(values, "time")


@pytest.mark.parametrize("of", [pd.Series, np.asarray, pd.Index], ids=["series", "array", "index"])
def test_the_remedy_for_dates_and_durations_works(of):
    """``.dt.days`` did not: dates have none, nor have arrays, and half a day was lost."""
    began, ended = (of(pd.to_datetime(days)) for days in (["2020-01-01"], ["2020-01-02 12:00"]))
    assert float_column((ended - began) / pd.Timedelta(days=1), "time").tolist() == [1.5]


@pytest.mark.parametrize("values", [[1, 0], [1.0, 0.0], [True, False], np.array([1, 0], np.int8), [np.True_, 0]])
def test_events_are_flags_or_zeros_and_ones(values):
    assert event_column(values).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1, 2, 1], "got 1, 2; pass a comparison, such as event == 2 if 2 marks an observed event"),
        (["no", "yes"], "got 'no', 'yes'; pass a comparison, such as event == 'yes'"),
        (["a", "b"], "such as event == 'a'"),
        ([12.5, 3.0], r"got 12.5, 3.0; these look like times: a pair is \(event, time\), in this order"),
        ([0.0, 1.0, np.inf], r"got 0.0, 1.0, inf; pass a comparison"),
        (["dead", "alive"], "got 'dead', 'alive'; pass a comparison, such as event == 'dead'"),
        ([0, 1, 2, 3, 4, 5], r"got 0, 1, 2, 3, \.\.\.; .* or cause= where"),
        ([1, None], "event must be known, got None at row 1; drop the row"),
    ],
)
def test_other_codes_are_asked_about(values, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        event_column(values)


@pytest.mark.parametrize(
    ("values", "binary"), [([1, 0], True), ([2, 0], False), ([True], True), (["1", "0"], False), ([0.5], False),
                           ([1.0, np.nan], False), (pd.array([1, 0], "Int64"), True)],
)  # fmt: skip
def test_binary_columns(values, binary):
    assert is_binary(pd.Series(values)) is binary


def test_groups_are_coded_in_sorted_or_categorical_order():
    for values, codes, names in (
        (["m", "f", "m"], [1, 0, 1], ("f", "m")),
        ([10, 9, 10], [0, 1, 0], ("10", "9")),  # sorted as text
        ([2.5, 1.0, 2.5], [1, 0, 1], ("1.0", "2.5")),
        (pd.Categorical(["m", "f"], ["m", "x", "f"]), [0, 1], ("m", "f")),
    ):
        found, said = group_column(values)
        assert (found.tolist(), said) == (codes, names)
        assert found.dtype == np.int64


def test_codes_of_named_groups_must_be_known():
    assert group_column([1, 0], ("a", "b"))[0].tolist() == [1, 0]
    with pytest.raises(InvalidSurvivalDataError, match=r"group must be a code in 0\.\.1, got 2 at row 1 and 1 more"):
        group_column([0, 2, 5], ("a", "b"))
    with pytest.raises(
        InvalidSurvivalDataError, match=r"id must be known, got (None|nan) at row 1; drop the row or name a id"
    ):
        group_column(["a", None], argument="id")


def test_the_first_wrong_row_is_named_with_the_number_of_others():
    require(np.ones(3, bool), [1, 2, 3], "x", "good", "mend it")
    with pytest.raises(InvalidSurvivalDataError, match=r"^x must be good, got 2\.5 at row 1; mend it$"):
        require(np.array([True, False]), [1.0, 2.5], "x", "good", "mend it")
    with pytest.raises(InvalidSurvivalDataError, match=r"got 'a' at row 0 and 1 more; mend it"):
        require(np.array([False, False]), ["a", "b"], "x", "good", "mend it")


def test_masked_whole_numbers_become_floats_and_masked_text_objects():
    assert np.isnan(plain_array(np.ma.array([1, 2], mask=[0, 1]))[1])
    assert plain_array(np.ma.array(["a", "b"], mask=[0, 1])).tolist() == ["a", None]
    assert plain_array(np.ma.array([1, 2])).dtype.kind == "i"
    assert series(np.arange(2), "x").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (np.zeros(2, [("e", bool), ("t", float)]), "time must be one column, got the fields e, t"),
        (np.array([1 + 0j, 2 + 0j]), "time must be real numbers, got complex128; take the real part"),
    ],
    ids=str,
)
def test_a_column_holds_one_real_number_a_row(column, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        float_column(column, "time")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (["no", "yes", "no"], "yes"),
        (["Alive", "Dead", None], "Dead"),
        ([1, 2, 1], 2),  # as R's survival package has it: 1 censored, 2 dead
        (["1", "2"], "2"),
        (["A", "B"], None),
    ],
)
def test_the_likely_event(values, named):
    assert likely_event(pd.Series(values, dtype=object)) == named
