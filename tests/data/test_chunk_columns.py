"""A preprocessor from chunks against one of all rows at once, whoever reads which chunk."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.chunk_columns import fit_preprocessor
from softsurv.data.chunks import Chunk, Place, Table
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning, InvalidSurvivalDataError


def table(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "whole": rng.integers(0, 9, n), "real": rng.random(n), "two": rng.choice(["b", "a"], n),
        "three": rng.choice(["x", "y", "<z"], n), "same": 4.0, "flag": rng.random(n) < 0.5,
    })  # fmt: skip
    frame["none"] = np.nan
    frame.loc[3:5, "real"] = np.nan
    frame.loc[30:, "three"] = None  # the last chunks do not show a level
    return frame.assign(ordered=pd.Categorical(rng.choice(["low", "high"], n), ["low", "mid", "high"]))


def cut(frame, size):
    ones = np.ones(len(frame))
    for first in range(0, len(frame), size):
        part = slice(first, first + size)
        yield Chunk(Place(first), frame.iloc[part], ones[part], ones[part] > 0)


def state(encoder):
    """The state, and the fills of numbers apart: sums of chunks round otherwise."""
    found = encoder.to_dict()
    means = [one.pop("fill") for one in found["sources"] if one["levels"] is None]
    return found, means


@pytest.mark.parametrize("size", [1, 7, 100])
def test_chunks_of_any_size_say_what_the_table_says(size):
    found, means = state(fit_preprocessor(cut(table(), size)))
    expected, theirs = state(Preprocessor().fit(table()))
    assert found == expected
    assert means == pytest.approx(theirs, rel=1e-14)
    assert found["dropped"] == {"same": "constant", "none": "all missing"}


def test_processes_that_share_the_table_learn_what_one_would():
    """Each sees every second chunk; the exchange is that of the columns seen."""
    chunks = list(cut(table(), 7))
    seen = []
    for rank in range(2):
        fit_preprocessor(iter(chunks[rank::2]), lambda value: seen.append(value) or [value])
    found, means = state(fit_preprocessor(iter(()), lambda _: seen))
    expected, theirs = state(Preprocessor().fit(table()))
    for part in (found, expected):
        part["input_names"].sort()
    assert found == expected
    assert means == pytest.approx(theirs, rel=1e-14)


def test_a_column_of_numbers_and_words_is_refused_between_chunks_and_processes():
    first, second = pd.DataFrame({"x": [1.0, 2.0]}), pd.DataFrame({"x": ["a", "b"]})
    chunks = [next(cut(frame, 5)) for frame in (first, second)]
    with pytest.raises(
        InvalidSurvivalDataError, match="column 'x' must hold numbers or categories throughout, got both"
    ):
        fit_preprocessor(iter(chunks))
    seen = []
    for chunk in chunks:
        fit_preprocessor(iter([chunk]), lambda value: seen.append(value) or [value])
    with pytest.raises(
        InvalidSurvivalDataError, match="column 'x' must hold numbers or categories throughout, got both"
    ):
        fit_preprocessor(iter(()), lambda _: seen)


def test_what_names_the_rows_is_left_out_over_all_chunks():
    frame = pd.DataFrame({"who": [f"P{k}" for k in range(40)], "arm": ["a", "b"] * 20})
    with pytest.warns(DataWarning, match="column 'who' is left out"):
        found = fit_preprocessor(cut(frame, 9))
    assert found.to_dict()["dropped"] == {"who": "identifier"}
    assert [column.name for column in found.columns_] == ["arm=b"]


def test_the_most_frequent_level_fills_and_the_first_of_equals():
    frame = pd.DataFrame({"arm": ["c", "b", "b", "c", "a", None]})
    (source,) = fit_preprocessor(cut(frame, 2)).sources_
    assert (source.levels, source.fill) == (("a", "b", "c"), "b")


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_numbers_are_named(value):
    with pytest.raises(InvalidSurvivalDataError, match=r"column 'x' must be finite or missing, got -?inf at row 1"):
        fit_preprocessor(cut(pd.DataFrame({"x": [1.0, value, 2.0]}), 3))


def test_missing_cells_before_an_infinite_one_count_as_rows():
    with pytest.raises(InvalidSurvivalDataError, match=r"got inf at row 2;"):
        fit_preprocessor(cut(pd.DataFrame({"x": [np.nan, 1.0, np.inf]}), 3))


@pytest.mark.parametrize("several", [False, True])
def test_rows_of_weight_zero_count_in_the_row_of_a_wrong_cell(tmp_path, several):
    """They leave the chunk before its features are looked at."""
    frame = pd.DataFrame({"t": np.ones(9), "died": True, "w": [0.0, 1, 0, 0, 1, 0, 0, 1, 1], "x": np.arange(9.0)})
    frame.loc[7, "x"] = np.inf  # the second row of weight in the chunk that begins at row 4
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    frame.assign(x=0.0).to_parquet(files[0])
    frame.to_parquet(files[1])
    table = Table(files if several else files[1], "t", "died", "w", chunk_rows=4)
    named = r"got inf at row 7 of '.*b\.parquet';" if several else r"got inf at row 7;"
    with pytest.raises(InvalidSurvivalDataError, match=named):
        fit_preprocessor(table.chunks())


def test_files_of_other_columns_are_told():
    X, outcome = pd.DataFrame({"x": [1.0, 2.0], "z": [0.0, 1.0]}), {"time": np.ones(2), "event": np.ones(2, bool)}
    for later in (X[["x"]], X.assign(extra=1.0)):
        chunks = [Chunk(Place(0), X, **outcome), Chunk(Place(2), later, **outcome)]
        with pytest.raises(InvalidSurvivalDataError, match=r"same columns throughout, got '(z|extra)'.*rows from 2 on"):
            fit_preprocessor(iter(chunks))
    assert fit_preprocessor(
        iter([Chunk(Place(0), X, **outcome), Chunk(Place(2), X[["z", "x"]], **outcome)])
    ).input_names_ == [
        "x",
        "z",
    ]


def test_the_row_of_a_wrong_cell_is_that_of_the_table():
    X, outcome = pd.DataFrame({"x": [1.0, 2.0]}), {"time": np.ones(2), "event": np.ones(2, bool)}
    chunks = [Chunk(Place(0), X, **outcome), Chunk(Place(2), X.replace(2.0, np.inf), **outcome)]
    with pytest.raises(InvalidSurvivalDataError, match=r"got inf at row 3;"):
        fit_preprocessor(iter(chunks))
