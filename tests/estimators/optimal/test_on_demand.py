"""Parts of a fitted optimal tree: each is worked out once, when it is asked for, and goes into a pickle alone."""

import pickle

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree, load_dataset
from softsurv.estimators.optimal.on_demand import TreeParts


@pytest.fixture
def parts(rows):
    return OptimalSurvivalTree(max_depth=2, shrinkage=0.0, min_samples_leaf=1).fit(*rows)._parts


def test_a_part_is_worked_out_once_and_when_asked_for(parts):
    assert not {"curves", "leaf_table", "importances", "path"} & set(vars(parts))
    assert parts.leaf_table is parts.leaf_table
    assert "path" not in vars(parts)


def test_the_table_counts_the_rows_and_shows_the_curves_that_are_predicted(parts, rows):
    table = parts.leaf_table
    assert table.n.sum() == len(rows[1])
    assert table.events.sum() == rows[1]["event"].sum()
    for shown, predicted in zip(table.curves, parts.curves.survival, strict=True):
        np.testing.assert_array_equal(shown.values, predicted.values)


def test_a_pickle_holds_the_parts_and_no_row(parts):
    path = parts.path
    again = pickle.loads(pickle.dumps(parts))
    assert set(vars(again)) == {"curves", "leaf_table", "importances", "path"}
    np.testing.assert_array_equal(again.importances, parts.importances)
    assert [size.max_leaves for size in again.path] == [size.max_leaves for size in path] == [1, 2, 3, 4]


def test_a_path_that_nobody_asked_for_is_gone_with_the_search(parts):
    again = pickle.loads(pickle.dumps(parts))
    with pytest.raises(AttributeError, match="path_ was not worked out before this tree was pickled"):
        _ = again.path
    known = TreeParts.known(parts.curves, parts.leaf_table, parts.importances)
    assert known.leaf_table is parts.leaf_table
    with pytest.raises(AttributeError, match="read path_ before, or fit again"):
        _ = known.path


def test_a_predicted_median_has_no_interval_of_the_observed_one():
    """A leaf predicted a median of 31 with the interval 15 to 25 of its rows' Kaplan-Meier median."""
    data = load_dataset("veterans")
    tree = OptimalSurvivalTree(max_depth=1).fit(data)
    predicted, observed = tree.leaf_summary(), tree.leaf_summary(data)
    assert (predicted["median"] != observed["median"]).all()
    assert predicted[["median_lower", "median_upper"]].isna().all(axis=None)
    assert observed["median"].between(observed["median_lower"], observed["median_upper"]).all()
    np.testing.assert_array_equal(predicted[["n", "events"]], observed[["n", "events"]])
