"""One tree of rules from encoded data: chosen, collapsed where splits change nothing, and made a soft tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.in_time import look_before_fitting
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.results import Status
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import Problem
from softsurv.soft.recipe import Candidate
from softsurv.sparse.causes import Models, Problems, curves_in_leaves, fit_causes
from softsurv.sparse.choose import Say, Tried, try_all
from softsurv.sparse.covariance import rule_covariance
from softsurv.sparse.finish import GRID_TIMES, Collapsed, collapse, shallower, soft_trees
from softsurv.sparse.folds import Grid
from softsurv.sparse.leaf_fit import LeafPenalties
from softsurv.sparse.lost import LostLikelihood, lost_likelihood
from softsurv.sparse.many_levels import covariance_in_data_units, level_scale, of_many_levels, shrunk
from softsurv.sparse.prefer import Trial, preferred
from softsurv.sparse.row_space import ridge_scale
from softsurv.sparse.sample import ALL_ROWS_SHARE, on_all_rows, to_choose_on
from softsurv.sparse.settle import LeafSetting, settle
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import leaves_of
from softsurv.stopping import StopSignal
from softsurv.trees.linear_rule import TIE, Rules, tie_of
from softsurv.trees.soft_tree import SoftTree

DIGITS = 12
"""Significant digits to which decoded numbers are rounded: this gives back the numbers of the table."""


@dataclass(frozen=True)
class SparseFit:
    """A fitted tree of rules.

    Attributes
    ----------
    trees : tuple of SoftTree
        For each cause a stack of one, whose branch nodes are the rules: they differ in their leaves alone.
    rules : tuple of LinearRule or None
        In heap order.
    chosen : Trial
    tried : Tried
    collapsed : tuple of Collapsed
        Splits that were taken out, as they changed nothing.
    objective : float
        Penalised mean loss of the training rows.
    reason : str
        Why this was chosen.
    covariances : tuple of ndarray (L, Q + K, Q + K), optional
        For each cause the covariance of the parameters of each leaf that rows reach, given the rules.
    stopped : Status, optional
        Why the choice ended early, if it did.
    lost : LostLikelihood, optional
        What the rules cost against a dense tree; None for one leaf, for causes, and where it would take long.
    settings : tuple of LeafSetting
        Penalties of the leaves of each cause.
    n_compared : int
        Rows on which the settings were compared.
    unfitted : bool
        Whether the time for a single leaf was over before it was fitted to its end.
    """

    trees: tuple[SoftTree, ...]
    rules: Rules
    chosen: Trial
    tried: Tried
    collapsed: tuple[Collapsed, ...]
    objective: float
    reason: str
    covariances: tuple[FloatArray | None, ...] = ()
    stopped: Status | None = None
    lost: LostLikelihood | None = None
    settings: tuple[LeafSetting, ...] = ()
    n_compared: int = 0
    unfitted: bool = False

    @property
    def candidate(self) -> Candidate:
        """The setting, with the depth of the tree after splits were taken out."""
        return replace(self.chosen.candidate, depth=self.trees[0].depth)

    def table(self) -> list[dict[str, Any]]:
        """The settings that were tried, best first."""
        return self.tried.table(self.chosen)


DESCRIBING = 1.0, 0.2
"""Time kept for describing the leaves: this multiple of the time of reading, at most this share of the time limit. With
2,000 rows of 5,000 columns it took two thirds of that of reading."""

EXACT_POWER = 22
"""Ten to this power is the largest that a double holds exactly."""

POWERS_OF_TEN = np.array([float(10**k) for k in range(EXACT_POWER + 1)])
"""The powers of ten that a double holds exactly."""


def split_data(x: FloatArray, columns: Sequence[OutputColumn], tie: float = TIE) -> SplitData:
    """The encoded features (N, P) in the data's units, with the columns that can make a rule alone.

    For ``tie`` see `SplitData`.
    """
    values, numeric = np.array(x.T, order="C"), [k for k, column in enumerate(columns) if column.kind == "number"]
    scale, offset = (np.array([[getattr(columns[k], name)] for k in numeric]) for name in ("scale", "offset"))
    for k, wide, least in zip(numeric, scale, offset, strict=True):  # a column at a time: it stays near the core
        values[k] = _rounded(values[k] * wide + least)
    levels: dict[str, list[int]] = {}
    single = []
    for k, column in enumerate(columns):
        if column.kind == "level":
            levels.setdefault(column.source, []).append(k)
        else:
            single.append(k)
    single += [of_source[0] for of_source in levels.values() if len(of_source) == 1]
    many = of_many_levels(columns)
    categories = tuple(tuple(own) for source, own in levels.items() if len(own) > 1 and source not in many)
    return SplitData(values, tuple(sorted(single)), categories, tie, np.array([column.scale for column in columns]))


def _rounded(values: FloatArray) -> FloatArray:
    """Values rounded to `DIGITS` digits, as ``float(f"{value:.12g}")`` does."""
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(size > 0, DIGITS - 1 - np.floor(np.log10(size)), 0.0)
    plain = np.abs(power) <= EXACT_POWER  # a whole number and an exact power of ten: the quotient is the nearest double
    exact = np.clip(power, -EXACT_POWER, EXACT_POWER).astype(np.int64)
    up, down = POWERS_OF_TEN[np.maximum(exact, 0)], POWERS_OF_TEN[np.maximum(-exact, 0)]
    out = np.rint(values * up / down) / up * down
    out[~plain] = [float(f"{value:.{DIGITS}g}") for value in values[~plain]]
    return out


def fit_rules(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    families: Sequence[LeafFamily],
    grid: Grid,
    *,
    prefer: str = "tree",
    machine: Machine,
    seed: int = 0,
    say: Say | None = None,
    counts: FloatArray | None = None,
    choice_rows: int | str | None = None,
) -> SparseFit:
    """Choose and train a tree of rules.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    columns : sequence of OutputColumn (P,)
        Where each feature comes from.
    families : sequence of LeafFamily
    grid : Grid
    prefer : {"tree", "simplest"}
    machine : Machine
        Once its budget is exhausted, no further candidates are tried.
    seed : int
        Seed of the folds.
    say : callable, optional
        Called with a name of what was tried, the number of its candidates, and the number of all candidates.
    counts : ndarray (K,), optional
        Factor of each cause in the rules and in the choice, 1 by default.
    choice_rows : int, "auto" or None
        Of more rows settings are compared on a sample of about so many (`to_choose_on`).
    """
    tie = tie_of(machine.dtype == torch.float64)
    split, scale = split_data(data.x.double().cpu().numpy(), columns, tie), level_scale(columns)
    look_before_fitting(data.n, data.x.shape[1], machine.budget)
    fits = None if machine.budget is None else machine.budget.leaving(*DESCRIBING)
    some, training = to_choose_on(data, choice_rows, seed), machine.ending_sooner()
    choosing = training if some is data else machine.ending_sooner(ALL_ROWS_SHARE)
    of_some = split if some is data else split_data(some.x.double().cpu().numpy(), columns, tie)
    whole = shrunk(data, scale)
    grid = grid.scaled(ridge_scale(whole))
    tried = try_all(
        whole if some is data else shrunk(some, scale),
        of_some,
        [families] * data.n_causes,
        grid,
        seed,
        choosing,
        say,
        counts,
    )
    stopped = None if choosing.budget is None else choosing.budget.status
    times, left = _times(data), list(tried.trials)
    while True:
        best, reason = preferred(left, prefer, grid.ridge_scale)
        others = any(t.rules for t in left if t is not best)
        if len(left) < len(tried.trials) and others and _is_one_leaf(best, tried, of_some, times, grid, some.n, fits):
            left.remove(best)  # a tree before it was one leaf: this one is not sought again on all rows
            continue
        chosen, problems, space = tried.of_family.of_all_rows(best), tried.problems[best.candidate.family], tried.space
        trials = tried.of_family if chosen.rules else tried.of_one_leaf
        settings = settle(chosen, trials if data.n_causes > 1 else None, grid)
        if some is not data:
            chosen, problems, space = on_all_rows(chosen, whole, split, families, grid, training, counts)
            stopped = stopped or (None if training.budget is None else training.budget.status)
        penalties = tuple(setting.penalties(data.n) for setting in settings)
        rules, models, gone = _collapsed(chosen, problems, split, times, penalties, fits)
        if rules or not chosen.rules or not others:
            break
        left.remove(best)  # all its splits were taken out: that is no tree
    leaf = leaves_of([rules], split) if rules else torch.zeros(1, data.n, dtype=torch.int64)
    last = fits if rules or fits is None else fits.with_grace()  # a tree's leaves have been fitted before
    models, loss = fit_causes(problems, leaf, len(rules) + 1, penalties, models, budget=last)
    unfitted = not rules and last is not None and last.exhausted
    stopped = stopped or (None if fits is None else fits.status)
    problems, models = space.in_columns(problems, models)
    trees = soft_trees(problems, rules, models, split, columns, scale)
    used = trees[0].used_leaves
    covariances = tuple(
        covariance_in_data_units(leaf_covariance(problem, leaf[0], model[0], own, data, used), scale)
        for problem, model, own in zip(problems, models, penalties, strict=True)
    )
    alone = rules and len(problems) == 1
    lost = lost_likelihood(data, problems[0], trees[0], leaf, penalties[0], machine) if alone else None
    return SparseFit(
        trees, rules, best, tried, tuple(gone), float(loss[0]), reason, covariances, stopped, lost, tuple(settings),
        some.n, unfitted,
    )  # fmt: skip


def leaf_covariance(
    problem: Problem, leaf: Tensor, model: Tensor, penalties: LeafPenalties, data: SurvivalData, used: IntArray
) -> FloatArray | None:
    """Covariance of the leaves that rows can reach; a row of weight w counts as w rows."""
    place = torch.searchsorted(torch.as_tensor(used), leaf)
    total = float(data.n if data.weight is None else data.weight.sum())
    return rule_covariance(problem, place, model[np.append(0, 1 + used)], penalties, total, data.subject_codes)


def _is_one_leaf(
    trial: Trial, tried: Tried, split: SplitData, times: FloatArray, grid: Grid, n: int, budget: StopSignal | None
) -> bool:
    """Whether no split of a trial's tree of the rows that it was tried on changes a prediction."""
    settings = settle(trial, tried.of_family if len(trial.models) > 1 else None, grid)
    penalties = tuple(setting.penalties(n) for setting in settings)
    rules, _, _ = _collapsed(trial, tried.problems[trial.candidate.family], split, times, penalties, budget)
    return bool(trial.rules) and not rules


