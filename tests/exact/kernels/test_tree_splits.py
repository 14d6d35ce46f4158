"""The best split of one part of a tree beside leaves that stay, against every split tried out."""

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.whole_trees import area_above, f1, goes_left, loss_of_labels, matthews, tree_rows

from softsurv.exact.kernels import tree_splits
from softsurv.exact.kernels.tree_rows import AREA, F1, MATTHEWS

LOSSES = {
    AREA: area_above,
    F1: lambda goal, leaves: loss_of_labels(goal, leaves, f1),
    MATTHEWS: lambda goal, leaves: loss_of_labels(goal, leaves, matthews),
}


def parted(kind, seed, **how):
    """Rows of which the first ten are a part to be split, and the others two leaves that stay."""
    rows = tree_rows(kind, n=24, seed=seed, **how)
    rows.leaf[0], rows.leaf[1] = rows.sums[10:17].sum(0), rows.sums[17:].sum(0)
    part, splits = rows.sums[:10], len(rows.feature_of)
    left = np.array([part[goes_left(rows, split)[:10]].sum(0) for split in range(splits)])  # (G, 3)
    return rows, part.sum(0), left


def all_losses(rows, total, left, kind):
    """Loss with each split, infinite where a side is too small."""
    losses = np.full(len(left), np.inf)
    for split, one in enumerate(left):
        if one[2] >= rows.goal.least and total[2] - one[2] >= rows.goal.least:
            losses[split] = LOSSES[kind](rows.goal, np.array([*rows.leaf[:2], one, total - one]))
    return losses


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("least", [1.0, 4.0])
def test_the_best_split_for_the_area(seed, least):
    rows, total, left = parted(AREA, seed, least=least, price=0.02)
    loss, split = plain(tree_splits._best_split)(rows, 2, total, left.T.copy())
    expected = all_losses(rows, total, left, AREA)
    assert loss == pytest.approx(expected.min())
    assert split == -1 if np.isinf(loss) else expected[split] == pytest.approx(loss)


@pytest.mark.parametrize("kind", [F1, MATTHEWS])
@pytest.mark.parametrize("seed", range(5))
def test_a_split_for_a_measure_has_the_loss_that_is_said(kind, seed):
    rows, total, left = parted(kind, seed, least=2.0)
    loss, split = plain(tree_splits._best_split)(rows, 2, total, left.T.copy())
    assert loss == pytest.approx(all_losses(rows, total, left, kind)[split])


def test_no_split_where_leaves_are_used_up():
    rows, total, left = parted(AREA, 0, most=3)
    assert plain(tree_splits._best_split)(rows, 2, total, left.T.copy()) == (np.inf, -1)


def test_a_part_is_put_behind_the_leaves_whole_or_divided():
    rows, total, left = parted(AREA, 0)
    assert plain(tree_splits.put)(rows, 2, total, left.T.copy(), -1) == 3
    np.testing.assert_array_equal(rows.leaf[2], total)
    assert plain(tree_splits.put)(rows, 2, total, left.T.copy(), 1) == 4
    np.testing.assert_array_equal(rows.leaf[2:4], [left[1], total - left[1]])
