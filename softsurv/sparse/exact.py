"""The optimal tree of corrections to one regression, by the exact search, and its leaves fitted afterwards."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import LimitWarning
from softsurv.exact.memory import Room
from softsurv.exact.objectives import corrections
from softsurv.exact.search import Search
from softsurv.exact.tree import CodeTree
from softsurv.hazards.base import LeafFamily
from softsurv.results import FitReport
from softsurv.soft.problem import make_problem
from softsurv.soft.selection import USUAL_RIDGE, scaled_ridge
from softsurv.soft.starts import SHARPNESS, counted_events
from softsurv.sparse.causes import Models, Problems, fit_causes, second_orders
from softsurv.sparse.finish import routing_of, sharpened, soft_trees
from softsurv.sparse.fit import leaf_covariance, split_data
from softsurv.sparse.folds import in_their_mean
from softsurv.sparse.many_levels import covariance_in_data_units, level_scale, shrunk
from softsurv.sparse.on_host import on_host
from softsurv.sparse.row_space import ridge_scale
from softsurv.sparse.splits import SplitData
from softsurv.sparse.start import Bins, StartProblem, bins_of, number_bins
from softsurv.sparse.train import leaves_of, penalties_of
from softsurv.stopping import StopSignal
from softsurv.trees.linear_rule import LinearRule, Rules
from softsurv.trees.soft_tree import SoftTree

TABLE_COPIES = 6.5
"""Copies of the features in memory when the search begins: given, in order, encoded, shrunk, as designs of leaves."""

FINISHING = 2.0, 0.4
"""Time kept for fitting the leaves: this multiple of the time before the search, at most this share of the limit."""

DESCRIBING = 4.0, 0.25
"""Time kept for describing the leaves: this multiple of the time of reading, at most this share of the time limit. With
50,000 rows of 50 columns it took two and a half times that of reading; the rest is for other programs on the cores."""


@dataclass(frozen=True)
class ExactSettings:
    """Limits and penalties of a tree of corrections.

    Attributes
    ----------
    depth : int
    leaves : int or None
    least_events : float
        Least weight of events in a leaf, in units of the mean weight.
    complexity : float or None
        What a leaf must gain in log-likelihood; None: by the numbers of events and cuts (`bic`).
    n_cuts : int
        Quantiles of each number.
    ridge : float or None
        Penalty of the common slopes; None: the usual one, for as many columns as there are (`ridge_scale`).
    shrinkage : float
        Penalty of each leaf's own level and shape (> 0).
    slope_shrinkage : float or None
        Of each leaf's own slopes; None where the leaves share them.
    memory_limit : float
        Bytes.
    n_jobs : int
    """

    depth: int
    leaves: int | None
    least_events: float
    complexity: float | None
    n_cuts: int
    ridge: float | None
    shrinkage: float
    slope_shrinkage: float | None
    memory_limit: float
    n_jobs: int


START = ExactSettings(0, None, 10.0, 0.0, 10, None, 4.0, None, 1e9, 1)
"""Settings for the start of a dense tree: its whole depth, and ten events or more in a leaf."""


@dataclass(frozen=True)
class ExactModels:
    """A tree of corrections.

    Attributes
    ----------
    trees : tuple of SoftTree
        For each cause a stack of one.
    rules : tuple of LinearRule or None
        In heap order.
    search : FitReport
        Report of the search. Its objective is minus the corrections' gain in log-likelihood to second order, plus the
        cost of the leaves.
    objective : float
        Penalised mean loss of the fitted leaves.
    covariances : tuple of ndarray or None
        As in `SparseFit`.
    complexity : float
        What a leaf had to gain in log-likelihood.
    ridge : float
        Penalty of the common slopes.
    """

    trees: tuple[SoftTree, ...]
    rules: Rules
    search: FitReport
    objective: float
    covariances: tuple[FloatArray | None, ...]
    complexity: float
    ridge: float


def fit_exact(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    family: LeafFamily,
    settings: ExactSettings,
    stop: StopSignal,
    budget: StopSignal | None = None,
) -> ExactModels:
    """Fit one regression, search for the tree whose corrections gain most, and fit its leaves.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    columns : sequence of OutputColumn (P,)
        Where each feature comes from.
    family : LeafFamily
    settings : ExactSettings
    stop : StopSignal
        Limit of the search.
    budget : StopSignal, optional
        Limit of the fits.
    """
    s, n, scale = settings, np.array([float(data.n)]), level_scale(columns)
    split, whole = split_data(data.x.double().cpu().numpy(), columns), shrunk(data, scale)
    problems, ridge = tuple(make_problem(part, family) for part in whole.by_cause()), ridge_of(settings, whole)
    fits = None if budget is None else budget.leaving(*DESCRIBING)
    searching = stop.leaving(*DESCRIBING)
    common_fit = None if fits is None else fits.with_grace()
    rules, report, complexity, common = _searched(data, split, problems, ridge, settings, searching, common_fit)
    leaf, penalties = leaves_of([rules], split), penalties_of(n, ridge, s.shrinkage, s.slope_shrinkage)
    start = tuple(torch.cat([one, one.new_zeros(1, len(rules) + 1, one.shape[-1])], 1) for one in common)
    models, loss = fit_causes(problems, leaf, len(rules) + 1, penalties, start, budget=fits)
    if budget is not None and fits is not None and fits.exhausted:
        budget.end_unless(math.inf)  # the whole fit reports the limit that ended its leaves
    trees = soft_trees(problems, rules, models, split, columns, scale)
    covariances = tuple(
        covariance_in_data_units(
            leaf_covariance(problem, leaf[0], model[0], penalties, data, trees[0].used_leaves), scale
        )
        for problem, model in zip(problems, models, strict=True)
    )
    return ExactModels(trees, rules, report, float(loss[0]), covariances, complexity, ridge)


def exact_start(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    family: LeafFamily,
    depth: int,
    stop: StopSignal,
    counts: FloatArray | None = None,
) -> FloatArray:
    """Routing weights (B, P + 1) from which a dense tree may start: the tree of corrections that gains most.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    columns : sequence of OutputColumn (P,)
    family : LeafFamily
    depth : int
        Depth of the dense tree. Below a leaf of the tree of corrections all rows go left.
    stop : StopSignal
        Limit of the regression and the search.
    counts : ndarray (C,), optional
        Factor of each cause, 1 by default.
    """
    split, whole = split_data(data.x.double().cpu().numpy(), columns), shrunk(data, level_scale(columns))
    problems, ridge = tuple(make_problem(part, family) for part in whole.by_cause()), ridge_of(START, whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimitWarning)  # nobody asked for a limit here
        rules, *_ = _searched(data, split, problems, ridge, replace(START, depth=depth), stop, stop, counts)
    rules = (*rules, *(None,) * (2**depth - 1 - len(rules)))
    return sharpened(torch.as_tensor(routing_of(rules, split, columns)), SHARPNESS).numpy()


def ridge_of(settings: ExactSettings, data: SurvivalData) -> float:
    """Penalty of the common slopes."""
    return scaled_ridge(USUAL_RIDGE, ridge_scale(data)) if settings.ridge is None else settings.ridge


def _searched(
    data: SurvivalData,
    split: SplitData,
    problems: Problems,
    ridge: float,
    settings: ExactSettings,
    stop: StopSignal,
    budget: StopSignal | None,
    counts: FloatArray | None = None,
) -> tuple[Rules, FitReport, float, Models]:
    """The rules of the best tree of corrections to one regression, how far it is proven, the cost of a leaf, and that
    regression (1, 1, Q + K) for each cause."""
    s = settings
    weight = np.ones(data.n) if data.weight is None else in_their_mean(data.weight.double().cpu().numpy())
    one_leaf = torch.zeros(1, data.n, dtype=torch.int64)
    penalties = penalties_of(np.array([float(data.n)]), ridge, 0.0, None)
    common, _ = fit_causes(problems, one_leaf, 1, penalties, budget=budget)
    table = on_host([second_orders(problems, common, counts)])[0][0] * weight[:, None]
    size = weight * counted_events(data, None if counts is None else counts.tolist()).failed
    rows = np.arange(data.n)
    numbers = number_bins(split, rows, s.n_cuts + 1)
    start = StartProblem(split, rows, table, size, s.least_events, s.shrinkage, numbers)
    bins = bins_of(start, most=None)
    complexity = bic(bins, size) if s.complexity is None else s.complexity
    room = Room(s.memory_limit).less(TABLE_COPIES * data.x.numel() * data.x.element_size())
    found = search_rules(bins, table, size, settings, complexity, stop.leaving(*FINISHING), room)
    return *found, complexity, tuple(model[:, :1] for model in common)


def search_rules(
    bins: Bins, table: FloatArray, size: FloatArray, settings: ExactSettings, complexity: float, stop: StopSignal,
    room: Room,
) -> tuple[Rules, FitReport]:  # fmt: skip
    """The rules of the best tree, and how far it is proven."""
    s = settings
    scaled = corrections.statistics(table, s.shrinkage)
    room = room.beside(bins.codes, bins.n_codes, table, scaled)
    offset = corrections.offset(scaled)
    search = Search(
        corrections.TASK,
        np.ascontiguousarray(bins.codes.T, dtype=np.int32),
        bins.n_codes,
        np.zeros(len(bins.rules), bool),
        scaled,
        offset,
        min_leaf=min(s.least_events, float(size.sum())),
        size=size,
        complexity=complexity,
        memory_limit=room.left,
    )
    room.check(search.held)
    depth = s.depth if len(bins.rules) else 0
    solution = search.solve(depth, s.leaves, stop=stop, n_jobs=s.n_jobs)
    report, total = solution.report, float(offset.sum())
    found = replace(
        report,
        objective=report.objective - total,
        lower_bound=report.lower_bound - total,
        trace=tuple(value - total for value in report.trace),
    )
    return rules_of(solution.tree, bins), found


def bic(bins: Bins, size: FloatArray) -> float:
    """What a leaf must gain: half the log of the events for each of its two parameters, and the log of all cuts."""
    n_cuts = sum(len(rules) for rules in bins.rules)
    return math.log(max(float(size.sum()), 1.0)) + math.log(max(n_cuts, 1))


def rules_of(tree: CodeTree, bins: Bins) -> Rules:
    """The rules of a tree over bins in heap order; rows above a cut answer yes and go left."""
    rules: list[LinearRule | None] = [None] * ((1 << tree.depth) - 1)

    def place(node: int, at: int) -> None:
        if tree.feature[node] >= 0:
            rules[at] = bins.rules[tree.feature[node]][tree.code[node]]
            place(int(tree.right[node]), 2 * at + 1)
            place(int(tree.left[node]), 2 * at + 2)

    place(0, 0)
    return tuple(rules)