def _collapsed(
    chosen: Trial,
    problems: Problems,
    split: SplitData,
    times: FloatArray,
    penalties: Sequence[LeafPenalties],
    budget: StopSignal | None,
) -> tuple[Rules, Models, list[Collapsed]]:
    """The chosen tree without splits that change nothing, its leaves fitted again, and what was taken out."""
    rules, models, gone = chosen.rules, chosen.models, []
    if len(problems) > 1 and rules:  # each cause has its own penalties
        models, _ = fit_causes(problems, leaves_of([rules], split), len(rules) + 1, penalties, models, budget=budget)
    while rules:
        new, out = collapse(rules, split, partial(curves_in_leaves, problems, models, times))
        if not out:
            break
        gone += out
        rules = new
        if all(rule is None for rule in rules):
            break
        leaf = leaves_of([rules], split)
        models, _ = fit_causes(problems, leaf, len(rules) + 1, penalties, models, budget=budget)
    return *shallower(rules, models), gone


def _times(data: SurvivalData) -> FloatArray:
    """Times at which both sides of a split are compared: quantiles of the times of observed events."""
    time = data.time.double().cpu().numpy()
    event = data.failed & (time > 0)
    known = time[event] if event.any() else time[time > 0]
    return np.unique(np.quantile(known, np.linspace(0, 1, GRID_TIMES)))
