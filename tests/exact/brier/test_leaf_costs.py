"""Costs of many leaves at once, against the score of each leaf by its definition."""

import numpy as np
import pytest
from oracles.brier_rows import four_leaves, in_order, loss_of
from oracles.plain_python import plain

from softsurv.exact.brier.leaf_costs import LANES, bin_costs, ipcw_costs, row_costs
from softsurv.exact.brier.table import by_lane, pack_bits, time_bins


def wide(x):
    """Columns that fill the lanes, empty ones behind, and one of ones."""
    return np.hstack([x, np.zeros((len(x), LANES - x.shape[1]), np.uint8), np.ones((len(x), 1), np.uint8)])


def expected(x, score, first, leaf):
    return np.array([[loss_of(score, rows, leaf) for rows in four_leaves(wide(x), first, j)] for j in range(LANES)]).T


def starts(x, weight, first):
    return np.array([[weight[rows].sum() for rows in four_leaves(wide(x), first, j)] for j in range(LANES)]).T.ravel()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [0, 2, -1])
def test_rows_one_by_one(weighted, first):
    x, score, rows = in_order(1, weighted=weighted)
    state, out = np.empty(24 * LANES), np.empty(4 * LANES)
    columns = wide(x)
    plain(row_costs)(
        columns, 0, columns[:, first].copy(), rows.weight, rows.h, rows.y, rows.v, starts(x, rows.weight, first),
        rows.t[-1], state, out,
    )  # fmt: skip
    np.testing.assert_allclose(out.reshape(4, LANES), expected(x, score, first, "km"), atol=1e-14)


@pytest.mark.parametrize("first", [0, 2, -1])
@pytest.mark.parametrize("n", [24, 150])
def test_bins_of_time(n, first):
    x, score, rows = in_order(2, n=n, n_times=5)
    columns = wide(x)
    g, dh, dy, stop = plain(time_bins)(rows, rows.time_id, False)
    bits, starts_at, total = plain(pack_bits)(columns, rows.v, stop)
    state, out, counts = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    lanes = plain(by_lane)(total)[0]
    plain(bin_costs)(bits, first % columns.shape[1], 0, starts_at, total, lanes, g, dh, dy, state, out, counts)
    np.testing.assert_allclose(out.reshape(4, LANES), expected(x, score, first, "km"), atol=1e-14)
    np.testing.assert_array_equal(counts, starts(x, np.ones(n), first))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [1, -1])
def test_the_pointwise_minimiser(weighted, first):
    x, score, rows = in_order(3, weighted=weighted)
    columns = wide(x)
    g, _, dy, stop = plain(time_bins)(rows, rows.time_id, True)
    state, out = np.empty(24 * LANES), np.empty(4 * LANES)
    plain(ipcw_costs)(
        columns, 0, columns[:, first].copy(), rows.weight, rows.v, stop, g, dy, starts(x, rows.weight, first), state,
        out,
    )  # fmt: skip
    np.testing.assert_allclose(out.reshape(4, LANES), expected(x, score, first, "ipcw"), atol=1e-14)
