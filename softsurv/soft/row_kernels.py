"""Compiled loops of the objective on a CPU: the tables of (trees, leaves, rows) in one pass over the rows.

Torch's operators read and write whole tables: a value and gradient moves some 30 of them through memory. Here a block
of rows of one tree stays in the nearest cache from the predictors of the leaves to the derivatives by the splits. The
results are those of `softsurv.soft.objective.route` and `softsurv.hazards.likelihood.right_censored_loss`, which serve
other devices, links and kinds of censoring, and the tests as oracle.
"""

from __future__ import annotations

import numpy as np

from softsurv.clamps import EXP_LIMIT
from softsurv.loops import INT, floats
from softsurv.soft.jit import FUSED, loop, loop_part
from softsurv.soft.step_kernels import inner
from softsurv.soft.vector_math import exponential, log_one_plus

BLOCK = 128
"""Rows of a block: at depth 2 the scratch tables of a block take 25 kB of a first-level cache of 32 kB."""

HAZARDS, ODDS = 0, 1
"""Links: proportional hazards, proportional odds."""


@loop_part(**FUSED)
def fill_hazards(z, rise, event, loss, slope):
    """Loss and slope (n,) of rows with the predictors z under proportional hazards; ``rise`` is the log slope."""
    for i in range(z.size):
        low = EXP_LIMIT if z[i] > EXP_LIMIT else z[i]
        e = exponential(low)
        loss[i] = e + e * (z[i] - low) - event[i] * (z[i] + rise[i])
        slope[i] = e - event[i]


@loop_part(**FUSED)
def fill_odds(z, rise, event, loss, slope):
    """The same under proportional odds."""
    for i in range(z.size):
        e = exponential(-abs(z[i]))
        hazard = (z[i] if z[i] > 0.0 else 0.0) + log_one_plus(e)
        chance = (1.0 if z[i] > 0.0 else e) / (1.0 + e)
        loss[i] = hazard + event[i] * (hazard - (z[i] + rise[i]))
        slope[i] = (1.0 + event[i]) * chance - event[i]


@loop_part(**FUSED)
def fill_leaves(link, z, rise, event, first, last, loss, slope, spread):
    """Losses and slopes (L, n) of the rows of a block in each leaf."""
    n = last - first
    for leaf in range(z.shape[0]):
        if rise.shape[1] == 1:
            spread[:n] = rise[leaf, 0]
            up = spread[:n]
        else:
            up = rise[leaf, first:last]
        if link == HAZARDS:
            fill_hazards(z[leaf, first:last], up, event[first:last], loss[leaf, :n], slope[leaf, :n])
        else:
            fill_odds(z[leaf, first:last], up, event[first:last], loss[leaf, :n], slope[leaf, :n])


@loop_part(**FUSED)
def part_row(split, mass, left, right, go_left, product):
    """Mass (n,) that a branch node sends to either side, probability p of left, and mass times p (1 - p)."""
    for i in range(split.size):
        e = exponential(-abs(split[i]))
        large = 1.0 / (1.0 + e)
        small = e * large
        p = large if split[i] >= 0.0 else small
        q = small if split[i] >= 0.0 else large
        left[i], right[i], go_left[i], product[i] = mass[i] * p, mass[i] * q, p, mass[i] * (p * q)


@loop_part(**FUSED)
def join_sides(go_left, left, right, product, cost, slope):
    """Expected cost (n,) at a branch node from the costs of its sides, and the derivative by its split."""
    for i in range(slope.size):
        gap = left[i] - right[i]
        cost[i] = right[i] + go_left[i] * gap
        slope[i] = product[i] * gap


@loop_part(**FUSED)
def route_block(split, mass, first, last, reach, cost, go_left, product, slopes):
    """Expected loss of the rows of a block; the leaves' costs (L, n) are the last rows of ``cost``.

    Nodes are numbered from the S nodes of the first level on; branch node k has the children S + 2 k and S + 2 k + 1.
    ``reach`` and ``cost`` (2 L - S, n) are filled for all nodes, ``slopes`` (B, N) for the block.
    """
    n, tops = last - first, mass.shape[0]
    for k in range(tops):
        entering = mass[k, first:last]  # a slice, as an index that is a sum prevents vector instructions
        for i in range(n):  # an assignment of slices would compile numba's error message on shapes, which takes 3 s
            reach[k, i] = entering[i]
    for k in range(split.shape[0]):
        low = tops + 2 * k
        part_row(split[k, first:last], reach[k], reach[low], reach[low + 1], go_left[k], product[k])
    for k in range(split.shape[0] - 1, -1, -1):
        low = tops + 2 * k
        join_sides(go_left[k], cost[low], cost[low + 1], product[k], cost[k], slopes[k, first:last])
    value = 0.0
    for k in range(tops):
        value += inner(reach[k, :n], cost[k, :n])
    return value


