"""The measures of many models on one test fold at once, by torch's operators, on the device of their predictions.

Whom a measure compares, and how much each row and time weighs, depends on the fold alone: that is worked out once, on
the host, by the functions that measure one model. What is left are sums over the predictions, and each measure of a
stack is one number a model, which stays on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray
from softsurv.metrics.auc import counted_times, drop_of_survival
from softsurv.metrics.brier import control_weights, total_weight, trapezoid_weights
from softsurv.metrics.concordance import PairCounts, count_pairs
from softsurv.metrics.entering import CheckedRows, under_observation
from softsurv.metrics.evaluate import MEASURES, facts_of_fold, warn_of_ignored
from softsurv.metrics.ranges import LARGEST_EXPONENT, column_parts, evaluation_range
from softsurv.nonparametric import StepFunction

LogHazards = Callable[[Tensor], Tensor]
"""Takes times (T,), returns log H (M, N, T) of M models for the test subjects."""

CELLS = 2**24
"""Predictions of a block: 128 MiB, of which a handful are alive at once."""


@dataclass(frozen=True)
class _Pairs:
    """Who is compared with whom."""

    times: Tensor  # (U,) distinct times of events
    row: Tensor  # (E,) of each event, in order of time
    column: Tensor  # (E,) its time among the distinct ones
    starts: tuple[int, ...]  # (U + 1,) first event of each distinct time
    spans: Tensor  # (2, N) each subject is compared with the events from the first to before the second
    weight: Tensor  # (2, E) of a point of each event, in Harrell's and in Uno's C


@dataclass(frozen=True)
class _Grid:
    """What AUC and Brier score weigh at each time of the grid."""

    times: Tensor  # (T,)
    case: Tensor  # (N,)
    control: Tensor  # (T,) of a row that is event-free there
    auc: Tensor  # (T,) of the pairs that were put in order
    brier: Tensor  # (T,) of a squared distance
    axis: Tensor  # (T,) of a mean over time


class StackedFold:
    """A test fold on a device, ready to measure stacks of models.

    Parameters
    ----------
    censoring : StepFunction
        G of the training fold.
    fold : mapping
        Columns of the test fold, as `softsurv.metrics.evaluate.outcome` gives them.
    like : Tensor
        Of the device. Measures are taken in float64.
    group : ndarray (N,) of bool, optional
        Members of a group: the mean gap between its mean curve and that of the others is measured, too.
    n_times : int
        Of the grid for AUC and Brier score.

    Attributes
    ----------
    facts : dict
        What the measures rest on, as in `softsurv.metrics.evaluate_with_censoring`.

    Raises
    ------
    NoComparablePairsError, InvalidTimesError
        As there.
    """

    def __init__(
        self,
        censoring: StepFunction,
        fold: Mapping[str, Any],
        like: Tensor,
        group: BoolArray | None = None,
        n_times: int = 100,
    ) -> None:
        self.rows = CheckedRows.of(fold["time"], fold["event"], fold["weight"], fold["entry"])
        warn_of_ignored(self.rows.event, fold["upper"])
        self.device = like.device
        late = fold["entry"]
        pairs = count_pairs(
            self.rows.time, self.rows.event, np.zeros(self.rows.time.size), entry=late, weight=fold["weight"]
        )
        pairs.concordance()  # first: a fold without pairs has no range either
        span = evaluation_range(self.rows.time, self.rows.event, censoring, None, n_times)
        self.facts = facts_of_fold(self.rows.event, span)
        after = float(np.nextafter(span.upper, np.inf))
        uno = pairs.uno_weight(censoring, after, None if late is None else self.rows.entering)
        entry = np.full(self.rows.time.size, -np.inf) if self.rows.entry is None else self.rows.entry
        self._time, self._mass, self._entry = (self._placed(v) for v in (self.rows.time, self.rows.mass, entry))
        self._pairs = self._compared(pairs, uno)
        self._grid = self._weighed(span.times, censoring)
        self._group = None if group is None else self._placed(np.where(group, 1 / group.sum(), -1 / (~group).sum()))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the measures (K,)."""
        return MEASURES if self._group is None else (*MEASURES, "fairness")

    def measures(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """The measures of each model, (K, M), NaN where a prediction is; nothing is brought to the host."""
        return torch.cat([self._concordance(log_hazard, n_models), self._on_grid(log_hazard, n_models)])

    def _placed(self, values: Any) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(values)).to(self.device)

    def _compared(self, pairs: PairCounts, uno: FloatArray) -> _Pairs:
        rows, own = self.rows, self.rows.mass[pairs.rows]
        times, column = np.unique(pairs.time, return_inverse=True)
        missed = np.zeros(rows.time.size, dtype=np.int64)
        if rows.entry is not None:
            missed = np.searchsorted(pairs.time, rows.entry, side="right")
        earlier = np.searchsorted(pairs.time, rows.time, side="left")
        weights = [weight * own / (weight @ pairs.comparable) for weight in (np.ones(own.size), uno)]
        starts = np.append(np.searchsorted(pairs.time, times), pairs.time.size)
        at_events = [self._placed(values) for values in (times, pairs.rows, column)]
        spans, weight = self._placed([missed, earlier]), self._placed(weights)
        return _Pairs(at_events[0], at_events[1], at_events[2], tuple(starts.tolist()), spans, weight)

    def _weighed(self, grid: FloatArray, censoring: StepFunction) -> _Grid:
        rows = self.rows
        case, control = rows.case_weights(grid[-1], censoring), control_weights(rows, grid, censoring)
        cases = np.where(rows.time <= grid[:, None], case, 0.0)  # (T, N)
        free = np.where(under_observation(rows.entry, rows.time, grid[:, None]), rows.mass, 0.0)
        pairs = 2.0 * cases.sum(1) * free.sum(1)
        drop = drop_of_survival(rows, case, grid)
        seen = counted_times(drop, pairs > 0, grid)
        auc = np.divide(drop / drop[seen].sum(), pairs, out=np.zeros(grid.size), where=seen)
        total = total_weight(rows, cases, control[:, None] * free)
        axis = trapezoid_weights(grid, np.ones(grid.size, dtype=bool))
        brier = np.divide(trapezoid_weights(grid, total > 0), total, out=np.zeros(grid.size), where=total > 0)
        return _Grid(*(self._placed(v) for v in (grid, case, control, auc, brier, axis)))

    def _parts(self, n_models: int, n_times: int) -> Iterator[slice]:
        """The times in parts, of as many as are held at once."""
        return column_parts(n_models * self.rows.time.size, n_times, CELLS)

    def _concordance(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """Harrell's and Uno's C, (2, M)."""
        p, found = self._pairs, []
        for part in self._parts(n_models, len(p.times)):
            risk = log_hazard(p.times[part]).double()  # (M, N, C)
            here = slice(p.starts[part.start], p.starts[min(part.stop, len(p.times))])
            number = torch.arange(here.start, here.stop, device=self.device)
            compared = (number >= p.spans[0, :, None]) & (number < p.spans[1, :, None])  # (N, E)
            found_nan = _nan_of(risk)
            risk = risk.index_select(2, p.column[here] - part.start)  # (M, N, E)
            own = risk.gather(1, p.row[here].expand(len(risk), 1, -1))
            points = (risk < own).double() + 0.5 * (risk == own)
            counts = (points * (compared * self._mass[:, None])).sum(1)  # (M, E)
            found.append(p.weight[:, here] @ counts.mT + found_nan)
        return torch.stack(found).sum(0)

    def _on_grid(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """Mean AUC, integrated Brier score, and the gap between groups, (2 or 3, M)."""
        g, found = self._grid, []
        for part in self._parts(n_models, len(g.times)):
            hazard = log_hazard(g.times[part]).double()  # (M, N, C)
            survival = torch.exp(-torch.exp(hazard.clamp(max=LARGEST_EXPONENT)))
            at = g.times[part, None]
            case = torch.where(self._time <= at, g.case, 0.0)  # (C, N)
            free = torch.where((self._time > at) & (self._entry <= at), self._mass, 0.0)
            won = _won(case, free, hazard.mT)  # (M, C)
            squares = (case.mT * survival.square()).sum(1)
            squares = squares + g.control[part] * (free.mT * (1.0 - survival).square()).sum(1)
            sums = [won @ g.auc[part], squares @ g.brier[part]]
            if self._group is not None:
                sums.append((self._group @ survival).abs() @ g.axis[part])
            found.append(torch.stack(sums) + _nan_of(hazard))
        return torch.stack(found).sum(0)


def _nan_of(predicted: Tensor) -> Tensor:
    """NaN for each model whose predictions (M, N, C) hold one, else 0, (M,)."""
    return torch.where(torch.isnan(predicted).flatten(1).any(1), torch.nan, 0.0).double()


def _won(case: Tensor, free: Tensor, risk: Tensor) -> Tensor:
    """Twice the weight of the pairs of a case and a control (C, N) that the risk (M, C, N) puts in order, (M, C).

    Of equal risks each pair counts half: what lies below the first of them and what lies not above the last.
    """
    ordered, order = risk.contiguous().sort(-1)
    case, free = (table.expand_as(risk).gather(2, order) for table in (case, free))
    mass = torch.nn.functional.pad(free.cumsum(-1), (1, 0))  # (M, C, N + 1) of controls at lower places
    first = torch.searchsorted(ordered, ordered)
    last = torch.searchsorted(ordered, ordered, right=True)
    return (case * (mass.gather(2, first) + mass.gather(2, last))).sum(-1)
