"""All near-optimal trees, as the estimators answer for them."""

from __future__ import annotations

import pickle
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from softsurv import OptimalClassificationTree, OptimalSurvivalTree
from softsurv.errors import InvalidParameterError, LimitWarning
from softsurv.explore import plot_importance_ranges
from softsurv.results import Status


@pytest.fixture(scope="module")
def survival(rows):
    return OptimalSurvivalTree(max_depth=3, min_samples_leaf=8).fit(*rows)


@pytest.fixture(scope="module")
def classes(rows):
    X, y = rows
    return OptimalClassificationTree(max_depth=2, complexity=0.01).fit(X, y["time"] > 5)


@pytest.fixture(params=["survival", "classes"])
def fitted(request):
    return request.getfixturevalue(request.param)


def test_the_set_holds_what_its_threshold_says(fitted):
    near = fitted.rashomon_set(0.03)
    assert near.status == Status.OPTIMAL
    assert near.objective == pytest.approx(fitted.objective_)
    assert near.threshold == pytest.approx(1.03 * fitted.objective_)
    trees = list(near)
    assert len(trees) == near.n_trees == near.n_by_leaves.sum() > 1
    objectives = np.array([tree.objective for tree in trees])
    assert (np.diff(objectives) >= 0).all()
    assert objectives[-1] <= near.threshold * (1 + 1e-9)
    assert trees[0].excess == 0
    assert trees[0].status == Status.OPTIMAL
    assert all(tree in near for tree in trees)
    assert fitted.rashomon_set(0.03 * fitted.objective_, absolute=True).n_trees == near.n_trees


def test_a_tree_of_the_set_is_a_fitted_estimator(fitted, rows, deviance):
    X, y = rows
    for tree in islice(fitted.rashomon_set(0.05), 0, 40, 13):
        other = tree.estimator
        assert type(other) is type(fitted)
        assert other.objective_ == pytest.approx(tree.objective)
        assert other.gap_ == pytest.approx(tree.excess, abs=1e-9)
        assert other.export_text().count("leaf ") == other.tree_.n_leaves
        if isinstance(other, OptimalSurvivalTree):
            assert deviance(y, other.apply(X)) == pytest.approx(tree.objective)
            np.testing.assert_allclose(other.feature_importances_, tree.importances, atol=1e-7)
        else:
            wrong = 1 - other.score(X, y["time"] > 5)
            assert wrong + 0.01 * other.tree_.n_leaves == pytest.approx(tree.objective)
        asked = {other.tree_.sources[f].name for f in other.tree_.feature[other.tree_.feature >= 0]}
        assert asked == set(tree.features)


def test_the_fitted_tree_stays_as_it_is(survival):
    before = survival.export_text()
    assert [tree.estimator.export_text() for tree in islice(survival.rashomon_set(0.05), 3)][2] != before
    assert survival.export_text() == before


def test_what_every_tree_needs_is_what_no_tree_lacks(fitted):
    near = fitted.rashomon_set(0.04)
    asked = [set(tree.features) for tree in near]
    assert set(near.needed_features) == set.intersection(*asked)
    table = near.importances()
    assert table.attrs["n_trees"] == near.n_trees
    assert set(table.index[table["needed"]]) == set(near.needed_features)
    every = np.array([tree.importances for tree in near])
    for k, name in enumerate(fitted.binarizer_.filler_.input_names_):
        row = table.loc[name]
        assert row["share"] == pytest.approx(np.mean([name in some for some in asked]))
        assert (row["least"], row["most"]) == pytest.approx((every[:, k].min(), every[:, k].max()))
        assert row["best"] == pytest.approx(every[0, k])


def test_the_best_tree_without_a_column(fitted, rows):
    near = fitted.rashomon_set(0.06)
    for name in rows[0].columns:
        tree = near.without(name)
        assert name not in tree.features
        others = (other.objective for other in near if name not in other.features)
        assert tree.objective == pytest.approx(next(others)) if tree in near else next(others, None) is None
        assert tree.estimator.objective_ == pytest.approx(tree.objective)
    with pytest.raises(InvalidParameterError, match="must name columns of the fit"):
        near.without("no such")


def test_equal_columns_stand_in_for_each_other(rows):
    X, y = rows
    twice = X.assign(again=X["x"])
    near = OptimalSurvivalTree(max_depth=2, min_samples_leaf=8).fit(twice, y).rashomon_set(0.01)
    alone = OptimalSurvivalTree(max_depth=2, min_samples_leaf=8).fit(X, y).rashomon_set(0.01)
    assert "x" in alone.needed_features
    assert not {"x", "again"} & set(near.needed_features)
    assert near.n_trees > alone.n_trees


