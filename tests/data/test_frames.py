"""Tables in any form become checked frames; columns in any order become those of training."""

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import torch
from scipy.sparse import csr_array

from softsurv.data.binarize import Binarizer
from softsurv.data.frames import (
    as_frame,
    checked_features,
    checked_table,
    checksum,
    content_bytes,
    has_names,
    numeric_matrix,
    objects_as_numbers,
    read_table,
)
from softsurv.errors import InvalidSurvivalDataError

VALUES = [[1.0, 2.0], [3.0, 4.0]]
NAMED = pd.DataFrame(VALUES, columns=["a", "b"])
FORMS = {
    "frame": NAMED,
    "dict": {"a": [1.0, 3.0], "b": np.array([2.0, 4.0])},
    "polars": polars.from_pandas(NAMED),
    "lazy": polars.from_pandas(NAMED).lazy(),
    "pyarrow": pyarrow.Table.from_pandas(NAMED),
    "numpy": np.array(VALUES),
    "swapped bytes": np.array(VALUES, ">f8"),
    "torch": torch.tensor(VALUES),
    "list": VALUES,
    "masked": np.ma.array(VALUES, mask=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_table_is_the_same_frame(form):
    frame = as_frame(FORMS[form])
    names = ["a", "b"] if has_names(FORMS[form]) else ["x0", "x1"]
    assert frame.columns.tolist() == names
    assert frame.to_numpy(float).tolist() == VALUES
    assert has_names(FORMS[form]) == (form in ("frame", "dict", "polars", "lazy", "pyarrow"))


@pytest.mark.parametrize(("X", "sentence"), [
    ([1.0, 2.0], r"X must be two-dimensional, .* got shape \(2,\); use X.reshape"),
    (pd.Series([1.0, 2.0]), r"use X.to_frame\(\) for a single feature, X.to_frame\(\).T for a single row"),
    (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), r"got shape \(1,\); use pandas.DataFrame\(X\)"),
    ([{"a": 1, "b": 2.0}], r"got shape \(1,\); use pandas.DataFrame\(X\)"),
    (csr_array(np.eye(2)), "X must be a dense table, got a sparse csr_array; pass X.toarray"),
    ([[1.0], [2.0, 3.0]], "got rows of unequal length"),
    ({"a": [1], "b": [1, 2]}, "got rows of unequal length"),
    ({"a": 1, "b": "x"}, r"a list for each column, got single values; pass pandas.DataFrame\(\[X\]\) for one row"),
    (None, r"got shape \(\); pass a frame, or a dict of columns"),
    (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\); pass a frame, or a dict of columns"),
    ("rows.txt", "must be a .csv or .parquet file, got 'rows.txt'"),
    ("none.csv", "must be an existing file, got 'none.csv'; check the path"),
], ids=str)  # fmt: skip
def test_what_is_no_table_is_one_sentence(X, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        as_frame(X)


@pytest.mark.parametrize(("text", "sentence"), [
    ("a;b\n1;2\n", r"must be comma separated, got the single column 'a;b' .* sep=';'"),
    ("a,b\n1,2,3\n4,5,6\n", "must have a name for every column, got more cells than names"),
    ("a,b\n0,2,3\n1,5,6\n", "must have a name for every column, got more cells than names"),
    ("a,b\n1,2\n4,5,6\n", "must be a readable table"),
    ("a,a\n1,2\n", "must have unique column names, got 'a' twice"),
])  # fmt: skip
def test_files_in_another_form_are_told(tmp_path, text, sentence):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        read_table(tmp_path / "rows.csv")


def test_checked_features_are_a_copy_with_text_names():
    given = pd.DataFrame({0: [1, 2], "b": [1.0, np.nan]})
    found = checked_features(given)
    assert found.columns.tolist() == ["0", "b"]
    found.loc[0, "b"] = 9.0
    assert given.loc[0, "b"] == 1.0
    same, types = checked_table(NAMED)
    assert types == NAMED.dtypes.tolist()
    assert same is not NAMED


@pytest.mark.parametrize(("frame", "sentence"), [
    (NAMED.iloc[:0], "X must have at least one row, got none"),
    (pd.DataFrame([[1, 2]], columns=["1", 1]), "unique column names, got '1' twice; rename one"),
    (NAMED.assign(b=[1.0, -np.inf]), "infinite value in column 'b' at row 1; replace it"),
    (NAMED.to_numpy(), "must be a pandas DataFrame, got ndarray"),
])  # fmt: skip
def test_features_that_cannot_be_used_are_named(frame, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        checked_features(frame)


def test_many_columns_of_objects_become_numbers_together():
    cells = np.array([[1, None, 2.5], [3.0, 4, None]] * 2, dtype=object)
    wide = pd.DataFrame(np.tile(cells, (1, 40))).rename(columns=str).assign(real=0.5)
    found = objects_as_numbers(wide)
    assert set(found.dtypes) == {np.dtype(float)}
    assert found.columns.tolist() == wide.columns.tolist()
    np.testing.assert_array_equal(found.iloc[:, :3], cells.astype(float))
    for other in ("word", 10**400):  # `is_number` says where
        assert objects_as_numbers(wide.assign(more=pd.Series([other] * 4, dtype=object))).dtypes.iloc[0].kind == "O"


def test_a_matrix_of_numbers_may_be_written_to_and_names_what_is_none():
    matrix = numeric_matrix(pd.DataFrame({"a": [True, False], "b": pd.array([1, 2], "Int64")}))
    matrix[0, 0] = 7.0
    assert matrix.tolist() == [[7.0, 1.0], [0.0, 2.0]]
    with pytest.raises(InvalidSurvivalDataError, match=r"must be numeric to become a tensor, got .* in column 'b'"):
        numeric_matrix(pd.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(InvalidSurvivalDataError, match=r"missing value in column 'b' at row 1 \(2 in all\)"):
        numeric_matrix(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [1.0, np.nan, 2.0]}))


def test_content_depends_on_values_and_not_on_their_type():
    assert (
        content_bytes(pd.Series([1, 0]))
        == content_bytes(pd.Series([1.0, 0.0]))
        == content_bytes(pd.Series([True, False]))
    )
    assert content_bytes(pd.Series(["a", None])) == content_bytes(pd.Series(["a", None], dtype="category"))
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    assert content_bytes(pd.Series(nans[:1])) == content_bytes(pd.Series(nans[1:]))
    different = [["a", "b"], ["ab", ""], ["a", None], ["a", "None"]]
    assert len({content_bytes(pd.Series(values, dtype=object)) for values in different}) == 4


def test_a_checksum_sees_cells_names_and_odd_text():
    base = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    others = [base.rename(columns={"a": "c"}), base.assign(a=[1.0, 2.5]), base.assign(b=["x", None]),
              base.set_axis(pd.Index(["\ud800", "b"], dtype=object), axis=1), base.iloc[::-1]]  # fmt: skip
    assert checksum(base) == checksum(base.copy())
    assert len({checksum(frame) for frame in [base, *others]}) == 6


def test_a_binarizer_reads_a_lazy_table_by_its_names():
    lazy = polars.from_pandas(NAMED).lazy()
    assert Binarizer().fit(lazy).codes(lazy).tolist() == Binarizer().fit(NAMED).codes(NAMED).tolist()


@pytest.mark.parametrize("kind", ["float16", "Float32", "double[pyarrow]", "longdouble"])
def test_infinities_of_any_library_and_precision_are_refused(kind):
    """Beside columns of other types those of pyarrow and of half precision were not looked at."""
    table = pd.DataFrame({"x": pd.Series([1.0, np.inf, 3.0]).astype(kind), "level": ["a", "b", "a"]})
    with pytest.raises(InvalidSurvivalDataError, match="infinite value in column 'x' at row 1"):
        checked_features(table)
    assert len(checked_features(table.assign(x=pd.Series([1.0, None, 3.0]).astype(kind)))) == 3
