"""Starts of many recipes on many sets of rows, proposed on the device on which the trees train."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from softsurv.soft.recipe import Recipe
from softsurv.soft.stacked_kmeans import kmeans_starts
from softsurv.soft.stacked_logrank import logrank_start
from softsurv.soft.starts import (
    TrainingRows,
    counted_events,
    presumed_outcomes,
    random_routing,
    rows_in_time,
    start_key,
)


class _Wanted(NamedTuple):
    """One start: its kind, its seed, and the factor of each cause."""

    kind: str
    seed: int
    counts: tuple[float, ...] | None

    def key(self, depth: int, device: torch.device) -> Hashable:
        """What the start depends on beside the rows."""
        return *start_key(self.kind, depth, self.seed, self.counts), device


def propose(
    rows: Sequence[TrainingRows],  # F
    recipes: Sequence[Recipe],  # of one depth
    design: Tensor,  # (F, N, Q) with a leading column of ones, zero in padded rows and columns
) -> Tensor:  # (F, T, B, Q)
    """The starts of every recipe, proposed by each set of rows; none of them is brought to the host."""
    depth, columns = recipes[0].candidate.depth, design.shape[-1]
    wanted = [
        _Wanted(str(kind), recipe.seed + k, recipe.counts)
        for recipe in recipes
        for k, kind in enumerate(recipe.used_starts)
    ]
    learn_clusters(rows, wanted, design.double(), depth)
    tables = []
    for r, own in zip(rows, design.double(), strict=True):
        x = own[: r.data.n, 1 : r.data.x.shape[1] + 1]
        starts = [r.known(one.key(depth, design.device), partial(_start, r, one, x, depth)) for one in wanted]
        tables.append(pad(torch.stack(starts), (0, columns - x.shape[1] - 1)))
    return torch.stack(tables)


def learn_clusters(rows: Sequence[TrainingRows], wanted: Sequence[_Wanted], design: Tensor, depth: int) -> None:
    """Find the k-means starts that some set of rows lacks, for all sets and seeds together."""
    asked = {one.key(depth, design.device): one.seed for one in wanted if one.kind == "kmeans"}
    new = {key: seed for key, seed in asked.items() if not all(r.knows(key) for r in rows)}
    if not new:
        return
    tables = kmeans_starts(design, depth, list(new.values()))  # (F, S, B, Q)
    for r, of_rows in zip(rows, tables, strict=True):
        for key, table in zip(new, of_rows, strict=True):
            r.known(key, partial(torch.clone, table[:, : r.data.x.shape[1] + 1]))


def _start(rows: TrainingRows, one: _Wanted, x: Tensor, depth: int) -> Tensor:  # (B, P + 1)
    """A random or a log-rank start; the numbers of a random one are drawn on the host."""
    if one.kind == "random":
        return random_routing(rows.data.x.numpy(), depth, [one.seed])[0].to(x)
    time, event = presumed_outcomes(counted_events(rows.data, one.counts))
    some = rows_in_time(len(x), x.shape[1], None)
    if some is not None:
        time, event, x = time[some > 0], event[some > 0], x[torch.as_tensor(some > 0, device=x.device)]
    time_, event_, times = (torch.as_tensor(v).to(x.device) for v in (time, event, np.unique(time[event])))
    return logrank_start(x, time_, event_, times, depth)
