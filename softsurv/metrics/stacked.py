"""The measures of many models on one test fold at once, by torch's operators, on the device of their predictions.

Whom a measure compares, and how much each row and time weighs, depends on the fold alone: that is worked out once, on
the host, by the functions that measure one model. The rest is sums over the predictions. Each measure of a stack is one
number for each model, which stays on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import BoolArray, FloatArray
from softsurv.metrics.auc import counted_times, drop_of_survival
from softsurv.metrics.brier import control_weights, total_weight, trapezoid_weights
from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.entering import CheckedRows, under_observation
from softsurv.metrics.evaluate import MEASURES, facts_of_fold, warn_of_ignored
from softsurv.metrics.ranges import LARGEST_EXPONENT, column_parts, evaluation_range
from softsurv.metrics.stacked_pairs import LogHazards, StackedPairs, nan_of, placed
from softsurv.nonparametric import StepFunction

CELLS = 2**24
"""Predictions of a block: 128 MiB, of which a handful are alive at once."""


@dataclass(frozen=True)
class _Grid:
    """What AUC and Brier score weigh at each time of the grid."""

    times: Tensor  # (T,)
    case: Tensor  # (N,) weight of each row as a case
    control: Tensor  # (T,) weight of a row that is event-free there
    auc: Tensor  # (T,) weight of the pairs that the risk puts in order
    brier: Tensor  # (T,) weight of a squared distance
    axis: Tensor  # (T,) weight in a mean over time


class StackedFold:
    """A test fold on a device, ready to measure stacks of models.

    Parameters
    ----------
    censoring : StepFunction
        G of the training fold.
    fold : mapping
        Columns of the test fold, as `softsurv.metrics.evaluate.outcome` gives them.
    like : Tensor
        A tensor on the device. Measures are taken in float64.
    group : ndarray (N,) of bool, optional
        Members of a group: the mean gap between its mean curve and that of the others is measured, too.
    n_times : int
        Size of the grid for AUC and Brier score.

    Attributes
    ----------
    grid : ndarray (T,)
        Times of AUC and Brier score.
    facts : dict
        What the measures rest on, as in `softsurv.metrics.evaluate_with_censoring`.

    Raises
    ------
    NoComparablePairsError, InvalidTimesError
        As `softsurv.metrics.evaluate_with_censoring`.
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
        self._placed = partial(placed, device=like.device)
        late = fold["entry"]
        pairs = count_pairs(
            self.rows.time, self.rows.event, np.zeros(self.rows.time.size), entry=late, weight=fold["weight"]
        )
        pairs.concordance()  # first: a fold without pairs has no range either
        span = evaluation_range(self.rows.time, self.rows.event, censoring, None, n_times)
        self.grid = span.times
        self.facts = facts_of_fold(self.rows.event, span)
        after = float(np.nextafter(span.upper, np.inf))
        uno = pairs.uno_weight(censoring, after, None if late is None else self.rows.entering)
        entry = np.full(self.rows.time.size, -np.inf) if self.rows.entry is None else self.rows.entry
        self._time, self._mass, self._entry = (self._placed(v) for v in (self.rows.time, self.rows.mass, entry))
        times, weights = np.unique(pairs.time), (np.ones(uno.size), uno)
        self._pairs = StackedPairs.of(
            pairs, self.rows.time, self.rows.entry, self.rows.mass, times, self.device, weights
        )
        self._event_times = self._placed(times)
        self._grid = self._weighed(span.times, censoring)
        self._group = None if group is None else self._placed(_signed_shares(group, self.rows.mass))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures (K,)."""
        return MEASURES if self._group is None else (*MEASURES, "fairness")

    def measures(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """The measures of each model, (K, M), NaN where a prediction is; nothing is brought to the host."""
        ranked = self._pairs.concordances(self._event_times, log_hazard, n_models, CELLS)  # Harrell's and Uno's C
        return torch.cat([ranked, self._on_grid(log_hazard, n_models)])

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

    def _on_grid(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """Mean AUC, integrated Brier score, and the gap between groups, (2 or 3, M)."""
        g, found = self._grid, []
        for part in column_parts(n_models * self.rows.time.size, len(g.times), CELLS):
            hazard = log_hazard(g.times[part]).double()  # (M, N, C)
            survival = torch.exp(-torch.exp(hazard.clamp(max=LARGEST_EXPONENT)))
            at = g.times[part, None]
            case = torch.where(self._time <= at, g.case, 0.0)  # (C, N)
            free = torch.where((self._time > at) & (self._entry <= at), self._mass, 0.0)
            won = won_by(case, free, hazard.mT)  # (M, C)
            squares = (case.mT * survival.square()).sum(1)
            squares = squares + g.control[part] * (free.mT * (1.0 - survival).square()).sum(1)
            sums = [won @ g.auc[part], squares @ g.brier[part]]
            if self._group is not None:
                sums.append((self._group @ survival).abs() @ g.axis[part])
            found.append(torch.stack(sums) + nan_of(hazard))
        return torch.stack(found).sum(0)


def _signed_shares(group: BoolArray, mass: FloatArray) -> FloatArray:
    """Shares (N,) of the rows in the mean of the group, and minus those in the mean of the others."""
    inside, others = mass * group, mass * ~group
    return np.asarray(inside / inside.sum() - others / others.sum())


def won_by(case: Tensor, free: Tensor, risk: Tensor) -> Tensor:
    """Twice the weight of the pairs of a case and a control (C, N) that the risk (M, C, N) puts in order, (M, C).

    A pair of equal risks counts half: the mass below the first of them and the mass up to the last are added.
    """
    ordered, order = risk.contiguous().sort(-1)
    case, free = (table.expand_as(risk).gather(2, order) for table in (case, free))
    mass = torch.nn.functional.pad(free.cumsum(-1), (1, 0))  # (M, C, N + 1) of controls at lower places
    first = torch.searchsorted(ordered, ordered)
    last = torch.searchsorted(ordered, ordered, right=True)
    return (case * (mass.gather(2, first) + mass.gather(2, last))).sum(-1)
