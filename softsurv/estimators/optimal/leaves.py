"""What the leaves of an optimal tree predict: one cumulative hazard per leaf, a step function of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import chi2

from softsurv.arrays import FloatArray, IntArray
from softsurv.estimators.optimal.rows import Rows, baseline_of
from softsurv.estimators.optimal.shrinkage import (
    node_rows,
    places,
    pulled,
    risk_set,
    shrunk_hazards,
    shrunk_score_curves,
    subjects_per_event,
)
from softsurv.exact.objectives.brier import IbsScore
from softsurv.greenwood import greenwood
from softsurv.metrics.concordance import harrell_c
from softsurv.metrics.shared_curves import SharedCurves, SharedIncidences
from softsurv.nonparametric import QUANTILE_TOLERANCE, StepFunction, quantile, ratio, restricted_mean
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.incidence import LARGEST_HAZARD

OWN_CURVE_LEVEL = 0.001
"""Of the test for a curve of a leaf's own. Over six sets of SurvSet, trees of at most eight leaves: concordance .670
and Brier score .176 with it as without any such curve; .667 at 0.01; .661 and .177 with an own curve in every leaf."""

PIECES, EVENTS_A_PIECE = 6, 5
"""Pieces of time in that test, and the events that each needs."""


@dataclass(frozen=True)
class LeafCurves:
    """Cumulative hazard of each of L leaves, from 0 at time 0; ``inf`` from where nobody survives.

    Only times at which it steps are kept. ``own`` says of each leaf whether its curve is its own where others have a
    relative risk times the common baseline. ``variances`` holds Greenwood's variance of log S at the steps of each
    leaf (J,) where all curves are Kaplan-Meier curves that borrow nothing, and is empty otherwise.
    """

    hazards: tuple[StepFunction, ...]
    own: tuple[bool, ...]
    variances: tuple[FloatArray, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, hazards: Iterable[StepFunction], own: Sequence[bool] | None = None) -> LeafCurves:
        """Keep the steps alone."""
        kept = tuple(steps(hazard) for hazard in hazards)
        return cls(kept, tuple(own or [False] * len(kept)))

    @property
    def survival(self) -> tuple[StepFunction, ...]:
        """Survival curve of each leaf."""
        return tuple(StepFunction(h.times, np.exp(-h.values), 1.0) for h in self.hazards)

    def of_leaves(self, times: FloatArray) -> FloatArray:
        """Log H of each leaf, (L, T); -inf before the first step."""
        with np.errstate(divide="ignore"):
            return np.log(np.stack([hazard(times) for hazard in self.hazards]))

    def of_rows(self, leaf: IntArray) -> SharedCurves:
        """Log H of rows by their leaves (n,), as a function of times."""
        return SharedCurves(leaf, self.of_leaves, len(self.hazards))

    def log_cumulative_hazard(self, leaf: IntArray, times: FloatArray) -> FloatArray:
        """Log H of each row's leaf, (n, T); -inf before the first step."""
        return self.of_rows(leaf)(times)

    def at_own_times(self, leaf: IntArray, times: FloatArray) -> FloatArray:
        """Log H of each row's leaf at the row's own times, (n, T) as ``times``; -inf before the first step."""
        found = np.empty_like(times)
        for number, hazard in enumerate(self.hazards):
            found[leaf == number] = hazard(times[leaf == number])
        with np.errstate(divide="ignore"):
            return np.log(found)

    def hazard(self, leaf: IntArray, times: FloatArray) -> FloatArray:
        """Slope of H drawn as straight lines between its steps, (n, T); 0 after the last step."""
        return np.stack([_slope(hazard, times) for hazard in self.hazards])[leaf]

    def quantile(self, leaf: IntArray, level: float | FloatArray) -> FloatArray:
        """Time of the first step with S <= level, one for all rows or that of each, (n,); inf if none."""
        found, levels = np.empty(len(leaf)), np.broadcast_to(level, len(leaf))
        for k, curve in enumerate(self.survival):
            rows = leaf == k
            reached = np.searchsorted(-curve.values, -levels[rows] - QUANTILE_TOLERANCE)
            found[rows] = np.append(curve.times, np.inf)[reached]
        return found

    def restricted_mean(self, leaf: IntArray, horizon: float) -> FloatArray:
        """Area under the survival curve up to the horizon, exactly, (n,)."""
        return np.array([restricted_mean(curve, horizon) for curve in self.survival])[leaf]

    def remaining_mean(self, leaf: IntArray, age: FloatArray, horizon: float) -> FloatArray:
        """Area under the curve from each row's age to the horizon over the survival there, exactly, (n,); 0 for 0/0."""
        found = np.zeros(len(leaf))
        for k, curve in enumerate(self.survival):
            steps = curve.times[(curve.times > 0) & (curve.times < horizon)]
            edges = np.concatenate([[0.0], steps, [horizon]])
            area = np.concatenate([[0.0], np.cumsum(curve(edges[:-1]) * np.diff(edges))])
            begin = np.minimum(age[leaf == k], horizon)
            found[leaf == k] = ratio(area[-1] - np.interp(begin, edges, area), curve(begin))
        return found

    def jumps(self) -> FloatArray:
        """Times at which the curve of some leaf steps."""
        return np.unique(np.concatenate([hazard.times for hazard in self.hazards]))

    def state(self) -> dict[str, FloatArray]:
        """Arrays to save."""
        variances = {f"variance.{k}": variance for k, variance in enumerate(self.variances)}
        return {"own": np.array(self.own, dtype=np.float64), **variances} | {
            f"{name}.{k}": getattr(hazard, name)
            for k, hazard in enumerate(self.hazards)
            for name in ("times", "values")
        }

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray], n_leaves: int) -> LeafCurves:
        """The curves that :meth:`state` wrote."""
        hazards = tuple(StepFunction(arrays[f"times.{k}"], arrays[f"values.{k}"], 0.0) for k in range(n_leaves))
        variances = tuple(arrays[name] for k in range(n_leaves) if (name := f"variance.{k}") in arrays)
        return cls(hazards, tuple(bool(own) for own in arrays.get("own", np.zeros(n_leaves))), variances=variances)


