"""The measures by cause of many models on one test fold at once, by torch's operators, on the device of the incidences.

As in `softsurv.metrics.stacked`, all that depends on the fold alone is worked out once, on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.metrics.brier import trapezoid_weights
from softsurv.metrics.competing import counted_rises
from softsurv.metrics.histories import pairs_of_cause
from softsurv.metrics.seen_weights import SeenWeights
from softsurv.metrics.stacked import won_by
from softsurv.metrics.stacked_pairs import StackedPairs, nan_of, placed
from softsurv.nonparametric import StepFunction, checked_columns

Blocks = Iterable[tuple[slice, Tensor]]
"""The times in parts, in order, and the incidences (K, M, N, C) of all causes in M models at each of a part's times."""


class _OneCause(NamedTuple):
    """What is measured of a cause; None: this fold cannot say."""

    pairs: StackedPairs | None
    auc: Tensor | None  # (T,) weight at each grid time of the pairs that the risk puts in order
    brier: Tensor | None  # (T,) weight of a squared distance

    @property
    def known(self) -> list[str]:
        """Names of the measures that there are."""
        parts = {"concordance": self.pairs, "auc": self.auc, "ibs": self.brier}
        return [name for name, part in parts.items() if part is not None]


class _GridOfCauses(NamedTuple):
    """The grid of AUC and Brier score, and what rows weigh there."""

    times: Tensor  # (T,)
    column: Tensor  # (T,) place among all times
    starts: tuple[int, ...]  # (U + 1,) first grid time at or after each of all times
    own: Tensor  # (N,) weight of an event
    later: Tensor  # (T,) weight of a row that is free of events


