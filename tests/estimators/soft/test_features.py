"""Names, sources and importances of the features of a soft tree, and the notes below its text."""

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data.preprocess import Preprocessor
from softsurv.estimators.soft import features
from softsurv.estimators.soft.features import (
    encoded_names,
    importances,
    incomplete,
    reading_notes,
    source_numbers,
    strongest_slopes,
    whole_numbers,
)
from softsurv.hazards import get_family
from softsurv.results import FitReport, Status
from softsurv.trees.leaf_table import leaf_table
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_tree import SoftTree

RAW = pd.DataFrame({"age": [40.0, 50.0, np.nan, 70.0], "arm": ["a", "b", "c", "b"], "sex": ["f", "m", "m", "f"]})


@pytest.fixture(scope="module")
def encoder():
    return Preprocessor().fit(RAW)  # age, arm=a, arm=b, arm=c, sex=m


def tree_of(slopes, routing=None):
    """A tree of two leaves with the same slopes (P,) and given routing weights (1 + P,)."""
    tree = SoftTree(0 if routing is None else 1, len(slopes), get_family("weibull"))
    with torch.no_grad():
        tree.leaves.zero_()
        tree.leaves[..., 1 : len(slopes) + 1] = torch.tensor(slopes)
        if routing is not None:
            tree.routing.copy_(torch.tensor(routing).reshape(1, 1, -1))
    return tree


def test_names_are_those_of_the_encoder_the_table_or_the_places(encoder):
    assert encoded_names(encoder, 3, None) == ["age", "arm=a", "arm=b", "arm=c", "sex=m"]
    assert encoded_names(None, 2, np.array(["u", "v"], dtype=object)) == ["u", "v"]
    assert encoded_names(None, 2, None) == ["x0", "x1"]


def test_encoded_columns_know_their_raw_column(encoder):
    assert source_numbers(encoder, 5) == (0, 1, 1, 1, 2)
    assert source_numbers(None, 3) == (0, 1, 2)


def test_whole_numbers_are_counts_whatever_their_type():
    frame = pd.DataFrame({
        "count": [1.0, np.nan, 3.0], "half": [1.0, 2.0, 2.5], "int": [1, 2, 3], "null": pd.array([1, None, 3], "Int64"),
        "some": pd.array([1, None, 3.5], "Float64"), "none": [np.nan] * 3, "arm": ["a", "b", "c"], "later": [1.0] * 3,
    })  # fmt: skip
    assert whole_numbers(frame) == ["count", "int", "null", "later"]
    long = pd.DataFrame({"x": np.r_[np.ones(200), 0.5]})  # the first rows do not tell
    assert whole_numbers(long) == []


@pytest.mark.parametrize("kind", ["numbers", "mixed", "complete"])
def test_columns_with_missing_values_are_found_in_tables_of_any_size(kind, monkeypatch):
    frame = pd.DataFrame({"gap": [1.0, np.nan, 3.0], "b": [1, 2, 3], "c": [True, False, True], "none": [np.nan] * 3})
    frame = {"numbers": frame, "mixed": frame.assign(arm=["a", None, "b"]), "complete": frame[["b", "c"]]}[kind]
    expected = {"numbers": ["gap", "none"], "mixed": ["gap", "none", "arm"], "complete": []}[kind]
    assert incomplete(frame) == expected
    monkeypatch.setattr(features, "MANY_CELLS", 1)
    monkeypatch.setattr(features, "LONG_COLUMN", 1)
    monkeypatch.setattr(features, "threads_for", lambda cells: 2)
    assert incomplete(frame) == expected


def test_the_strongest_slopes_are_named_once_and_small_ones_not():
    names = ["age", "arm", "arm", "sex"]
    assert strongest_slopes([tree_of([0.2, -2.0, 1.0, 0.04])], names) == ["arm", "age"]
    assert strongest_slopes([tree_of([0.2, -2.0, 1.0, 0.3])], names, count=1) == ["arm"]
    assert strongest_slopes([tree_of([0.0] * 4)], names) == []
    causes = [tree_of([0.2, 0.0, 0.0, 0.0]), tree_of([0.0, 0.0, 0.0, 3.0])]
    assert strongest_slopes(causes, names) == ["sex", "age"]  # for any cause


