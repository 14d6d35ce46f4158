"""Batched limited-memory BFGS: every tree of a stack has its own direction, step and memory.

Each round evaluates all moving trees once. A tree whose trial fails the sufficient-decrease test shortens its
step and waits; the others go on (Nocedal & Wright 2006, algorithms 3.1 and 7.4). Trees that have stopped
leave the stack one by one, so a round costs what the trees still moving cost. A stack whose rounds are recorded as a
graph (`replay.py`) is narrowed in steps instead, see :data:`NARROWER`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from softsurv.soft.one_pass import arrays
from softsurv.soft.problem import taken
from softsurv.soft.quasi_newton import CURVATURE, Memory
from softsurv.soft.replay import Repeated, capture_on
from softsurv.soft.watch import LOOK_EVERY, Watch, runs_ahead
from softsurv.stopping import StopSignal

Point = tuple[Tensor, ...]
"""Parameters of a stack of trees in one or more tensors, each (M, ...)."""

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant, the usual value for quasi-Newton steps."""

LEAST_STEP = 2.0**-26
"""Share of the first trial at which a step is given up: rounding, not the model, is what it meets there."""

ALONE = 2 * LOOK_EVERY
"""Rounds that are taken one by one before some are recorded: a minimisation of seven never has more than it needs."""

NARROWER = 0.75
"""Share of a stack's trees up to which it is narrowed where its rounds are recorded.

A narrower stack is recorded anew: some rounds by operators, a capture, and four rounds both ways to compare them. Were
each tree to leave at once, the rounds of a hundred trees would be recorded a hundred times and hardly be replayed. In
steps they are recorded 14 times at most, and four recorded rounds begin with at most 1 / NARROWER trees for each one
that moves, a third more. Where nothing is recorded, and in rounds by operators before, a tree leaves as soon as the
host knows.
"""


@dataclass(frozen=True)
class LbfgsSettings:
    """When the optimiser stops.

    ``ftol`` is relative to max(1, |f|); ``gtol`` is the largest entry of the gradient.
    """

    max_iterations: int = 200
    ftol: float = 1e-8
    gtol: float = 1e-6
    memory: int = 8


class Function(Protocol):
    """What is minimised: one function for each tree of a stack."""

    @property
    def value_and_gradient(self) -> Callable[..., tuple[Tensor, ...]]:
        """Maps a point, one argument for each of its tensors, to the values (m,) and a gradient for each tensor."""

    def take(self, trees: Tensor) -> Function:
        """The functions of some trees, whose numbers are on the host."""


class Metric(Protocol):
    """A first guess of the inverse curvature, up to a factor: a positive definite matrix for each tree."""

    def __call__(self, gradient: Tensor) -> Tensor:
        """Steps (m, D) from gradients (m, D), the tensors of a point side by side."""

    def take(self, trees: Tensor) -> Metric:
        """The metric of some trees."""


Rounds = Callable[[tuple[Any, ...], tuple[float, ...], int, Callable[[], bool]], int]
"""Takes rounds of every tree in place, how many it says: the tables of ``_State``, the limits of
`step_kernels.advance_tree`, how many rounds at most, and whether to stop, which is asked before each call."""


@runtime_checkable
class ByTree(Protocol):
    """A function whose rounds may be compiled as a whole."""

    def whole_rounds(self, metric: Any) -> Rounds | None:
        """Them, with this metric, or None where operators of torch are to be taken."""


class Identity:
    """The metric that leaves gradients as they are."""

    def __call__(self, gradient: Tensor) -> Tensor:
        """The gradient itself."""
        return gradient

    def take(self, trees: Tensor) -> Identity:
        """The same for every tree."""
        return self


