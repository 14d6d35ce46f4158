"""Coarse bins of time: below the cost of every leaf, whatever its curve, and used only where they are fast."""

import numpy as np
import pytest
from oracles.brier_rows import four_leaves, in_order, loss_of, rules_of
from oracles.plain_python import plain

from softsurv.exact.brier import coarse
from softsurv.exact.brier.leaf_costs import IPCW, LANES
from softsurv.exact.brier.table import by_lane, pack_bits


def coarse_costs(x, rows, first, bin_size):
    """Bounds (4, LANES) of the leaves of two splits by bins of so many rows."""
    columns = np.hstack([x, np.zeros((len(x), LANES - x.shape[1]), np.uint8), np.ones((len(x), 1), np.uint8)])
    starts = np.unique(rows.time_id[::bin_size])
    stop = np.append(np.searchsorted(rows.time_id, starts[1:]), len(x))
    ends = np.append(starts[1:], len(rows.t) - 1)
    bits, first_word, total = plain(pack_bits)(columns, rows.v, stop)
    inverse_g, dy = 1.0 / rows.g[starts], rows.t[ends] - rows.t[starts]
    state, out, counts = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    lanes = plain(by_lane)(total)[0]
    plain(coarse.least_costs)(bits, first, 0, first_word, total, lanes, inverse_g, dy, state, out, counts)
    return out.reshape(4, LANES)


@pytest.mark.parametrize("bin_size", [1, 5, 20])
def test_no_leaf_costs_less(bin_size):
    x, score, rows = in_order(1, n=80, n_times=60)
    found = coarse_costs(x, rows, 0, bin_size)
    for j in range(4):
        for leaf, inside in enumerate(four_leaves(x, 0, j)):
            assert found[leaf, j] <= loss_of(score, inside, "ipcw") + 1e-14
            assert found[leaf, j] <= loss_of(score, inside) + 1e-14


def test_finer_bins_come_closer():
    x, score, rows = in_order(1, n=80, n_times=60)
    both = four_leaves(x, 0, 1)[0]
    fine, middle, rough = (coarse_costs(x, rows, 0, size)[0, 1] for size in (1, 5, 20))
    assert rough < middle < fine
    assert fine > 0.6 * score.leaf_loss(both, "ipcw")


def test_bounds_are_asked_for_where_they_are_much_faster(monkeypatch):
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_BINS", 2)
    x, _, many = in_order(1, n=4000, n_times=3000)
    assert many.coarse.bins > 0
    rules = rules_of(many, complexity=0.01)
    assert coarse.are_worth_it(many, rules, 4000)
    assert not coarse.are_worth_it(many, rules, 50)
    assert not coarse.are_worth_it(many, rules._replace(complexity=0.0), 4000)  # nothing is pruned by a floor of 0
    assert coarse.are_worth_it(many, rules._replace(mode=IPCW), 4000)
    _, _, none = in_order(1, n=4000, n_times=3000, coarse=False)
    assert not coarse.are_worth_it(none, rules, 4000)
    assert len(x) == 4000
