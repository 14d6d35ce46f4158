"""F1 and Matthews correlation, exactly, and the Pareto front of false negatives and false positives.

A two-class tree is a point (FN, FP). Both measures fall in either count and are *quasi-convex* where they matter, so
that their best value over all trees is attained at a corner of the convex hull of the points, and corners are what
weighted misclassification finds:

F1 = 2 TP / (2 TP + FP + FN) with TP = P - FN is a ratio of linear functions: F1 > q says
(2 - q) FN + q FP < 2 P (1 - q). So one minimisation of that weighted misclassification either finds a better tree or
proves q the best (Dinkelbach). Every step moves to another of the finitely many points with a larger F1, so it ends.

MCC = (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)). With x = TP / P, y = FP / N, a = P / (P + N) and
s = a x + (1 - a) y, it is sqrt(a (1 - a)) (x - y) / sqrt(s (1 - s)). For q >= 0, MCC <= q where
sqrt(a (1 - a)) (x - y) - q sqrt(s (1 - s)) <= 0, and the left side is convex as s (1 - s) has a concave root: the set
{MCC <= q} is convex, which is quasi-convexity where MCC >= 0 (the constant trees have 0, so a better one is there).
A quasi-convex function over a polygon is largest at a corner. The corners are found by dichotomy: the segment between
two known corners is minimised against; either a corner below it appears, or it is an edge. The triangle between the
segment and the two lines that support its ends bounds the measure, and is closed where the bound is no better.

The front needs the points that are no corners too: all trees between an edge and the worst point that could be
nondominated there are listed (two-phase method).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.exact.kernels.tree_rows import F1, MATTHEWS
from softsurv.exact.problem import MAX_DEPTH
from softsurv.exact.tree import CodeTree, LabelledTree
from softsurv.exact.vector_search import SLACK, VectorSearch
from softsurv.exact.whole_trees.improve import LocalSearch
from softsurv.results import Status
from softsurv.stopping import StopSignal

Measure = Callable[[FloatArray, float, float], float]

OFTEN = 10.0
"""How many additive searches a search by a measure takes."""

FEW_STEPS = 4
"""Corners of shallower trees, which only have to be a start."""

SOME_WORK = 1e8
"""Additions of the local search: the best of its first trees is nearly as good as the best of all."""

EPSILON = 1e-12
"""Values of a measure closer than this are the same."""


def f1(v: FloatArray, positives: float, negatives: float) -> float:
    """F1 of the positive class at (FN, FP); 0 where nothing is found."""
    found = positives - v[0]
    return float(2 * found / (2 * found + v[0] + v[1])) if found > 0 else 0.0


def matthews(v: FloatArray, positives: float, negatives: float) -> float:
    """Matthews correlation at (FN, FP); 0 where all rows get one class."""
    fn, fp = v
    tp, tn = positives - fn, negatives - fp
    called, true = (tp + fp) * (tn + fn), positives * negatives  # in any unit: all four together may leave the floats
    return float((tp * tn - fp * fn) / (np.sqrt(called) * np.sqrt(true))) if called > 0 else 0.0


MEASURES: dict[str, Measure] = {"f1": f1, "mcc": matthews}

KINDS = {"f1": F1, "mcc": MATTHEWS}
"""The measures as the local search knows them."""


@dataclass(frozen=True)
class Corner:
    """A tree with its (FN, FP)."""

    v: FloatArray
    tree: LabelledTree


class Oracle:
    """Weighted misclassification, by a search whose objectives are (FN, FP).

    Parameters
    ----------
    search : VectorSearch
    stop : StopSignal
    leaves : int, optional
        Most leaves.
    depth : int
        Deepest tree.
    """

    def __init__(
        self, search: VectorSearch, stop: StopSignal, leaves: int | None = None, depth: int = MAX_DEPTH
    ) -> None:
        self.search, self.stop, self.leaves, self.depth = search, stop, leaves, depth

    def minimise(self, w: FloatArray, upper: float) -> tuple[float, Corner | None, Status]:
        """A lower bound of w . v that is the least where it is below ``upper``; a tree below ``upper``; the status."""
        upper -= SLACK * float(w @ self.search.size[:2])
        self.search.use(np.pad(w, (0, self.search.objectives.n - 2)))  # leaves cost nothing where they are counted
        best = self.search.best(self.stop, upper, self.leaves, self.depth)
        found = Corner(best.v[:2], best.tree) if best.value < upper else None
        return best.bound, found, self.stop.status or best.status


@dataclass(frozen=True)
class Best:
    """The best tree by a measure, what no tree exceeds, and why the search ended."""

    candidate: Corner
    value: float
    bound: float
    status: Status
    corners: tuple[Corner, ...]


def maximise_f1(oracle: Oracle, positives: float, negatives: float, start: Corner) -> Best:
    """The best F1 by Dinkelbach's steps, from a tree to start with."""
    best, value = start, f1(start.v, positives, negatives)
    bound, corners, upper = 1.0, [start], np.inf
    w = np.ones(2)  # from a leaf the most accurate tree is a good first step
    if start.tree.tree.n_leaves > 1:
        w, upper = np.array([2 - value, value]), 2 * positives * (1 - value)
    while True:
        least, found, status = oracle.minimise(w, upper)
        bound = min(bound, _bound_f1(w, least, positives))
        if found is not None:
            corners.append(found)
            found = _labelled(f1, oracle.search, found.tree.tree)
        if found is not None and f1(found.v, positives, negatives) > value + EPSILON:
            best, value = found, f1(found.v, positives, negatives)
        elif status == Status.OPTIMAL and upper < np.inf:
            bound = value
            break
        if status != Status.OPTIMAL:
            break
        w, upper = np.array([2 - value, value]), 2 * positives * (1 - value)
    return Best(best, value, max(bound, value), status, tuple(corners))


