"""The best tree under a constraint: Lagrangian bound, then the trees between the bound and the incumbent.

Wanted is the least first objective a(T) over trees T with A v(T) <= c (group fairness, capacity). For any multipliers
m >= 0,

    L(m) = min over T of a(T) + m . (A v(T) - c)

is a separable problem and a lower bound, as the second term is <= 0 where the constraint holds (weak duality). L is
concave and piecewise linear; its maximum is found from the trees that attain it (`maximise_dual`). Every tree T that
meets the constraint has a(T) >= a(T) + m . (A v(T) - c), so all of them with a(T) < u are among the trees whose
reduced cost is below u: these are listed, with u a little above the bound at first and growing until the best tree
listed that meets the constraint costs no more than u. What has been listed in full is a proven bound, so a search that
ends early still states one.

Where the search is long, shallower trees come first. Every tree met is a line above L at any depth, so the multipliers
of one depth are a start for the next; and a tree that breaks the constraint is made to meet it (`repair.py`). So a good
tree is there soon.

The list is short where the gap between the bound and the optimum is small. It is small because many trees cost nearly
the same: on the sets of `scripts/bench_pareto.py` it is a few errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.tree import LabelledTree, SearchProgress
from softsurv.exact.vector_search import SLACK, VectorSearch
from softsurv.exact.whole_trees.repair import repaired
from softsurv.results import Status
from softsurv.stopping import StopSignal

MOST_STEPS = 60
"""Steps of the dual ascent; it ends after a handful where the optimum is exact, and any multipliers are valid."""

FEW_STEPS = 4
"""The same for shallower trees, which only have to be a start."""

OFTEN = 10.0
"""How many additive searches a search under a constraint takes."""

GROWTH = 4.0
"""By how much the list of near-optimal trees grows from one attempt to the next."""


@dataclass
class Constrained:
    """State of a constrained search: the incumbent, the bound, and the multipliers that prove it."""

    tree: LabelledTree
    v: FloatArray
    bound: float
    multipliers: FloatArray
    margin: float
    """Values of the first objective closer than this are the same."""
    status: Status = Status.OPTIMAL
    trace: list[float] = field(default_factory=list)
    seen: list[FloatArray] = field(default_factory=list)
    """Objectives of the trees that the dual ascent met."""
    progress: SearchProgress | None = None

    @property
    def value(self) -> float:
        """First objective of the incumbent."""
        return float(self.v[0])

    def tell(self, first: float) -> None:
        """Show how much of the gap between the first bound and the incumbent is closed."""
        if self.progress is not None and math.isfinite(self.bound):
            gap = self.value - first
            done = 1.0 if gap <= self.margin else min(max((self.bound - first) / gap, 0.0), 1.0)
            self.progress(done, self.bound, self.value)

    def offer(self, v: FloatArray, tree: LabelledTree) -> None:
        """Take a tree that meets the constraint if it is better."""
        if v[0] < self.value:
            self.v, self.tree = v, tree
            self.trace.append(self.value)


def constrained_optimum(
    search: VectorSearch, stop: StopSignal, *, unit: float = 0.0, progress: SearchProgress | None = None
) -> Constrained:
    """The best tree of a search that meets its constraint.

    Parameters
    ----------
    search : VectorSearch
    stop : StopSignal
    unit : float
        All first objectives are multiples of this (1 for counts of errors), 0 for any number.
    progress : callable, optional
        Called with the share of the gap that is closed, the bound and the first objective of the incumbent.

    Raises
    ------
    InvalidParameterError
        If no single leaf meets the constraint, so that there may be no such tree.
    """
    return search.run(lambda: _constrained_optimum(search, stop, unit, progress), stop)


def _constrained_optimum(
    search: VectorSearch, stop: StopSignal, unit: float, progress: SearchProgress | None
) -> Constrained:
    state = _start(search)
    state.progress = progress
    _offer_shallower(search, state, stop)
    state.bound = first = _floor(search)
    state.tell(first)
    if state.status == Status.OPTIMAL:
        maximise_dual(search, state, stop, search.depth)
    _round_up(state, unit)
    state.tell(first)
    if state.status == Status.OPTIMAL and state.bound < state.value - state.margin:
        _close_gap(search, state, stop, unit, first)
    if state.bound >= state.value - state.margin:  # proven, whatever ended the search
        state.status = Status.OPTIMAL
    if state.status == Status.OPTIMAL:
        state.bound = state.value
    state.tell(first)
    return state


def _start(search: VectorSearch) -> Constrained:
    """The best leaf that meets the constraint."""
    leaves = [search.leaf(label) for label in range(search.objectives.n_labels)]
    values = list(search.objectives.points(search.totals[None])[0])
    good = [k for k, v in enumerate(values) if search.meets(v)]
    if not good:
        raise InvalidParameterError("the limit must leave at least one tree without splits; raise it")
    best = min(good, key=lambda k: values[k][0])
    none = np.zeros(search.objectives.n_limits)
    state = Constrained(leaves[best], values[best], -math.inf, none, SLACK * float(search.size[0]), seen=list(values))
    state.trace.append(state.value)
    return state


def _offer_shallower(search: VectorSearch, state: Constrained, stop: StopSignal) -> None:
    """Where the search is long, offer trees of every smaller depth and by a rolling horizon; keep their multipliers."""
    for depth in range(2, search.depth if _is_long(search) else 2):
        if state.status != Status.OPTIMAL:
            return
        maximise_dual(search, state, stop, depth, FEW_STEPS)
        state.bound = -math.inf  # it was a bound of shallower trees
        if depth > 2 and not search.by_cuts and stop.stage():
            found = repaired(search, search.search.rolling(search.depth, depth, stop))
            if found is not None:
                state.offer(*found)


def _floor(search: VectorSearch) -> float:
    """Lower bound for all trees before any search: equivalent points."""
    search.use(np.eye(search.objectives.n)[0])
    problem = search.search.problem
    return float(problem.floor.sum()) + problem.complexity + search.search.constant


def maximise_dual(
    search: VectorSearch, state: Constrained, stop: StopSignal, depth: int, steps: int = MOST_STEPS
) -> None:
    """Raise the bound of trees down to ``depth`` by cutting planes: each tree met is a line a + m . (A v - c) above L.

    The next multipliers maximise the least of the lines; where L agrees with it there, they are optimal.
    """
    goals = search.objectives
    multipliers = state.multipliers
    long = _is_long(search)
    for _ in range(steps):
        w = np.eye(goals.n)[0] + multipliers @ goals.constraint
        shift = float(multipliers @ goals.limit)
        search.use(w, shift)
        if depth <= 2 and not long and multipliers.any():  # to list the best trees is as fast as to read one
            least = search.search.least(depth, stop)
            state.status = Status.OPTIMAL if least > -math.inf else stop.reason
        else:
            best = search.best(stop, depth=depth)
            state.status, least = best.status, best.bound
            if search.meets(best.v):
                state.offer(best.v, best.tree)
            elif long and (found := repaired(search, best.tree.tree)):
                state.offer(*found)
            state.seen.append(best.v)
        if least - shift > state.bound:
            state.bound, state.multipliers = least - shift, multipliers
        if state.status != Status.OPTIMAL or state.bound >= state.value - state.margin:
            return
        if not search.by_cuts and not _offer_equals(search, state, stop, depth, least, w):
            return
        multipliers, top = _best_multipliers(search, np.array(state.seen))
        if top <= state.bound + state.margin:
            return


def _is_long(search: VectorSearch) -> bool:
    """Whether trees found on the way are worth their time."""
    return search.by_cuts or search.search.is_long(search.depth, OFTEN)


def _offer_equals(
    search: VectorSearch, state: Constrained, stop: StopSignal, depth: int, least: float, w: FloatArray
) -> bool:
    """Look at all trees with the least reduced cost; whether there was time for it."""
    listed = search.points(stop, least + SLACK * float(np.abs(w) @ search.size), depth=depth)
    state.status = listed.status
    if state.status not in (Status.OPTIMAL, Status.MEMORY_LIMIT):
        return False
    state.status = Status.OPTIMAL  # any of the equally good trees will do here
    for v, place in zip(listed.v, listed.place, strict=True):
        state.seen.append(v)
        if search.meets(v):
            state.offer(v, search.tree(place))
    return True


def _best_multipliers(search: VectorSearch, seen: FloatArray) -> tuple[FloatArray, float]:
    """Multipliers (C,) at which the least of the lines of the trees seen is highest, and that height."""
    constraint, limit = search.objectives.constraint, search.objectives.limit
    slope = seen @ constraint.T - limit  # (T, C)
    slope[(slope > 0) & (slope <= search.slack)] = 0.0  # such a tree meets the constraint
    if _is_interval(constraint):
        return _interval_multipliers(slope, seen[:, 0], SLACK * float(search.size[0]))
    n = slope.shape[1]
    # multipliers and heights in units that the solver can compare
    scale, unit = np.maximum(np.abs(slope).max(axis=0), 1e-300), float(search.size[0]) or 1.0
    result = linprog(
        np.append(np.zeros(n), -1.0),
        np.column_stack([-slope / scale, np.ones(len(seen))]),
        seen[:, 0] / unit,
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
    )
    return result.x[:n] * unit / scale, float(result.x[n]) * unit


def _is_interval(constraint: FloatArray) -> bool:
    """Whether there are two constraints, from below and from above, on one number."""
    return len(constraint) == 2 and bool((constraint[0] == -constraint[1]).all())


def _interval_multipliers(slope: FloatArray, height: FloatArray, margin: float) -> tuple[FloatArray, float]:
    """The same for two opposite constraints. At most one multiplier is not 0: a maximum on two half-lines."""
    best, top = np.zeros(2), -math.inf
    for side in range(2):
        at, value = _highest(slope[:, side], height, margin)
        if value > top:
            best, top = np.eye(2)[side] * at, value
    return best, top


def _highest(slope: FloatArray, height: FloatArray, margin: float) -> tuple[float, float]:
    """The m >= 0 at which the least of the lines height + m slope is highest, and its height."""
    at = 0.0
    while True:
        lines = height + at * slope
        low = lines.min()
        here = np.flatnonzero(lines <= low + margin)
        lowest = here[slope[here].argmin()]
        if slope[lowest] <= 0:
            return at, float(low)
        below = slope < slope[lowest]
        if not below.any():
            return at, float(low)  # no tree bounds it from here on
        meets = (height[below] - height[lowest]) / (slope[lowest] - slope[below])
        at = max(at, float(meets.min()))


def _close_gap(search: VectorSearch, state: Constrained, stop: StopSignal, unit: float, first: float) -> None:
    """List near-optimal trees up to a growing reduced cost, until the incumbent is proven best."""
    goals = search.objectives
    w = np.eye(goals.n)[0] + state.multipliers @ goals.constraint
    shift = float(state.multipliers @ goals.limit)
    search.use(w, shift)
    step = max(unit / 2, (state.value - state.bound) / 16)
    while state.bound < state.value - state.margin:
        upper = min(state.value - (unit / 2 if unit else state.margin), state.bound + step)
        listed = search.points(stop, upper + shift, constrained=True)
        for v, place in zip(listed.v, listed.place, strict=True):
            state.offer(v, search.tree(place))
        state.status = listed.status
        if state.status != Status.OPTIMAL:
            return
        if upper >= state.value - max(unit / 2, state.margin):
            state.bound = state.value
            return
        state.bound = upper
        _round_up(state, unit)
        state.tell(first)
        step *= GROWTH


def _round_up(state: Constrained, unit: float) -> None:
    """Raise the bound to a multiple of the unit: no tree lies between two of them."""
    if unit > 0 and math.isfinite(state.bound):
        state.bound = min(math.ceil(state.bound / unit - 1e-6) * unit, state.value)
