"""Costs in many directions and areas, against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.plain_python import plain
from oracles.plain_search import small
from sklearn.metrics import roc_auc_score

from softsurv.exact.bounds import Bounds
from softsurv.exact.whole_trees.auc_kernels import best_last_split, curve_area, directional, least_area


def area_by_corners(leaves, share, positives, negatives):
    """Area under miss rate against false-positive rate of leaves (negatives, positives), up to a share."""
    order = sorted(leaves.tolist(), key=lambda leaf: (-leaf[1] / (leaf[0] + leaf[1]), leaf[0]))
    false, miss = (
        np.cumsum([0.0] + [n / negatives for n, _ in order]),
        1 - np.cumsum([0.0] + [p / positives for _, p in order]),
    )
    grid = np.linspace(0.0, share, 20_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    right = np.searchsorted(false, middle)
    a, b = false[right - 1], false[right]
    height = miss[right - 1] + (miss[right] - miss[right - 1]) * (middle - a) / (b - a)
    return height.mean() * share


def random_leaves(seed, n):
    leaves = np.random.default_rng(seed).integers(0, 6, (n, 2)).astype(float)
    leaves[leaves.sum(axis=1) == 0] = [1.0, 2.0]
    leaves[0] += 1.0
    return leaves


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([1.0, 0.3]))
def test_area_of_a_tree_by_its_corners(seed, n, share):
    leaves = random_leaves(seed, n)
    negatives, positives = leaves.sum(axis=0)
    found = plain(curve_area)(leaves, share, positives, negatives)
    assert found == pytest.approx(area_by_corners(leaves, share, positives, negatives), abs=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([1.0, 0.3]), st.integers(1, 12))
def test_lines_in_any_directions_bound_the_area(seed, n, share, g):
    leaves = random_leaves(seed, n)
    negatives, positives = leaves.sum(axis=0)
    angle = (np.arange(g) + 0.5) / g * np.pi / 2
    directions = np.column_stack([np.cos(angle) / positives, np.sin(angle) / negatives])
    cost = np.minimum(directions[:, :1] * leaves[:, 1], directions[:, 1:] * leaves[:, 0]).sum(axis=1)
    bound = plain(least_area)(directions, cost, share, positives, negatives)
    area = plain(curve_area)(leaves, share, positives, negatives)
    assert 0.0 <= bound <= area + 1e-12


@given(st.integers(0, 10_000))
@settings(deadline=None)
def test_area_is_one_minus_auc(seed):
    rng = np.random.default_rng(seed)
    leaf, label = rng.integers(0, 5, 40), rng.integers(0, 2, 40)
    label[:2] = 0, 1
    sums = np.column_stack([np.bincount(leaf, label == k, 5) for k in range(2)]).astype(float)
    score = (sums[:, 1] / np.maximum(sums.sum(axis=1), 1))[leaf]
    area = curve_area(sums, 1.0, sums[:, 1].sum(), sums[:, 0].sum())
    assert area == pytest.approx(1 - roc_auc_score(label, score))


@given(st.integers(0, 10_000), st.sampled_from([1.0, 0.2]))
@settings(deadline=None)
def test_bound_of_a_whole_tree_is_below_its_area_and_close(seed, share):
    rng = np.random.default_rng(seed)
    sums = rng.integers(0, 20, (6, 2)).astype(float)
    sums[0] += 1.0
    negatives, positives = sums.sum(axis=0)
    angle = (np.arange(400) + 0.5) / 400 * np.pi / 2
    directions = np.column_stack([np.cos(angle) / positives, np.sin(angle) / negatives])
    cost = np.minimum(directions[:, :1] * sums[:, 1], directions[:, 1:] * sums[:, 0]).sum(axis=1)
    area = curve_area(sums, share, positives, negatives)
    bound = least_area(directions, cost, share, positives, negatives)
    assert bound <= area + 1e-12
    assert bound >= area - 0.01


def test_perfect_and_useless_leaves():
    area = plain(curve_area)
    assert area(np.array([[0.0, 3.0], [5.0, 0.0]]), 1.0, 3.0, 5.0) == 0.0
    assert area(np.array([[5.0, 3.0]]), 1.0, 3.0, 5.0) == pytest.approx(0.5)
    assert area(np.array([[5.0, 3.0]]), 0.2, 3.0, 5.0) == pytest.approx(0.2 * 0.9)


@pytest.mark.parametrize("bits", [True, False])
def test_costs_of_both_sides_in_every_direction(bits):
    label = np.random.default_rng(0).integers(0, 2, 16)
    found = small(n=16, statistics=np.eye(2)[label], bounds=Bounds(bits=bits, cancel=False))
    directions = np.array([[1.0, 0.2], [0.5, 0.5], [0.1, 2.0]])
    width, g = found.problem.stats.shape[1], len(found.problem.feature_of)
    single, both, by_code = np.empty((width, g + 8)), np.empty((width, g + 8)), np.empty((g, width))
    given_ = found.problem, found.rows, len(found.rows), found.local, directions
    leaf, stump, whole = plain(directional)(*given_, True, single, both, by_code)

    def cost(rows):
        negatives, positives = found.problem.stats[rows, :2].sum(axis=0)
        return np.minimum(directions[:, 0] * positives, directions[:, 1] * negatives)

    np.testing.assert_allclose(whole, cost(found.rows))
    lefts = [left[found.rows] for left, _ in found.splits()]
    for s, left in enumerate(lefts):
        for side, part in enumerate((left, ~left)):
            np.testing.assert_allclose(leaf[side, s], cost(found.rows[part]))
            best = cost(found.rows[part])
            for other in lefts:
                best = np.minimum(best, cost(found.rows[part & other]) + cost(found.rows[part & ~other]))
            np.testing.assert_allclose(stump[side, s], best)
    alone, same, _ = plain(directional)(*given_, False, single, both, by_code)
    np.testing.assert_array_equal(alone, same)


@given(st.integers(0, 10_000))
def test_the_best_last_split(seed):
    rng = np.random.default_rng(seed)
    closed, total = random_leaves(seed, 2), np.array([6.0, 7.0])
    single = np.array([rng.integers(0, 7, 4), rng.integers(0, 8, 4)]).astype(float)
    allowed = rng.random(4) < 0.7
    negatives, positives = closed.sum(axis=0) + total
    area, chosen = plain(best_last_split)(single, total, closed, 1.0, positives, negatives, allowed)
    areas = [
        plain(curve_area)(np.vstack([closed, single[:, a], total - single[:, a]]), 1.0, positives, negatives)
        for a in range(4)
    ]
    if not allowed.any():
        assert chosen == -1
    else:
        assert allowed[chosen]
        assert area == pytest.approx(min(one for one, ok in zip(areas, allowed, strict=True) if ok))
        assert area == pytest.approx(areas[chosen])
