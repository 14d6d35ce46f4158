"""Indexing of complete trees against walking down from the root."""

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.trees.topology import MAX_DEPTH, check_depth, level_slice, n_branches, n_leaves, paths, used_leaves

DEPTHS = range(6)


def walk(depth):
    """Leaves left to right, each as the list of its (branch node, goes left)."""

    def below(node, level, path):
        if level == depth:
            return [path]
        return below(2 * node + 1, level + 1, [*path, (node, True)]) + below(
            2 * node + 2, level + 1, [*path, (node, False)]
        )

    return below(0, 0, [])


@pytest.mark.parametrize("depth", DEPTHS)
def test_paths_are_those_from_the_root(depth):
    leaves = walk(depth)
    expected = np.zeros((len(leaves), 2**depth - 1), dtype=int)
    for leaf, path in enumerate(leaves):
        for node, left in path:
            expected[leaf, node] = 1 if left else -1
    np.testing.assert_array_equal(paths(depth), expected)
    assert (n_leaves(depth), n_branches(depth)) == expected.shape


def test_levels_partition_the_branch_nodes():
    nodes = list(range(n_branches(5)))
    assert [k for level in range(5) for k in nodes[level_slice(level)]] == nodes
    assert [len(nodes[level_slice(level)]) for level in range(5)] == [1, 2, 4, 8, 16]


def test_paths_are_shared_and_cannot_be_written():
    assert paths(3) is paths(3)
    with pytest.raises(ValueError, match="read-only"):
        paths(3)[0, 0] = 5


@pytest.mark.parametrize("depth", [-1, MAX_DEPTH + 1, 2.0, "2", None, True])
def test_depth_is_checked(depth):
    with pytest.raises(InvalidParameterError, match=rf"depth must be an integer from 0 to {MAX_DEPTH}, got"):
        check_depth(depth)


def test_numpy_integers_are_depths():
    assert check_depth(np.int32(3)) == 3
    assert type(check_depth(np.int32(3))) is int


def test_used_leaves_are_those_that_rows_reach_from_left_to_right():
    routing = np.ones((7, 2))
    assert used_leaves(routing).tolist() == list(range(8))
    routing[1] = [3.0, 0.0]  # all to the left
    routing[6] = [-3.0, 0.0]  # all to the right
    assert used_leaves(routing).tolist() == [0, 1, 4, 5, 7]
    assert used_leaves(np.zeros((0, 2))).tolist() == [0]
