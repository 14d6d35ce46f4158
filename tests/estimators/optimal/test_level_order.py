"""Several levels of a category go left: the order of the levels, its rules, and what is proven of it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree, load_model
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.exact.objectives import relative_risk


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    site = rng.choice(list("abcdef"), 300)
    X = pd.DataFrame({"site": site, "x": rng.normal(size=300).round(2)})
    time = rng.exponential(np.where(np.isin(site, ["b", "d", "f"]), 1.0, 6.0)).round(2) + 0.01
    return X, Surv.from_arrays(rng.random(300) < 0.8, time)


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_several_levels_go_left(rows, objective):
    X, y = rows
    how = {"max_depth": 1, "shrinkage": 0.0}
    one = OptimalSurvivalTree(objective, **how).fit(X, y)
    sets = OptimalSurvivalTree(objective, level_sets=True, **how).fit(X, y)
    assert sets.objective_ < one.objective_
    assert set(sets.tree_.levels[0]) in ({"a", "c", "e"}, {"b", "d", "f"})
    assert sets.gap_ == 0
    assert "site in " in sets.export_text()


def test_a_tree_with_sets_is_used_as_any_other(rows, tmp_path):
    X, y = rows
    tree = OptimalSurvivalTree(max_depth=2, level_sets=True).fit(X, y)
    scope: dict = {}
    exec(tree.export_python(), scope)
    assert [scope["leaf_of"](row) for row in X.to_dict("records")] == tree.apply(X).tolist()
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.apply(X), tree.apply(X))
    assert again.binarizer_.names == tree.binarizer_.names
    with pytest.warns(DataWarning):
        unseen = tree.apply(X.assign(site="new"))
    assert set(unseen) <= set(range(tree.tree_.n_leaves))
    with pytest.raises(InvalidParameterError, match="level_sets=False"):
        tree.rashomon_set()


def test_sets_never_make_the_optimum_worse(rows):
    X, y = rows
    for depth in (1, 2, 3):
        one, sets = (OptimalSurvivalTree(max_depth=depth, level_sets=some).fit(X, y) for some in (False, True))
        assert sets.objective_ <= one.objective_ + 1e-9


def test_sets_in_cross_validation(rows):
    tree = OptimalSurvivalTree(level_sets=True, max_depth=1, tune="cv").fit(*rows)
    assert tree.selection_["chosen"].sum() == 1
    assert "site in " in tree.export_text()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_best_set_of_one_split_is_in_the_order_of_risk(seed):
    """The theorem that the order rests on, against every set of levels."""
    rng = np.random.default_rng(seed)
    sums = np.column_stack([rng.poisson(4.0, 6).astype(float), rng.exponential(4.0, 6)])
    total, order = sums.sum(axis=0), np.argsort(sums[:, 0] / sums[:, 1])

    def cost(left):
        here = sums[list(left)].sum(axis=0)
        return relative_risk.TASK.costs(np.array([here, total - here])).sum()

    every = min(cost(left) for size in range(1, 6) for left in combinations(range(6), size))
    assert min(cost(order[: k + 1]) for k in range(5)) == pytest.approx(every)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_order_of_levels_does_not_depend_on_the_unit_of_weights(unit):
    """What a level borrowed from all rows was five units of weight: nearly everything, or nothing."""
    rng = np.random.default_rng(29)
    site = rng.choice(8, 120, p=[0.3, 0.25, 0.15, 0.1, 0.08, 0.05, 0.04, 0.03])
    time, event = rng.exponential(size=120) * (1 + rng.random(8))[site], rng.random(120) < 0.4
    X = pd.DataFrame({"site": np.array(list("abcdefgh"))[site]})
    how = {"max_depth": 1, "min_samples_leaf": 1, "level_sets": True}
    plain, scaled = (
        OptimalSurvivalTree(**how).fit(X, (event, time), sample_weight=np.full(120, one)) for one in (1.0, unit)
    )
    assert scaled.binarizer_.columns_ == plain.binarizer_.columns_
    assert scaled.export_text() == plain.export_text()
