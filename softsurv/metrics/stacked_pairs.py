"""The pairs of rows that the concordance of many models compares, on the device of their predictions.

The pairs and their weights depend on the fold alone. The comparisons of predictions are summed on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray
from softsurv.metrics.concordance import PairCounts
from softsurv.metrics.ranges import column_parts

LogHazards = Callable[[Tensor], Tensor]
"""Takes times (T,), returns log H (M, N, T) of M models for the test subjects."""


@dataclass(frozen=True)
class StackedPairs:
    """Who is compared with whom.

    Attributes
    ----------
    row : Tensor (E,)
        Row of each event, in order of time.
    column : Tensor (E,)
        Its place among the times of the predictions.
    starts : tuple of int (T + 1,)
        First event at or after each of these times.
    spans : Tensor (2, N)
        Each row is compared with the events from the first to before the second.
    weight : Tensor (W, E)
        Weight of a point of each event, in each of W concordances.
    mass : Tensor (N,)
    """

    row: Tensor
    column: Tensor
    starts: tuple[int, ...]
    spans: Tensor
    weight: Tensor
    mass: Tensor

    @classmethod
    def of(
        cls,
        pairs: PairCounts,
        ends: FloatArray,  # (N,) until when each row can be compared
        entry: FloatArray | None,  # (N,) -inf: from the start
        mass: FloatArray,  # (N,)
        times: FloatArray,  # (T,) rising; those of the events are among them
        device: torch.device,
        weights: Sequence[FloatArray] | None = None,  # W of (E,); None: ones, for Harrell's C
    ) -> StackedPairs:
        """The pairs that `count_pairs` counted of a fold, whatever the risk."""
        own = mass[pairs.rows]
        of_pairs = [np.ones(own.size)] if weights is None else weights
        missed = np.zeros(ends.size, dtype=np.int64)
        if entry is not None:
            missed = np.searchsorted(pairs.time, entry, side="right")
        earlier = np.searchsorted(pairs.time, ends, side="left")
        starts = np.append(np.searchsorted(pairs.time, times), pairs.time.size)
        points = np.stack([weight * own / (weight @ pairs.comparable) for weight in of_pairs])
        row, column, spans, weight, mass_ = (
            placed(v, device)
            for v in (pairs.rows, np.searchsorted(times, pairs.time), np.stack([missed, earlier]), points, mass)
        )
        return cls(row, column, tuple(starts.tolist()), spans, weight, mass_)

    def points(self, part: slice, risk: Tensor) -> Tensor:  # (W, M)
        """What the events at some of the times add to each concordance; risk (M, N, C) at these times."""
        here = slice(self.starts[part.start], self.starts[min(part.stop, len(self.starts) - 1)])
        number = torch.arange(here.start, here.stop, device=risk.device)
        compared = (number >= self.spans[0, :, None]) & (number < self.spans[1, :, None])  # (N, E)
        risk = risk.index_select(2, self.column[here] - part.start)  # (M, N, E)
        own = risk.gather(1, self.row[here].expand(len(risk), 1, -1))
        points = (risk < own).double() + 0.5 * (risk == own)
        return self.weight[:, here] @ (points * (compared * self.mass[:, None])).sum(1).mT

    def concordances(self, times: Tensor, log_hazard: LogHazards, n_models: int, cells: int) -> Tensor:  # (W, M)
        """The concordances of M models at the times (T,) of the predictions, NaN where one of a model's is.

        ``cells`` is the largest number of predictions at once.
        """
        found = []
        for part in column_parts(n_models * len(self.mass), len(times), cells):
            risk = log_hazard(times[part]).double()  # (M, N, C)
            found.append(self.points(part, risk) + nan_of(risk))
        return torch.stack(found).sum(0)


def placed(values: Any, device: torch.device) -> Tensor:
    """An array of the host on a device."""
    return torch.as_tensor(np.ascontiguousarray(values)).to(device)


def nan_of(predicted: Tensor) -> Tensor:
    """NaN for each model whose predictions (M, N, C) hold one, else 0, (M,)."""
    return torch.where(torch.isnan(predicted).flatten(1).any(1), torch.nan, 0.0).double()
