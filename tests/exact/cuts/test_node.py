"""The search by cuts as plain Python, against enumeration; and each of its bounds against the cuts that it closes."""

import numpy as np
import pytest
from oracles.enumeration import least_objective
from oracles.plain_cuts import cutting
from oracles.plain_search import body

from softsurv.exact.cuts.node import narrow, search_cuts, solve_cut, start_intervals
from softsurv.exact.kernels.cache import MAX_LEAVES
from softsurv.exact.kernels.nodes import UNKNOWN
from softsurv.exact.objectives import relative_risk


def survival(n):
    rng = np.random.default_rng(n)
    return {
        "task": relative_risk.TASK, "statistics": relative_risk.statistics(rng.random(n) < 0.6, rng.exponential(size=n))
    }  # fmt: skip


KINDS = {
    "two labels": {"levels": 5},
    "three labels": {"levels": 4, "statistics": np.random.default_rng(1).integers(0, 9, (14, 3)).astype(float)},
    "survival": {"levels": 4, **survival(14)},
    "least size": {"levels": 4, "min_leaf": 4},
}


def expected(made, depth, leaves):
    found = made.found
    value = least_objective(
        found.search.task, found.codes, found.nominal, found.statistics, np.zeros(len(found.codes)), depth, leaves,
        max(1, round(found.problem.min_leaf)), found.problem.complexity,
    )  # fmt: skip
    return value - found.search.constant


def search(made, depth, leaves, upper=np.inf):
    return body(search_cuts)(made.problem, made.cuts, 0, made.n, depth, leaves, upper)


def cost_of_choice(made, depth, leaves):
    """Least cost of the trees that begin with the split of the root and give its left side so many leaves."""
    found, (split, left_leaves) = made.found, divmod(int(made.cuts.tree[0, 1]), MAX_LEAVES)
    if split < 0:
        return found.cost(found.rows)
    left, width = found.goes_left(split)[found.rows], found.problem.n_statistics
    sides, cost = [(found.rows[left], left_leaves), (found.rows[~left], leaves - left_leaves)], 0.0
    for rows, most in sides:
        rows = np.repeat(rows, found.problem.stats[rows, -1].astype(int)) if found.problem.use_size else rows
        share = np.unique(rows, return_counts=True)[1][np.searchsorted(np.unique(rows), rows)]
        cost += least_objective(
            found.search.task, found.problem.gcode[rows], found.problem.nominal,
            found.problem.stats[rows, :width] / share[:, None], np.zeros(len(rows)), depth - 1, most,
            max(1, round(found.problem.min_leaf)), found.problem.complexity,
        )  # fmt: skip
    return cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "leaves"), [(2, 2), (2, 3), (2, 4), (3, 5), (3, 8)])
def test_the_optimum(kind, depth, leaves):
    made = cutting(depth, n=14, complexity=0.3, **KINDS[kind])
    best = expected(made, depth, leaves)
    assert search(made, depth, leaves) == pytest.approx(best)
    assert made.cuts.tree[0, 1] != UNKNOWN
    assert made.cuts.free[0] <= best + 1e-9
    assert cost_of_choice(made, depth, leaves) == pytest.approx(best)


@pytest.mark.parametrize("kind", ["two labels", "survival"])
def test_a_limit_below_the_optimum_gives_a_bound(kind):
    for below in (0.1, 1.0):
        made = cutting(3, n=14, complexity=0.3, **KINDS[kind])
        best = expected(made, 3, 8)
        value = search(made, 3, 8, best - below)
        assert best - below - 1e-9 <= value <= best + 1e-9
        assert made.cuts.tree[0, 1] == UNKNOWN


def test_every_cut_is_in_one_interval_with_bounds_of_its_sides():
    made = cutting(n=14, complexity=0.3, levels=5)
    body(start_intervals)(made.cuts, 0, made.n)
    spans = made.cuts.span[:3, : made.cuts.waiting[0, 0]].T.tolist()
    assert sorted(spans) == [[f, 0, len(made.column(f)) - 1] for f in range(len(made.cuts.code)) if made.column(f)]
    for place in range(made.cuts.waiting[0, 0]):
        f, first, last = made.cuts.span[:3, made.cuts.slot[0, place]]
        for cut in range(first, last + 1):
            left, right, value = body(solve_cut)(made.problem, made.cuts, 0, made.n, f, cut, 2, 2, np.inf)
            assert made.cuts.side_bound[0, made.cuts.slot[0, place]] <= left + 1e-9
            assert made.cuts.side_bound[1, made.cuts.slot[0, place]] <= right + 1e-9
            assert made.cuts.key[0, place] <= value + 1e-9


@pytest.mark.parametrize("known", [0, 2, 4])
@pytest.mark.parametrize("limit", [1.5, 3.0, 5.0])
def test_similar_support_excludes_no_cut_below_the_limit(known, limit):
    made = cutting(n=30, complexity=0.2, levels=7, seed=4, nominal=[False] * 3)
    cuts = len(made.column(0))
    values = [body(solve_cut)(made.problem, made.cuts, 0, made.n, 0, cut, 2, 2, np.inf) for cut in range(cuts)]
    worst, start = made.cuts.run[made.problem.stats.shape[1] + 1], made.cuts.start[0]
    at = start[known + 1]
    near_left, near_right = values[known][0] - worst[at], values[known][1] + worst[at]
    for first, last, near in ((known + 1, cuts - 1, (-np.inf, near_right)), (0, known - 1, (near_left, -np.inf))):
        if first > last:
            continue
        low, high, left, right = body(narrow)(made.cuts, 0, 0, first, last, 0.0, 0.0, *near, limit)
        for cut in range(first, last + 1):
            if not low <= cut <= high:
                assert values[cut][2] >= limit - 1e-9
            else:
                assert left <= values[cut][0] + 1e-9
                assert right <= values[cut][1] + 1e-9
