"""Policy trees where a treatment is scarce."""

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
from softsurv.results import Status


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_capacity_tree_is_the_best_of_all(seed, share):
    """Against every tree of depth two with every treatment in every leaf."""
    rng = np.random.default_rng(seed)
    x = (rng.random((14, 3)) < 0.5).astype(int)
    scores = rng.normal(size=(14, 3))
    tree = OptimalCapacityPolicyTree({2: share, 1: 0.6}, max_depth=2).fit(x, scores=scores)

    def choices(rows, depth):
        found = {(scores[rows, k].sum().round(9), len(rows) * (k == 1), len(rows) * (k == 2)) for k in range(3)}
        for column in x.T if depth else ():
            one, other = rows[column[rows] == 1], rows[column[rows] == 0]
            if len(one) and len(other):
                pairs = ((a, b) for a in choices(one, depth - 1) for b in choices(other, depth - 1))
                found |= {(round(a[0] + b[0], 9), a[1] + b[1], a[2] + b[2]) for a, b in pairs}
        return found

    possible = choices(np.arange(14), 2)
    best = max(v for v, ones, twos in possible if ones <= 0.6 * 14 + 1e-9 and twos <= share * 14 + 1e-9)
    assert tree.status_ == Status.OPTIMAL
    assert -tree.objective_ * 14 == pytest.approx(best)
    assert tree.share_[2] <= share + 1e-9
    assert tree.policy_value(x, scores) == pytest.approx(-tree.objective_)


def test_capacity_with_fewer_leaves_and_a_cost_per_leaf():
    rng = np.random.default_rng(2)
    x = (rng.random((60, 4)) < 0.5).astype(int)
    scores = np.column_stack([np.zeros(60), x[:, 0] - 0.5 + 0.3 * rng.normal(size=60)])
    free = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2).fit(x, scores=scores)
    few = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2, max_leaves=2).fit(x, scores=scores)
    dear = OptimalCapacityPolicyTree({1: 0.3}, max_depth=2, complexity=10.0).fit(x, scores=scores)
    assert few.tree_.n_leaves <= 2
    assert few.objective_ >= free.objective_ - 1e-9
    assert dear.tree_.n_leaves == 1
    assert dear.share_[1] == 0.0


def test_a_capacity_without_names_is_refused():
    with pytest.raises(InvalidParameterError, match=r"capacity must map treatments, \[0, 1\], .* got \[1.0, 0.3\]"):
        OptimalCapacityPolicyTree([1.0, 0.3]).fit(np.arange(8.0)[:, None], scores=np.eye(2)[[0, 1] * 4])


def test_a_capacity_that_limits_every_treatment_is_refused():
    """Together the shares would do, but no single leaf meets them."""
    with pytest.raises(InvalidParameterError, match=r"capacity must leave a treatment .* each of \[0, 1\]; leave out"):
        OptimalCapacityPolicyTree({0: 0.6, 1: 0.6}).fit(np.arange(8.0)[:, None], scores=np.eye(2)[[0, 1] * 4])
