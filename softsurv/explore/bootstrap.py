"""Confidence intervals of the quality measures: one pass over the curves serves all bootstrap samples.

A bootstrap sample is a vector of row counts. Concordance, AUC and Brier score are sums over rows or pairs of rows,
so that the samples become matrix products with comparisons that are made once. Subjects are drawn: all rows of a
subject have its count.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError, NoComparablePairsError
from softsurv.estimators.shared.checks import whole
from softsurv.explore.curves import log_hazard_of
from softsurv.explore.quality import require_times
from softsurv.metrics.evaluate import MEASURES, evaluate_with_censoring
from softsurv.metrics.histories import ends_at_risk
from softsurv.metrics.ranges import evaluation_range, survival_from_log_cumulative_hazard
from softsurv.nonparametric import StepFunction, ipcw_weights

CHUNK_ELEMENTS = 2**21
"""Pairs of rows and events compared at once."""

N_BLOCKS = 8
"""Parts of the rows in order of time: the curves of a part are not needed once all its rows have left."""


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
    data = data.joined()
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
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=n_boot)[:, subject]
    weight = 1.0 if data.weight is None else data.weight.numpy()
    return (np.concatenate([np.ones((1, data.n)), drawn]) * weight).astype(np.float32)


def _of_plain_rows(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> dict[str, FloatArray]:
    """The measures (R,) of every sample of rows without late entry."""
    known = tree._outcome(data)  # times 0 as in ``evaluate``
    time, event = known["time"], known["event"]
    grid = evaluation_range(time, event, tree.censoring_, None, 100).times
    fold = _Fold(time, event, counts, tree.censoring_, grid)
    harrell, uno = _concordances(tree, data.X, fold)
    log_hazard = log_hazard_of(tree, data.X)(grid)
    return {"harrell_c": harrell, "uno_c": uno, "cd_auc": _auc(fold, log_hazard), "ibs": _brier(fold, log_hazard)}


def _of_late_rows(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> dict[str, FloatArray]:
    """The measures (R,) of every sample of rows with late entry, whose weights are each sample's own."""
    known, curves = tree._outcome(data), log_hazard_of(tree, data.X)
    span = evaluation_range(known["time"], known["event"], tree.censoring_, None, 100)
    steps = np.unique(np.concatenate([known["time"][known["event"]], span.times]))
    values = curves(steps)  # (N, T) once for all samples
    found = np.full((len(MEASURES), len(counts)), np.nan)
    for number, count in enumerate(counts):
        rows = count > 0
        here = {name: known[name][rows] for name in ("time", "event", "entry")}

        def log_hazard(times: FloatArray, rows: BoolArray = rows) -> FloatArray:
            return np.asarray(values[np.ix_(rows, np.searchsorted(steps, times))])

        with warnings.catch_warnings(), contextlib.suppress(NoComparablePairsError, InvalidTimesError):
            warnings.simplefilter("ignore")  # of times that a sample does not reach
            result = evaluate_with_censoring(
                tree.censoring_, **here, weight=count[rows], log_cumulative_hazard=log_hazard, times=span.times
            )
            found[:, number] = [result[name] for name in MEASURES]
    return dict(zip(MEASURES, found, strict=True))


