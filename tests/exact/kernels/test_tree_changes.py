"""Changes of whole trees: the loss that is said is the tree's, it never rises, and limits are kept."""

from itertools import product

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.whole_trees import area_above, f1, leaves_of, loss_of_labels, tree_rows

from softsurv.exact.kernels.tree_changes import improve
from softsurv.exact.kernels.tree_rows import AREA, F1

LOSSES = {AREA: area_above, F1: lambda goal, leaves: loss_of_labels(goal, leaves, f1)}


def improved(rows, tree):
    """The loss after all changes of a tree."""
    rows.split[:] = tree
    return plain(improve)(rows)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("limits", [{}, {"price": 0.03, "most": 4}, {"least": 3.0}], ids=["free", "few", "large"])
@pytest.mark.parametrize("seed", range(2))
def test_trees_keep_the_limits_and_have_the_loss_that_is_said(kind, limits, seed):
    rows = tree_rows(kind, n=24, seed=seed, **limits)
    start = np.array([1, -1, -1, -1, -1, -1, -1], np.int32)
    before = LOSSES[kind](rows.goal, leaves_of(rows, start))
    loss = improved(rows, start)
    leaves = leaves_of(rows, rows.split)
    assert loss == pytest.approx(LOSSES[kind](rows.goal, leaves))
    assert loss <= before + 1e-12
    assert len(leaves) <= rows.goal.most
    assert leaves[:, 2].min() >= rows.goal.least


def test_depth_one_ends_at_the_best_split():
    rows = tree_rows(AREA, n=30, depth=1, most=2)
    losses = [area_above(rows.goal, leaves_of(rows, np.array([split]))) for split in range(-1, 10)]
    assert improved(rows, -1) == pytest.approx(min(losses))


def test_depth_two_from_every_start_finds_the_best_tree():
    rows = tree_rows(AREA, n=16, depth=2, most=4, seed=4)
    trees = [np.array(tree, np.int32) for tree in product(range(10), range(-1, 10), range(-1, 10))]
    best = min(area_above(rows.goal, leaves_of(rows, tree)) for tree in trees)
    found = [improved(rows, [split, -1, -1]) for split in range(10)]
    assert min(found) == pytest.approx(best)


def test_a_stop_and_the_end_of_its_work_leave_a_tree_with_its_loss():
    for set_up in (lambda rows: rows.flag.__setitem__(0, 1), lambda rows: rows.work.__setitem__(0, -1.0)):
        rows = tree_rows(AREA, n=24)
        set_up(rows)
        start = np.array([1, -1, -1, -1, -1, -1, -1], np.int32)
        assert improved(rows, start) == pytest.approx(area_above(rows.goal, leaves_of(rows, start)))
        np.testing.assert_array_equal(rows.split, start)
