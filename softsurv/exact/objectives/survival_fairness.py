"""Group fairness of predicted survival as objectives of a tree: deviance, and differences between groups over time.

Wanted is the tree of least relative-risk deviance (`relative_risk.py`) among those with, for any two groups g, h
and each given time t,

    | mean over group g of S(t | x)  -  mean over group h of S(t | x) |  <=  tolerance.

*The constraint is separable.* The prediction S_L(t) = exp(-theta_L Lambda(t)) of a leaf is a function of the sums ES,
HS of its own rows, and of nothing else in the tree, as Lambda is estimated before the search. With n_gL the rows of
group g in the leaf and N_g those in the data, the mean of group g is the sum over leaves of (n_gL / N_g) S_L(t), so
each leaf adds a known number to the signed difference d_g(t) = mean of g - mean of group 0: a sum over leaves, as the
deviance is. The pair (deviance, signed differences) is therefore a task with one label per leaf and elementwise
addition, which preserves order where the differences are *kept* (two subtrees are comparable only if they agree in
them), and the threshold is put on the whole tree's sum (paper `streed`, Definition 4.4, appendix A.5). The same holds
for any leaf model that is fitted to the leaf's own rows, Kaplan-Meier included.

*What is not separable*, and what stands in for it:

- To ask the same bound of every subtree is another constraint, neither weaker nor stronger. It is not anti-monotone:
  two leaves that treat groups unequally may make up a tree that treats them equally
  (`tests/exact/objectives/test_survival_fairness.py` has four rows that show it).
- The integral over t of |d(t)| is no sum over leaves, since differences of opposite sign in two leaves cancel within
  the absolute value: for two leaves with d(t) = +c and -c it is 0 for the tree and c each for the leaves. The nearest
  separable constraint bounds |d(t)| at several times t, each a threshold on a sum, and with them the sum over those
  times; that is what a sequence of ``times`` does.

Bounds: the deviance is superadditive (`bounds.py`), and a row of weight m in its group adds at least -|multiplier| m to
the priced differences, as S <= 1: the floor of a group of equal rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.jit import FAST, INNER
from softsurv.exact.objectives import relative_risk
from softsurv.exact.task import Task
from softsurv.exact.vector_search import SLACK, VectorSearch
from softsurv.exact.vector_task import LeafRule, objectives
from softsurv.exact.whole_trees.constraint import Constrained, constrained_optimum
from softsurv.kernel_cache import njit
from softsurv.results import Status
from softsurv.stopping import StopSignal


@njit(**(INNER | {"cache": False}))
def leaf_points(sums, weights, out):
    """(deviance, differences at the first time, at the second, ..., and 0 where leaves are counted) of a leaf.

    ``sums``: ES, HS, and the leaf's share of each group. ``weights[0, 0]``: number of groups, number of times, half of
    what one subject weighs; ``weights[0, d, 0]``: Lambda at the time of difference d.
    """
    groups, times = int(weights[0, 0, 0]), int(weights[0, 0, 1])
    events, hazard = sums[0], sums[1]
    out[0, :] = 0.0
    if events > 0.0:
        out[0, 0] = -events * np.log(events / hazard)
    theta = (events if events > 0.0 else weights[0, 0, 2]) / hazard if hazard > 0.0 else 0.0
    d = 1
    for _ in range(times):
        survival = np.exp(-theta * weights[0, d, 0])
        for g in range(1, groups):
            out[0, d] = (sums[2 + g] - sums[2]) * survival
            d += 1


@njit(**FAST)
def leaf_costs(sums, n, out, parameters):
    """The weighted sum of the objectives of `leaf_points`; ``parameters`` are those of the function `parameters`."""
    groups, times = int(parameters[0]), int(parameters[1])
    for i in range(n):
        events, hazard = sums[0, i], sums[1, i]
        theta, cost = 0.0, 0.0
        if hazard > 0.0:
            theta = (events if events > 0.0 else parameters[2]) / hazard
            if events > 0.0:
                cost = -parameters[3] * events * np.log(theta)
        at = 4
        for _ in range(times):
            slope = 0.0
            for g in range(1, groups):
                slope += parameters[at + g] * (sums[2 + g, i] - sums[2, i])
            cost += slope * np.exp(-theta * parameters[at])
            at += groups
        out[i] = cost


def parameters(w: FloatArray, weights: FloatArray) -> FloatArray:
    """Groups, times, half a subject, weight of the deviance; for each time Lambda and the weights of differences."""
    groups, times = int(weights[0, 0, 0]), int(weights[0, 0, 1])
    hazard_at = weights[0, 1 : 1 + times * (groups - 1) : groups - 1, 0]
    slopes = w[1 : 1 + times * (groups - 1)].reshape(times, groups - 1)
    return np.concatenate([[groups, times, weights[0, 0, 2], w[0]], np.column_stack([hazard_at, slopes]).ravel()])


def floor(sums: FloatArray, numbers: FloatArray) -> FloatArray:
    """What equal rows (G, K) add at least to the cost of a tree: their own deviance, and survival of 1 or 0."""
    groups, times = int(numbers[0]), int(numbers[1])
    least = numbers[3] * relative_risk.plain_costs(sums)
    for slopes in numbers[4:].reshape(times, groups)[:, 1:]:
        least = least + np.minimum((sums[:, 3 : 2 + groups] - sums[:, 2:3]) @ slopes, 0.0)
    return least


TASK = Task("survival_fairness", None, leaf_costs, superadditive=False, parametric=True, floor=floor)
RULE = LeafRule(TASK, leaf_points, parameters)


def fair_survival_search(
    codes: NDArray[np.integer],
    n_codes: NDArray[np.integer],
    nominal: BoolArray,
    statistics: FloatArray,
    group: NDArray[np.integer],
    weight: FloatArray,
    hazard_at: FloatArray,
    tolerance: float,
    depth: int,
    *,
    leaves: int | None = None,
    count: bool = False,
    complexity: float = 0.0,
    **how: Any,
) -> VectorSearch:
    """The search for the tree of least deviance under a limit on differences of mean predicted survival.

    Parameters
    ----------
    codes, n_codes, nominal
        As in `Search`.
    statistics : (N, 2)
        ES and HS of each row, `relative_risk.statistics`.
    group : (N,) int
        0 .. G - 1.
    weight : (N,)
    hazard_at : (H,)
        Baseline cumulative hazard at each of the times.
    tolerance : float
    depth : int
    leaves : int, optional
        Most leaves.
    count : bool
        Whether leaves are counted as the last objective in any case.
    complexity : float
        Deviance that a leaf must save.
    **how
        As in `VectorSearch`.

    Raises
    ------
    InvalidParameterError
        There are fewer than two groups, or a group has no weight.
    """
    n_groups, n_times = int(group.max()) + 1, len(hazard_at)
    of_group = np.bincount(group, weight, n_groups)
    if n_groups < 2 or (of_group == 0).any():
        raise InvalidParameterError("group must have at least two values with rows in each, got one")
    share = np.where(np.arange(n_groups) == group[:, None], (weight / of_group[group])[:, None], 0.0)
    kept = (n_groups - 1) * n_times
    weights = np.zeros((1, 1 + kept, 2 + n_groups))
    weights[0, 0, :3] = n_groups, n_times, 0.5 * relative_risk.one_subject(weight)
    weights[0, 1:, 0] = np.repeat(hazard_at, n_groups - 1)
    constraint, limit = _differences(n_groups, n_times, tolerance)
    goals = objectives(
        RULE, weights, [False, *[True] * kept], constant=[complexity, *np.zeros(kept)], constraint=constraint,
        limit=limit, size=np.array([max(float(statistics[:, 0].sum()), complexity), *np.ones(kept)]),
    )  # fmt: skip
    if count or leaves is not None:
        goals = goals.with_most_leaves(min(leaves or 1 << depth, 1 << depth))
    statistics = np.column_stack([statistics, share])
    return VectorSearch(goals, codes, n_codes, nominal, statistics, depth, lists=True, **how)


def _differences(n_groups: int, n_times: int, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Rows (C, D) and limits (C,) that bound the difference of any two groups at every time, from both sides."""
    sides = np.vstack([np.zeros(n_groups - 1), np.eye(n_groups - 1)])
    pairs = [sides[g] - sides[h] for g in range(n_groups) for h in range(n_groups) if g != h]
    at_one_time = np.array(sorted(pairs, key=lambda row: (tuple(np.abs(row)), tuple(-row))))
    rows = np.kron(np.eye(n_times), at_one_time)
    return np.pad(rows, ((0, 0), (1, 0))), np.full(len(rows), float(tolerance))