def test_importances_are_slopes_in_leaves_and_weights_of_splits():
    tree = tree_of([1.0, 0.0, 0.0], [0.0, 0.0, 3.0, -1.0])
    table = leaf_table(np.array([0, 0, 0, 1]), np.arange(1.0, 5.0), np.ones(4, bool), 2)
    spread = np.array([0.5, 1.0, 2.0])
    found = importances([tree], table, spread, np.array([0.8]), None)
    size = np.array([0.5, 0.8 * 3 / 5, 0.8 * 2 / 5])  # |weights| times spread are 0, 3 and 2
    np.testing.assert_allclose(found, size / size.sum())
    before = importances([tree], table, spread, None, None)  # a split of 3 rows and 1: sqrt(3/4 1/4)
    size = np.array([0.5, np.sqrt(3) / 4 * 0.6, np.sqrt(3) / 4 * 0.4])
    np.testing.assert_allclose(before, size / size.sum())


def test_importances_of_levels_are_those_of_their_column(encoder):
    table = leaf_table(np.zeros(4, int), np.arange(1.0, 5.0), np.ones(4, bool), 1)
    found = importances([tree_of([1.0, 2.0, 0.0, 3.0, 0.0])], table, np.ones(5), np.zeros(0), encoder)
    np.testing.assert_allclose(found, [1 / 6, 5 / 6, 0.0])
    nothing = importances([tree_of([0.0] * 5)], table, np.ones(5), np.zeros(0), encoder)
    assert nothing.tolist() == [0.0, 0.0, 0.0]


def notes(tree, encoder=None, causes=(), **details):
    report = FitReport(Status.CONVERGED, 1.0, details=details)
    return reading_notes([tree] * max(len(causes), 1), encoder, report, ["u", "v"], causes)


def test_notes_say_why_one_leaf_and_what_was_taken_out():
    assert notes(tree_of([0.0, 0.0]), reason="no split does better") == [
        "One weibull regression for all rows: no split does better."
    ]
    (said,) = notes(tree_of([0.0, 0.0]), collapsed=[{"rule": "u > 3", "difference": 0.01234}])
    assert said == "Taken out: u > 3; it changed no training row's survival by more than 0.012."
    assert notes(tree_of([0.0, 0.0])) == []
    assert notes(tree_of([0.0, 1.0])) == [
        "Within a leaf, a regression counts too, most of all on v: see summary()."
    ]  # fmt: skip


def test_notes_name_causes_and_recurrent_events():
    causes, recurrent = notes(tree_of([0.0, 0.0]), causes=("seal", "motor"), recurrent=True)
    assert causes.startswith("Each leaf holds a hazard for each cause: seal weibull, motor weibull.")
    assert recurrent.startswith("Events recur")


def test_missing_values_are_told_of_columns_that_the_tree_asks(encoder):
    tree = tree_of([0.0] * 5, [0.0] * 6)
    tree.rules = (LinearRule((1,), (1.0,), 0.5),)  # arm = a
    assert notes(tree, encoder, imputed=["age", "arm"]) == ["Missing values: arm counts as b."]
    dense = tree_of([0.0] * 5, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert notes(dense, encoder, imputed=["age"]) == ["Missing values: age counts as 53.3333."]  # dense: all columns
    assert notes(tree_of([0.0] * 5, [9.0] + [0.0] * 5), encoder, imputed=["age"]) == []  # it sends all rows left
    assert notes(tree_of([0.0] * 5), encoder, imputed=["age"]) == []


@pytest.mark.filterwarnings("error")
def test_missing_values_of_any_kind_are_no_fraction():
    """To round one kind of NaN, or any on some processors, is an invalid operation."""
    signalling = np.array([0x7FF0_0000_0000_0001], np.uint64).view(float)[0]
    values = np.array([[1.0, signalling, 3.0], [np.nan, 2.5, 1.0]])
    assert features._are_whole(values).tolist() == [True, False]
