"""Sums over the rows left of one split, or of two, against a plain loop: from bit columns, and from codes."""

import numpy as np
import pytest
from numba import njit

from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import BASES
from softsurv.exact.kernels.side_sums import both_sums, left_sums
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search


@njit
def sum_left(problem, stats, kinds, rows, n, local, out, by_code):
    left_sums(problem, stats, kinds, rows, n, local, out, by_code)


@njit
def sum_both(problem, stats, kinds, rows, n, local, first, out, by_code):
    both_sums(problem, stats, kinds, rows, n, local, first, 0, out, by_code)


@pytest.mark.parametrize("bits", [True, False])
def test_sums_are_those_of_the_rows(bits):
    rng = np.random.default_rng(3)
    codes, n_codes = rng.integers(0, 3, (60, 3)).astype(np.int32), np.full(3, 3)
    nominal = np.array([False, True, False])
    costs = label_costs.misclassification(rng.integers(0, 2, 60), 2)
    search = Search(label_costs.TASK, codes, n_codes, nominal, costs, bounds=Bounds(bits=bits, cancel=False))
    problem, rows, local = search.problem, search.rows, search.scratch[0].local.value
    BASES[search.base].solve_two(search.make_ready(2), rows, len(rows), 2, search.scratch[0].local)
    kinds, m = problem.row_kinds.kind_stats, int(local.size[2])
    assert (len(kinds) > 0) == bits
    by_code = np.empty((len(problem.feature_of), 2))
    single, both = np.zeros((2, m + 8)), np.zeros((2, m + 8))
    data = search.make_ready(2), problem.stats, kinds, rows, len(rows), search.scratch[0].local
    sum_left(*data, single, by_code)

    def left(s):
        g = local.split_code[s]
        value = problem.gcode[:, problem.feature_of[g]]
        return value == g if problem.nominal[problem.feature_of[g]] else value <= g

    for s in range(m):
        np.testing.assert_allclose(single[:, s], problem.stats[left(s)].sum(axis=0))
    for first in range(m):
        sum_both(*data, first, both, by_code)
        for s in range(m):
            np.testing.assert_allclose(both[:, s], problem.stats[left(first) & left(s)].sum(axis=0))
