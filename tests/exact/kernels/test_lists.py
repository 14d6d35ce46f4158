"""Lists of points: order, domination, overflow, and the filed fronts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import nondominated
from oracles.plain_search import body, small

from softsurv.exact.kernels.lists import FULL, file_front, new_listing, precedes, push, sort_points, thin
from softsurv.exact.kernels.subsets import STOP
from softsurv.exact.objectives.linear import LINEAR
from softsurv.exact.vector_task import objectives


def empty(kept=(False, False), points=16, room=64, **given):
    goals = objectives(LINEAR, np.zeros((2, len(kept), 2)), list(kept), **given)
    return new_listing(small().problem, goals, 4, points, room, np.zeros(len(goals.limit)))


def add(listing, points, slot=1, control=None, upper=np.inf):
    control = np.zeros(8, np.int64) if control is None else control
    for place, point in enumerate(points):
        listing.candidate[:] = point
        upper = body(push)(listing, control, slot, float(np.sum(point)), place, -1, -2, upper, 1e-9)
    return upper


def held(listing, slot=1):
    return listing.point[slot, : listing.n_points[slot]]


@given(st.integers(0, 10_000), st.sampled_from([(False, False), (True, False), (False, True), (False, False, False)]))
def test_thin_keeps_what_no_other_dominates(seed, kept):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (rng.integers(1, 14), len(kept))).astype(float)
    listing = empty(kept)
    add(listing, points)
    body(thin)(listing, 1)
    expected = nondominated(np.unique(points, axis=0), kept)
    np.testing.assert_array_equal(np.unique(held(listing), axis=0), expected)
    assert len(held(listing)) == len(expected)
    for point, cost, origin in zip(held(listing), listing.reduced[1], listing.origin[1], strict=False):
        assert cost == point.sum()
        np.testing.assert_array_equal(points[origin[0]], point)  # what is thinned stays together


def test_points_are_sorted_by_kept_objectives_first():
    point = np.array([[1.0, 5.0], [0.0, 7.0], [1.0, 2.0], [3.0, 2.0], [1.0, 5.0]])
    index = np.empty(5, np.int32)
    body(sort_points)(np.array([False, True]), point, index, 5)
    assert index.tolist() == [2, 3, 0, 4, 1]
    body(sort_points)(np.array([False, False]), point, index, 5)
    assert index.tolist() == [1, 2, 0, 4, 3]
    assert body(precedes)(np.array([False, False]), point, 0, 4)
    assert not body(precedes)(np.array([False, False]), point, 4, 0)


def test_a_full_list_is_thinned_and_only_then_gives_up():
    control = np.zeros(8, np.int64)
    listing = empty(points=8)
    add(listing, [(k, k) for k in range(20)], control=control)  # (0, 0) dominates all others
    body(thin)(listing, 1)
    np.testing.assert_array_equal(held(listing), [[0.0, 0.0]])
    assert not control[[FULL, STOP]].any()
    add(listing, [(k, -k) for k in range(1, 20)], control=control)
    assert control[[FULL, STOP]].all()


def test_at_the_root_of_a_constrained_listing_one_best_tree_is_kept():
    listing = empty(constraint=[[0.0, 1.0]], limit=[2.0])._replace(constrained=True, shift=0.5)
    upper = add(listing, [(5.0, 3.0)], slot=0)
    assert upper == np.inf
    assert listing.n_points[0] == 0
    upper = add(listing, [(5.0, 2.0), (6.0, 0.0), (4.0, 1.0), (4.0, 0.0)], slot=0)
    np.testing.assert_array_equal(held(listing, 0), [[4.0, 1.0]])
    assert upper == pytest.approx(4.5)
    add(listing, [(9.0, 3.0)], slot=1)  # below the root the constraint says nothing
    assert listing.n_points[1] == 1


def test_fronts_are_filed_cheapest_first_one_after_the_other():
    control, listing = np.zeros(8, np.int64), empty(room=6)
    add(listing, [(3.0, 1.0), (0.0, 9.0), (1.0, 2.0), (3.0, 3.0)], slot=1)
    body(file_front)(listing, control, 1)
    assert listing.span[1].tolist() == [0, 3]
    assert listing.filed_reduced[:3].tolist() == [3.0, 4.0, 9.0]
    np.testing.assert_array_equal(listing.filed_point[:3], [[1.0, 2.0], [3.0, 1.0], [0.0, 9.0]])
    assert listing.filed_origin[:3, 0].tolist() == [2, 0, 1]
    add(listing, [(1.0, 1.0)], slot=2)
    body(file_front)(listing, control, 2)
    assert listing.span[2].tolist() == [3, 4]
    assert not control[FULL]
    add(listing, [(k, -k) for k in range(4)], slot=0)
    body(file_front)(listing, control, 0)
    assert control[FULL] == control[STOP] == 1
    assert listing.span[0].tolist() == [4, 4]


def test_statistics_of_a_listing_have_two_columns_more():
    found = small(n=30, features=6, seed=1)
    assert found.search.base == "bits"
    goals = objectives(LINEAR, np.zeros((2, 2, 2)), constraint=[[0.0, 1.0]], limit=[3.0])
    listing = new_listing(found.problem, goals, 2, 4, 4, np.array([0.25]))
    assert listing.limit.tolist() == [3.25]  # rounding may miss a limit by the slack
    units = found.problem.row_kinds
    np.testing.assert_array_equal(listing.stats[:, -1], units.kind_count.sum(axis=1))
    np.testing.assert_allclose(listing.stats, units.kind_count @ listing.kinds)
