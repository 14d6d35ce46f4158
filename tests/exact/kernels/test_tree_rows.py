"""Rows and leaves of whole trees: where rows end, sums by code, and losses against all labels."""

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.whole_trees import area_above, ends, f1, goes_left, leaves_of, loss_of_labels, matthews, tree_rows

from softsurv.exact.kernels import tree_rows as kernels
from softsurv.exact.kernels.tree_rows import AREA, F1, MATTHEWS

TREE = np.array([1, 5, 8, -1, -1, 3, -1], np.int32)  # in heap order; split 8 is of the nominal feature
ROOT_ALONE = np.array([5, -1, -1, -1, -1, -1, -1], np.int32)


@pytest.mark.parametrize("tree", [TREE, ROOT_ALONE, np.full(7, -1, np.int32)], ids=["tree", "stump", "leaf"])
@pytest.mark.parametrize("seed", range(3))
def test_losses_of_leaves(tree, seed):
    for kind, measure in ((F1, f1), (MATTHEWS, matthews), (AREA, None)):
        rows = tree_rows(kind, seed=seed, price=0.01)
        leaves = leaves_of(rows, tree)
        order = np.empty(8, np.int32)
        found = plain(kernels.loss_of)(rows.goal, leaves, len(leaves), order)
        expected = loss_of_labels(rows.goal, leaves, measure) if measure else area_above(rows.goal, leaves)
        assert found == pytest.approx(expected)
        shares = (leaves[:, 1] / leaves[:, :2].sum(1))[order[: len(leaves)]]
        assert (np.diff(shares) <= 1e-12).all()


def test_an_area_up_to_a_rate_ends_within_a_leaf():
    """Two leaves, 3 of 4 positives in the first with 1 of 4 negatives: half of the rates lie in the second leaf."""
    goal = tree_rows(AREA, share=0.5).goal._replace(negatives=4.0, positives=4.0)
    leaves = np.array([[3.0, 1.0, 4.0], [1.0, 3.0, 4.0]])
    x, y = np.array([0, 0.25, 0.5]), np.array([0, 0.75, 0.75 + 0.25 / 3])
    expected = (0.5 - np.trapezoid(y, x)) / 0.5
    assert plain(kernels.loss_of)(goal, leaves, 2, np.empty(2, np.int32)) == pytest.approx(expected)


@pytest.mark.parametrize("node", [0, 1, 2, 5])
def test_members_of_a_node_and_the_leaves_beside_it(node):
    rows = tree_rows(AREA, n=40)
    n, n_leaves = plain(kernels.gather)(rows, TREE, node)
    at = ends(rows, TREE)
    inside = np.isin(at, {0: range(15), 1: (1, 3, 4), 2: (2, 5, 6, 11, 12), 5: (5, 11, 12)}[node])
    assert sorted(rows.members[:n]) == np.flatnonzero(inside).tolist()
    expected = [rows.sums[at == end].sum(0) for end in np.unique(at[~inside])]
    assert sorted(map(tuple, rows.leaf[:n_leaves])) == sorted(map(tuple, expected))


def test_members_by_code_and_sums_left_of_each_split():
    rows = tree_rows(AREA, n=30)
    members = np.arange(0, 30, 2, dtype=np.int32)
    rows.members[: len(members)] = members
    for f in range(3):
        n_codes = plain(kernels.order_by_code)(rows, len(members), f)
        codes = rows.gcode[rows.ordered[: len(members)], f]
        assert (np.diff(codes) >= 0).all()
        counts = np.bincount(codes - rows.code_start[f], minlength=n_codes)
        np.testing.assert_array_equal(np.diff(rows.start[: n_codes + 1]), counts)
    rows.added[:] = 0.0
    plain(kernels.add_codes)(rows, 0, len(members), rows.members)
    plain(kernels.left_sums)(rows, rows.single)
    for split in range(len(rows.feature_of)):
        left = goes_left(rows, split)[members]
        np.testing.assert_allclose(rows.single[:, split], rows.sums[members][left].sum(0))
