"""Entry point of the integrated-Brier-score solver: an optimal tree of a training set, and how far it is proven."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.brier.bounds import IbsBounds, floor_with_split
from softsurv.exact.brier.coarse import are_worth_it
from softsurv.exact.brier.leaf_costs import IPCW, KM_ROWS
from softsurv.exact.brier.limits import Limits
from softsurv.exact.brier.nodes import Known, TreePlan, leaf_count
from softsurv.exact.brier.path import SizePath
from softsurv.exact.brier.prepare import has_equal_rows, prepare_rows
from softsurv.exact.brier.search import BrierSearch
from softsurv.exact.brier.table import Rules
from softsurv.exact.brier.tiles import tile
from softsurv.exact.brier.warm_up import ready, ready_coarse
from softsurv.exact.objectives.brier import IbsScore, Leaf, TimeRange
from softsurv.exact.tree import SearchProgress
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal

ENTRY_BYTES = 900
"""Memory of one cached subproblem with its key and plan, for the memory limit."""


@dataclass(frozen=True)
class IbsSolution:
    """An optimal tree for the integrated Brier score.

    Attributes
    ----------
    plan : TreePlan or None
        The tree: split column, then the plans of the rows with and without that feature; None is a leaf.
    leaf_of_row : ndarray, shape (N,)
        Leaf of every training row; leaves are numbered depth first, the side with the feature before the other.
    times : ndarray, shape (T,)
        Distinct training times.
    survival : ndarray, shape (L, T)
        Curve of every leaf at ``times``, non-increasing.
    report : FitReport
        Status, objective, lower bound, seconds, and in ``details`` the rest.
    path : tuple of (loss, TreePlan)
        Best trees with at most 1, 2, ... leaves, where ``max_leaves`` asked for them; loss is without complexity.
    """

    plan: TreePlan | None
    leaf_of_row: IntArray
    times: FloatArray
    survival: FloatArray
    report: FitReport
    path: tuple[tuple[float, TreePlan | None], ...] = field(default=())


def solve_ibs(
    features: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    complexity: float = 0.01,
    max_depth: int | None = None,
    max_leaves: int | None = None,
    min_samples_leaf: int = 1,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    reference: ArrayLike | None = None,
    leaf: Leaf = "km",
    time_range: TimeRange = "observed",
    n_jobs: int = 1,
    bounds: IbsBounds | None = None,
    progress: SearchProgress | None = None,
) -> IbsSolution:
    """Minimise integrated Brier score + complexity * leaves over trees on binary features.

    Parameters
    ----------
    features : array_like, shape (N, P)
        Binary features, 0 or 1; every column is a possible split.
    time, event : array_like, shape (N,)
        Observed times >= 0 and event indicators.
    weight : array_like, shape (N,), optional
        Case weights > 0.
    complexity : float
        Cost per leaf, >= 0 (lambda in paper `osst`, eq. 4).
    max_depth : int, optional
        Limit on depth (eq. 5), 0 for a single leaf; None lets the complexity alone limit the tree.
    max_leaves : int, optional
        Limit on leaves. With it the solution holds the best tree of every size up to the limit.
    min_samples_leaf : int
        Least rows per leaf; the reference implementation's default is 7.
    time_limit : float, optional
        Seconds; when they end, the best tree so far is returned with its bound.
    memory_limit : float, optional
        Bytes for the cache of subproblems.
    reference : array_like, shape (N, T), optional
        Survival probabilities of a reference model for every row at the distinct training times in increasing
        order: its losses then act as lower bounds ("guessing", Theorem 2.7).
    leaf : {"km", "ipcw"}
        Kaplan-Meier leaves, or the pointwise minimiser of the leaf's weighted score.
    time_range : {"observed", "origin"}
        What the integral is divided by, see `softsurv.exact.objectives.brier`.
    n_jobs : int
        Threads; with ``max_leaves`` one is used. The objective does not depend on it.
    bounds : IbsBounds, optional
        Switches, for tests and ablation.
    progress : callable, optional
        Called now and then with (share of the root's splits done at the present depth, lower bound, incumbent).

    Returns
    -------
    IbsSolution
        Its report has status OPTIMAL; CONDITIONALLY_OPTIMAL with a reference, where ``lower_bound`` still holds
        without conditions and ``details["guaranteed_distance"]`` bounds the distance to the optimum; or the limit
        that stopped the search.

    Raises
    ------
    InvalidParameterError, InvalidSurvivalDataError
        If an argument is out of range or the columns do not fit.

    Notes
    -----
    With ``leaf="ipcw"`` objective and proof are those of the pointwise minimiser S* = B / (B + D), which may rise
    where censoring elsewhere makes 1 / G grow. A survival curve must not, so the curves returned are its weighted
    antitonic regression; ``details["monotone_objective"]`` is the objective with them, and since no monotone curve
    beats S*, ``lower_bound`` bounds that objective too.
    """
    ready()
    stop = StopSignal(time_limit)
    score = IbsScore.from_columns(time, event, weight, time_range)
    x = _binary(features, score.time.size)
    _check(complexity, max_depth, max_leaves, min_samples_leaf, leaf)
    losses = None if reference is None else score.row_losses(_curves(reference, score))
    bounds = bounds or IbsBounds()
    rows = prepare_rows(x, score, losses, bounds.equivalent_points, bounds.coarse_time)
    limits = Limits(stop, math.inf if memory_limit is None else memory_limit / ENTRY_BYTES)
    rules = Rules(
        IPCW if leaf == "ipcw" else KM_ROWS,
        has_equal_rows(rows),
        float(min_samples_leaf),
        float(complexity),
        2.0 if bounds.look_ahead else 1.0,
        bounds.splitting,
        limits.flag,
        tile.address,
    )
    if are_worth_it(rows, rules, score.time.size):
        ready_coarse(stop)
    search = BrierSearch(rows, rules, bounds, limits, progress, n_jobs)
    depth = rows.weight.size if max_depth is None else max_depth
    outcome = _one_tree(search, depth) if max_leaves is None else _all_sizes(search, depth, max_leaves)
    if losses is not None:
        _make_conditional(outcome, float(losses.sum()), _unconditional_floor(x, score, search))
    return _solution(x, score, leaf, complexity, outcome, stop)


@dataclass
class _Outcome:
    """What a search leaves behind."""

    status: Status
    plan: TreePlan | None
    objective: float
    lower_bound: float
    path: tuple[tuple[float, TreePlan | None], ...] = ()
    trace: tuple[float, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


def _one_tree(search: BrierSearch, depth: int) -> _Outcome:
    """The best tree for the search's complexity."""
    root = search.root
    status = search.limits.run(lambda: search.solve(root, search.everyone, depth, math.inf))
    leaf = root.leaf + search.rules.complexity
    best = min(search.entries_of(root), key=lambda entry: entry.value, default=Known(leaf, leaf))
    target = search.entry(root, depth)
    lower = search.root_floor() if target is None else target.lower  # None: stopped before the root was priced
    if status is Status.OPTIMAL:
        lower = best.value
    details = {"subproblems": len(search.cache)}
    return _Outcome(status, best.plan, best.value, min(lower, best.value), (), tuple(search.trace), details)


def _all_sizes(search: BrierSearch, depth: int, max_leaves: int) -> _Outcome:
    """The best trees of every size, and among them the best for the complexity."""
    root, path = search.root, SizePath(search)
    path.incumbent = [(root.leaf, None)]
    status = search.limits.run(lambda: path.solve(root, depth, max_leaves))
    value, plan = path.chosen()
    lower = value if status is Status.OPTIMAL else min(value, search.root_floor())
    details = {"subproblems": len(path.cache)}
    return _Outcome(status, plan, value, lower, tuple(path.incumbent), tuple(search.trace), details)


def _unconditional_floor(x: NDArray[np.uint8], score: IbsScore, search: BrierSearch) -> float:
    """Lower bound of the objective that does not trust the reference."""
    rows = prepare_rows(x, score)
    return floor_with_split(search.root.leaf, float(rows.bound.sum()), search.rules.complexity)


def _make_conditional(outcome: _Outcome, reference_loss: float, floor: float) -> None:
    """State what a search with a reference's bounds proves (Theorem 2.7).

    For every tree t: objective <= complexity * leaves(t) + sum max(reference loss, loss of t), hence
    objective - optimum <= sum max(reference loss - loss of the optimum, 0) <= the reference's loss.
    """
    outcome.details["reference_loss"] = reference_loss
    outcome.details["conditional_lower_bound"] = outcome.lower_bound
    if outcome.status is Status.OPTIMAL:
        outcome.status = Status.CONDITIONALLY_OPTIMAL
        floor = max(floor, outcome.objective - reference_loss)
    outcome.lower_bound = min(floor, outcome.objective)
    outcome.details["guaranteed_distance"] = outcome.objective - outcome.lower_bound


def _solution(
    x: NDArray[np.uint8], score: IbsScore, leaf: Leaf, complexity: float, outcome: _Outcome, stop: StopSignal
) -> IbsSolution:
    """Leaves, their curves, and the report."""
    leaf_of_row = assign_leaves(outcome.plan, x)
    n_leaves = leaf_count(outcome.plan)
    members = [np.flatnonzero(leaf_of_row == k) for k in range(n_leaves)]
    survival = np.array([score.curve(rows, leaf, monotone=True) for rows in members])
    details = {"n_leaves": n_leaves, **outcome.details}
    if leaf == "ipcw":
        loss = sum(score.loss(rows, curve) for rows, curve in zip(members, survival, strict=True))
        details["monotone_objective"] = loss + complexity * n_leaves
    report = FitReport(outcome.status, outcome.objective, outcome.lower_bound, stop.seconds, outcome.trace, details)
    return IbsSolution(outcome.plan, leaf_of_row, score.grid().times, survival, report, outcome.path)


def assign_leaves(plan: TreePlan | None, x: NDArray[np.uint8]) -> IntArray:
    """Leaf (N,) of every row of binary features (N, P), numbered depth first, feature-on side first."""
    leaf = np.zeros(x.shape[0], dtype=np.int64)
    waiting, number = [(plan, np.arange(len(leaf)))], 0
    while waiting:
        node, rows = waiting.pop()
        if node is None:
            leaf[rows] = number
            number += 1
        else:
            on = x[rows, node.split] != 0
            waiting += [(node.zero, rows[~on]), (node.one, rows[on])]
    return leaf


def _binary(features: ArrayLike, n: int) -> NDArray[np.uint8]:
    """Features as (N, P) uint8."""
    x = np.asarray(features)
    if x.ndim != 2 or x.shape[0] != n:
        raise InvalidParameterError(
            f"features must have shape (N, P) with N = {n} rows as time, got {x.shape}; pass one row per subject"
        )
    if x.dtype.kind in "biu":  # no copies of the columns, which take most of the memory
        binary = x.min(initial=0) >= 0 and x.max(initial=0) <= 1
    else:
        binary = bool(((x == 0) | (x == 1)).all())
    if not binary:
        raise InvalidParameterError(
            "features must hold only 0 and 1, got other values; binarise ordered and nominal columns first"
        )
    return x.astype(np.uint8, copy=False)


def _curves(reference: ArrayLike, score: IbsScore) -> FloatArray:
    """The reference's survival probabilities, (N, T)."""
    curves = np.asarray(reference, dtype=float)
    expected = (score.time.size, np.unique(score.time).size)
    if curves.shape != expected:
        raise InvalidParameterError(
            f"reference must have shape (N, T) = {expected}, one probability per row and distinct time, "
            f"got {curves.shape}; evaluate the model's survival function at np.unique(time)"
        )
    if not ((curves >= 0.0) & (curves <= 1.0)).all():
        raise InvalidParameterError(
            "reference must hold survival probabilities between 0 and 1, got others; check the model's output"
        )
    return curves


def _check(complexity: float, max_depth: int | None, max_leaves: int | None, min_samples_leaf: int, leaf: str) -> None:
    """Ranges of the settings."""
    if not (math.isfinite(complexity) and complexity >= 0.0):
        raise InvalidParameterError(f"complexity must be a finite number >= 0, got {complexity!r}; 0.01 is usual")
    limits = {"max_depth": (max_depth, 0), "max_leaves": (max_leaves, 1), "min_samples_leaf": (min_samples_leaf, 1)}
    for name, (value, least) in limits.items():
        if value is not None and (int(value) != value or value < least):
            raise InvalidParameterError(f"{name} must be an integer >= {least}, got {value!r}")
    if leaf not in ("km", "ipcw"):
        raise InvalidParameterError(f"leaf must be 'km' or 'ipcw', got {leaf!r}")
