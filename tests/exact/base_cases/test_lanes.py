"""Base cases of many sides at once: each lane against the base case of the side alone."""

import numpy as np
import pytest
from oracles.plain_python import plain
from oracles.plain_search import small

from softsurv.exact.base_cases import lanes as kernels
from softsurv.exact.base_cases.leaf_prices import price_sides
from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.subsets import localise, order_by_bin, sum_pairs, sum_sides
from softsurv.exact.objectives import relative_risk


def open_subset(found):
    """Bins, sums and prices of all rows, as `solve_three` begins."""
    given = found.problem, found.rows, len(found.rows), found.local
    plain(localise)(*given)
    plain(order_by_bin)(found.problem, found.rows, found.local)
    plain(sum_sides)(found.local)
    plain(price_sides)(found.problem, found.local)
    plain(sum_pairs)(found.local)


def values_of(found, rows):
    """Best costs of some rows with at most 1 to 4 leaves, by the base case."""
    found.problem.calls.solve_two(found.problem, rows, len(rows), 2, found.local)
    return found.local.value[1:].copy()


def fill(found, splits, passes, first_side=0):
    plain(kernels.clear_lanes)(found.lanes, len(found.rows))
    for lane, code in enumerate(splits):
        left = found.goes_left(code)[found.rows]
        fewer = 2 * left.sum() <= len(left)
        plain(kernels.enter_lane)(
            found.problem, found.rows, len(found.rows), code, fewer, first_side, found.lanes, lane
        )
    plain(kernels.solve_lanes)(found.problem, found.local, found.lanes, passes)
    return found.lanes.value.reshape(2, 5, 8)


@pytest.mark.parametrize("columns", [2, 4])
@pytest.mark.parametrize("first_side", [0, 1])
def test_every_lane_is_the_base_case_of_its_side(columns, first_side):
    rng = np.random.default_rng(columns)
    statistics = np.hstack(
        [relative_risk.statistics(rng.random(16) < 0.6, rng.exponential(size=16)) for _ in range(columns // 2)]
    )
    found = small(n=16, task=relative_risk.TASK, statistics=statistics, bounds=Bounds(bits=False), complexity=0.1)
    assert found.problem.use_lanes
    open_subset(found)
    splits = [code for _, code in found.splits()][:8]
    value = fill(found, splits, 2, first_side).copy()
    for lane, code in enumerate(splits):
        left = found.goes_left(code)[found.rows]
        for side, rows in enumerate((found.rows[left], found.rows[~left])):
            np.testing.assert_allclose(value[side ^ first_side, 1:, lane], values_of(found, rows), atol=1e-12)


def test_one_pass_leaves_the_other_sides_alone():
    found = small(bounds=Bounds(bits=False), seed=3)
    open_subset(found)
    splits = [code for _, code in found.splits()][:3]
    found.lanes.value[:] = -7.0
    value = fill(found, splits, 1)
    assert (value[1] == -7.0).all()
    left = found.goes_left(splits[1])[found.rows]
    expected = value[0, 1:, 1].copy()
    np.testing.assert_allclose(expected, values_of(found, found.rows[left]))


def test_cleared_lanes_hold_no_row():
    found = small(bounds=Bounds(bits=False))
    open_subset(found)
    fill(found, [code for _, code in found.splits()][:2], 1)
    assert found.lanes.entered.any()
    plain(kernels.clear_lanes)(found.lanes, len(found.rows))
    n = len(found.rows)
    assert not found.lanes.entered[:n].any()
    assert not found.lanes.member[: 8 * n].any()
