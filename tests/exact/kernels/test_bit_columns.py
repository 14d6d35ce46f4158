"""Columns of bits against plain loops over the rows; kinds that fill several words."""

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.bit_columns import hits, pack
from softsurv.exact.objectives import label_costs


@pytest.fixture(scope="module")
def found():
    """Two hundred rows of two kinds: the units of a kind fill more than one word of 64."""
    costs = label_costs.misclassification(np.random.default_rng(1).integers(0, 2, 200), 2)
    return small(n=200, features=6, seed=1, statistics=costs, bounds=Bounds(cancel=False))


def packed(found, rows):
    plain(pack)(found.problem, rows, len(rows), found.local)
    return found.local.bits


@pytest.mark.parametrize("step", [1, 3])
def test_sums_and_splits_are_those_of_the_rows(found, step):
    rows = found.rows[::step].copy()
    packed(found, rows)
    stats, local = found.problem.stats, found.local
    np.testing.assert_allclose(local.total, stats[rows].sum(axis=0))
    for s, (left, _) in enumerate(found.splits()):
        assert 0 < left[rows].sum() < len(rows)
        np.testing.assert_allclose(local.side[:, s], stats[rows[left[rows]]].sum(axis=0))
    every = {found.goes_left(g)[rows].tobytes() for g in range(len(found.problem.feature_of))}
    assert {left[rows].tobytes() for left, _ in found.splits()} == {one for one in every if len(set(one)) == 2}


def test_hits_count_the_units_that_pass_two_splits(found):
    bits, units = packed(found, found.rows), found.problem.row_kinds
    assert np.diff(bits.kind_start).max() > 1
    lefts = [left for left, _ in found.splits()]
    stride = -(-len(lefts) // 8) * 8
    for c in range(len(units.kind_stats)):
        for s, one in enumerate(lefts):
            counts = plain(hits)(bits, c, s, 0, stride)
            for t, other in enumerate(lefts[:8]):
                assert counts[t] == units.kind_count[found.rows[(one & other)[found.rows]], c].sum()


def test_the_most_that_a_subset_can_cost(found):
    rows = found.rows[:7].copy()
    units = found.problem.row_kinds
    assert packed(found, rows).total_worst[0] == pytest.approx((units.kind_count[rows] @ units.worst).sum())


def test_of_nested_splits_that_agree_on_the_subset_the_first_counts(found):
    low = found.problem.gcode[found.rows, 0] != 1  # no row of the second bin: two cuts divide alike
    rows = found.rows[low].copy()
    packed(found, rows)
    of_first = [code for _, code in found.splits() if found.problem.feature_of[code] == 0]
    assert of_first == [0]