def _bound_f1(w: FloatArray, least: float, positives: float) -> float:
    """Largest F1 over FN, FP >= 0 with w . (FN, FP) >= least: at a corner of that half-plane."""
    if w[1] <= 0:
        return 1.0
    ends = [np.array([min(least / w[0], positives), 0.0]), np.array([0.0, least / w[1]])]
    return max(f1(end, positives, 0.0) for end in ends)


@dataclass(frozen=True, order=True)
class _Segment:
    """Two neighbouring corners of the hull with the lines that support them from either side."""

    priority: float
    number: int
    a: Any
    b: Any
    line_a: Any
    line_b: Any


class Hull:
    """The lower left hull of the points (FN, FP), found corner by corner.

    Parameters
    ----------
    oracle : Oracle
    ends : pair of Corner
        The trees that call all rows positive and all rows negative.
    """

    def __init__(self, oracle: Oracle, ends: tuple[Corner, Corner]) -> None:
        self.oracle = oracle
        self.corners = list(ends)
        self.status = Status.OPTIMAL

    def explore(
        self, score: Callable[[FloatArray], float], start: Corner, steps: float = np.inf
    ) -> tuple[Corner, float, float]:
        """Best corner by a quasi-convex score that falls in both counts, its score, and what no point exceeds.

        ``start`` is a tree that was found before: where no corner is better, it is the answer. After so many ``steps``
        the best corner so far is returned.
        """
        best = max([start, *self.corners], key=lambda one: score(one.v))
        value, number = score(best.v), 0
        heap: list[_Segment] = []

        def add(a: Corner, b: Corner, line_a: Any, line_b: Any) -> None:
            nonlocal number
            number += 1
            heapq.heappush(heap, _Segment(-score(_meet(line_a, line_b)), number, a, b, line_a, line_b))

        a, b = self.corners
        add(a, b, (np.array([1.0, 0.0]), 0.0), (np.array([0.0, 1.0]), 0.0))
        while heap and -heap[0].priority > value + EPSILON:
            if steps == 0:
                return best, value, -heap[0].priority
            steps -= 1
            here = heapq.heappop(heap)
            w = _direction(here.a, here.b)
            level = float(w @ here.a.v)
            least, new, status = self.oracle.minimise(w, level)
            if new is not None:
                self.corners.append(new)
                if score(new.v) > value:
                    best, value = new, score(new.v)
            line = (w, least)
            if status != Status.OPTIMAL:
                self.status = status
                cut = max(score(_meet(here.line_a, line)), score(_meet(line, here.line_b)))  # below the line is no tree
                rest = -heap[0].priority if heap else value
                return best, value, max(value, rest, min(cut, -here.priority))
            if new is None:
                continue
            add(here.a, new, here.line_a, line)
            add(new, here.b, line, here.line_b)
        return best, value, value


@dataclass(frozen=True)
class Front:
    """Nondominated trees by false negatives, and why the search ended: all of them only where OPTIMAL."""

    trees: tuple[Corner, ...]
    status: Status


def pareto_front(search: VectorSearch, stop: StopSignal, leaves: int | None = None) -> Front:
    """Every nondominated (FN, FP) with a tree that has it, by the two-phase method.

    First all corners of the hull. Then, for the edge between corners a and b, a nondominated point between them has
    fewer false negatives than b and fewer false positives than a, so it costs less than (FN of b, FP of a) in the
    direction of the edge: all trees below that are listed. With a limit on ``leaves`` the search counts them
    (`Objectives.with_most_leaves`), so that no tree within the limit is left out for one beyond it.
    """
    oracle, ends = Oracle(search, stop, leaves), ends_of(search)
    waiting, edges, found = [ends], [], list(ends)
    status = Status.OPTIMAL
    while waiting:
        a, b = waiting.pop()
        w = _direction(a, b)
        _, better, status = oracle.minimise(w, float(w @ a.v))
        if better is not None:
            found.append(better)
            waiting += [(a, better), (better, b)]
        if status != Status.OPTIMAL:
            return Front(_nondominated(found, search), status)
        if better is None:
            edges.append((a, b))
    for a, b in edges:
        w = _direction(a, b)
        search.use(np.pad(w, (0, search.objectives.n - 2)))
        listed = search.points(stop, float(w @ [b.v[0], a.v[1]]))
        few = np.ones(len(listed.v), bool) if leaves is None else listed.v[:, 2] <= leaves
        found += [Corner(v[:2], search.tree(place)) for v, place in zip(listed.v[few], listed.place[few], strict=True)]
        if listed.status != Status.OPTIMAL:
            return Front(_nondominated(found, search), listed.status)
    return Front(_nondominated(found, search), status)