@dataclass(frozen=True)
class CauseCurves(LeafCurves):
    """Leaves with K competing causes: the hazard is that of any event, and each cause has a cumulative incidence.

    ``incidences`` holds K step functions for each of the L leaves, by the estimator of Aalen and Johansen (1978).
    """

    incidences: tuple[tuple[StepFunction, ...], ...] = ()

    @classmethod
    def of_hazards(cls, times: FloatArray, hazards: FloatArray) -> CauseCurves:
        """From the hazards (K, L, T) of the causes at times (T,): dF_k = S(t-) h_k, S = product of (1 - sum of h_k)."""
        survival = np.cumprod(np.maximum(1.0 - hazards.sum(axis=0), 0.0), axis=1)  # (L, T)
        before = np.concatenate([np.ones((len(survival), 1)), survival[:, :-1]], axis=1)
        incidence = np.minimum(np.cumsum(before * hazards, axis=2), 1.0)  # (K, L, T); a sum may pass 1 by rounding
        leaves = range(len(survival))
        return cls(
            tuple(steps(cumulative(times, survival[leaf])) for leaf in leaves),
            (False,) * len(survival),
            tuple(tuple(steps(StepFunction(times, one[leaf], 0.0)) for one in incidence) for leaf in leaves),
        )

    def incidence_of_leaves(self, times: FloatArray) -> FloatArray:
        """Probability of each cause by each time, (L, T, K)."""
        table = np.array([[curve(times) for curve in curves] for curves in self.incidences])  # (L, K, T)
        return np.ascontiguousarray(table.transpose(0, 2, 1))

    def incidence_of_rows(self, leaf: IntArray) -> SharedIncidences:
        """The same of rows by their leaves (n,), as a function of times and a cause."""
        return SharedIncidences(leaf, self.incidence_of_leaves, len(self.incidences))

    def incidence(self, leaf: IntArray, times: FloatArray) -> FloatArray:
        """Probability of each cause by each time, (n, T, K)."""
        return np.asarray(self.incidence_of_leaves(times)[leaf])

    def time_lost(self, leaf: IntArray, horizon: float) -> FloatArray:
        """Area under the incidence of each cause up to the horizon, exactly, (n, K)."""
        kept = [[restricted_mean(_without(curve), horizon) for curve in curves] for curves in self.incidences]
        return np.asarray(horizon - np.array(kept)[leaf])

    def incidence_quantile(self, leaf: IntArray, probability: float, cause: int) -> FloatArray:
        """Time of the step by which the incidence of a cause (from 0) reaches a probability, (n,); inf if none."""
        return np.array([quantile(_without(curves[cause]), probability) for curves in self.incidences])[leaf]

    def cause_hazard(self, leaf: IntArray, times: FloatArray) -> FloatArray:
        """-log S shared among the causes in proportion to their events at each step, (n, T, K).

        Where nobody survives, :data:`LARGEST_HAZARD` is shared: of an infinity no cause has more than another.
        """
        table = []
        for hazard, curves in zip(self.hazards, self.incidences, strict=True):
            rise = np.diff(np.minimum(hazard.values, LARGEST_HAZARD), prepend=0.0)  # (J,) all may fail at once
            events = np.stack([np.diff(curve(hazard.times), prepend=0.0) for curve in curves])  # (K, J)
            share = events / events.sum(axis=0)
            own = np.cumsum(np.multiply(rise, share, out=np.zeros_like(share), where=share > 0), axis=1)
            table.append([StepFunction(hazard.times, values, 0.0)(times) for values in own])
        return np.asarray(np.ascontiguousarray(np.array(table).transpose(0, 2, 1))[leaf])

    def state(self) -> dict[str, FloatArray]:
        """Arrays to save, those of the incidences included."""
        return super().state() | {
            f"incidence.{name}.{leaf}.{k}": getattr(curve, name)
            for leaf, curves in enumerate(self.incidences)
            for k, curve in enumerate(curves)
            for name in ("times", "values")
        }

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray], n_leaves: int) -> CauseCurves:
        """The curves and incidences that :meth:`state` wrote."""
        plain = LeafCurves.restore(arrays, n_leaves)
        n_causes = sum(name.startswith("incidence.times.0.") for name in arrays)
        incidences = tuple(
            tuple(
                StepFunction(arrays[f"incidence.times.{leaf}.{k}"], arrays[f"incidence.values.{leaf}.{k}"], 0.0)
                for k in range(n_causes)
            )
            for leaf in range(n_leaves)
        )
        return cls(plain.hazards, plain.own, incidences)