@loop(INT, *floats(3, 3, 2, 3, 3, 1, 3, 3, 3), **FUSED)
def leaves_and_routing(link, z, rise, event, split, mass, value, slopes, by_time, reach):
    """Expected loss of a soft tree, and its derivatives.

    The rows are right-censored; slopes are over splits (M, B, N) and predictors.
    ``z`` (M, L, N), ``rise`` (M, L, N or 1), ``event`` (G, N), ``split`` (M, B, N), ``mass`` (M, S, N); to be filled:
    ``value`` (M,), ``slopes`` (M, B, N), ``by_time`` and ``reach`` (M, L, N).
    """
    trees, leaves, rows = z.shape
    branches, per_group = split.shape[1], trees // event.shape[0]
    held, cost = np.empty((branches + leaves, BLOCK)), np.empty((branches + leaves, BLOCK))
    slope, go_left = np.empty((leaves, BLOCK)), np.empty((branches, BLOCK))
    product, spread = np.empty((branches, BLOCK)), np.empty(BLOCK)
    for m in range(trees):
        value[m] = 0.0
        for first in range(0, rows, BLOCK):
            last = min(first + BLOCK, rows)
            n = last - first
            fill_leaves(link, z[m], rise[m], event[m // per_group], first, last, cost[branches:], slope, spread)
            value[m] += route_block(split[m], mass[m], first, last, held, cost, go_left, product, slopes[m])
            for leaf in range(leaves):
                weight, at = reach[m, leaf, first:last], by_time[m, leaf, first:last]
                for i in range(n):
                    weight[i] = held[branches + leaf, i]
                    at[i] = weight[i] * slope[leaf, i]


@loop(INT, *floats(3, 3, 2, 3, 1, 3), **FUSED)
def leaves_alone(link, z, rise, event, reach, value, by_time):
    """Expected loss of a soft tree for given splits, and its derivatives.

    The rows are right-censored and weigh ``reach`` (M, L, N) in each leaf. To be filled: ``value`` (M,), and the slopes
    over the predictors ``by_time`` (M, L, N).
    """
    trees, leaves, rows = z.shape
    per_group = trees // event.shape[0]
    loss, slope, spread = np.empty((leaves, BLOCK)), np.empty((leaves, BLOCK)), np.empty(BLOCK)
    for m in range(trees):
        value[m] = 0.0
        for first in range(0, rows, BLOCK):
            last = min(first + BLOCK, rows)
            fill_leaves(link, z[m], rise[m], event[m // per_group], first, last, loss, slope, spread)
            for leaf in range(leaves):
                weight, at = reach[m, leaf, first:last], by_time[m, leaf, first:last]
                value[m] += inner(weight, loss[leaf, : last - first])
                for i in range(last - first):
                    at[i] = weight[i] * slope[leaf, i]


@loop(INT, *floats(3, 3, 2, 3), **FUSED)
def losses(link, z, rise, event, loss):
    """Loss of each row in each leaf.

    It is filled, (M, L, N), for right-censored rows.
    """
    trees, leaves, rows = z.shape
    per_group = trees // event.shape[0]
    found, slope, spread = np.empty((leaves, BLOCK)), np.empty((leaves, BLOCK)), np.empty(BLOCK)
    for m in range(trees):
        for first in range(0, rows, BLOCK):
            last = min(first + BLOCK, rows)
            fill_leaves(link, z[m], rise[m], event[m // per_group], first, last, found, slope, spread)
            for leaf in range(leaves):
                out = loss[m, leaf, first:last]
                for i in range(last - first):
                    out[i] = found[leaf, i]


@loop(*floats(3, 3, 3, 1, 3, 3), **FUSED)
def routing_alone(split, leaf_loss, mass, value, slopes, reach):
    """Expected loss of a soft tree for given losses in the leaves, and its derivatives.

    As `leaves_and_routing`, with ``leaf_loss`` (M, L, N); slopes are over the splits alone.
    """
    trees, leaves, rows = leaf_loss.shape
    branches = split.shape[1]
    held, cost = np.empty((branches + leaves, BLOCK)), np.empty((branches + leaves, BLOCK))
    go_left, product = np.empty((branches, BLOCK)), np.empty((branches, BLOCK))
    for m in range(trees):
        value[m] = 0.0
        for first in range(0, rows, BLOCK):
            last = min(first + BLOCK, rows)
            n = last - first
            for leaf in range(leaves):
                given = leaf_loss[m, leaf, first:last]
                for i in range(n):
                    cost[branches + leaf, i] = given[i]
            value[m] += route_block(split[m], mass[m], first, last, held, cost, go_left, product, slopes[m])
            for leaf in range(leaves):
                weight = reach[m, leaf, first:last]
                for i in range(n):
                    weight[i] = held[branches + leaf, i]
