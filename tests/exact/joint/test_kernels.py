"""Joint sums and the best stumps of all cells of two splits, against loops over the rows."""

import numpy as np
import pytest
from oracles.plain_search import body, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.joint.kernels import join_pairs, join_triples, price_pairs
from softsurv.exact.joint.scratch import both_ways, new_rows, new_scratch
from softsurv.exact.objectives import relative_risk


def joined(columns, features=3, **how):
    """A problem whose sums over pairs and triples are there, and the masks of the rows left of each split."""
    rng = np.random.default_rng(columns)
    if columns % 2:
        how["statistics"] = rng.integers(0, 9, (25, columns)).astype(float)
    else:
        pairs = [relative_risk.statistics(rng.random(25) < 0.6, rng.exponential(size=25)) for _ in range(columns // 2)]
        how |= {"task": relative_risk.TASK, "statistics": np.hstack(pairs)}
    found = small(n=25, levels=3, features=features, seed=columns, bounds=Bounds(bits=False, cancel=False), **how)
    rows, split_code = new_rows(found.problem, found.rows, np.zeros(8, np.int64))
    body(join_pairs)(found.problem, rows, new_scratch(rows))
    body(price_pairs)(found.problem, rows, new_scratch(rows))
    lefts = [found.goes_left(code)[found.rows] for code in split_code]
    return found, rows, lefts


def cells_of(one, other):
    return [one & other, one & ~other, ~one & other, ~one & ~other]


def best_stump(found, cell, lefts):
    """Least cost of a cell with at most one more split; a side may be empty, which costs as much as a leaf may."""
    rows = found.rows
    best = found.cost(rows[cell])
    for left in lefts:
        parts = cell & left, cell & ~left
        if all(part.any() for part in parts):
            best = min(best, sum(found.cost(rows[part]) for part in parts))
    return best


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_sums_over_pairs_and_costs_of_their_cells(columns):
    found, rows, lefts = joined(columns, features=4)
    assert rows.done.all()
    stats = found.problem.stats[found.rows]
    for s, one in enumerate(lefts):
        for t, other in enumerate(lefts):
            np.testing.assert_allclose(rows.sums[:, s, t], stats[one & other].sum(axis=0), atol=1e-12)
            for cell, inside in enumerate(cells_of(one, other)):
                if inside.any():
                    assert rows.leaf[cell, s, t] == pytest.approx(found.cost(found.rows[inside]))


@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("limits", [{}, {"min_leaf": 3}])
def test_best_stumps_of_the_cells_of_every_two_splits(columns, limits):
    found, rows, lefts = joined(columns, **limits)
    scratch = new_scratch(rows)
    body(join_triples)(found.problem, rows, scratch)
    stump = both_ways(scratch.stump)
    for s, one in enumerate(lefts):
        for t, other in enumerate(lefts):
            for cell, inside in enumerate(cells_of(one, other)):
                if inside.any():
                    assert stump[cell, s, t] == pytest.approx(best_stump(found, inside, lefts))


def test_two_threads_share_the_features_and_the_pairs():
    found, rows, _ = joined(2)
    alone = rows.sums.copy()
    rows.next[:] = 1  # another thread has taken the first feature
    rows.sums[:], rows.done[:] = 0.0, 0
    body(join_pairs)(found.problem, rows, new_scratch(rows))
    assert rows.done.tolist() == [0, *[1] * (len(rows.done) - 1)]
    later = rows.split_start[1]
    np.testing.assert_array_equal(rows.sums[:, later:, later:], alone[:, later:, later:])
    assert not rows.sums[:, :later, :later].any()