@dataclass(frozen=True)
class Minimum:
    """The end of a minimisation.

    Attributes
    ----------
    point : tuple of Tensor (M, ...)
    loss : Tensor (M,)
        None is above that of its start.
    converged : Tensor (M,) bool
        False where a tree took all its iterations.
    """

    point: Point
    loss: Tensor
    converged: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the point, the losses, and which converged."""
        return *self.point, self.loss, self.converged


@dataclass
class _State:
    memory: Memory  # point, gradient and pairs
    f: Tensor  # (m,)
    direction: Tensor  # (m, D)
    slope: Tensor  # (m,) of the direction
    step: Tensor  # (m,)
    least: Tensor  # (m,) the step at which a tree gives up
    taken: Tensor  # (m,) accepted steps
    moving: Tensor  # (m,) bool

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All that a round changes."""
        memory = self.memory
        return memory.table, memory.slot, self.f, self.direction, self.slope, self.step, self.taken, self.moving

    def take(self, rows: Tensor) -> _State:
        """The trees (r,) of the stack."""
        tensors = {name: taken(value, rows) for name, value in vars(self).items() if name != "memory"}
        return _State(memory=self.memory.take(rows), **tensors)


def minimise(
    function: Function,
    start: Point,
    settings: LbfgsSettings,
    metric: Metric | None = None,
    budget: StopSignal | None = None,
    on_round: Callable[[Tensor], None] | None = None,
) -> Minimum:
    """Minimise the function of every tree.

    Parameters
    ----------
    function : Function
    start : tuple of Tensor (M, ...)
    settings : LbfgsSettings
    metric : Metric, optional
        The identity by default.
    budget : StopSignal, optional
        Once it is exhausted, the best points so far are returned.
    on_round : callable, optional
        Called with the losses (M,) of the whole stack after every fourth round and after the last.
    """
    metric = Identity() if metric is None else metric
    shapes = [part.shape[1:] for part in start]
    value, *gradient = function.value_and_gradient(*start)
    state = _begin(side_by_side(start), value, side_by_side(gradient), settings, metric)
    rounds = function.whole_rounds(metric) if on_round is None and isinstance(function, ByTree) else None
    if rounds is not None and not runs_ahead(value):
        return _tree_by_tree(state, rounds, shapes, settings, budget)
    best, loss, cut_off = state.memory.x.clone(), state.f.clone(), torch.zeros_like(state.moving)
    rows: Tensor | slice = slice(None)
    watch, last = Watch(late=runs_ahead(best)), 4 * settings.max_iterations
    round_began, pace = time.monotonic(), 0.0

    def keep_best() -> None:
        best[rows], loss[rows] = state.memory.x, state.f
        cut_off[rows] = state.taken >= settings.max_iterations

    def rounds_of(function: Function, metric: Metric, state: _State, alone: int) -> Repeated:
        def rounds(count: int) -> None:
            look = watch.send if watch.late and count == 1 else None
            _take_rounds(function, metric, state, settings, shapes, count, look)

        results = state.f, state.memory.x
        return Repeated(rounds, capture_on(state.f.device), state.tensors, results, LOOK_EVERY, alone)

    take_rounds, number = rounds_of(function, metric, state, ALONE), 0
    if budget is not None and budget.exhausted and on_round is None:
        last = 0  # as compiled rounds do: the points stay
    while number < last:
        taken_now = take_rounds()
        number += taken_now
        pace, round_began = time.monotonic() - round_began, time.monotonic()
        over = budget is not None and not budget.end_unless(pace)
        if watch.late and taken_now > 1:
            watch.send(state.moving)
        moving = watch.known() if watch.late else state.moving
        left = None if moving is None else torch.nonzero(moving)[:, 0]
        ended = over or number >= last or (left is not None and len(left) == 0)
        if on_round is not None and (ended or number % LOOK_EVERY == 0):
            keep_best()
            on_round(loss)
        if ended:
            break
        most = NARROWER * len(state.f) if take_rounds.recorded else len(state.f) - 1
        if left is not None and len(left) <= most:
            keep_best()
            function, metric, state = function.take(left), metric.take(left), state.take(left)
            here = left.to(best.device, non_blocking=True)
            rows = here if isinstance(rows, slice) else rows[here]
            watch.narrow(left)
            alone = take_rounds.alone if take_rounds.alone > 0 else LOOK_EVERY + -number % LOOK_EVERY
            take_rounds = rounds_of(function, metric, state, alone)
    keep_best()
    return Minimum(apart(best, shapes), loss, ~cut_off)


