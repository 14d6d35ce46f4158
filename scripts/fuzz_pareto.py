"""Look for wrong optima of the Pareto, constraint and AUC searches: random problems against enumeration, until time
is up; the sibling of `fuzz_exact`.

    .venv/bin/python scripts/fuzz_pareto.py --seconds 300 --seed 1

Small problems are compared with all their trees, enumerated here. Larger ones (`deep`, `deep_fair`) are compared with
the additive search with every bound off, and with a listing without an upper bound, which prunes nothing. Each
difference is printed with the seed that repeats it; the exit status is their number. The tests run a few of each.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
from fuzz_exact import taken_for_long

from softsurv import OptimalClassificationTree, OptimalSurvivalTree
from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
from softsurv.estimators.separable.fair import OptimalFairClassificationTree
from softsurv.estimators.separable.regression import OptimalRegressionTree
from softsurv.estimators.survival.fair import OptimalFairSurvivalTree
from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.fairness import KINDS, fair_search
from softsurv.exact.objectives.linear import ERRORS, LINEAR
from softsurv.exact.objectives.survival_fairness import fair_survival_search, fairness_front
from softsurv.exact.search import Search
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.vector_task import objectives
from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.exact.whole_trees.measures import MEASURES, maximise, pareto_front
from softsurv.results import Status
from softsurv.stopping import StopSignal

NO_BOUNDS = Bounds(**{field.name: False for field in dataclasses.fields(Bounds)})
ROUNDING = 1e-7

Pair = tuple[np.ndarray, np.ndarray]
"""What the search says and what is right: equal but for rounding."""


# -- enumeration ---------------------------------------------------------------------------------------------------
def all_trees(columns: np.ndarray, depth: int, leaf: Callable[[np.ndarray], np.ndarray], least: Callable) -> np.ndarray:
    """A row for every tree: its leaves' rows of ``leaf`` (labels, D) added up; equal ones once.

    ``least`` says whether rows (n,) may be a leaf.
    """
    known: dict[tuple[bytes, int], np.ndarray] = {}

    def trees(inside: np.ndarray, depth: int) -> np.ndarray:
        key = inside.tobytes(), depth
        if key not in known:
            whole = leaf(np.flatnonzero(inside))
            found = [whole if least(np.flatnonzero(inside)) else whole[:0]]
            for column in columns.T if depth else ():
                left, right = inside & column, inside & ~column
                if left.any() and right.any():
                    both = trees(left, depth - 1)[:, None] + trees(right, depth - 1)[None]
                    found.append(both.reshape(-1, whole.shape[1]))
            known[key] = distinct(np.concatenate(found))
        return known[key]

    return trees(np.ones(len(columns), bool), depth)


def distinct(points: np.ndarray) -> np.ndarray:
    """Points (T, D) without those that equal another one but for rounding."""
    scale = np.abs(points).max(axis=0, initial=0.0) + 1e-300
    return points[np.unique((points / scale).round(11), axis=0, return_index=True)[1]]


def points_of(search: VectorSearch, allowed: Callable = lambda rows: True) -> np.ndarray:
    """Objectives of every tree of a search's problem, with the number of leaves as the last column."""

    def leaf(rows: np.ndarray) -> np.ndarray:
        own = search.objectives.points(search.statistics[rows].sum(axis=0, keepdims=True))[0]
        return np.column_stack([own, np.ones(len(own))])

    return all_trees(search.codes == 0, search.depth, leaf, allowed)


def partitions(columns: np.ndarray, statistics: np.ndarray, depth: int, least: Callable) -> set[tuple]:
    """Sums of the leaves of every tree, sorted."""
    known: dict[tuple[bytes, int], set[tuple]] = {}

    def trees(inside: np.ndarray, depth: int) -> set[tuple]:
        key = inside.tobytes(), depth
        if key not in known:
            rows = np.flatnonzero(inside)
            found = {(tuple(statistics[rows].sum(axis=0)),)} if least(rows) else set()
            for column in columns.T if depth else ():
                left, right = inside & column, inside & ~column
                if left.any() and right.any():
                    ends = trees(left, depth - 1), trees(right, depth - 1)
                    found |= {tuple(sorted(a + b)) for a in ends[0] for b in ends[1]}
            known[key] = found
        return known[key]

    return trees(np.ones(len(columns), bool), depth)