class StackedCauses:
    """A test fold whose events have causes, on a device, ready to measure stacks of models.

    Parameters
    ----------
    ends, codes : ndarray (N,)
        Until when each row can be compared: its time, of several rows of a subject as `ends_at_risk` gives them; and 0
        where censored, else the code 1..K of what happened.
    names : sequence of str (K,)
    like : Tensor
        A tensor on the device. Measures are taken in float64.
    entry, weight : ndarray (N,), optional
    censoring, grid : StepFunction and ndarray (T,), optional
        G of the training fold, and the times of AUC and Brier score. Without them only concordances are measured, as
        for subjects with several rows.

    Attributes
    ----------
    times : ndarray (U,)
        Where incidences are needed, increasing.
    names : tuple of (str, str)
        Cause and measure of each number.

    Raises
    ------
    NoComparablePairsError, InvalidTimesError
        As `softsurv.metrics.histories.evaluate_causes`, which measures one model.
    """

    def __init__(
        self,
        ends: FloatArray,
        codes: IntArray,
        names: Sequence[str],
        like: Tensor,
        *,
        entry: FloatArray | None = None,
        weight: FloatArray | None = None,
        censoring: StepFunction | None = None,
        grid: FloatArray | None = None,
    ) -> None:
        place = partial(placed, device=like.device)
        _, _, mass, entry_ = checked_columns(ends, codes > 0, weight, entry)
        at_risk: dict[str, Any] = {"entry": entry, "weight": weight}
        causes = range(1, len(names) + 1)
        pairs = [pairs_of_cause(ends, codes, np.zeros(ends.size), code, at_risk) for code in causes]
        known = [one[1].time for one in pairs if one is not None]
        self.times = np.unique(np.concatenate([*known, [] if grid is None else grid]))
        of_pairs = [
            None if one is None else StackedPairs.of(one[1], one[0], entry_, mass, self.times, like.device)
            for one in pairs
        ]
        scores: list[tuple[Tensor | None, Tensor | None]] = [(None, None) for _ in causes]
        self._grid = None
        if grid is not None and censoring is not None:
            weights = SeenWeights.of(ends, codes, grid, censoring, weight, entry)
            table = weights.table(ends, grid)
            starts = np.append(np.searchsorted(grid, self.times), grid.size)
            columns = (grid, np.searchsorted(self.times, grid), weights.own, weights.later)
            times, column, own, later = (place(values) for values in columns)
            self._grid = _GridOfCauses(times, column, tuple(starts.tolist()), own, later)
            brier = place(_brier_weights(grid, weights.total(table)))
            aucs = [_auc_weights(ends, codes, grid, code, table, at_risk) for code in causes]
            scores = [(None if auc is None else place(auc), brier) for auc in aucs]
        self._causes = [_OneCause(one, *of_grid) for one, of_grid in zip(of_pairs, scores, strict=True)]
        entries = np.full(ends.size, -np.inf) if entry_ is None else entry_
        self._ends, self._codes, self._mass, self._entry = (place(v) for v in (ends, codes, mass, entries))
        self.names = tuple((name, what) for name, one in zip(names, self._causes, strict=True) for what in one.known)
        self._events = {name: int((codes == code).sum()) for code, name in zip(causes, names, strict=True)}

    def measures(self, blocks: Blocks, n_models: int) -> Tensor:
        """The measures of each model, (K', M) as `names` say, NaN where a prediction is; nothing goes to the host."""
        found = torch.zeros(len(self.names), n_models, dtype=torch.float64, device=self._mass.device)
        for part, incidence in blocks:
            rows = [row for k, _ in enumerate(self._causes) for row in self._of_cause(k, part, incidence[k])]
            found = found + torch.stack(rows)
        return found

    def by_cause(self, values: Sequence[float]) -> dict[str, dict[str, Any]]:
        """The numbers (K',) of one model as `softsurv.metrics.histories.evaluate_causes` returns them."""
        known = dict(zip(self.names, values, strict=True))
        return {
            name: {what: known.get((name, what)) for what in ("concordance", "auc", "ibs")} | {"events": events}
            for name, events in self._events.items()
        }

    def _of_cause(self, k: int, part: slice, incidence: Tensor) -> list[Tensor]:
        """What some of the times add to the measures of a cause, (M,) each; incidence (M, N, C)."""
        one, found = self._causes[k], []
        if one.pairs is not None:
            found.append(one.pairs.points(part, incidence)[0])
        if self._grid is not None:
            found += self._on_grid(k, self._grid, part, incidence)
        missing = nan_of(incidence)
        return [value + missing for value in found]

    def _on_grid(self, k: int, g: _GridOfCauses, part: slice, incidence: Tensor) -> list[Tensor]:
        """As `_of_cause`, for the Brier score and, where it is known, the AUC."""
        one, here = self._causes[k], slice(g.starts[part.start], g.starts[min(part.stop, len(g.starts) - 1)])
        predicted = incidence.index_select(2, g.column[here] - part.start)  # (M, N, C)
        at = g.times[here, None]
        over = self._ends <= at  # (C, N)
        mass = self._mass * torch.where(over, g.own, torch.where(self._entry <= at, g.later[here, None], 0.0))
        case = over & (self._codes == k + 1)
        found = []
        if one.auc is not None:
            won = won_by(torch.where(case, mass, 0.0), torch.where(case, 0.0, mass), predicted.mT)  # (M, C)
            found.append(won @ one.auc[here])
        if one.brier is not None:
            squares = (mass.mT * (case.mT.double() - predicted).square()).sum(1)  # (M, C)
            found.append(squares @ one.brier[here])
        return found


def _brier_weights(grid: FloatArray, total: FloatArray) -> FloatArray:
    """Weight (T,) of the squared distances at each time in the integrated Brier score."""
    known = total > 0.0
    return np.divide(trapezoid_weights(grid, known), total, out=np.zeros(grid.size), where=known)


def _auc_weights(
    time: FloatArray, codes: IntArray, grid: FloatArray, code: int, table: FloatArray, at_risk: dict[str, Any]
) -> FloatArray | None:
    """Weight (T,) in the mean AUC of twice the pairs in order at each time; None without an event on the grid.

    ``table`` (N, T) are the weights of the rows.
    """
    if not ((codes == code) & (time <= grid[-1])).any():
        return None
    case = (codes == code)[:, None] & (time[:, None] <= grid)
    cases = np.where(case, table, 0.0).sum(0)
    pairs = 2.0 * cases * np.where(case, 0.0, table).sum(0)
    rise = counted_rises(time, codes, grid, code, pairs > 0.0, **at_risk)
    return np.divide(rise / rise.sum(), pairs, out=np.zeros(grid.size), where=rise > 0.0)