def _concordance_at_risk(tree: Any, data: SurvivalData, counts: NDArray[np.float32]) -> FloatArray:
    """Harrell's concordance (R,) of subjects with several rows, as `softsurv.metrics.histories.evaluate_histories`."""
    known, curves = tree._outcome(data), log_hazard_of(tree, data.X)
    assert data.subject is not None
    time, event, entry = known["time"], known["event"], known["entry"]
    entry = np.zeros(data.n) if entry is None else entry
    ends = ends_at_risk(time, event, data.subject.numpy(), entry)
    cases = np.flatnonzero(event)
    cases = cases[np.argsort(time[cases], kind="stable")]
    concordant, comparable = np.zeros(len(counts)), np.zeros(len(counts))
    width = max(1, CHUNK_ELEMENTS // data.n)
    for part in np.array_split(cases, -(-cases.size // width)):
        at = time[part]
        grid, column = np.unique(at, return_inverse=True)
        block = curves(grid)[:, column]  # (N, c)
        own = block[part, np.arange(part.size)]
        there = ((ends[:, None] > at) & (entry[:, None] < at)).astype(np.float32)
        won = there * np.where(block < own, np.float32(1), np.where(block == own, np.float32(0.5), np.float32(0)))
        here = counts[:, part].astype(float)
        concordant += (here * (counts @ won)).sum(1)
        comparable += (here * (counts @ there)).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return concordant / comparable


def _concordances(tree: Any, X: pd.DataFrame, fold: _Fold) -> tuple[FloatArray, FloatArray]:
    """Harrell's and Uno's concordance of every sample, (R,) each; pairs as in `softsurv.metrics.harrell_c`."""
    order = np.argsort(fold.time, kind="stable")
    time, counts = fold.time[order], fold.counts[:, order]
    later = np.concatenate([np.cumsum(counts[:, ::-1], axis=1)[:, ::-1], np.zeros((len(counts), 1))], axis=1)
    cases = np.flatnonzero(fold.event[order])
    after = np.searchsorted(time, time[cases], side="right")  # first row that may follow each case
    counted = (time[cases] <= fold.grid[-1]) & (after < time.size)
    weight = np.zeros(cases.size)
    weight[counted] = fold.censoring(time[cases[counted]]) ** -2.0
    sums = np.zeros((4, len(counts)))  # concordant and comparable, plain and weighted
    starts = np.unique(np.linspace(0, time.size, N_BLOCKS + 1).astype(int))
    curves = [log_hazard_of(tree, X.iloc[order[a:b]]) for a, b in pairwise(starts)]
    width = max(1, CHUNK_ELEMENTS // time.size)
    for part in np.array_split(np.arange(cases.size), max(1, -(-cases.size // width))):
        if part.size == 0:
            continue
        # nobody before the first case follows any case of this part
        skipped = int(np.searchsorted(starts, cases[part[0]], side="right")) - 1
        first = starts[skipped]
        grid, column = np.unique(time[cases[part]], return_inverse=True)
        block = np.concatenate([curve(grid) for curve in curves[skipped:]])[:, column]  # (N', c)
        own = block[cases[part] - first, np.arange(part.size)]
        won = np.where(block < own, np.float32(1), np.where(block == own, np.float32(0.5), np.float32(0)))
        won[np.arange(first, time.size)[:, None] < after[part]] = 0
        here = counts[:, cases[part]].astype(float)
        concordant = here * (counts[:, first:] @ won)
        comparable = here * later[:, after[part]]
        sums += [v.sum(1) for v in (concordant, comparable, concordant * weight[part], comparable * weight[part])]
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[0] / sums[1], sums[2] / sums[3]


def _brier(fold: _Fold, log_hazard: FloatArray) -> FloatArray:
    """Integrated Brier score of every sample, (R,): a mean of one number per row."""
    survival = survival_from_log_cumulative_hazard(log_hazard)
    case_weight = ipcw_weights(fold.time, fold.event & (fold.time <= fold.grid[-1]), fold.censoring)
    free = fold.time[:, None] > fold.grid
    loss = np.where(free, (1 - survival) ** 2 / fold.censoring(fold.grid), case_weight[:, None] * survival**2)
    row = np.trapezoid(loss, fold.grid, axis=1) / (fold.grid[-1] - fold.grid[0])
    return fold.counts @ row / fold.counts.sum(1)


def _auc(fold: _Fold, log_hazard: FloatArray) -> FloatArray:
    """Mean cumulative/dynamic AUC of every sample, (R,), weighted by the drop of its Kaplan-Meier curve."""
    weight = ipcw_weights(fold.time, fold.event & (fold.time <= fold.grid[-1]), fold.censoring)
    drop = -np.diff(_kaplan_meier(fold), axis=1, prepend=1.0)  # (R, T)
    total, used = np.zeros(len(fold.counts)), np.zeros(len(fold.counts))
    for k, t in enumerate(fold.grid):
        cases = np.flatnonzero((fold.time <= t) & (weight > 0))
        controls = np.flatnonzero(fold.time > t)
        if cases.size == 0:
            continue
        controls = controls[np.argsort(log_hazard[controls, k], kind="stable")]
        ranked = log_hazard[controls, k]
        below = np.concatenate([np.zeros((len(total), 1)), np.cumsum(fold.counts[:, controls], axis=1)], axis=1)
        ends = [np.searchsorted(ranked, log_hazard[cases, k], side=side) for side in ("left", "right")]
        here = fold.counts[:, cases] * weight[cases]
        won = (here * (below[:, ends[0]] + below[:, ends[1]])).sum(1) / 2
        pairs = here.sum(1) * below[:, -1]
        seen = (pairs > 0) & (drop[:, k] > 0)
        total[seen] += drop[seen, k] * won[seen] / pairs[seen]
        used[seen] += drop[seen, k]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(used > 0, total / used, np.nan)


def _kaplan_meier(fold: _Fold) -> FloatArray:
    """Kaplan-Meier curve of every sample on the grid, (R, T)."""
    order = np.argsort(fold.time, kind="stable")
    times, first = np.unique(fold.time[order], return_index=True)
    counts = fold.counts[:, order].astype(float)
    events = np.add.reduceat(counts * fold.event[order], first, axis=1)
    at_risk = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, first]
    survival = np.cumprod(1 - np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0), axis=1)
    levels = np.concatenate([np.ones((len(counts), 1)), survival], axis=1)
    return levels[:, np.searchsorted(times, fold.grid, side="right")]