@dataclass(frozen=True)
class FrontPoint:
    """A tree of a front: deviance (the part that trees change), leaves, largest difference, and the search's state."""

    deviance: float
    leaves: int
    difference: float
    state: Constrained


def fairness_front(
    search: VectorSearch, stop: StopSignal, *, leaves: int, resolution: float, most: int = 50
) -> tuple[list[FrontPoint], Status]:
    """Nondominated trees by deviance, number of leaves and largest difference.

    For every limit on leaves the tolerance is tightened from infinity to just below the difference of the last tree,
    by at least ``resolution``: each tree is the best for its limits, proven, and trees that another one dominates are
    left out. Between two tolerances closer than the resolution nothing is claimed.

    Parameters
    ----------
    search : VectorSearch
        From `fair_survival_search` with ``count``.
    stop : StopSignal
    leaves : int
        Largest number of leaves.
    resolution : float
    most : int
        Most trees per number of leaves.
    """
    found: list[FrontPoint] = []
    status = Status.OPTIMAL
    for size in range(1, leaves + 1):
        tolerance = math.inf
        for _ in range(most):
            limit = np.full(len(search.objectives.limit), min(tolerance, 2.0))  # survival differs by less than 2
            limit[-1] = size
            search.limit_to(limit)
            state = constrained_optimum(search, stop)
            status = state.status
            if status != Status.OPTIMAL:
                return nondominated_points(found), status
            gap = float(np.abs(search.objectives.constraint[:-1] @ state.v).max())
            found.append(FrontPoint(state.value, len(state.tree.label), gap, state))
            tolerance = min(gap, tolerance) - resolution
            if tolerance < 0 or gap <= SLACK:
                break
    return nondominated_points(found), status


def nondominated_points(points: list[FrontPoint]) -> list[FrontPoint]:
    """Points of which no other is at least as good in all three and better in one; equal ones once."""
    numbers = np.array([[p.deviance, p.leaves, p.difference] for p in points]).reshape(-1, 3)
    size = np.append(np.abs(numbers[:, 0]).max(initial=0.0), [1.0, 1.0])  # deviances have the unit of the weights
    kept: list[FrontPoint] = []
    for i, here in enumerate(numbers):
        close = np.abs(numbers - here) <= SLACK * (size + np.abs(here))
        no_worse = ((numbers <= here) | close).all(axis=1)
        better = ((numbers < here) & ~close).any(axis=1)
        equal_before = close.all(axis=1)[:i].any()
        if not (no_worse & better).any() and not equal_before:
            kept.append(points[i])
    return sorted(kept, key=lambda p: (p.leaves, p.deviance))
