"""Trees over codes: their shape, and where rows end."""

import numpy as np
import pytest

from softsurv.exact.tree import LEAF, LabelledTree, TreeBuilder

NOMINAL = np.array([False, True])


@pytest.fixture
def tree():
    """code 0 <= 1 ? leaf : (code 1 == 2 ? leaf : leaf)"""
    builder = TreeBuilder()
    root = builder.add(np.array([6.0]), 0, 1)
    left = builder.add(np.array([1.0]))
    right = builder.add(np.array([5.0]), 1, 2)
    below = builder.add(np.array([2.0])), builder.add(np.array([3.0]))
    builder.connect(right, *below)
    builder.connect(root, left, right)
    return builder.tree()


def test_nodes_come_in_preorder(tree):
    assert tree.feature.tolist() == [0, LEAF, 1, LEAF, LEAF]
    assert tree.code.tolist() == [1, LEAF, 2, LEAF, LEAF]
    assert tree.left.tolist() == [1, -1, 3, -1, -1]
    assert tree.right.tolist() == [2, -1, 4, -1, -1]
    assert tree.sums.ravel().tolist() == [6.0, 1.0, 5.0, 2.0, 3.0]
    assert (tree.n_leaves, tree.depth, tree.leaves.tolist()) == (3, 2, [1, 3, 4])


def test_rows_go_to_their_leaves(tree):
    codes = np.array([[0, 2], [1, 0], [2, 2], [2, 1], [3, 3]])
    assert tree.node_of(codes, NOMINAL).tolist() == [1, 1, 3, 4, 4]
    assert tree.node_of(codes, ~NOMINAL).tolist() == [3, 1, 3, 3, 4]  # equal or not; at most
    labelled = LabelledTree(tree, np.array([7, 8, 9]))
    assert labelled.leaf_of(codes, NOMINAL).tolist() == [0, 0, 1, 2, 2]
    assert labelled.label_of(codes, NOMINAL).tolist() == [7, 7, 8, 9, 9]


def test_a_single_leaf():
    builder = TreeBuilder()
    builder.add(np.array([4.0, 5.0]))
    one = builder.tree()
    assert (one.n_leaves, one.depth) == (1, 0)
    assert one.node_of(np.zeros((3, 0), int), NOMINAL).tolist() == [0, 0, 0]
    assert one.node_of(np.zeros((0, 2), int), NOMINAL).shape == (0,)
