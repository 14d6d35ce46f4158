"""Which columns are numbers, which are categories, and which are a question."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv import OptimalSurvivalTree
from softsurv.data.chunk_columns import fit_preprocessor
from softsurv.data.chunks import Table
from softsurv.data.encoding import numbers
from softsurv.data.frames import read_table
from softsurv.data.kinds import declared, is_identifier, is_number
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidSurvivalDataError
from softsurv.explore import plot_tree

AGES = [f"{age:.1f}" for age in np.random.default_rng(0).normal(60, 9, 100)]
NUMBERS = {
    "floats as objects": [1.5, None, 2.0, np.nan],
    "Decimal": [Decimal(age) for age in AGES],
    "Fraction": [Fraction(age) for age in AGES],
    "text": AGES,
    "text with blanks": [f" {age} " for age in AGES],
    "text and numbers": [*AGES[:50], *map(float, AGES[50:])],
    "text of many whole numbers": [str(k % 15) for k in range(100)],
    "text of large whole numbers": ["61", "47", "70", "61"],
    "exponents": ["1e3", "2.5E-1", "+.5", "3."],
    "numbers beyond floats": [10**400, 1.0],
}
CATEGORIES = {
    "words": ["I", "II", None],
    "codes": ["1", "2", "3"] * 10,
    "codes with zeros": [f"{k:03d}" for k in range(30)],
    "stages": ["1A", "1B", "2A"] * 30,
    "ranges": ["0-10", "10-20", "20-30"] * 30,
    "few numbers among words": ["a", "b", "c", "4"] * 9,
    "truth": ["True", "False"] * 5,
    "lists": [[1], [2]],
    "declared": pd.Series(AGES).astype("category"),
}
QUESTIONS = {
    "unknown": ([*AGES, "unknown"], "got numbers and 'unknown' in 1 cell, first 'unknown' at row 100"),
    "unknown among numbers": ([*map(float, AGES), "?"], "got numbers and '?' in 1 cell"),
    "comma": ([age.replace(".", ",") for age in AGES], "must hold plain numbers such as 83.1, got '61,1'"),
    "comma's remedy": ([age.replace(".", ",") for age in AGES], "write decimal points"),
    "one comma": ([*AGES, "83,1"], "must hold plain numbers such as 83.1, got '83,1' in 1 cell"),
    "percent": ([f"{age}%" for age in AGES], "plain numbers"),
    "hex": ([hex(k) for k in range(40)], "plain numbers"),
    "dates": ([f"2020-01-{k % 28 + 1:02d}" for k in range(60)], "plain numbers"),
    "dates' remedy": (
        [f"2020-01-{k % 28 + 1:02d}" for k in range(60)],
        "count the days since an origin, or leave the column out (--drop ",
    ),
    "thousands": ([f"1 {k}" for k in range(100, 130)], "plain numbers"),
    "money": ([f"${k}" for k in range(30)], "plain numbers"),
    "markers in most rows": ([*AGES, *["none"] * 300], "got numbers and 'none' in 300 cells"),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_numbers(values):
    assert is_number(pd.Series(values, dtype=object))


@pytest.mark.parametrize("values", CATEGORIES.values(), ids=CATEGORIES)
def test_categories(values):
    assert not is_number(values if isinstance(values, pd.Series) else pd.Series(values, dtype=object))


@pytest.mark.parametrize("dtype", [object, "str"])
@pytest.mark.parametrize(("values", "sentence"), QUESTIONS.values(), ids=QUESTIONS)
def test_questions(values, sentence, dtype):
    if dtype == "str" and not all(isinstance(value, str) for value in values):
        return
    column = pd.Series(values, dtype=dtype, name="age")
    with pytest.raises(InvalidSurvivalDataError, match="column 'age' must hold") as caught:
        is_number(column)
    assert sentence in str(caught.value)
    assert "categorical=['age'], --categorical age" in str(caught.value)
    with pytest.raises(InvalidSurvivalDataError, match="column 'age' must hold"):
        survival_data({"age": column}, time=np.arange(1.0, len(column) + 1), event=np.ones(len(column)))
    frame = pd.DataFrame({"age": column})
    assert not is_number(declared(frame, ["age"])["age"])


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=1e9), min_size=1))
def test_text_is_read_as_the_number_it_says(values):
    text = pd.Series([f"{value:f}" for value in values], dtype=object)
    assert numbers(text, "x").tolist() == [float(value) for value in values]


def test_text_and_decimals_give_the_model_of_the_numbers():
    plain = pd.DataFrame({"age": [float(age) for age in AGES], "arm": ["a", "b"] * 50})
    for column in (AGES, [Decimal(age) for age in AGES], [Fraction(age) for age in AGES]):
        encoder = Preprocessor().fit(plain.assign(age=pd.Series(column, dtype=object)))
        assert encoder.to_dict() == Preprocessor().fit(plain).to_dict()
        data = survival_data(plain.assign(age=pd.Series(column, dtype=object)), time=np.ones(100), event=np.ones(100))
        pd.testing.assert_series_equal(data.X["age"], plain["age"])


def test_small_codes_beside_a_word_are_categories_with_a_warning():
    frame = {"grade": ["1", "2", "3", "unknown"] * 10}
    with pytest.warns(DataWarning, match="column 'grade' is taken as categories because of 'unknown' in 10 cells"):
        data = survival_data(frame, time=np.ones(40), event=np.ones(40))
    assert [column.kind for column in Preprocessor().fit(data.X).columns_] == ["level"] * 4


def test_many_columns_in_doubt_are_told_in_one_sentence_and_by_the_fit_alone():
    rng = np.random.default_rng(0)
    grades = {f"grade {k}": rng.permutation(["1", "2", "3", "unknown"] * 25) for k in range(6)}
    frame = pd.DataFrame(grades | {"time": rng.exponential(size=100) + 0.1, "event": rng.random(100) < 0.7})
    with pytest.warns(DataWarning) as seen:
        tree = OptimalSurvivalTree(max_depth=1).fit(frame, time="time", event="event")
    assert len(seen) == 1
    words = str(seen[0].message)
    assert words.startswith("6 columns are taken as categories, 'grade 0' because of 'unknown' in 25 cells, 'grade 1'")
    assert ", and 2 more; if they hold numbers, clean these cells" in words
    assert "missing_values=['unknown']" in words
    tree.score(frame, frame[["time", "event"]])  # warnings are errors
    tree.evaluate(frame)
    plot_tree(tree, frame)
    plot_tree(tree, (frame.iloc[:, :6], (frame["event"], frame["time"])))


def test_missing_values_are_named_as_text_or_number():
    frame = pd.DataFrame(
        {"age": [*AGES, "unknown"], "dose": [*range(100), -9], "arm": ["a", "-9", "b"] * 33 + ["a"] * 2}
    )
    data = survival_data(frame, time=np.ones(101), event=np.ones(101), missing_values=["unknown", -9])
    assert data.X["age"].tolist()[:100] == [float(age) for age in AGES]
    assert data.X.isna().sum().tolist() == [1, 1, 33]
    again = survival_data(frame, time=np.ones(101), event=np.ones(101), missing_values=["unknown", "-9"])
    pd.testing.assert_frame_equal(again.X, data.X)


def test_categories_are_declared_by_name():
    frame = pd.DataFrame({"site": [1, 2, 30] * 10})
    data = survival_data(frame, time=np.ones(30), event=np.ones(30), categorical=["site"])
    encoder = Preprocessor().fit(data.X)
    assert [column.name for column in encoder.columns_] == ["site=1", "site=2", "site=30"]
    assert encoder.transform(frame).sum(axis=1).tolist() == [1.0] * 30
    with pytest.raises(InvalidSurvivalDataError, match="categorical must name features, got 'state'"):
        survival_data(frame, time=np.ones(30), event=np.ones(30), categorical=["state"])


def test_a_list_of_names_is_left_out():
    frame = pd.DataFrame({"name": [f"P{k}" for k in range(30)], "x": range(30)})
    assert is_identifier(frame["name"])
    with pytest.warns(DataWarning, match="column 'name' is left out: each of its 30 values occurs once"):
        data = survival_data(frame, time=np.ones(30), event=np.ones(30))
    assert Preprocessor().fit(data.X).dropped_ == {"name": "identifier"}


# -- files ----------------------------------------------------------------------------------------------------------
def both(path):
    """A csv file through both readers."""
    yield lambda: survival_data(path, time="t", event="e")
    yield lambda: fit_preprocessor(Table(path, "t", "e").chunks())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"t,e,x,t\n1,1,2,1\n", "must have unique column names, got 't' twice"),
        ("t,e,x\n1,1,Zürich\n".encode("latin-1"), "must be encoded as UTF-8"),
        ("t,e,x\n1,1,2\n".encode("utf-16-le"), "must be encoded as UTF-8"),
        (b"t,e,x\n", "at least one row, got none"),
        (b"t,e,x\n1,1,2,7\n1,1,2,7\n", "must"),
        (b"", "must be a readable table"),
        (b"t,e,x\n" + b"".join(b"1,1,%d\n" % k for k in range(50)) + b"1,1,unknown\n", "column 'x' must hold"),
    ],
    ids=["duplicate names", "latin-1", "utf-16", "header alone", "more cells than names", "empty", "one dirty cell"],
)
def test_both_readers_refuse(tmp_path, content, sentence):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    for read in both(path):
        with pytest.raises(InvalidSurvivalDataError, match=sentence):
            read()


def test_both_readers_leave_out_what_has_no_name_and_what_names_the_rows(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [f"{k},{k + 1},1,{k % 7},P{k}" for k in range(30)]
    path.write_text("\n".join([",t,e,x,name", *rows]))
    for read in both(path):
        with pytest.warns(DataWarning) as caught:
            read()
        texts = [str(one.message) for one in caught]
        assert texts[0] == "column 1 of 'rows.csv' has no name and is left out; give it a name to use it"
        assert "column 'name' is left out" in texts[1]
        assert len(texts) == 2
    with pytest.warns(DataWarning):
        assert list(read_table(path)) == ["t", "e", "x", "name"]


@pytest.mark.parametrize("missing", ["", "NA", "None", "<NA>", "null", "NaN"])
def test_both_readers_know_the_same_missing_cells(tmp_path, missing):
    path = tmp_path / "rows.csv"
    path.write_text("t,e,x,arm\n" + f"1,1,2,a\n2,1,{missing},b\n3,0,4,{missing}\n4,1,7,b\n")
    inside = Preprocessor().fit(survival_data(path, time="t", event="e").X).to_dict()
    streamed = fit_preprocessor(Table(path, "t", "e").chunks()).to_dict()
    assert streamed == inside


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv.gz"])
def test_corrupt_files_are_one_sentence(tmp_path, name):
    path = tmp_path / name
    pd.DataFrame({"t": [1.0] * 50, "e": [1] * 50, "x": range(50)}).pipe(
        lambda frame: frame.to_parquet(path) if "parquet" in name else frame.to_csv(path, index=False)
    )
    whole = path.read_bytes()
    for share in (0.0, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(share * len(whole))] or b"PAR1")
        for read in both(path):
            with pytest.raises(InvalidSurvivalDataError, match="must be a readable table"):
                read()


def test_the_cell_that_spoils_a_time_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("t,e,x\n1.5,1,1\n2.5,1,2\nunknown,1,3\n")
    for read in both(path):
        with pytest.raises(InvalidSurvivalDataError, match="time must be numbers, got 'unknown' at row 2"):
            read()


@pytest.mark.parametrize("cells", [[b"83.1", b"61.0"] * 20, [b"K\xf6ln", b"Aachen"] * 20], ids=["numbers", "Latin-1"])
def test_both_readers_refuse_bytes(tmp_path, cells):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": cells, "time": rng.exponential(1.0, 40) + 0.1, "event": [1, 0] * 20})
    table.to_parquet(tmp_path / "bytes.parquet")
    sentence = r"column 'x' must hold numbers or categories, got bytes; decode it first: X\['x'\]\.str\.decode"
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        OptimalSurvivalTree(max_depth=1).fit(table, time="time", event="event")
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        fit_preprocessor(Table(tmp_path / "bytes.parquet", "time", "event").chunks())


@pytest.mark.parametrize("kind", ["bool", "boolean", "bool[pyarrow]"])
def test_booleans_of_any_library_are_numbers(kind):
    """Those of pyarrow were a category, whose levels 0 and 1 of another table were not."""
    column = pd.Series([True, False, True]).astype(kind)
    assert is_number(column)
    fitted = Preprocessor().fit(pd.DataFrame({"x": column}))
    assert fitted.transform(pd.DataFrame({"x": [1.0, 0.0, 1.0]}))["x"].tolist() == [1.0, 0.0, 1.0]
    assert not is_number(column.astype("category"))
