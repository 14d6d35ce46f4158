"""What estimators are given, by scikit-learn's rules and with a remedy: tables, weights, targets, treatments."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.shared.inputs import (
    binned_rows,
    checked_frame,
    checked_matrix,
    checked_target,
    checked_treatment,
    checked_weight,
    coded,
    names_for_state,
    names_from_state,
)

FRAME = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})


def test_tables_keep_names_categories_and_gaps():
    model = BaseEstimator()
    pd.testing.assert_frame_equal(checked_frame(model, FRAME, reset=True), FRAME)
    assert (model.feature_names_in_.tolist(), model.n_features_in_) == (["a", "b"], 2)
    found = checked_frame(model, {"a": [3.0], "b": ["x"]})
    assert found["a"].tolist() == [3.0]
    with pytest.raises(ValueError, match="feature names should match"):
        checked_frame(model, FRAME.rename(columns={"b": "c"}))


@pytest.mark.parametrize(
    ("X", "remedy"),
    [
        (FRAME.to_dict("records"), r"use pandas.DataFrame\(X\) for rows of named fields"),
        (FRAME.to_records(index=False), r"use pandas.DataFrame\(X\) for rows of named fields"),
        (FRAME.iloc[0], r"X.to_frame\(\).T for a single row"),
        (survival_data(FRAME, ([True, False], [1.0, 2.0])), r"a table of features, got SurvivalData; .* data.X"),
    ],
)
def test_rows_of_named_values_and_survival_data_are_told_how_to_become_a_frame(X, remedy):
    model = BaseEstimator()
    checked_frame(model, FRAME, reset=True)
    with pytest.raises(InvalidSurvivalDataError, match=remedy):
        checked_frame(model, X)


def test_arrays_have_numbered_columns_and_no_infinity():
    model = BaseEstimator()
    found = checked_frame(model, np.ma.array([[1.0, 2.0]], mask=[[False, True]]), reset=True)
    assert found.columns.tolist() == ["x0", "x1"]
    assert np.isnan(found.loc[0, "x1"])
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="expecting 2 features"):
        checked_frame(model, np.ones((3, 1)))
    with pytest.raises(ValueError, match="infinity"):
        checked_frame(model, np.array([[1.0, np.inf]]))


@pytest.mark.parametrize("names", [[0, 1], ["a", 1]])
def test_names_that_are_no_text_go_by_scikit_learn(names):
    model = BaseEstimator()
    frame = pd.DataFrame([[1.0, 2.0]], columns=names)
    if names == ["a", 1]:
        with pytest.raises(TypeError, match="names are only supported if all input features have string names"):
            checked_frame(model, frame, reset=True)
    else:
        checked_frame(model, frame, reset=True)
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    ("weight", "expected"), [(None, [1, 1, 1]), ([0, 2, 1.5], [0, 2, 1.5]), (2.0, [2, 2, 2])], ids=str
)
def test_weights_are_numbers_for_each_row(weight, expected):
    found = checked_weight(weight, 3)
    assert found.dtype == float
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([0, 0, 0], "sample_weight must be > 0 in some row|at least one non-zero"),
        ([1, -1, 1], "[Nn]egative"),
        ([1, np.nan, 1], "NaN"),
        (np.ma.array([1.0, 1.0, 1.0], mask=[0, 1, 0]), "NaN"),
        ([1, 1], "inconsistent|shape"),
        ([1, 10**400, 1], "sample_weight must hold numbers up to 1.8e308"),
        ([1, 1e-150, 1], "sample_weight must be 0 or from 1e-100"),
    ],
    ids=str,
)
def test_weights_that_cannot_be_used(weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        checked_weight(weight, 3)


def test_targets_are_numbers_however_they_are_written():
    assert checked_target(["1", "2.5"], 2).tolist() == [1.0, 2.5]
    with pytest.warns(DataConversionWarning):
        assert checked_target([[1], [2]], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (None, "requires y to be passed"),
        (3.0, "cost must have one number for each of the 2 rows of X, got 3.0"),
        (["1", "old"], "cost must be numbers; .*old"),
        ([1.0, np.inf], "cost contains infinity"),
        ([1.0], "cost must have one number for each of the 2 rows of X, got 1"),
        ([[1.0, 2.0], [3.0, 4.0]], r"cost must have one number for each row, \(2,\), got \(2, 2\)"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "NaN"),
    ],
    ids=str,
)
def test_targets_that_cannot_be_used(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        checked_target(y, 2, "cost")


def test_treatments_are_known_for_every_row():
    assert checked_treatment(["new", "old"], 2).tolist() == ["new", "old"]
    with pytest.raises(InvalidParameterError, match="treatment must say which treatment each row was given"):
        checked_treatment(None, 2)
    with pytest.raises(InvalidSurvivalDataError, match=r"one entry for each row of X, \(2,\), got \(3,\)"):
        checked_treatment([0, 1, 1], 2)
    with pytest.raises(InvalidSurvivalDataError, match="treatment must be known, got none at row 1; leave out"):
        checked_treatment(np.array(["new", None], dtype=object), 2)


def test_labels_are_numbered_in_their_order():
    names, codes = coded("group", np.array(["b", "a", "b"], dtype=object))
    assert names.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]
    with pytest.raises(InvalidSurvivalDataError, match="treatment must hold numbers or text alone, got int and str"):
        coded("treatment", np.array([1, "a"], dtype=object))


def test_bins_name_their_columns_and_refuse_weights_that_are_lost_in_the_sum():
    table = {"age": [1.0, 2.0, 3.0], "arm": ["a", "b", "c"]}
    binarizer = Binarizer("all").fit(table)
    filled, _ = binarizer.filled(pd.DataFrame(table))
    rows = binned_rows(binarizer, filled, 3, np.ones(3))
    assert (rows.n, rows.sources) == (3, tuple(column.name for column in binarizer.columns_))
    np.testing.assert_array_equal(rows.codes, binarizer.codes(pd.DataFrame(table)))
    with pytest.raises(ValueError, match="weight"):
        binned_rows(binarizer, filled, 3, np.array([1.0, 1e-18, 1.0]))


@pytest.mark.parametrize(
    "names",
    [
        np.array(["a", "bc"]),
        np.array([1, 2]),
        np.array([True]),
        np.array(["a", 1], object),
        np.array(["2020-01-01"], "M8[D]"),
        np.array(["2020-01-01T01"], "M8[us]"),
        np.array([90], "m8[s]"),
    ],
)
def test_names_come_back_from_a_list_of_their_kind(names):
    again = names_from_state(json.loads(json.dumps(names_for_state(names))), names.dtype.str)
    assert again.dtype == names.dtype
    assert again.tolist() == names.tolist()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (pd.to_datetime(["2020-01-01"]), "must be numbers, got dates or durations; count them in a unit first"),
        (pd.Series(pd.to_timedelta([1.0], unit="D")), "must be numbers, got dates or durations"),
        ({"a": [1.0]}, "must be numbers; float"),
        ([10**400], "must hold numbers up to 1.8e308"),
        ([[1.0], [1.0, 2.0]], "must have rows of one length"),
        (np.zeros(1, [("e", bool), ("t", float)]), "must be one column, got the fields e, t"),
    ],
    ids=str,
)
def test_what_is_no_number_is_one_sentence(given, sentence):
    for check in (checked_weight, checked_target):
        with pytest.raises(InvalidSurvivalDataError, match=sentence):
            check(given, 1)
    with pytest.raises(InvalidSurvivalDataError, match=f"scores {sentence}"):
        checked_matrix("scores", given)


@pytest.mark.parametrize(
    "labels",
    [
        pd.period_range("2020", periods=2, freq="D"),
        np.array([b"a", b"b"]),
        np.array([Fraction(1, 3), Fraction(1, 2)]),
        np.array([1, 2], np.longdouble),
    ],
    ids=str,
)
def test_labels_that_no_file_can_hold_are_refused(labels):
    with pytest.raises(InvalidSurvivalDataError, match="group must hold numbers or text alone, got"):
        coded("group", np.asarray(labels))
