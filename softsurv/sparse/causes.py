"""Leaf models of several causes under one set of rules.

A leaf holds one hazard for each cause. Given the leaf, the log-likelihood of a row is the sum of those of the causes;
for each of them the events of the others count as censored. Causes are therefore fitted one by one. Where rules are
chosen their losses are added up, and their slopes and curvatures stand side by side. One kind of event is one cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import Problem
from softsurv.sparse.leaf_fit import FIT, LeafPenalties, fit_leaves, leaf_models, losses_in_leaves, second_order
from softsurv.stopping import StopSignal
from softsurv.trees.incidence import accumulated
from softsurv.trees.routing import linear

Problems = tuple[Problem, ...]
"""The problem of each cause: the same rows, weights and features."""

Models = tuple[Tensor, ...]
"""For each cause the common models and deviations (M, 1 + L, Q + K)."""

SEPARATOR = ", "
"""Separates the families of the causes in a candidate's name."""


def take(problems: Problems, trees: Tensor) -> Problems:
    """The problems of some trees."""
    return tuple(problem.take(trees) for problem in problems)


def some(models: Models, trees: slice) -> Models:
    """The models of some trees."""
    return tuple(model[trees] for model in models)


def fit_causes(
    problems: Problems,
    leaf: Tensor,  # (M, N)
    n_leaves: int,
    penalties: LeafPenalties | Sequence[LeafPenalties],
    start: Models | None = None,
    settings: LbfgsSettings = FIT,
    budget: StopSignal | None = None,
    counts: FloatArray | None = None,
) -> tuple[Models, Tensor]:
    """Fit the leaves of every tree for every cause; the models, and the sum of the penalised mean losses (M,).

    There is one value of penalties for all causes, or one for each. ``counts`` (K,) are the factors of the causes'
    losses in the sum.
    """
    starts = (None,) * len(problems) if start is None else start
    each = (penalties,) * len(problems) if isinstance(penalties, LeafPenalties) else penalties
    ends = [
        fit_leaves(problem, leaf, n_leaves, own, begin, settings, budget)
        for problem, own, begin in zip(problems, each, starts, strict=True)
    ]
    often = np.ones(len(problems)) if counts is None else counts
    loss = _added([count * end.loss for count, end in zip(often.tolist(), ends, strict=True)])
    return tuple(end.point[0] for end in ends), loss


def losses_of_causes(
    problems: Problems, models: Models, counts: FloatArray | None = None, most: float = math.inf
) -> Tensor:
    """Loss of every row in every leaf, (M, L, N): the sum over the causes, each times its factor (K,).

    The loss of each cause is cut at ``most``.
    """
    counts = np.ones(len(problems)) if counts is None else counts
    losses = [losses_in_leaves(p, leaf_models(model)) for p, model in zip(problems, models, strict=True)]
    if most < math.inf:
        losses = [loss.clamp(max=most) for loss in losses]
    return _added([count * loss for count, loss in zip(counts.tolist(), losses, strict=True)])


def second_orders(problems: Problems, models: Models, counts: FloatArray | None = None) -> Tensor:
    """Slopes and curvatures (M, N, 5 K) of each row's losses at the common models, times ``counts``, not weighted."""
    counts = np.ones(len(problems)) if counts is None else counts
    own = zip(problems, models, counts.tolist(), strict=True)
    return torch.cat([count * second_order(p, m[:, :1]) for p, m, count in own], -1)


def curves_in_leaves(problems: Problems, models: Models, times: FloatArray, rows: IntArray) -> FloatArray:
    """Curves of n rows in every leaf of one tree: survival (L, n, T), or the incidence of each cause (L, n, T K)."""
    problems = tuple(problem.of_rows(torch.as_tensor(rows)) for problem in problems)
    hazards = np.stack([_hazards(p, leaf_models(m), times) for p, m in zip(problems, models, strict=True)], -1)
    if len(problems) == 1:
        return np.exp(-hazards[..., 0])
    n_leaves, n = hazards.shape[:2]
    rises = np.diff(hazards, axis=2, prepend=0.0)
    return np.stack([accumulated(of_leaf)[1].reshape(n, -1) for of_leaf in rises]).reshape(n_leaves, n, -1)


def _hazards(problem: Problem, leaves: Tensor, times: FloatArray) -> FloatArray:
    """Cumulative hazard of every row in every leaf of one tree, (L, N, T)."""
    family, q = problem.family, problem.design.shape[-1]
    log_times = torch.as_tensor(np.log(times)).to(problem.time_scale)
    features = family.time_features(log_times[None], problem.time_scale)
    offset = linear(leaves[..., :q], problem.design)[0]  # (L, N)
    rise = family.baseline(leaves[..., q:], features)[0][0]  # (L, T)
    return family.link.cumulative_hazard(offset[..., None] + rise[:, None])[0].double().cpu().numpy()


def _added(parts: list[Tensor]) -> Tensor:
    return reduce(torch.add, parts)
