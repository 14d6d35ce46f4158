"""Raw columns as their sources say: numbers and labels in, encoded columns and their units out."""

import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import pytest

from softsurv.data import encoding
from softsurv.data.blocks import NumberBlock
from softsurv.data.encoding import (
    NumbersLearned,
    OutputColumn,
    Source,
    encoded_column,
    is_level,
    labels,
    numbers,
    observed_levels,
    raw_values,
    read_columns,
    records,
    scaled,
    write_scaled,
)
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning, InvalidSurvivalDataError


def test_an_encoded_value_has_its_units_back():
    column = OutputColumn("age", "age", "number", offset=20.0, scale=50.0)
    raw = {"age": np.array([20.0, 45.0, np.nan])}
    encoded = encoded_column(column, raw, {})
    np.testing.assert_allclose(encoded, [0.0, 0.5, np.nan])
    assert [column.to_units(value) for value in encoded[:2]] == [20.0, 45.0]


def test_a_level_is_itself_to_its_last_zero():
    found = is_level(np.array(["a", "a\0", None, "None"], dtype=object), ("a\0", "None"))
    assert found.tolist() == [False, True, False, True]


def test_one_long_text_takes_its_own_memory_and_not_that_of_every_row():
    texts = np.array(["long" * 25_000, *["short"] * 199], dtype=object)
    tracemalloc.start()
    try:
        assert is_level(texts, ("short",)).sum() == 199
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_levels_and_missing_values_have_indicators():
    raw = {"arm": np.array(["new", "old", None], dtype=object)}
    level = encoded_column(OutputColumn("arm=new", "arm", "level", "new"), raw, {})
    np.testing.assert_array_equal(level, [1.0, 0.0, np.nan])
    gone = np.array([False, True, True])
    found = encoded_column(OutputColumn("arm is missing", "arm", "missing"), raw, {"arm": gone})
    assert found.tolist() == gone.tolist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([True, None, False], dtype="boolean"), [1, np.nan, 0]),
        (pd.Series(["1.5", None, " 2 "]), [1.5, np.nan, 2]),
        (pd.Series([1, 2, None], dtype="Int64"), [1, 2, np.nan]),
        (pd.Series([1, 2, 3], dtype="int8"), [1, 2, 3]),
    ],
)
def test_columns_of_numbers_in_every_form(values, expected):
    np.testing.assert_array_equal(numbers(values, "x"), expected)


def test_text_that_is_no_number_is_named_and_infinity_refused():
    with pytest.raises(InvalidSurvivalDataError, match="column 'x' must be numbers, got 'old' at row 1"):
        numbers(pd.Series(["1", "old"]), "x")
    with pytest.raises(InvalidSurvivalDataError, match="column 'x' must be finite or missing, got inf at row 1"):
        numbers(pd.Series(["1", "1e999"]), "x")


@pytest.mark.parametrize("dtype", [object, "category"])
def test_one_thing_has_one_label_whatever_its_type(dtype):
    found = labels(pd.Series([1, 1.0, "1", True, None], dtype=object).astype(dtype), "x")
    assert found[0] == found[1] == found[2] == "1"
    assert found[4] is None


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (date(2020, 1, 1), "got date; pass days since one date"),
        (b"K\xf6ln", r"got bytes; decode it first: X\['x'\]\.str\.decode\('utf-8'\)"),
        ((1, 2), "got tuple; pass a number or a text a row"),
        (1j, "got complex"),
    ],
)
def test_what_is_no_category_is_named(value, sentence):
    column = pd.Series([value, "a"], dtype=object)
    with pytest.raises(InvalidSurvivalDataError, match=f"column 'x' must hold numbers or categories, {sentence}"):
        labels(column, "x")


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2020", periods=4),
        [date(2020, 1, day) for day in (1, 2, 3, 4)],
        pd.date_range("2020", periods=4, tz="Europe/Rome"),
        [pd.Timestamp(f"2020-01-0{day}", tz=zone) for day, zone in zip("1234", ("UTC", "Asia/Tokyo") * 2, strict=True)],
        pd.period_range("2020-01-01", periods=4, freq="D"),
        pd.to_timedelta(np.arange(4), unit="D"),
    ],
    ids=["dates", "dates of Python", "of one time zone", "of several", "periods", "lengths of time"],
)
def test_what_is_said_of_dates_makes_numbers_of_them(column):
    X = pd.DataFrame({"day": column})
    with pytest.raises(InvalidSurvivalDataError, match="column 'day'") as caught:
        labels(X["day"], "day")
    converted = eval(str(caught.value).split(": ")[1], {"pd": pd, "X": X})
    assert np.diff(numbers(converted, "day")).tolist() in ([1.0] * 3, [86400.0] * 3, [0.0, 2.0, 0.0])