def _direction(a: Corner, b: Corner) -> FloatArray:
    """Weights for which two corners cost the same, summing to one."""
    w = np.array([a.v[1] - b.v[1], b.v[0] - a.v[0]])
    return w / w.sum()


def _nondominated(found: list[Corner], search: VectorSearch) -> tuple[Corner, ...]:
    """Trees of which no other has as few errors of both kinds, one for each point."""
    kept: list[Corner] = []
    for one in sorted(found, key=lambda one: (one.v[0], one.v[1])):
        if not kept or one.v[1] < kept[-1].v[1] - SLACK * search.size[1]:
            kept.append(one)
    return tuple(kept)


def _meet(one: tuple[FloatArray, float], two: tuple[FloatArray, float]) -> FloatArray:
    """Where two lines w . v = c meet."""
    return np.linalg.solve(np.stack([one[0], two[0]]), np.array([one[1], two[1]]))


def maximise(
    name: str, search: VectorSearch, stop: StopSignal, leaves: int | None = None, *, changed: bool = True
) -> Best:
    """The best tree by "f1" or "mcc", of a search over `ERRORS`, with at most so many leaves.

    A long search, or one cut by cut, starts from the best shallower trees; a long one, where ``changed``, from those of
    a local search too.
    """
    negatives, positives = search.totals
    measure, shallow = MEASURES[name], 2 if search.by_cuts else search.depth
    start = max(ends_of(search), key=lambda one: measure(one.v, positives, negatives))
    if search.search.is_long(search.depth, OFTEN):
        start, shallow = _changed(name, search, stop, leaves, start) if changed else start, 2
        if stop.status is not None and start.tree.tree.n_leaves > 1:
            return Best(start, measure(start.v, positives, negatives), 1.0, stop.status, (start,))
    for depth in range(min(shallow, search.depth), search.depth + 1):
        best = _maximise(name, Oracle(search, stop, leaves, depth), positives, negatives, start)
        start = best.candidate
        if best.status != Status.OPTIMAL:
            return replace(best, bound=best.bound if depth == search.depth else 1.0)
    return best


def _changed(name: str, search: VectorSearch, stop: StopSignal, leaves: int | None, start: Corner) -> Corner:
    """The best of trees that were changed node by node while the measure rose, from many starts."""
    negatives, positives = search.totals
    most = min(leaves or 1 << search.depth, 1 << search.depth)
    local = LocalSearch(search, KINDS[name], most, stop, work=SOME_WORK)  # compiled here, where a Ctrl-C is heard

    def work() -> Corner:
        best, least = start, 1.0 - MEASURES[name](start.v, positives, negatives)
        for loss in local.first_trees([np.ones(2), np.array([1 / positives, 1 / negatives])]):
            if loss < least - EPSILON:
                best, least = _labelled(MEASURES[name], search, local.tree), loss
        return best

    return search.run(work, stop)


def _labelled(measure: Measure, search: VectorSearch, tree: CodeTree) -> Corner:
    """A tree with the best labels by a measure: positive are the leaves with the largest shares of positives."""
    negatives, positives = search.totals
    leaf = tree.sums[tree.leaves, :2]  # (L, 2)
    rank = np.argsort(-leaf[:, 1] / np.maximum(leaf.sum(axis=1), 1e-300), kind="stable")
    called = np.vstack([np.zeros(2), leaf[rank].cumsum(axis=0)])  # (L + 1, 2) false and true positives
    points = np.column_stack([positives - called[:, 1], called[:, 0]])
    n = int(np.argmax([measure(v, positives, negatives) for v in points]))
    label = np.zeros(len(leaf), np.intp)
    label[rank[:n]] = 1
    return Corner(points[n], LabelledTree(tree, label))


def _maximise(name: str, oracle: Oracle, positives: float, negatives: float, start: Corner) -> Best:
    """The best tree of the depth of an oracle, from a tree to start with."""
    if name == "f1":
        return maximise_f1(oracle, positives, negatives, start)
    hull, steps = Hull(oracle, ends_of(oracle.search)), np.inf if oracle.depth == oracle.search.depth else FEW_STEPS
    best, value, bound = hull.explore(lambda v: matthews(v, positives, negatives), start, steps)
    return Best(best, value, bound, hull.status, tuple(hull.corners))


def ends_of(search: VectorSearch) -> tuple[Corner, Corner]:
    """The trees that call all rows positive and all rows negative."""
    negatives, positives = search.totals
    return Corner(np.array([0.0, negatives]), search.leaf(1)), Corner(np.array([positives, 0.0]), search.leaf(0))