def loss_of_curve(leaves: tuple, share: float) -> float:
    """Area under the curve of the miss rate against the false-positive rate up to ``share``, over ``share``."""
    sums = np.array(sorted(leaves, key=lambda one: -one[1] / (one[0] + one[1])))
    false, miss = np.append(0.0, sums.cumsum(axis=0)[:, 0]), np.append(0.0, sums.cumsum(axis=0)[:, 1])
    false, miss = false / false[-1], 1 - miss / miss[-1]
    grid = np.unique(np.append(false[false < share], share))
    total = 0.0
    for a, b in pairwise(grid):
        at = np.flatnonzero((false[:-1] <= a + 1e-12) & (false[1:] >= b - 1e-12))[0]
        total += (b - a) * np.interp([a, b], false[at : at + 2], miss[at : at + 2]).mean()
    return total / share


# -- random problems -----------------------------------------------------------------------------------------------
def table(rng: np.random.Generator, most_rows: int = 24, most_splits: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Columns (N, B) with repeated and constant ones now and then, and two classes that depend on them (N,)."""
    n, b = int(rng.integers(2, most_rows)), int(rng.integers(1, most_splits + 1))
    columns = rng.random((n, b)) < rng.uniform(0.1, 0.9, b)
    if rng.random() < 0.2:
        columns = columns[rng.integers(0, max(1, n // 2), n)]  # rows that repeat
    label = (columns @ rng.normal(size=b) + rng.choice([0.2, 1.0, 3.0]) * rng.normal(size=n) > 0).astype(int)
    label[:2] = 0, 1
    return columns, label


def weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ones, quarters, or numbers of any size (N,)."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(1, 8, n) / 4
    return rng.random(n) * rng.choice([1e-3, 1.0, 1e3]) + 1e-4 if kind == 1 else np.ones(n)


def smallest(rng: np.random.Generator, n: int) -> tuple[int, Callable]:
    """Least rows of a leaf, and its test."""
    least = int(rng.integers(2, 5)) if rng.random() < 0.3 else 1
    return min(least, n), lambda rows: len(rows) >= min(least, n)


def errors_of(columns: np.ndarray, label: np.ndarray, weight: np.ndarray, depth: int, least: int) -> VectorSearch:
    """The search over (false negatives, false positives)."""
    statistics = np.where(np.arange(2) == label[:, None], weight[:, None], 0.0)
    return VectorSearch(ERRORS, *coded(columns), statistics, depth, min_leaf=least, memory_limit=3e7)


def coded(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns (N, B) as codes, numbers of codes and kinds: a split sends the rows with a 0 to the left."""
    return columns.astype(np.int32), np.full(columns.shape[1], 2), np.zeros(columns.shape[1], bool)


def nondominated(points: np.ndarray) -> np.ndarray:
    """Points (T, D) of which no other is at least as good everywhere, in order."""
    close = 1e-9 * np.abs(points).max()
    no_worse = (points[None] <= points[:, None] + close).all(axis=2)
    better = (points[None] < points[:, None] - close).any(axis=2)
    return distinct(points[~(no_worse & better).any(axis=1)])


def best_of(name: str, points: np.ndarray, positives: float, negatives: float) -> np.ndarray:
    """A measure of each (false negatives, false positives, ...); counts that are 0 but for rounding are 0."""
    total = np.array([positives, negatives])
    near = 1e-9 * total
    v = np.where(points[:, :2] < near, 0.0, np.where(points[:, :2] > total - near, total, points[:, :2]))
    return np.array([MEASURES[name](one, positives, negatives) for one in v])


def meets(search: VectorSearch, points: np.ndarray) -> np.ndarray:
    """Which points keep to the constraint but for rounding."""
    goals = search.objectives
    return (points @ goals.constraint.T <= goals.limit + search.slack).all(axis=1)


def checked(search: VectorSearch, unit: float) -> np.ndarray:
    """First objective of the best tree under the constraint, of that tree from its rows, and the bound."""
    state = constrained_optimum(search, StopSignal(), unit=unit)
    if state.status != Status.OPTIMAL:
        raise AssertionError(f"ended with {state.status}")
    v = search.value(state.tree)
    return np.array([state.value, v[0] if meets(search, v[None])[0] else np.inf, state.bound])


# -- targets: each returns what was found and what is right --------------------------------------------------------
def measure(rng: np.random.Generator) -> Pair:
    """F1 and Matthews correlation, from the counts of the tree that was found."""
    columns, label = table(rng)
    weight, (least, allowed) = weights(rng, len(label)), smallest(rng, len(label))
    depth, name = int(rng.integers(0, 4)), str(rng.choice(sorted(MEASURES)))
    search = errors_of(columns, label, weight, depth, least)
    negatives, positives = search.totals
    best = maximise(name, search, StopSignal())
    points = points_of(search, allowed)[:, :2]
    again = best_of(name, search.value(best.candidate.tree)[None], positives, negatives)[0]
    return np.array([best.value, again, best.bound]), np.full(3, best_of(name, points, positives, negatives).max())


def front(rng: np.random.Generator) -> Pair:
    """Every nondominated (false negatives, false positives)."""
    columns, label = table(rng)
    weight, (least, allowed) = weights(rng, len(label)), smallest(rng, len(label))
    search = errors_of(columns, label, weight, int(rng.integers(0, 4)), least)
    found = pareto_front(search, StopSignal())
    right = nondominated(points_of(search, allowed)[:, :2])
    mine = np.array([search.value(one.tree) for one in found.trees])
    return nondominated(mine), right


def fair(rng: np.random.Generator) -> Pair:
    """Least weighted errors under demographic parity or equality of opportunity, with limits on leaves."""
    columns, label = table(rng)
    n_groups = int(rng.integers(2, 4))
    group = rng.integers(0, n_groups, len(label))
    group, label = np.append(group, np.tile(np.arange(n_groups), 2)), np.append(label, np.repeat([0, 1], n_groups))
    columns = np.vstack([columns, rng.random((2 * n_groups, columns.shape[1])) < 0.5])
    weight, (least, allowed) = weights(rng, len(label)), smallest(rng, len(label))
    leaves = int(rng.integers(1, 6)) if rng.random() < 0.4 else None
    complexity = float(rng.choice([0.0, 0.0, 0.3])) * float(weight.mean())
    search = fair_search(
        *coded(columns), label, group, KINDS[rng.integers(2)], float(rng.choice([0.0, 0.02, 0.1, 0.3, 1.0])),
        int(rng.integers(0, 4 if n_groups == 2 else 3)), weight=weight, complexity=complexity, leaves=leaves,
        min_leaf=least, memory_limit=3e7,
    )  # fmt: skip
    whole = complexity == 0 and bool((weight == np.round(weight)).all())
    found = checked(search, 1.0 if whole else 0.0)
    points = points_of(search, allowed)
    good = meets(search, points[:, :-1]) & (points[:, -1] <= (leaves or 99))
    return found, np.full(3, points[good, 0].min())


def capacity(rng: np.random.Generator) -> Pair:
    """Least loss of a policy under limits on the share of each treatment."""
    columns, _ = table(rng)
    n, k = len(columns), int(rng.integers(2, 5))
    loss = rng.random((n, k)) if rng.random() < 0.5 else rng.integers(0, 4, (n, k)).astype(float)
    weight = weights(rng, n)
    weight /= weight.sum()
    scarce = rng.choice(k - 1, int(rng.integers(1, k)), replace=False)
    weights_of = np.zeros((k, 1 + len(scarce), k + 1))
    weights_of[np.arange(k), 0, np.arange(k)] = 1.0
    for d, treatment in enumerate(scarce):
        weights_of[treatment, 1 + d, k] = 1.0
    goals = objectives(
        LINEAR, weights_of, constant=[float(rng.choice([0.0, 0.02])), *np.zeros(len(scarce))],
        constraint=np.eye(1 + len(scarce))[1:], limit=rng.choice([0.0, 0.1, 0.3, 0.7], len(scarce)) * (1 + 1e-9),
    )  # fmt: skip
    leaves = int(rng.integers(1, 5)) if rng.random() < 0.4 else 99
    if leaves < 99:
        goals = goals.with_most_leaves(leaves)
    least, allowed = smallest(rng, n)
    search = VectorSearch(
        goals, *coded(columns), np.column_stack([loss * weight[:, None], weight]), int(rng.integers(0, 3)),
        min_leaf=least, memory_limit=3e7,
    )  # fmt: skip
    found = checked(search, 0.0)
    points = points_of(search, allowed)[:, :-1]
    return found, np.full(3, points[meets(search, points), 0].min())


def survival_problem(rng: np.random.Generator, count: bool) -> tuple[VectorSearch, Callable, int | None]:
    """Deviance with differences of predicted survival between groups; whether rows may be a leaf; most leaves."""
    columns, _ = table(rng)
    n, n_groups = len(columns) + 3, int(rng.integers(2, 4))
    columns = np.vstack([columns, rng.random((3, columns.shape[1])) < 0.5])
    group = rng.integers(0, n_groups, n)
    group[-n_groups:] = np.arange(n_groups)
    event = rng.random(n) < rng.choice([0.1, 0.6, 1.0])
    event[0] = True
    hazard = rng.integers(1, 9, n) * rng.choice([0.05, 0.3])
    leaves = None if count or rng.random() < 0.6 else int(rng.integers(1, 5))
    least, allowed = smallest(rng, n)
    search = fair_survival_search(
        *coded(columns), np.column_stack([event, hazard]), group, weights(rng, n),
        np.array([0.7] if n_groups == 2 and rng.random() < 0.6 else [0.3, 1.5]),
        float(rng.choice([0.0, 0.01, 0.05, 0.2])), int(rng.integers(0, 3 if count else 4)), leaves=leaves, count=count,
        complexity=0.0 if count else float(rng.choice([0.0, 0.4])), min_leaf=least, memory_limit=3e7,
    )  # fmt: skip
    return search, allowed, leaves


def survival(rng: np.random.Generator) -> Pair:
    """Least deviance under limits on differences of predicted survival."""
    search, allowed, leaves = survival_problem(rng, False)
    found = checked(search, 0.0)
    points = points_of(search, allowed)
    good = meets(search, points[:, :-1]) & (points[:, -1] <= (leaves or 99))
    return found, np.full(3, points[good, 0].min())


def survival_front(rng: np.random.Generator) -> Pair:
    """Every nondominated (deviance, leaves, difference)."""
    search, allowed, _ = survival_problem(rng, True)
    found, _ = fairness_front(search, StopSignal(), leaves=1 << search.depth, resolution=1e-6)
    points = points_of(search, allowed)
    gap = np.abs(points[:, :-1] @ search.objectives.constraint[:-1].T).max(axis=1)
    right = np.column_stack([points[:, 0], gap, points[:, -1]])
    mine = np.array([[one.deviance, one.difference, one.leaves] for one in found])
    # between two tolerances closer than the resolution nothing is claimed: every right point has one of ours beside it
    apart = (mine[None] - right[:, None]).max(axis=2).min(axis=1)
    beside = (mine[:, None] - right[None]).__abs__().max(axis=2).min(axis=1)
    return np.array([np.maximum(apart - 2e-6, 0).max(), beside.max()]), np.zeros(2)


def auc(rng: np.random.Generator) -> Pair:
    """1 - AUC, whole or partial."""
    columns, label = table(rng, 18, 4)
    weight, (least, allowed) = weights(rng, len(label)), smallest(rng, len(label))
    depth, share = int(rng.integers(0, 4 if columns.shape[1] < 4 else 3)), float(rng.choice([1.0, 0.5, 0.2]))
    complexity = float(rng.choice([0.0, 0.03]))
    leaves = int(rng.integers(1, 6)) if rng.random() < 0.4 else 99
    search = errors_of(columns, label, weight, depth, least)
    result = AucSearch(search, share, complexity, leaves).solve(StopSignal())
    trees = partitions(columns, search.statistics, depth, allowed)
    right = min(loss_of_curve(one, share) + complexity * len(one) for one in trees if len(one) <= leaves)
    leaf = result.tree.leaf_of(search.codes, search.nominal)
    own = tuple(map(tuple, np.array([np.bincount(leaf, column) for column in search.statistics.T]).T))
    again = loss_of_curve(own, share) + complexity * len(own)
    return np.array([result.loss, again, result.bound]), np.full(3, right)


def estimator(rng: np.random.Generator) -> Pair:
    """The two-class objectives through the estimator, with leaves that cost something or are limited."""
    columns, label = table(rng)
    weight, (least, allowed) = weights(rng, len(label)), smallest(rng, len(label))
    name, depth = str(rng.choice(["f1", "mcc", "balanced_accuracy"])), int(rng.integers(1, 4))
    leaves = int(rng.integers(1, 6)) if rng.random() < 0.5 else None
    complexity = float(rng.choice([0.0, 0.03]))
    tree = OptimalClassificationTree(
        name, max_depth=depth, max_leaves=leaves, complexity=complexity, min_samples_leaf=least
    ).fit(columns.astype(float), label, sample_weight=weight)
    search = errors_of(columns, label, weight, depth, 1)
    points = points_of(search, allowed)
    negatives, positives = search.totals
    small = points[points[:, -1] <= (leaves or 99)]
    if name == "balanced_accuracy":
        loss = (small[:, 0] / positives + small[:, 1] / negatives) / 2
    else:
        loss = 1 - best_of(name, small, positives, negatives)
    return np.array([tree.objective_, tree.lower_bound_]), np.full(2, (loss + complexity * small[:, -1]).min())


def deep(rng: np.random.Generator) -> Pair:
    """One scalarisation of deep trees, against the additive search without bounds."""
    n, b, depth = int(rng.integers(20, 160)), int(rng.integers(4, 9)), int(rng.integers(3, 8))
    columns = rng.random((n, b)) < rng.uniform(0.2, 0.8, b)
    label, weight = rng.integers(0, 2, n), weights(rng, n)
    least = int(rng.integers(2, 6)) if rng.random() < 0.2 else 1
    search = errors_of(columns, label, weight, depth, least)
    w = rng.random(2) + 0.05 if rng.random() < 0.7 else np.ones(2)
    search.use(w)
    found = search.best(StopSignal()).bound
    costs = np.column_stack([search.statistics[:, 1] * w[0], search.statistics[:, 0] * w[1]])
    other = Search(label_costs.TASK, *coded(columns), costs, min_leaf=least, bounds=NO_BOUNDS, memory_limit=1e7)
    return np.array([found]), np.array([other.solve(depth).report.objective])


def deep_fair(rng: np.random.Generator) -> Pair:
    """The constraint on deep trees, against a listing without an upper bound."""
    n, b, depth = int(rng.integers(20, 60)), int(rng.integers(4, 8)), int(rng.integers(3, 7))
    columns = rng.random((n, b)) < rng.uniform(0.2, 0.8, b)
    label, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    label[:4], group[:4] = [0, 0, 1, 1], [0, 1, 0, 1]
    kind, tolerance = KINDS[rng.integers(2)], float(rng.choice([0.0, 0.05, 0.2]))
    search = fair_search(*coded(columns), label, group, kind, tolerance, depth, memory_limit=3e8)
    found = checked(search, 1.0)
    search.use(np.array([1.0, 0.0]))
    listed = search.points(StopSignal())
    if listed.status != Status.OPTIMAL:
        return found, found
    return found, np.full(3, listed.v[meets(search, listed.v), 0].min())


def units(rng: np.random.Generator) -> Pair:
    """Weights in another unit give the same objective, and in one that is a power of two the same tree."""
    columns, label = table(rng)
    n = len(label) + 4
    columns = np.vstack([columns, rng.random((4, columns.shape[1])) < 0.5])
    label, group = np.append(label, [0, 0, 1, 1]), np.append(rng.integers(0, 2, n - 4), [0, 1, 0, 1])
    weight = weights(rng, n)
    depth, scale = int(rng.integers(1, 4)), float(rng.choice([1e-12, 1e-9, 1e12, 2.0**-43, 2.0**-30, 2.0**40]))
    kind = str(rng.choice(["f1", "mcc", "auc", "accuracy", *KINDS, "capacity", "survival", "fair_survival", "squared"]))
    X, complexity = columns.astype(float), float(rng.choice([0.0, 0.01]))
    scores, time_ = rng.random((n, 2)), rng.integers(1, 30, n).astype(float)
    y = (np.append(rng.random(n - 1) < 0.6, True), time_)
    tolerance = float(rng.choice([0.0, 0.05, 0.2]))

    def fitted(factor: float) -> tuple[float, np.ndarray]:
        w, how = weight * factor, {"max_depth": depth}
        in_weights = {"max_depth": depth, "complexity": complexity * factor}
        if kind in KINDS:
            tree = OptimalFairClassificationTree(kind, tolerance, **how, complexity=complexity)
            return tree.fit(X, label, w, group=group).objective_, tree.apply(X)
        if kind == "capacity":
            tree = OptimalCapacityPolicyTree({1: 0.3}, **how, complexity=complexity)
            return tree.fit(X, scores=scores, sample_weight=w).objective_, tree.apply(X)
        if kind == "survival":
            tree = OptimalSurvivalTree("relative_risk", **in_weights).fit(X, y, sample_weight=w)
            return tree.objective_ / factor, tree.apply(X)
        if kind == "fair_survival":
            tree = OptimalFairSurvivalTree(9.0, tolerance, **in_weights).fit(X, y, group=group, sample_weight=w)
            return tree.objective_ / factor, tree.apply(X)
        if kind == "squared":
            tree = OptimalRegressionTree(**how, complexity=complexity).fit(X, time_, sample_weight=w)
            return tree.objective_, tree.apply(X)
        tree = OptimalClassificationTree(kind, **how, complexity=complexity).fit(X, label, sample_weight=w)
        return tree.objective_, tree.apply(X)

    (found, leaf), (right, same) = fitted(scale), fitted(1.0)
    exact = np.frexp(scale)[0] == 0.5  # no number is rounded
    return np.array([found, float((leaf == same).all() or not exact)]), np.array([right, 1.0])


TARGETS: dict[str, Callable[[np.random.Generator], Pair]] = {
    one.__name__: one
    for one in (measure, front, fair, capacity, survival, survival_front, auc, estimator, deep, deep_fair, units)
}


def differ(found: np.ndarray, right: np.ndarray) -> bool:
    """Whether two answers are not the same but for rounding."""
    return found.shape != right.shape or not np.allclose(found, right, rtol=ROUNDING, atol=ROUNDING)


def trial(target: str, seed: int) -> str:
    """What is wrong with the answer to one random problem; empty where nothing is."""
    try:
        with taken_for_long() if seed % 2 else nullcontext():
            found, right = TARGETS[target](np.random.default_rng(seed))
    except Exception as error:  # a search that fails is as wrong as one that errs
        return repr(error)
    return f"{found.tolist()}, right {right.tolist()}" if differ(found, right) else ""


def main() -> int:
    """Run until time is up; the number of differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time")
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the next ones count up")
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    arguments = parser.parse_args()
    seed, wrong = arguments.seed, 0
    count, spent = dict.fromkeys(arguments.targets, 0), dict.fromkeys(arguments.targets, 0.0)
    for target in arguments.targets:
        trial(target, 0)  # compiles
    while sum(spent.values()) < arguments.seconds:
        target = min(arguments.targets, key=lambda name: spent[name])  # every target gets the same time
        begin = time.process_time()
        message = trial(target, seed + count[target])
        spent[target] += time.process_time() - begin
        if message:
            wrong += 1
            print(f"{target} --seed {seed + count[target]}: {message}", flush=True)
        count[target] += 1
    print(f"{wrong} differences in", ", ".join(f"{n} {target}" for target, n in count.items()))
    return min(wrong, 100)


if __name__ == "__main__":
    sys.exit(main())