def _take_rounds(
    function: Function,
    metric: Metric,
    state: _State,
    settings: LbfgsSettings,
    shapes: Sequence[torch.Size],
    count: int,
    look: Callable[[Tensor], None] | None = None,
) -> None:
    """Some rounds of every tree. All that they change are the tensors of the state, which stay where they are.

    ``look`` is given the trees that are moving (m,) as soon as a round knows them.
    """
    for _ in range(count):
        trial = torch.addcmul(state.memory.x, state.step[:, None], state.direction)
        value, *gradient = function.value_and_gradient(*apart(trial, shapes))
        _advance(state, trial, value, side_by_side(gradient), settings, metric, look)


def _tree_by_tree(
    state: _State,
    rounds: Rounds,
    shapes: Sequence[torch.Size],
    settings: LbfgsSettings,
    budget: StopSignal | None,
) -> Minimum:
    """The same in compiled rounds."""
    limits = SUFFICIENT_DECREASE, CURVATURE, settings.ftol, settings.gtol, settings.max_iterations
    memory, f, taken = state.memory, state.f.clone(), state.taken
    tables = memory.table, memory.slot, f, state.direction, state.slope, state.step, state.least, taken, state.moving
    in_place, left = tuple(arrays(*tables)), 4 * settings.max_iterations

    def stop() -> bool:
        return budget is not None and budget.exhausted

    while left > 0 and bool(state.moving.any()) and not stop():
        left -= rounds(in_place, limits, left, stop)
    return Minimum(apart(memory.x.clone(), shapes), f, taken < settings.max_iterations)


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """The tensors (m, ...) of a point as one table (m, D)."""
    return parts[0].flatten(1) if len(parts) == 1 else torch.cat([part.flatten(1) for part in parts], 1)


def apart(table: Tensor, shapes: Sequence[torch.Size]) -> Point:
    """The tensors (m, ...) that :func:`side_by_side` joined."""
    if len(shapes) == 1:
        return (table.view(len(table), *shapes[0]),)
    parts, first = [], 0
    for shape in shapes:
        last = first + shape.numel()
        parts.append(table[:, first:last].view(len(table), *shape))
        first = last
    return tuple(parts)


def _begin(x: Tensor, f: Tensor, g: Tensor, settings: LbfgsSettings, metric: Metric) -> _State:
    scaled = metric(g)
    first = 1 / (g * scaled).sum(1).clamp(min=1.0).sqrt()  # a first step of at most unit length in the metric
    memory = Memory(x, g, scaled, settings.memory)
    direction, slope = memory.direction()
    taken = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    return _State(
        memory,
        f.clone(),
        direction,
        slope,
        first,
        LEAST_STEP * first,
        taken,
        torch.isfinite(f) & (g.abs().amax(1) > settings.gtol),
    )


def _advance(
    state: _State,
    trial: Tensor,
    f: Tensor,
    g: Tensor,
    settings: LbfgsSettings,
    metric: Metric,
    look: Callable[[Tensor], None] | None = None,
) -> None:
    """Take each tree's trial (m, D) or shorten its step, in place."""
    f = f.nan_to_num(torch.inf, torch.inf, torch.inf)  # no value: a step too far
    gained, expected = state.f - f, state.step * state.slope
    accepted = (torch.add(gained, expected, alpha=SUFFICIENT_DECREASE) >= 0) & state.moving
    # the first step's length is a guess: that it gains little says nothing about the minimum
    flat = (gained <= settings.ftol * state.f.abs().clamp(min=1.0)) & (state.taken > 0)
    small = torch.linalg.vector_norm(g, torch.inf, 1) <= settings.gtol
    state.taken.add_(accepted)
    # minimum of the parabola through f, its slope and the failed trial, kept within [0.1, 0.5] of the step
    shrink = (0.5 * expected / (gained + expected)).clamp(0.1, 0.5)
    state.step.mul_(shrink).masked_fill_(accepted, 1.0)
    ended = flat | small | (state.taken >= settings.max_iterations)
    done = torch.where(accepted, ended, state.step < state.least)
    state.moving.gt_(done)
    if look is not None:  # on its way to the host while the device is given the next direction
        look(state.moving)
    torch.where(accepted, f, state.f, out=state.f)
    state.memory.move(trial, g, metric(g), accepted)
    state.memory.write_direction(state.direction, state.slope)
