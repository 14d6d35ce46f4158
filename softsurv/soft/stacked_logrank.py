"""The greedy log-rank tree that a start is made of, level by level, by torch's operators, on the device of the rows.

At each node it takes the cut of one feature with the largest log-rank statistic, as scikit-survival's tree does, which
`softsurv.soft.starts.logrank_routing` calls. All cuts of a feature are compared at once: cumulative sums over the rows
in the order of the feature give the numbers on the left of every cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from softsurv.soft.starts import SHARPNESS, TIED, smallest_side
from softsurv.trees.topology import n_branches

CELLS = 2**24
"""Rows times cuts times times that are held at once: 128 MiB."""

LEAST_GAP = 1e-7
"""A cut lies only between values that differ by more than this: scikit-learn's threshold."""


class Outcomes(NamedTuple):
    """Times and events of the rows."""

    time: Tensor  # (N,)
    event: Tensor  # (N,) 0 or 1
    times: Tensor  # (T,) distinct times of events


def logrank_start(
    x: Tensor,  # (N, P)
    time: Tensor,  # (N,)
    event: Tensor,  # (N,) bool
    times: Tensor,  # (T,) distinct times of events, T > 0
    depth: int,
) -> Tensor:  # (B, P + 1)
    """Routing weights that reproduce the splits of a greedy log-rank tree; see `softsurv.soft.starts.soft_splits`."""
    table = x.new_zeros(n_branches(depth), x.shape[1] + 1)
    if depth == 0 or x.shape[1] == 0 or not len(times):
        return table
    values = x.mT.float()  # scikit-survival's precision
    ordered, order = values.sort(dim=-1, stable=True)
    outcomes, least = Outcomes(time, event.to(x), times), smallest_side(len(x))
    node, alive = torch.zeros_like(time, dtype=torch.int64), torch.ones_like(time[:1], dtype=torch.bool)
    for level in range(depth):
        here = node == torch.arange(2**level, device=x.device)[:, None]  # (S, N)
        score = torch.stack([_scores(ordered, order, outcomes, rows, least) for rows in here])  # (S, P, N)
        feature, cut, splits = _best(score, ordered, order, here)
        splits = splits & alive
        left = values[feature] <= cut[:, None]  # (S, N)
        first = 2**level - 1
        table[first : first + len(here)] = _soft(x, feature, cut, splits)
        node = 2 * node + (here & splits[:, None] & ~left).any(0)
        alive = splits.repeat_interleave(2)
    return table


def _scores(ordered: Tensor, order: Tensor, outcomes: Outcomes, here: Tensor, least: int) -> Tensor:  # (P, N)
    """Log-rank statistic of a cut after each row in the order of each feature; -inf where there is no cut."""
    time, event, times = outcomes
    mask = here.to(event)
    parts = list(_time_parts(len(time), len(times)))
    at_risk = torch.cat([(mask[:, None] * (time[:, None] >= times[part])).sum(0) for part in parts])  # (T,)
    events = torch.cat([((mask * event)[:, None] * (time[:, None] == times[part])).sum(0) for part in parts])
    known = at_risk > 0
    n = torch.where(known, at_risk, 1.0)
    spread = torch.where(at_risk > 1, events * (at_risk - events) / (at_risk - 1).clamp(min=1), 0.0)
    place = torch.searchsorted(times, time, right=True)  # (N,) times of events up to that of the row

    def summed(values: Tensor) -> Tensor:  # (T,) -> (N,)
        return torch.nn.functional.pad(values.cumsum(0), (1, 0))[place]

    beyond = mask * (event - summed(events / n))  # events beyond those expected
    linear = mask * summed(spread / n)
    numerator, variance = beyond[order].cumsum(-1), linear[order].cumsum(-1)  # (P, N)
    variance = variance - _squares(order, mask, outcomes, spread / n.square())
    score = torch.where(variance > 0, numerator.abs() / variance.clamp(min=0).sqrt(), 0.0)
    return torch.where(_is_cut(ordered, mask[order], least), score, -torch.inf)


def _squares(order: Tensor, mask: Tensor, outcomes: Outcomes, weight: Tensor) -> Tensor:  # (P, N)
    """sum_t weight_t n_t^2 for each place, n_t being the number at risk among the rows up to it."""
    time, _, times = outcomes
    together = max(1, CELLS // (len(time) * len(times)))
    found = []
    for rows in order.split(together):  # of some features, (p, N)
        total = torch.zeros_like(mask[rows])
        for part in _time_parts(len(time), len(times)):
            at_risk = (mask[rows][..., None] * (time[rows][..., None] >= times[part])).cumsum(-2)
            total = total + at_risk.square() @ weight[part]
        found.append(total)
    return torch.cat(found)


def _time_parts(n: int, n_times: int) -> Iterator[slice]:
    """The times in parts, of as many as are held at once for n rows."""
    width = max(1, CELLS // n)
    return (slice(first, first + width) for first in range(0, n_times, width))


def _is_cut(ordered: Tensor, mask: Tensor, least: int) -> Tensor:  # (P, N) bool
    """Whether a cut may lie after each place: the value changes there, and both sides have rows enough."""
    count = mask.cumsum(-1)
    enough = (count >= least) & (count[:, -1:] - count >= least)
    following = torch.where(mask > 0, ordered, torch.inf).flip(-1).cummin(-1)[0].flip(-1)
    following = torch.nn.functional.pad(following[:, 1:], (0, 1), value=torch.inf)
    return enough & (mask > 0) & (following > ordered + LEAST_GAP)


def _best(score: Tensor, ordered: Tensor, order: Tensor, here: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Feature of the best cut of each node (S,), the cut, and whether there is one; the first of those that tie."""
    flat = score.flatten(1)
    highest = flat.amax(1, keepdim=True)
    place = (flat >= highest - TIED * highest.abs()).to(torch.int8).argmax(1)
    n = score.shape[-1]
    feature, at = place // n, place % n
    column = ordered[feature]  # (S, N)
    mask = torch.gather(here, 1, order[feature])
    behind = torch.arange(n, device=at.device) > at[:, None]
    upper = torch.where(behind & mask, column, torch.inf).amin(1)
    lower = column.gather(1, at[:, None])[:, 0]
    return feature, lower.double() / 2 + upper.double() / 2, highest[:, 0].isfinite()


def _soft(x: Tensor, feature: Tensor, cut: Tensor, splits: Tensor) -> Tensor:  # (S, P + 1)
    """Routing weights of each node's cut, midway between neighbouring values of all rows; without a cut all go left."""
    values = x.mT[feature]  # (S, N)
    low = values <= cut[:, None]
    below, above = torch.where(low, values, -torch.inf).amax(1), torch.where(low, torch.inf, values).amin(1)
    slope = SHARPNESS / values.std(1, correction=0).clamp(min=1e-12)
    parted = splits & below.isfinite() & above.isfinite()
    offset = torch.where(
        parted, slope * 0.5 * (below + above), torch.where(splits & above.isfinite(), -SHARPNESS, SHARPNESS)
    )
    columns = torch.arange(x.shape[1], device=x.device) == feature[:, None]
    weights = torch.where(columns & parted[:, None], -slope[:, None], 0.0)
    return torch.cat([offset[:, None], weights], 1)