def test_a_category_that_no_row_has_may_be_anything():
    column = pd.Series(pd.Categorical(["a", None], categories=["a", date(2020, 1, 1)]))
    assert labels(column, "x").tolist() == ["a", None]


def test_levels_are_those_seen_in_sorted_or_categorical_order():
    for column, expected in (
        (pd.Series(["b", "a", None]), ("a", "b")),
        (pd.Series(pd.Categorical(["a", "c"], ["c", "b", "a"])), ("c", "a")),
        (pd.Series([None, None], dtype=object), ()),
    ):
        assert observed_levels(column, labels(column, "x")) == expected


def test_sources_tell_numbers_from_labels():
    column = pd.Series(["1", "2"])
    assert raw_values(column, Source("x", None, None)).tolist() == [1.0, 2.0]
    assert raw_values(column, Source("x", ("1", "2"), None)).tolist() == ["1", "2"]


def test_a_block_is_learned_and_scaled_as_its_columns_are():
    frame = pd.DataFrame({"a": [1.0, 3.0, 5.0], "gap": [2.0, np.nan, 6.0], "same": [4.0, 4.0, 4.0]})
    block = NumberBlock.of(frame)
    learned = NumbersLearned.of(block, impute=True, scale=True)
    assert learned.plain == [True, False, False]  # the others are looked at one by one
    assert learned.sources[0] == Source("a", None, 3.0)
    assert learned.columns[0] == OutputColumn("a", "a", "number", offset=1.0, scale=4.0)
    columns = [OutputColumn("gap", "gap", "number", offset=2.0, scale=4.0), learned.columns[0]]
    expected = [[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]]
    np.testing.assert_allclose(scaled(columns, block, {"gap": 4.0, "a": 3.0}), expected)
    assert np.isnan(scaled(columns, block, {"gap": None, "a": None})[0, 1])
    assert np.isnan(frame["gap"][1])  # the table stays as it is
    plain = NumbersLearned.of(block, impute=False, scale=False)
    assert plain.columns[0] == OutputColumn("a", "a", "number")
    assert plain.sources[0].fill is None


@pytest.mark.parametrize("long", [1, encoding.LONG_COLUMN])
def test_scaled_numbers_are_written_into_their_rows(long, monkeypatch):
    monkeypatch.setattr(encoding, "LONG_COLUMN", long)
    block = NumberBlock.of(pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2.0, np.nan, 6.0], "c": [np.nan, 1.0, 2.0]}))
    units = {"a": (1.0, 4.0), "b": (2.0, 3.0), "c": (0.0, 7.0)}
    columns = [OutputColumn(name, name, "number", None, *units[name]) for name in ("b", "a", "c")]
    fills, encoded = {"a": 3.0, "b": 4.0, "c": None}, np.full((3, 3), 9.0)
    write_scaled(encoded, [2, 0], columns, block, fills)
    np.testing.assert_array_equal(encoded[[2, 0]], scaled([columns[2], columns[0]], block, fills))
    assert encoded[1].tolist() == [9.0] * 3
    write_scaled(encoded, [], columns, block, fills)


@pytest.mark.parametrize("impute", [True, False])
def test_categories_that_are_read_as_codes_are_encoded_as_their_text_is(impute):
    values = ["u", None, "w", "u", "v", "w"]
    frame = pd.DataFrame({"a": pd.Categorical(values, list("wvux")), "b": pd.Categorical([1, 2, 1, 1, 2, 1])})
    frame["n"], frame["gap"] = range(6), pd.Categorical([None, "y", "y", None, "z", "y"])
    fitted = Preprocessor(impute=impute, drop_first=False, add_indicator=True).fit(frame)
    coded = fitted.transform_checked(frame, read_columns(frame))
    pd.testing.assert_frame_equal(coded, fitted.transform_checked(frame, NumberBlock.of(frame)), check_exact=True)
    assert coded.isna().to_numpy().any() != impute
    later = frame.assign(a=pd.Categorical(["u", "new", "w", "u", "v", "w"]))
    with pytest.warns(DataWarning, match="'new'"):
        coded = fitted.transform_checked(later, read_columns(later))
    assert coded.loc[1, ["a=u", "a=v", "a=w"]].tolist() == [0.0] * 3


def test_records_are_the_named_tuples():
    assert records(Source, ["a", "b"], [None, ("x",)], [1.0, "x"]) == [
        Source("a", None, 1.0), Source("b", ("x",), "x"),
    ]  # fmt: skip


def test_intervals_of_a_cut_number_are_levels():
    """pandas warned of a deprecated guess at the type of the intervals."""
    column = pd.Series(pd.cut([1.0, 2.0, 3.0, np.nan], [0, 1.5, 4]))
    assert labels(column, "cut").tolist() == ["(0.0, 1.5]", "(1.5, 4.0]", "(1.5, 4.0]", None]
