"""One tree of rules from encoded data: chosen, collapsed where splits change nothing, and made a soft tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.budget import Budget
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.soft.recipe import Candidate
from softsurv.sparse.choose import Choice, Grid, choose
from softsurv.sparse.finish import (
    GRID_TIMES,
    Collapsed,
    collapse,
    shallower,
    soft_tree,
    survival_in_leaves,
)
from softsurv.sparse.leaf_fit import fit_leaves, leaf_models
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import leaves_of, penalties_of
from softsurv.trees.linear_rule import Rules
from softsurv.trees.soft_tree import SoftTree

DIGITS = 12
"""Encoded numbers are read back to so many digits, which gives the numbers of the table."""


@dataclass(frozen=True)
class SparseFit:
    """A fitted tree of rules.

    Attributes
    ----------
    tree : SoftTree
        A stack of one, whose branch nodes are the rules.
    rules : tuple of LinearRule or None
        In heap order.
    candidate : Candidate
    choice : Choice
        What was tried, and why this was chosen.
    collapsed : tuple of Collapsed
        Splits that changed nothing and were taken out.
    objective : float
        Penalised mean loss of the training rows.
    """

    tree: SoftTree
    rules: Rules
    candidate: Candidate
    choice: Choice
    collapsed: tuple[Collapsed, ...]
    objective: float


def split_data(x: FloatArray, columns: Sequence[OutputColumn]) -> SplitData:
    """Encoded features (N, P) in the data's units, and which of them make a rule alone."""
    values = np.empty((len(columns), len(x)))
    levels: dict[str, list[int]] = {}
    single = []
    for k, column in enumerate(columns):
        values[k] = _rounded(x[:, k] * column.scale + column.offset) if column.kind == "number" else x[:, k]
        if column.kind == "level":
            levels.setdefault(column.source, []).append(k)
        else:
            single.append(k)
    single += [of_source[0] for of_source in levels.values() if len(of_source) == 1]
    categories = tuple(tuple(of_source) for of_source in levels.values() if len(of_source) > 1)
    return SplitData(values, tuple(sorted(single)), categories)


def _rounded(values: FloatArray) -> FloatArray:
    known, place = np.unique(values, return_inverse=True)
    return np.array([float(f"{value:.{DIGITS}g}") for value in known])[place]


def fit_rules(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    families: Sequence[LeafFamily],
    grid: Grid,
    *,
    prefer: str = "tree",
    seed: int = 0,
    budget: Budget | None = None,
    say: Callable[[str], None] | None = None,
    **place: Any,
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
    seed : int
        Of the folds.
    budget : Budget, optional
        Once exhausted, no further candidates are tried.
    say : callable, optional
        Called with what is tried next.
    **place
        ``dtype`` and ``device``.
    """
    split = split_data(data.x.double().cpu().numpy(), columns)
    choice = choose(data, split, families, grid, prefer, seed, budget, say, **place)
    candidate, problem = choice.chosen.candidate, choice.problem
    rules, model, gone = choice.chosen.rules, choice.chosen.model, []
    times = _times(data)
    features = problem.family.time_features(
        torch.as_tensor(np.log(times)).to(problem.time_scale)[None], problem.time_scale
    )
    size = np.array([float(data.n)])
    penalties = penalties_of(size, candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage)
    while rules:
        new, out = collapse(rules, split, survival_in_leaves(problem, leaf_models(model), features).cpu())
        if not out:
            break
        gone += out
        rules = new
        (model,) = fit_leaves(problem, leaves_of([rules], split), len(rules) + 1, penalties, model).point
        if all(rule is None for rule in rules):
            rules = ()
    leaf = leaves_of([rules], split) if rules else torch.zeros(1, data.n, dtype=torch.int64)
    if not rules:
        model = torch.cat([model[:, :1], torch.zeros_like(model[:, :1])], 1)
    else:
        kept, deviations = shallower(rules, model[0, 1:].cpu().numpy())
        if len(kept) < len(rules):
            model = torch.cat([model[:, :1], torch.as_tensor(deviations).to(model)[None]], 1)
            rules, leaf = kept, leaves_of([kept], split)
    end = fit_leaves(problem, leaf, len(rules) + 1, penalties, model)
    tree = soft_tree(problem, rules, end.point[0], split, columns)
    return SparseFit(tree, rules, candidate, choice, tuple(gone), float(end.loss[0]))


def _times(data: SurvivalData) -> FloatArray:
    """Times at which two sides of a split are compared: quantiles of the observed events' times."""
    time = data.time.double().cpu().numpy()
    event = data.failed & (time > 0)
    known = time[event] if event.any() else time[time > 0]
    return np.unique(np.quantile(known, np.linspace(0, 1, GRID_TIMES)))
