"""Deep trees by a rolling horizon: within the limits, and the best tree of depth three where no more is asked for."""

import numpy as np
import pytest

from softsurv.exact.joint.rolling import rolled
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search
from softsurv.stopping import StopSignal


@pytest.fixture(scope="module")
def solved():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (200, 4)).astype(np.int32)
    label = (codes[:, 0] + codes[:, 1] * codes[:, 2] + rng.integers(0, 2, 200)) % 2
    costs = label_costs.misclassification(label, 2)
    search = Search(label_costs.TASK, codes, np.full(4, 3), np.array([False, True, False, False]), costs)
    search.by_joint = True
    search.solve(3)
    return search, codes


def roll(search, depth, leaves, stop=None):
    run = search.joint
    run.depth = 3
    run.solve(8, np.inf, StopSignal())
    return rolled(run, search.exact_sums, search.splits, depth, leaves, stop or StopSignal())


@pytest.mark.parametrize(("depth", "leaves"), [(4, 16), (5, 32), (5, 7), (4, 5)])
def test_a_rolled_tree_keeps_the_limits_and_beats_depth_three(solved, depth, leaves):
    search, codes = solved
    tree = roll(search, depth, leaves)
    assert tree.depth <= depth
    assert tree.n_leaves <= leaves
    np.testing.assert_allclose(tree.sums[tree.leaves].sum(axis=0), search.exact_sums.sum(axis=0))
    node = tree.node_of(codes, np.array([False, True, False, False]))
    assert set(node.tolist()) == set(tree.leaves.tolist())
    best = search.solve(3, min(leaves, 8)).report.objective
    assert search.objective(tree) <= best + 1e-9


def test_down_to_depth_three_it_is_the_best_tree(solved):
    search, _ = solved
    for leaves in (2, 4, 8):
        assert search.objective(roll(search, 3, leaves)) == pytest.approx(search.solve(3, leaves).report.objective)


def test_the_first_split_is_that_of_the_best_tree_of_depth_three(solved):
    search, _ = solved
    tree = roll(search, 4, 16)
    search.joint.solve(8, np.inf, StopSignal())
    code = int(search.joint.split_code[search.joint.root()[0]])
    assert (tree.feature[0], tree.code[0]) == (search.splits.feature[code], search.splits.code[code])


def test_without_time_there_is_no_tree(solved):
    stop = StopSignal(0.0)
    assert stop.exhausted
    assert roll(solved[0], 5, 32, stop) is None