def leaf_curves(rows: Rows, tree: HardTree, kind: str, shrinkage: float) -> LeafCurves:
    """Curves of a tree's leaves from the training rows, of one of the kinds of `optimal.parameters.OBJECTIVES`.

    ``shrinkage`` is the number of events that a leaf takes from above; the tree's relative risks have theirs already.
    """
    at = tree.node_of(rows.table, rows.n)
    if kind in ("adaptive", "nelson_aalen"):
        return _risk_curves(rows, tree, at, kind, shrinkage)
    members = node_rows(tree, at)
    if kind == "ipcw":
        score = IbsScore.from_columns(rows.time, rows.event, rows.weight)
        survival = shrunk_score_curves(tree, members, score, shrinkage)
        return LeafCurves.of([cumulative(np.unique(rows.time), one) for one in survival])
    times = np.unique(rows.time[rows.event])
    if kind == "aalen_johansen":
        by_cause = [shrunk_hazards(tree, one, members, (shrinkage,), times) for one in rows.by_cause]
        jumps = np.stack([[hazard[0] for hazard in leaves] for leaves in by_cause])  # (K, L, T)
        return CauseCurves.of_hazards(times, jumps / np.maximum(jumps.sum(axis=0), 1.0))
    hazards = (hazard[0] for hazard in shrunk_hazards(tree, rows, members, (shrinkage,), times))
    if kind == "mean_count":
        return LeafCurves.of(StepFunction(times, np.cumsum(hazard), 0.0) for hazard in hazards)
    curves = LeafCurves.of(cumulative(times, np.cumprod(1.0 - hazard)) for hazard in hazards)
    if shrinkage > 0 and tree.n_leaves > 1:
        return curves
    of_leaves = [members[node] for node in np.flatnonzero(tree.leaf >= 0)]
    return replace(curves, variances=_variances(rows, of_leaves, times, curves.hazards))


def _variances(
    rows: Rows, members: list[IntArray], times: FloatArray, hazards: Sequence[StepFunction]
) -> tuple[FloatArray, ...]:
    """Greenwood's variance of the rows of each leaf at the steps of its curve; ``times`` hold those of all events."""
    place = places(rows, times)
    found = (StepFunction(times, greenwood(*risk_set(rows, some, times, place)), 0.0) for some in members)
    return tuple(variance(hazard.times) for variance, hazard in zip(found, hazards, strict=True))


def kaplan_meier_curves(rows: Rows, tree: HardTree, strengths: Sequence[float]) -> list[LeafCurves]:
    """What :func:`leaf_curves` gives for "km" with each strength of shrinkage."""
    times, members = np.unique(rows.time[rows.event]), node_rows(tree, tree.node_of(rows.table, rows.n))
    leaves = list(shrunk_hazards(tree, rows, members, strengths, times))
    return [LeafCurves.of(cumulative(times, np.cumprod(1.0 - one[s])) for one in leaves) for s in range(len(strengths))]


