"""The arrays of the search by joint sums, when it pays, and trees of depth two out of the tables."""

import numpy as np
import pytest
from oracles.plain_search import small

from softsurv.exact.bounds import Bounds
from softsurv.exact.joint import scratch
from softsurv.exact.joint.scratch import both_ways, bytes_of_joint, joint_pays, new_rows, new_scratch, values_of_sides


def test_bins_that_do_not_occur_are_left_out():
    found = small(n=60, levels=5, nominal=[False, True, False], bounds=Bounds(bits=False))
    gcode = found.problem.gcode[found.rows]
    kept = found.rows[(gcode[:, 0] != found.problem.code_start[0] + 2) & (gcode[:, 2] == gcode[0, 2])].copy()
    rows, split_code = new_rows(found.problem, kept, np.zeros(8, np.int64))
    assert rows.n_bins.tolist() == [len(np.unique(found.problem.gcode[kept, f])) for f in (0, 1)]
    np.testing.assert_array_equal(rows.total, found.problem.stats[kept].sum(axis=0))
    lefts = {found.goes_left(code)[kept].tobytes() for code in split_code}
    assert len(lefts) == len(split_code)
    assert all(0 < found.goes_left(code)[kept].sum() < len(kept) for code in split_code)
    for f in range(2):
        bins = rows.code[f]
        order = np.argsort(found.problem.gcode[kept, f], kind="stable")
        assert (np.diff(bins[order]) >= 0).all()
        assert len(np.unique(bins)) == rows.n_bins[f]


def test_best_sides_of_depth_two_from_pairs_of_cells():
    rng = np.random.default_rng(0)
    leaf, stump = rng.random((4, 3, 3)), rng.random((4, 3, 3))
    two = values_of_sides(leaf, stump)
    for side in range(2):
        for s in range(3):
            best = [leaf[3 * side, s, s]]
            a, b = 2 * side, 2 * side + 1
            for costs in (
                lambda t, a=a, b=b, s=s: leaf[a, s, t] + leaf[b, s, t],
                lambda t, a=a, b=b, s=s: min(leaf[a, s, t] + stump[b, s, t], stump[a, s, t] + leaf[b, s, t]),
                lambda t, a=a, b=b, s=s: stump[a, s, t] + stump[b, s, t],
            ):
                best.append(min(best[-1], *(costs(t) for t in range(3))))
            np.testing.assert_allclose(two[side, 1:, s], best)


def test_values_found_in_one_order_hold_in_both():
    stump = np.full((4, 2, 2), 9.0)
    stump[1, 0, 1] = 3.0  # left of the first, right of the second
    both = both_ways(stump)
    assert both[1, 0, 1] == both[2, 1, 0] == 3.0
    assert (np.delete(both.ravel(), [5, 10]) == 9.0).all()


@pytest.mark.parametrize(
    ("name", "value"), [("CELL_WORK", 1e9), ("MOST_BINS", 2), ("MOST_SPLITS", 3), ("BUSY_CUTS", 99), ("MOST_WORK", 1.0)]
)
def test_each_limit_alone_keeps_the_tables_away(monkeypatch, name, value):
    found = small(n=4000, levels=7, nominal=[False] * 3, bounds=Bounds(bits=False))
    monkeypatch.setattr(scratch, "CELL_WORK", 0.01)
    assert joint_pays(found.problem, found.rows)
    assert not joint_pays(found.problem._replace(branching=True), found.rows)
    monkeypatch.setattr(scratch, name, value)
    assert not joint_pays(found.problem, found.rows)


def test_memory_is_told_before_it_is_made():
    found = small(n=300, levels=6, nominal=[False] * 3, bounds=Bounds(bits=False))
    rows, _ = new_rows(found.problem, found.rows, np.zeros(8, np.int64))
    own = new_scratch(rows)
    held = sum(one.nbytes for one in (rows.code, rows.stats, rows.sums, rows.leaf, own.table, own.triple, own.stump))
    assert held <= bytes_of_joint(found.problem, len(found.rows)) < 2 * held
