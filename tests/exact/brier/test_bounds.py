"""Lower bounds of the integrated-Brier-score objective: never above what a tree loses, and tight where they can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.brier_rows import in_order, least_losses
from oracles.plain_python import plain

from softsurv.exact.brier.bounds import (
    IbsBounds,
    deeper_floor,
    floor_with_split,
    group_bounds,
    useful_depth,
    with_reference,
)

SIZES = st.floats(0.0, 1.0)


@given(SIZES, SIZES, st.sampled_from([0.0, 0.01, 0.2]), st.integers(1, 8))
def test_floors_are_below_every_tree_that_meets_the_bound(bound, above, complexity, leaves):
    """A tree of k leaves loses at least the bound; as a leaf the node loses more."""
    leaf = bound + above
    objective = (leaf if leaves == 1 else bound) + complexity * leaves
    assert floor_with_split(leaf, bound, complexity) <= objective + 1e-12
    assert floor_with_split(leaf, bound, complexity, 1.0) <= floor_with_split(leaf, bound, complexity) + 1e-12
    depth = 2
    known = min((leaf if k == 1 else bound) + complexity * k for k in range(1, 5))
    if leaves >= depth + 2:  # deeper than what was solved
        assert deeper_floor(known, bound, complexity, depth) <= objective + 1e-12


@given(SIZES, SIZES, st.integers(1, 40), st.sampled_from([0.0, 0.01, 0.2]), st.integers(1, 5))
def test_no_tree_beyond_the_useful_depth_beats_the_leaf(bound, above, size, complexity, min_rows):
    leaf = bound + above
    depth = useful_depth(leaf, bound, float(size), complexity, float(min_rows))
    for leaves in range(depth + 2, 12):  # a tree of depth d + 1 has that many leaves
        possible = leaves * min_rows <= size
        assert not possible or bound + leaves * complexity >= leaf + complexity - 1e-9
    if depth > 0:
        assert (depth + 1) * min_rows <= size
        assert bound + (depth + 1) * complexity < leaf + complexity + 1e-9


def test_a_leaf_that_meets_its_bound_is_not_split_for_nothing():
    assert useful_depth(0.3, 0.3, 100.0, 0.0, 1.0) == 0
    assert useful_depth(0.3, 0.2, 100.0, 0.0, 1.0) == 99
    assert useful_depth(0.3, 0.2, 1.0, 0.0, 1.0) == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_rows_lose_at_least_their_own_best_curve(weighted):
    x, score, rows = in_order(1, p=2, weighted=weighted)
    group = (x @ [1, 2]).astype(np.int64)
    order = np.lexsort((rows.time_id, group))
    shares = plain(group_bounds)(order, group, rows.time_id, rows.weight, rows.v, rows.g, rows.t)
    for one in np.unique(group):
        inside = np.flatnonzero(group == one)
        assert shares[inside].sum() == pytest.approx(score.leaf_loss(inside, "ipcw"), abs=1e-14)
        assert (shares[inside[1:]] == 0.0).all()  # at the first row alone
        assert shares[inside].sum() <= score.leaf_loss(inside, "km") + 1e-14
    assert shares.sum() <= least_losses(x, score)[1:].min() + 1e-14


def test_blocks_of_time_keep_it_a_bound():
    """Between two rows of a group there are more times than blocks."""
    x, score, rows = in_order(2, n=300, n_times=250, p=4)
    group = np.where(np.arange(300) % 100 == 0, 0, 1)
    order = np.lexsort((rows.time_id, group))
    shares = plain(group_bounds)(order, group, rows.time_id, rows.weight, rows.v, rows.g, rows.t)
    exact = score.leaf_loss(np.flatnonzero(group == 0), "ipcw")
    assert 0.9 * exact < shares[group == 0].sum() <= exact + 1e-14
    assert len(x) == 300


def test_a_reference_raises_each_group_to_its_loss():
    shares, group = np.array([0.3, 0.0, 0.1, 0.0]), np.array([0, 0, 1, 1])
    out = with_reference(shares, group, np.array([0.05, 0.05, 0.2, 0.3]))
    np.testing.assert_allclose(out, [0.3, 0.0, 0.5, 0.0])


def test_the_base_case_solves_depth_two_unless_switched_off():
    assert [IbsBounds().base_depth, IbsBounds(base_case=False).base_depth] == [2, 1]
