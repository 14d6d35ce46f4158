"""Renumbered bins and their sums, against loops over the rows of a subset."""

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.subsets import localise, order_by_bin, partition, sum_pairs, sum_sides
from softsurv.exact.objectives import relative_risk

SUMS = Bounds(bits=False)


def opened(columns=2, step=1, **how):
    """A search whose scratch holds some of its rows, and these rows."""
    rng = np.random.default_rng(columns)
    pairs = [relative_risk.statistics(rng.random(30) < 0.6, rng.exponential(size=30)) for _ in range(columns // 2)]
    found = small(n=30, levels=4, task=relative_risk.TASK, statistics=np.hstack(pairs), bounds=SUMS, **how)
    rows = found.rows[::step].copy()
    plain(localise)(found.problem, rows, len(rows), found.local)
    return found, rows


def bin_of(found, row, f):
    """Renumbered bin of a row on a renumbered feature, -1 where it is left out."""
    return found.local.map[found.problem.gcode[row, found.local.origin[f]]]


@pytest.mark.parametrize("step", [1, 4])
def test_every_division_of_the_subset_has_one_split(step):
    found, rows = opened(step=step)
    local, problem = found.local, found.problem
    divisions = {}
    for code in range(len(problem.feature_of)):
        left = found.goes_left(code)[rows]
        if left.any() and not left.all():
            first = left if left[0] else ~left
            divisions.setdefault((int(problem.feature_of[code]), first.tobytes()), code)
    ours = [(int(problem.feature_of[code]), found.goes_left(code)[rows]) for _, code in found.splits()]
    assert len(ours) == local.size[2] == len(divisions)
    assert {(f, (left if left[0] else ~left).tobytes()) for f, left in ours} == set(divisions)
    np.testing.assert_array_equal(local.total, problem.stats[rows].sum(axis=0))


def test_a_feature_that_does_not_divide_is_left_out():
    found, rows = opened()
    rows = rows[found.problem.gcode[rows, 0] == found.problem.gcode[rows[0], 0]].copy()
    plain(localise)(found.problem, rows, len(rows), found.local)
    assert 0 not in found.local.origin[: found.local.size[0]]
    assert all(found.problem.feature_of[code] != 0 for _, code in found.splits())


@pytest.mark.parametrize("columns", [2, 4])
def test_sums_left_of_every_split(columns):
    found, rows = opened(columns)
    plain(sum_sides)(found.local)
    for s, (left, _) in enumerate(found.splits()):
        side = rows[~left[rows]] if found.local.flipped[s] else rows[left[rows]]
        np.testing.assert_allclose(found.local.side[:, s], found.problem.stats[side].sum(axis=0), atol=1e-12)


def test_where_two_bins_are_left_the_split_is_the_lower_one():
    """The bin that stands for the split may be its right side; `flipped` says so."""
    found, rows = opened()
    column = found.problem.gcode[rows, 0]
    two = rows[(column == column.min()) | (column == column.max())].copy()
    plain(localise)(found.problem, two, len(two), found.local)
    plain(sum_sides)(found.local)
    s, (left, code) = next((s, one) for s, one in enumerate(found.splits()) if found.problem.feature_of[one[1]] == 0)
    assert code == column.min()
    side = two[~left[two]] if found.local.flipped[s] else two[left[two]]
    np.testing.assert_allclose(found.local.side[:, s], found.problem.stats[side].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("columns", [2, 4])
def test_sums_over_pairs_of_bins(columns):
    found, rows = opened(columns)
    plain(sum_pairs)(found.local)
    local, n_bins = found.local, int(found.local.size[1])
    pairs = local.pairs[: n_bins * n_bins * columns].reshape(n_bins, n_bins, columns)
    expected = np.zeros_like(pairs)
    for row in rows:
        bins = [b for f in range(local.size[0]) if (b := bin_of(found, row, f)) >= 0]
        for i, a in enumerate(bins):
            for b in bins[i + 1 :]:
                expected[a, b] += found.problem.stats[row]
    np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_rows_in_the_order_of_their_bins():
    found, rows = opened(step=2)
    plain(order_by_bin)(found.problem, rows, found.local)
    local = found.local
    for f in range(local.size[0]):
        first, n_bins = local.bin_start[f], local.bin_start[f + 1] - local.bin_start[f]
        for b in range(n_bins):
            inside = local.by_bin[f, local.bucket[f, b] : local.bucket[f, b + 1]]
            assert inside.tolist() == [i for i, row in enumerate(rows) if bin_of(found, row, f) == first + b]
        rest = local.by_bin[f, local.bucket[f, n_bins] : len(rows)]
        assert rest.tolist() == [i for i, row in enumerate(rows) if bin_of(found, row, f) < 0]


@pytest.mark.parametrize("feature", [0, 1])
def test_partition(feature):
    found, rows = opened()
    split, out = int(found.problem.code_start[feature]) + 1, np.full(len(rows) + 2, -1, np.int32)
    n_left = plain(partition)(found.problem, rows, len(rows), split, feature, out, 1)
    left = found.goes_left(split)
    assert out[0] == out[-1] == -1
    assert out[1 : 1 + n_left].tolist() == rows[left[rows]].tolist()
    assert sorted(out[1 + n_left : -1].tolist()) == rows[~left[rows]].tolist()