def _risk_curves(rows: Rows, tree: HardTree, at: IntArray, kind: str, shrinkage: float) -> LeafCurves:
    """Relative risk times the baseline in each leaf, or a curve of its own where the kind allows it and it differs."""
    baseline, hazards, own = baseline_of(rows), [], []
    place, leaf_nodes = places(rows, baseline.times), np.flatnonzero(tree.leaf >= 0)
    members = node_rows(tree, at)
    for node, theta in zip(leaf_nodes, tree.value[:, 0].tolist(), strict=True):
        values, differs = theta * baseline.values, False
        if kind == "adaptive":
            died, at_risk = risk_set(rows, members[node], baseline.times, place)
            differs = contradicts(died, at_risk, int(np.count_nonzero(rows.event[members[node]])), baseline)
            if differs:
                pull = shrinkage * subjects_per_event(rows, members[node])
                values = _own_hazard(died, at_risk, pull, theta, baseline)
        own.append(differs)
        hazards.append(StepFunction(baseline.times, values, 0.0))
    return LeafCurves.of(hazards, own)


def held_out_losses(curves: Sequence[LeafCurves], leaf: IntArray, test: Rows, score: str) -> list[float]:
    """Integrated Brier score of other rows by their leaves (N,), or the share of their pairs that are discordant.

    One number for each kind of curves that the leaves may have.
    """
    if score == "concordance":
        return [_discordant(one, leaf, test) for one in curves]
    brier = IbsScore.from_columns(test.time, test.event, test.weight)  # weighted by their own censoring curve
    times, losses = brier.grid().times, [0.0] * len(curves)
    survival = [one.survival for one in curves]
    for k in np.unique(leaf).tolist():
        weights = brier.curve_weights(np.flatnonzero(leaf == k))
        for s, one in enumerate(survival):
            losses[s] += brier.weighted_loss(*weights, one[k](times))
    return losses


def _discordant(curves: LeafCurves, leaf: IntArray, test: Rows) -> float:
    return 1.0 - harrell_c(test.time, test.event, curves.of_rows(leaf), entry=test.entry, weight=test.weight)


def contradicts(died: FloatArray, at_risk: FloatArray, n_events: int, baseline: StepFunction) -> bool:
    """Whether the events of some rows come at other times than the baseline's shape allows: a chi-squared test.

    ``died`` and ``at_risk`` (T,) are the rows' weights at the times of the baseline. Time is cut where equal numbers of
    events are expected, `EVENTS_A_PIECE` or more in each of at most `PIECES`.
    """
    expected = at_risk * np.diff(baseline.values, prepend=0.0)
    pieces = min(PIECES, n_events // EVENTS_A_PIECE)
    if pieces < 2 or expected.sum() == 0:
        return False
    cumulated = np.cumsum(expected) / expected.sum()
    piece = np.searchsorted(np.arange(1, pieces) / pieces, cumulated, side="left")
    seen, due = (np.bincount(piece, values / values.sum() * n_events, pieces) for values in (died, expected))
    statistic = np.divide((seen - due) ** 2, due, out=np.zeros(pieces), where=due > 0).sum()
    return bool(chi2.sf(statistic, pieces - 1) < OWN_CURVE_LEVEL)


def _own_hazard(died: FloatArray, at_risk: FloatArray, pull: float, theta: float, baseline: StepFunction) -> FloatArray:
    """Cumulative hazard (T,) of a leaf that has a curve of its own, pulled to its relative risk times the baseline.

    It is a product-limit estimate: where all rows at risk fail, only the share taken from above survives.
    """
    prior = np.minimum(theta * np.diff(baseline.values, prepend=0.0), 1.0)
    hazard = pulled(died, at_risk, pull, prior)
    return cumulative(baseline.times, np.asarray(np.cumprod(1.0 - hazard), dtype=np.float64)).values


def _without(incidence: StepFunction) -> StepFunction:
    """Probability of not having had the event of the cause."""
    return StepFunction(incidence.times, 1.0 - incidence.values, 1.0)


def cumulative(times: FloatArray, survival: FloatArray) -> StepFunction:
    """Cumulative hazard of a survival curve (T,); inf from where nobody survives."""
    with np.errstate(divide="ignore"):
        return StepFunction(times, -np.log(np.maximum(survival, 0.0)), 0.0)


def steps(hazard: StepFunction) -> StepFunction:
    """The step function without the times at which its value does not change."""
    keep = hazard.values != np.concatenate([[0.0], hazard.values[:-1]])
    times = hazard.times if keep.all() else hazard.times[keep]  # leaves that step at the same times share them
    return StepFunction(times, hazard.values[keep] + 0.0, 0.0)


def _slope(hazard: StepFunction, times: FloatArray) -> FloatArray:
    """Slope of the straight line that ends in the next step at or after each time, (T,)."""
    later = hazard.times > 0  # a step at time 0 has no width
    ends, values = hazard.times[later], hazard.values[later]
    start = float(hazard(0.0))
    slopes = np.diff(values, prepend=start) / np.diff(ends, prepend=0.0)
    return np.append(slopes, 0.0)[np.searchsorted(ends, times, side="left")]
