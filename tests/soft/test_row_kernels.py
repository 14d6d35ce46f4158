"""Compiled loops over blocks of rows, against loops in plain numpy."""

import math

import numpy as np
import pytest
import torch
from oracles.plain_python import plain

from softsurv.soft import one_pass, row_kernels


@pytest.mark.parametrize("link", [row_kernels.HAZARDS, row_kernels.ODDS])
def test_what_is_not_finite_stays_so(link):
    """The line search takes a value that is not finite for a step too far."""
    nothing = torch.zeros(1, 1, 3, dtype=torch.float64)
    for bad in (math.nan, math.inf):
        z = torch.tensor([[[0.0, bad, 1.0]]], dtype=torch.float64)
        found = one_pass.expected_loss(link, z, nothing, nothing[0:1], nothing[:, :0], nothing + 1)
        assert not torch.isfinite(found.value).all()


def numpy_loss(link, z, rise, event):
    """Loss of right-censored rows by its formula: H - event (log H + rise - H' terms)."""
    if link == row_kernels.HAZARDS:
        return np.exp(z) - event * (z + rise)
    return np.logaddexp(0, z) + event * (np.logaddexp(0, z) - z - rise)


@pytest.mark.parametrize("link", [row_kernels.HAZARDS, row_kernels.ODDS])
def test_losses_and_slopes_of_rows(link):
    rng = np.random.default_rng(link)
    z, rise, event = 3 * rng.normal(size=12), rng.normal(size=12), (rng.random(12) < 0.5).astype(float)
    loss, slope = np.empty(12), np.empty(12)
    kernel = row_kernels.fill_hazards if link == row_kernels.HAZARDS else row_kernels.fill_odds
    plain(kernel)(z, rise, event, loss, slope)
    np.testing.assert_allclose(loss, numpy_loss(link, z, rise, event), rtol=1e-13)
    step = 1e-6
    numeric = (numpy_loss(link, z + step, rise, event) - numpy_loss(link, z - step, rise, event)) / (2 * step)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def paths(depth):
    """Of each leaf its branch nodes in heap order, and the side that it is on: 0 left."""
    for leaf in range(2**depth):
        node, path = 0, []
        for level in range(depth):
            side = (leaf >> (depth - 1 - level)) & 1
            path.append((node, side))
            node = 2 * node + 1 + side
        yield path


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_value_slopes_and_reach_of_a_tree(depth):
    """Rows in two blocks, the second of them short; numeric slopes over the splits."""
    rng, rows = np.random.default_rng(depth), row_kernels.BLOCK + 5
    split = 2 * rng.normal(size=(1, 2**depth - 1, rows))
    cost, mass = rng.normal(size=(1, 2**depth, rows)), rng.random((1, 1, rows))

    def expected(split):
        left = 1 / (1 + np.exp(-split[0]))
        reach = np.array(
            [np.prod([left[n] if side == 0 else 1 - left[n] for n, side in path], axis=0) for path in paths(depth)]
        )
        return mass[0, 0] * reach, (mass[0, 0] * reach * cost[0]).sum(axis=0)

    value, slopes, reach = np.empty(1), np.empty_like(split), np.empty_like(cost)
    plain(row_kernels.routing_alone)(split, cost, mass, value, slopes, reach)
    weight, per_row = expected(split)
    np.testing.assert_allclose(reach[0], weight, rtol=1e-12)
    assert value[0] == pytest.approx(per_row.sum())
    for node in range(2**depth - 1):
        step = np.zeros_like(split)
        step[0, node] = 1e-6
        numeric = (expected(split + step)[1] - expected(split - step)[1]) / 2e-6
        np.testing.assert_allclose(slopes[0, node], numeric, rtol=1e-5, atol=1e-8)


def test_leaves_with_and_without_their_routing_agree():
    rng, rows = np.random.default_rng(5), 20
    z, rise = rng.normal(size=(2, 2, rows)), rng.normal(size=(2, 2, 1))
    event, split, mass = (
        (rng.random((1, rows)) < 0.5).astype(float),
        rng.normal(size=(2, 1, rows)),
        rng.random((2, 1, rows)),
    )
    value, slopes, by_time, reach = np.empty(2), np.empty_like(split), np.empty_like(z), np.empty_like(z)
    link = row_kernels.ODDS
    plain(row_kernels.leaves_and_routing)(link, z, rise, event, split, mass, value, slopes, by_time, reach)
    loss = np.empty_like(z)
    plain(row_kernels.losses)(link, z, rise, event, loss)
    np.testing.assert_allclose(loss, numpy_loss(link, z, rise, event[:, None]), rtol=1e-12)
    same, again, weight = np.empty(2), np.empty_like(split), np.empty_like(z)
    plain(row_kernels.routing_alone)(split, loss, mass, same, again, weight)
    np.testing.assert_allclose(same, value)
    np.testing.assert_allclose(again, slopes)
    alone, at = np.empty(2), np.empty_like(z)
    plain(row_kernels.leaves_alone)(link, z, rise, event, reach, alone, at)
    np.testing.assert_allclose(alone, value)
    np.testing.assert_allclose(at, by_time)
