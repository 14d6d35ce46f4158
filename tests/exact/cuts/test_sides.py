"""Both sides of a cut above the base case: their rows, their trees, and the tree of both."""

import numpy as np
import pytest
from oracles.enumeration import least_objective
from oracles.plain_cuts import cutting
from oracles.plain_python import plain
from oracles.plain_search import body

from softsurv.exact.cuts.sides import copy_tree, solve_sides, take_side
from softsurv.exact.cuts.sweep import mark_sides
from softsurv.exact.kernels.cache import MAX_LEAVES


def test_a_side_keeps_its_rows_in_the_order_of_every_column():
    made = cutting(n=20, levels=5, depth=3)
    cuts, p = made.cuts, len(made.cuts.code)
    body(mark_sides)(cuts, 0, 1, 0, 6, made.n)
    for side, count in ((1, 6), (0, made.n - 6)):
        assert body(take_side)(cuts, 0, made.n, side) == count
        for f in range(p):
            expected = [row for row in cuts.order[f, : made.n] if cuts.side[row] == side]
            assert cuts.order[p + f, :count].tolist() == expected


def test_a_tree_moves_below_a_node_in_heap_order():
    source, target = np.arange(8), np.full(16, -1)
    plain(copy_tree)(source, target, 1, 8)  # the left child
    assert target[2:4].tolist() == [1, -1]
    assert target[4:8].tolist() == [2, 3, -1, -1]
    assert target[8:].tolist() == [4, 5, 6, 7, -1, -1, -1, -1]
    plain(copy_tree)(source, target, 2, 8)  # the right one
    assert target[3] == 1
    assert target[6:8].tolist() == [2, 3]
    kept = np.full(8, -1)
    plain(copy_tree)(source, kept, 0, 4)
    assert kept.tolist() == [-1, 1, 2, 3, -1, -1, -1, -1]


def optimum(made, rows, depth, leaves):
    codes, nominal = made.found.problem.gcode[rows], made.found.problem.nominal
    stats = made.problem.stats[rows, : made.problem.n_statistics]
    complexity = made.found.problem.complexity
    return least_objective(
        made.found.search.task, codes, nominal, stats, np.zeros(len(rows)), depth, leaves, complexity=complexity
    )


@pytest.mark.parametrize(("f", "cut"), [(0, 0), (0, 2), (0, 3), (4, 0), (6, 1)])
@pytest.mark.parametrize("room", [0.5, -0.5])
def test_the_best_trees_of_both_sides_where_they_stay_within_the_limit(f, cut, room):
    made = cutting(n=18, levels=5, depth=3, complexity=0.4, seed=2, open_base=False)
    left = made.column(f)[cut]
    rows = made.found.rows
    best = [optimum(made, part, 2, 4) for part in (rows[left], rows[~left])]
    limit = sum(best) + room
    found_left, found_right, value = body(solve_sides)(
        made.problem, made.cuts, 0, made.n, 3, f, cut, cut, cut, 0.0, 0.0, 4, 4, limit
    )
    assert found_left <= best[0] + 1e-9
    assert found_right <= best[1] + 1e-9
    if room > 0:
        assert value == pytest.approx(sum(best))
        assert made.cuts.tree[0, 1] % MAX_LEAVES == 4
    else:
        assert value == np.inf
        assert found_left + found_right >= limit - 1e-9  # what closes the cut