def test_a_set_that_is_cut_off_says_so(survival):
    near = survival.rashomon_set(0.5, time_limit=0.0)
    assert near.status == Status.TIME_LIMIT
    assert "found before the time limit" in str(near) or near.n_trees <= 1
    near.status = Status.INTERRUPTED
    assert "found before the interruption with" in str(near)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 5, (3000, 6)), columns=list("abcdef"))
    many = OptimalSurvivalTree(max_depth=3, memory_limit=1e6)
    with pytest.warns(LimitWarning, match="the rows take as a table"):
        many.fit(table, (rng.random(3000) < 0.5, rng.exponential(size=3000)))
    part = many.rashomon_set(0.5)
    assert part.status == Status.MEMORY_LIMIT
    assert part.n_trees >= 0


def test_needed_columns_do_not_wait_for_a_list_of_trees(rows):
    """Where no tree was listed yet, none was said to be needed."""
    tree = OptimalSurvivalTree(max_depth=2, min_samples_leaf=8).fit(*rows)
    cut_off, whole = tree.rashomon_set(0.0, time_limit=0.0), tree.rashomon_set(0.0)
    assert (cut_off.n_trees, whole.n_trees) == (0, 1)
    assert cut_off.needed_features == whole.needed_features == next(iter(whole)).features != ()


def test_a_set_needs_its_rows_and_a_sum_over_leaves(fitted, rows):
    with pytest.raises(InvalidParameterError, match="needs the training rows"):
        pickle.loads(pickle.dumps(fitted)).rashomon_set()
    for epsilon in (-0.1, 10**400):
        with pytest.raises(InvalidParameterError, match="epsilon must be"):
            fitted.rashomon_set(epsilon)
    with pytest.raises(InvalidParameterError, match="absolute must be True or False"):
        fitted.rashomon_set(0.1, absolute="yes")
    with pytest.raises(TypeError, match=r"holds trees as without\(\) gives them, got Optimal"):
        assert fitted in fitted.rashomon_set(0.0)
    brier = OptimalSurvivalTree("ibs", max_depth=1).fit(*rows)
    with pytest.raises(InvalidParameterError, match="objective='relative_risk', got 'ibs'"):
        brier.rashomon_set()


@pytest.mark.parametrize("kind", [OptimalClassificationTree, OptimalSurvivalTree])
def test_every_tree_is_within_any_large_distance(rows, kind):
    """Leaves with too few rows have a cost, too: it must not be taken for a large one."""
    X, y = rows
    tree = kind(max_depth=2, min_samples_leaf=len(X) // 4).fit(
        X, y["time"] > 5 if kind is OptimalClassificationTree else y
    )
    numbers = {tree.rashomon_set(epsilon, absolute=True).n_trees for epsilon in (1e5, 1e6, 1e7, 1e8, 1e12, 1e300)}
    assert len(numbers) == 1


def test_words(survival):
    near = survival.rashomon_set(0.0)
    assert str(near).startswith("1 tree with an objective of at most ")
    assert "Asked by every tree: " in str(near)


def test_the_picture_shows_every_column_and_the_best_tree(survival):
    axes = plot_importance_ranges(survival.rashomon_set(0.05))
    table = survival.rashomon_set(0.05).importances()
    shown = table[table["most"] > 0]
    assert [label.get_text().split(" (")[0] for label in axes.get_yticklabels()] == list(shown.index)
    (best,) = [line for line in axes.lines if line.get_label() == "best tree"]
    np.testing.assert_allclose(best.get_xdata(), shown["best"])


def test_an_undecided_column_is_told(survival, monkeypatch):
    near = survival.rashomon_set(0.01)
    monkeypatch.setattr(near, "_time_limit", 0.0)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        assert near.needed_features == ()
    assert str(near).endswith("Asked by every tree: none known")


def divisions(tree, X):
    """Every split of a fitted tree: raw column, and the rows of both sides, whatever their names."""
    passed, splits = tree.decision_path(X).toarray().astype(bool), tree.tree_
    return frozenset(
        (splits.sources[splits.feature[node]].name, frozenset(passed[:, k].tobytes() for k in sides))
        for node in np.flatnonzero(splits.feature >= 0)
        for sides in [(splits.left[node], splits.right[node])]
    )


@pytest.mark.parametrize("thresholds", [2, "all"])
def test_routed_missing_values_make_no_tree_twice(thresholds):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(0, 4, 40) * 1.0, "grade": rng.choice(["I", "II", "III"], 40)})
    X = X.mask(rng.random(X.shape) < 0.2)
    y = rng.integers(0, 3, 40)
    tree = OptimalClassificationTree(max_depth=2, missing="route", thresholds=thresholds).fit(X, y)
    near = tree.rashomon_set(0.3)
    trees = [divisions(one.estimator, X) for one in near]
    assert len(set(trees)) == len(trees) == near.n_trees > 10


def test_the_set_is_of_the_objective_that_was_fitted(rows):
    X, y = rows
    tree = OptimalClassificationTree("gini", max_depth=1).fit(X, y["time"] > 5)
    with pytest.raises(InvalidParameterError, match="got 'gini'"):
        tree.set_params(objective="accuracy").rashomon_set()
    tree = OptimalClassificationTree("accuracy", max_depth=1).fit(X, y["time"] > 5)
    assert tree.set_params(objective="gini").rashomon_set().objective == pytest.approx(tree.objective_)
