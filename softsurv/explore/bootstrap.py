"""Confidence intervals of the quality measures: one pass over the curves serves all bootstrap samples.

A bootstrap sample is a vector of row counts. Concordance, AUC and Brier score are sums over rows or pairs of rows,
which are put in order once and summed for all samples together. Subjects are drawn: all rows of a subject have its
count.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError, NoComparablePairsError
from softsurv.estimators.shared.checks import whole
from softsurv.explore.quality import require_times
from softsurv.metrics.evaluate import MEASURES, evaluate_with_censoring
from softsurv.metrics.histories import ends_at_risk
from softsurv.metrics.ranges import column_parts, evaluation_range, survival_from_log_cumulative_hazard
from softsurv.metrics.sampled import sampled_auc, sampled_concordances
from softsurv.metrics.shared_curves import SharedCurves
from softsurv.metrics.shifted_curves import ShiftedCurves
from softsurv.nonparametric import StepFunction, ipcw_weights


@dataclass(frozen=True)
class _Fold:
    """Test rows with the samples' counts."""

    time: FloatArray  # (N,)
    event: BoolArray
    counts: NDArray[np.float32]  # (R, N) times weights
    censoring: StepFunction
    grid: FloatArray  # (T,)


def bootstrap_quality(
    tree: Any, data: SurvivalData, n_boot: int = 200, seed: int = 0, level: float = 0.95
) -> pd.DataFrame:
    """The measures of ``tree.evaluate`` with percentile intervals.

    Parameters
    ----------
    tree : fitted tree
    data : SurvivalData
        Rows the tree has not seen.
    n_boot : int
        Samples of the subjects, drawn with replacement.
    seed : int
        Same seed, same samples.
    level : float
        Coverage of the intervals.

    Returns
    -------
    DataFrame, index ``measure``
        ``value`` on the rows as they are, ``lower``, ``upper``. Where subjects have several rows ``harrell_c`` alone,
        of the rows at risk at each event.

    Notes
    -----
    The tree, its censoring curve and the grid of times stay as they are: the intervals tell how sure the measures
    are on subjects like these, not how much another training set would change the tree. A sample without comparable
    pairs is left out.
    """
    whole("n_boot", n_boot, 20)
    whole("seed", seed, 0)
    if not isinstance(level, Real) or not 0 < level < 1:
        raise InvalidParameterError(f"level must be a number in (0, 1), got {level!r}")
    require_times(data)
    data = data.joined().that_count()
    counts = _counts(data, n_boot, seed)
    if data.n_subjects < data.n:
        found = {"harrell_c": _concordance_at_risk(tree, data, counts)}
    elif data.entry is not None:
        found = _of_late_rows(tree, data, counts)
    else:
        found = _of_plain_rows(tree, data, counts)
    tail = (1 - level) / 2
    rows = [
        (name, float(values[0]), *map(float, np.nanquantile(values[1:], [tail, 1 - tail])))
        for name, values in found.items()
    ]
    return pd.DataFrame(rows, columns=["measure", "value", "lower", "upper"]).set_index("measure")


def _counts(data: SurvivalData, n_boot: int, seed: int) -> NDArray[np.float32]:
    """How often each row is in each sample times its weight, (R, N); first the rows as they are."""
    n, rng = data.n_subjects, np.random.default_rng(seed)
    subject = np.arange(n) if data.subject is None else np.unique(data.subject.numpy(), return_inverse=True)[1]
    weight = np.ones(data.n) if data.weight is None else data.weight.numpy()
    weight = weight / weight.max()  # in any unit: single precision holds the counts
    counts = np.tile(weight.astype(np.float32), (n_boot + 1, 1))
    for count in counts[1:]:
        count[:] = rng.multinomial(n, np.full(n, 1 / n))[subject] * weight
    return counts


