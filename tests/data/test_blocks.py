"""Blocks of number columns against pandas, column by column."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data import blocks, threads
from softsurv.data.blocks import (
    FilledColumns,
    Labels,
    NumberBlock,
    any_missing,
    are_numbers,
    arrays_of,
    frame_rows,
    in_blocks,
    over_rows,
    stacked,
    with_ones,
    yes_no,
)
from softsurv.numerics import with_intercept


def frame_of(kind):
    rng = np.random.default_rng(1)
    whole = pd.DataFrame({"a": [3, 1, 2, 9], "zero one": [0, 1, 1, 0], "b": [-5, -5, 7, 0]})
    some = whole.assign(x=rng.random(4), gap=[np.nan, 1.0, 0.0, 1.0], none=np.nan, flag=[True, False, True, True])
    return {
        "whole": whole,
        "mixed": some.assign(text=list("abcd"), later=pd.array([1, None, 2, 3], dtype="Int64")),
        "one row": some.iloc[[1]],
        "no columns": whole[[]],
        "no rows": some.iloc[:0],
        "small": whole.astype({"a": "int8", "zero one": "int8", "b": "int8"}),
    }[kind]


KINDS = ["whole", "mixed", "one row", "no columns", "no rows", "small"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_says_what_pandas_says_of_each_column(kind):
    frame = frame_of(kind)
    block = NumberBlock.of(frame)
    known, low, high = block.ranges()
    mean = block.means()
    assert list(block.place) == [name for name in frame if name not in ("text", "later")]
    for name, k in block.place.items():
        column = frame[name].astype(float)
        np.testing.assert_array_equal(block.column(name), column)
        assert known[k] == column.notna().sum()
        expected = [np.nan] * 3 if column.isna().all() else [column.min(), column.max(), column.mean()]
        np.testing.assert_allclose([low[k], high[k], mean[k]], expected)
        if len(frame):
            assert block.gaps[k] == column.isna().any()
            assert block.are_yes_no[k] == column.isin([0.0, 1.0]).all()
    assert block.flags == ({"flag"} if "flag" in frame else set())


def test_means_of_huge_numbers_do_not_warn_and_whole_numbers_keep_their_digits():
    with np.errstate(over="raise"):
        assert np.isinf(NumberBlock.of(pd.DataFrame({"x": [1.7e308, 1.7e308]})).means())
    large = [2**53 - 1, 2**53 - 3]
    assert NumberBlock.of(pd.DataFrame({"x": large})).means()[0] == sum(large) / 2


def test_a_change_of_order_keeps_what_is_known_of_columns():
    block = NumberBlock.of(frame_of("whole"))
    extent, order = block.extent, np.array([3, 0, 2, 1])
    again = block.in_order(order)
    np.testing.assert_array_equal(again.values, block.values[:, order])
    assert again.extent is extent
    part = block.take(np.array([1, 1]))
    np.testing.assert_array_equal(part.extent[0], [1, 1, -5])  # other rows: looked at anew


def test_columns_are_found_where_all_are_complete():
    block = NumberBlock.of(frame_of("mixed"))
    part = block.found(["b", "a"])
    np.testing.assert_array_equal(part.values, [[-5, -5, 7, 0], [3, 1, 2, 9]])
    np.testing.assert_array_equal(part.extent, [[-5, 1], [7, 9]])
    assert part.place == {"b": 0, "a": 1}
    assert block.found(["a", "gap"]) is None
    assert block.found(["a", "text"]) is None
    whole = NumberBlock.of(frame_of("whole"))
    assert whole.found(["a", "zero one", "b"]) is whole
    np.testing.assert_array_equal(whole.found(["zero one"]).are_yes_no, [True])
    np.testing.assert_array_equal(whole.rows_of(["b", "b"]), [[-5, -5, 7, 0]] * 2)


def test_types_of_plain_numbers():
    assert are_numbers([np.dtype("int8"), np.dtype("float32"), np.dtype(bool)])
    assert not are_numbers([np.dtype("int8"), pd.Int64Dtype()])
    assert not are_numbers([np.dtype("datetime64[ns]")])
    assert are_numbers([])


def test_zeros_and_ones_are_told_from_what_lies_between():
    values = np.array([[0.0, 1.0], [0.0, 0.5], [1.0, np.nan], [-0.0, 1.0]])
    assert yes_no(values).tolist() == [True, False, False, True]
    np.testing.assert_array_equal(stacked(list(values)), np.stack(list(values)))


@pytest.mark.parametrize(("n", "sizes"), [(3, [3, 3, 1]), (100, [1] * 7), (0, [7]), (10, [1] * 7)])
def test_blocks_of_columns_hold_no_more_than_the_limit(n, sizes, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_CELLS", 10)
    parts = list(in_blocks(list("abcdefg"), n))
    assert [len(part) for part in parts] == sizes
    assert [name for part in parts for name in part] == list("abcdefg")


def test_texts_of_categories_are_made_when_asked_for():
    read = Labels(np.array([0, -1, 2, 0]), ("a", "b", "c"))
    assert read.counts == {"a": 2, "c": 1}
    filled, gaps = (FilledColumns({"level": read}, {"level": fill}) for fill in ("c", None))
    assert not filled
    assert filled["level"].tolist() == ["a", "c", "c", "a"]
    assert gaps["level"].tolist() == ["a", None, "c", "a"]
    assert filled["level"] is filled["level"]
    with pytest.raises(KeyError):
        filled["other"]


@pytest.fixture
def large(monkeypatch):
    """Small tables are worked on as large ones are."""
    monkeypatch.setattr(blocks, "MANY_CELLS", 1)
    monkeypatch.setattr(blocks, "LONG_COLUMN", 1)
    monkeypatch.setattr(blocks, "BLOCK_CELLS", 1)
    monkeypatch.setattr(blocks, "threads_for", lambda cells: 3)
    monkeypatch.setattr(threads, "row_parts", lambda n: [slice(0, 2), slice(2, n)])


@pytest.mark.parametrize("what", ["mean", "min", "max"])
def test_a_number_of_each_row_is_the_same_to_the_last_digit_in_threads(what, request):
    values = np.random.default_rng(0).normal(size=(5, 50_001)) * 1e3
    values[1, 7], values[2, ::3], values[3] = np.nan, -0.0, 0.1
    expected = over_rows(lambda some: getattr(some, what)(axis=1), values)
    request.getfixturevalue("large")
    found = over_rows(lambda some: getattr(some, what)(axis=1), values)
    assert expected.tobytes() == getattr(values, what)(axis=1).tobytes() == found.tobytes()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["float", "bool", "mixed", "text"])
def test_rows_of_a_large_frame_are_those_that_pandas_takes(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((6, 4)), columns=list("dbca"), index=[f"r{k}" for k in range(6)])
    frame.iloc[2, 1] = np.nan
    if kind == "bool":
        frame = frame > 0.5
    elif kind in ("mixed", "text"):
        frame["e"] = [1, 2, 3, 4, 5, 6] if kind == "mixed" else list("uvwxyz")
    rows = np.array([5, 0, 0, 3])
    pd.testing.assert_frame_equal(frame_rows(frame, rows), frame.iloc[rows])
    assert frame_rows(frame, rows).iloc[0, 0] == frame.iloc[5, 0]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("shape", [(5, 3000), (3000, 5), (0, 3), (3, 0)])
def test_a_missing_value_is_found_in_any_order_of_cells(shape, monkeypatch):
    monkeypatch.setattr(blocks, "PART_ROWS", 64)
    for values in (np.zeros(shape), np.zeros(shape).T):
        assert not any_missing(values)
        if values.size:
            values[-1, -1] = np.nan
            assert any_missing(values)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("by_columns", [True, False])
def test_a_large_table_gets_its_column_of_ones(by_columns):
    x = torch.rand(5000, 70, dtype=torch.float64)
    x = x.T.contiguous().T if by_columns else x
    expected = with_intercept(x)
    found = with_ones(x)
    assert found.equal(expected)
    assert found.stride() == expected.stride()


@pytest.mark.parametrize("given", [True, False])  # whether pandas gives the array itself
@pytest.mark.parametrize("kind", KINDS)
def test_columns_as_the_frame_holds_them_are_those_that_pandas_shows(kind, given):
    X = frame_of(kind).assign(level=lambda X: pd.Categorical(["u"] * len(X)))
    X["half"] = np.float32(0.5)  # a block of its own
    names = X.columns.tolist()[::-1]
    frame = X if given else SimpleNamespace(columns=X.columns, iloc=X.iloc)
    for name, held in zip(names, arrays_of(frame, names), strict=True):
        assert held.dtype == X[name].dtype
        pd.testing.assert_series_equal(pd.Series(held, X.index, name=name), X[name])