def _of_plain_rows(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> dict[str, FloatArray]:
    """The measures (R,) of every sample of rows without late entry."""
    known = tree._outcome(data)  # times 0 as in ``evaluate``
    time, event = known["time"], known["event"]
    grid = evaluation_range(time, event, tree.censoring_, None, 100).times
    fold = _Fold(time, event, counts, tree.censoring_, grid)
    curves = tree._log_hazard_of(tree._prepare(data.X))
    harrell, uno = _concordances(fold, curves)
    log_hazard = np.asarray(curves(grid))
    return {"harrell_c": harrell, "uno_c": uno, "cd_auc": _auc(fold, log_hazard), "ibs": _brier(fold, log_hazard)}


def _of_late_rows(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> dict[str, FloatArray]:
    """The measures (R,) of every sample of rows with late entry, whose weights are each sample's own."""
    known, curves = tree._outcome(data), tree._log_hazard_of(tree._prepare(data.X))
    span = evaluation_range(known["time"], known["event"], tree.censoring_, None, 100)
    steps = span.times
    if not isinstance(curves, SharedCurves | ShiftedCurves):  # concordance asks for a curve at each event
        steps = np.unique(np.concatenate([known["time"][known["event"]], steps]))
    values = np.asarray(curves(steps))  # (N, T) once for all samples
    # rows of a leaf one after the other, by rising risk: each sample's AUC sorts a few rising runs
    order = np.lexsort((values[:, -1], getattr(curves, "member", np.zeros(len(values)))))
    values, counts = values[order], counts[:, order]
    known = {name: known[name][order] for name in ("time", "event", "entry")}
    if isinstance(curves, SharedCurves | ShiftedCurves):
        curves = curves.take(order)

    def known_at(times: FloatArray) -> FloatArray:
        return np.asarray(values[:, np.searchsorted(steps, times)])

    if isinstance(curves, ShiftedCurves):
        curves = replace(curves, log_cumulative_hazard=known_at)
    found = np.full((len(MEASURES), len(counts)), np.nan)
    for number, count in enumerate(counts):
        rows = count > 0
        here = {name: column[rows] for name, column in known.items()}

        def log_hazard(times: FloatArray, rows: BoolArray = rows) -> FloatArray:
            return np.asarray(values[np.ix_(rows, np.searchsorted(steps, times))])

        risk = curves.take(rows) if isinstance(curves, SharedCurves | ShiftedCurves) else log_hazard
        with warnings.catch_warnings(), contextlib.suppress(NoComparablePairsError, InvalidTimesError):
            warnings.simplefilter("ignore")  # of times that a sample does not reach
            result = evaluate_with_censoring(
                tree.censoring_, **here, weight=count[rows], log_cumulative_hazard=risk, times=span.times
            )
            found[:, number] = [result[name] for name in MEASURES]
    return dict(zip(MEASURES, found, strict=True))


def _concordance_at_risk(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> FloatArray:
    """Harrell's concordance (R,) of subjects with several rows, as `softsurv.metrics.histories.evaluate_histories`."""
    known, curves = tree._outcome(data), tree._log_hazard_of(tree._prepare(data.X))
    assert data.subject is not None
    entry = np.zeros(data.n) if known["entry"] is None else known["entry"]
    ends = ends_at_risk(known["time"], known["event"], data.subject.numpy(), entry)
    return sampled_concordances(ends, known["event"], curves, counts, lambda at: [np.ones(at.size)], entry)[0]


def _concordances(fold: _Fold, log_hazard: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Harrell's and Uno's concordance of every sample, (2, R); pairs as in `softsurv.metrics.harrell_c`."""

    def weights(time: FloatArray) -> list[FloatArray]:
        counted = (time <= fold.grid[-1]) & (time < fold.time.max())
        of_uno = np.zeros(time.size)
        of_uno[counted] = fold.censoring(time[counted]) ** -2.0
        return [np.ones(time.size), of_uno]

    return sampled_concordances(fold.time, fold.event, log_hazard, fold.counts, weights)


def _brier(fold: _Fold, log_hazard: FloatArray) -> FloatArray:
    """Integrated Brier score of every sample, (R,): a mean of one number per row."""
    case_weight = ipcw_weights(fold.time, fold.event & (fold.time <= fold.grid[-1]), fold.censoring)
    row, free_weight = np.empty(fold.time.size), fold.censoring(fold.grid)
    for part in column_parts(fold.grid.size, row.size):
        survival = survival_from_log_cumulative_hazard(log_hazard[part])
        free = fold.time[part, None] > fold.grid
        loss = np.where(free, (1 - survival) ** 2 / free_weight, case_weight[part, None] * survival**2)
        row[part] = np.trapezoid(loss, fold.grid, axis=1) / (fold.grid[-1] - fold.grid[0])
    return fold.counts @ row / fold.counts.sum(1)


def _auc(fold: _Fold, log_hazard: FloatArray) -> FloatArray:
    """Mean cumulative/dynamic AUC of every sample, (R,), weighted by the drop of its Kaplan-Meier curve."""
    weight = ipcw_weights(fold.time, fold.event & (fold.time <= fold.grid[-1]), fold.censoring)
    drop = -np.diff(_kaplan_meier(fold), axis=1, prepend=1.0)  # (R, T)
    counts = np.ascontiguousarray(fold.counts.T)
    total, used = np.zeros((2, len(fold.counts)))
    for k, t in enumerate(fold.grid):
        cases = np.where(fold.time <= t, weight, 0.0)
        if not cases.any():
            continue
        won, pairs = sampled_auc(cases, fold.time > t, log_hazard[:, k], counts)
        seen = (pairs > 0) & (drop[:, k] > 0)
        total[seen] += drop[seen, k] * won[seen] / pairs[seen]
        used[seen] += drop[seen, k]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(used > 0, total / used, np.nan)


def _kaplan_meier(fold: _Fold) -> FloatArray:
    """Kaplan-Meier curve of every sample on the grid, (R, T)."""
    order = np.argsort(fold.time, kind="stable")
    times, first = np.unique(fold.time[order], return_index=True)
    place, event = np.searchsorted(times, fold.grid, side="right"), fold.event[order]
    found = np.empty((len(fold.counts), fold.grid.size))
    for curve, count in zip(found, fold.counts, strict=True):
        mass = count[order].astype(float)
        events = np.add.reduceat(mass * event, first)
        at_risk = np.cumsum(mass[::-1])[::-1][first]
        left = 1 - np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0)
        curve[:] = np.append(1.0, np.cumprod(left))[place]
    return found
