"""Batched limited-memory BFGS: every tree of a stack has its own direction, step and memory.

Each round evaluates all moving trees once. A tree whose trial fails the sufficient-decrease test shortens its
step and waits; the others go on (Nocedal & Wright 2006, algorithms 3.1 and 7.4). Trees that have stopped
leave the stack, so a round costs what the trees still moving cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from softsurv.budget import Budget

Point = tuple[Tensor, ...]
"""Parameters of a stack of trees in one or more tensors, each (M, ...)."""

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant, the usual value for quasi-Newton steps."""

MAX_BACKTRACKS = 25
"""A step 1e-7 of the first trial: rounding, not the model, is what it meets there."""

LOOK_EVERY = 4
"""Rounds between looks at which trees have stopped."""


_ALWAYS_LATE: ContextVar[bool] = ContextVar("always late", default=False)


@contextmanager
def never_waiting() -> Iterator[None]:
    """While open, no device is waited for inside training, as a CUDA device never is: for tests on a CPU."""
    token = _ALWAYS_LATE.set(True)
    try:
        yield
    finally:
        _ALWAYS_LATE.reset(token)


def runs_ahead(value: Tensor) -> bool:
    """Whether a look at the value would wait for its device."""
    return value.is_cuda or _ALWAYS_LATE.get()


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
        """The functions of some trees."""

    def whole_groups(self, trees: Tensor) -> Tensor:
        """The mask (m,) of trees widened so that :meth:`take` accepts it."""


class Metric(Protocol):
    """A first guess of the inverse curvature, up to a factor: a positive definite matrix for each tree."""

    def __call__(self, gradient: Tensor) -> Tensor:
        """Steps (m, D) from gradients (m, D), the tensors of a point side by side."""

    def take(self, trees: Tensor) -> Metric:
        """The metric of some trees."""


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
    """Where a minimisation ended.

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


@dataclass
class _State:
    x: Tensor  # (m, D)
    f: Tensor  # (m,)
    g: Tensor  # (m, D)
    direction: Tensor  # (m, D)
    step: Tensor  # (m,)
    tries: Tensor  # (m,) failed trials of this direction
    taken: Tensor  # (m,) accepted steps
    moving: Tensor  # (m,) bool
    s: Tensor  # (memory, m, D)
    y: Tensor  # (memory, m, D)
    rho: Tensor  # (memory, m), 0 where a pair is empty

    def take(self, rows: Tensor) -> _State:
        """The trees (r,) of the stack."""
        taken = {k: v[rows] for k, v in vars(self).items() if k not in ("s", "y", "rho")}
        return _State(**taken, s=self.s[:, rows], y=self.y[:, rows], rho=self.rho[:, rows])


class _Watch:
    """Tells the host which trees are moving.

    A device is not waited for: each look starts a copy and reads the one before it, which is long complete. So the
    answer is a look old; trees that stopped since then stay for another one, which changes nothing but time.
    """

    def __init__(self, late: bool) -> None:
        self.late = late
        self.copy: Tensor | None = None
        self.copied: torch.cuda.Event | None = None

    def __call__(self, mask: Tensor) -> Tensor | None:
        """The mask (m,) on the host, or None before there is an answer."""
        if not self.late:
            return mask.cpu()
        before, copied = self.copy, self.copied
        self.copy = torch.empty(mask.shape, dtype=mask.dtype, pin_memory=mask.is_cuda).copy_(mask, non_blocking=True)
        if mask.is_cuda:
            self.copied = torch.cuda.Event()
            self.copied.record()
        if copied is not None:
            copied.synchronize()
        return before

    def narrow(self) -> None:
        """Forget the copy under way: the stack has changed."""
        self.copy = self.copied = None


def minimise(
    function: Function,
    start: Point,
    settings: LbfgsSettings,
    metric: Metric | None = None,
    budget: Budget | None = None,
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
    budget : Budget, optional
        Once it is exhausted, the best points so far are returned.
    on_round : callable, optional
        Called with the losses (M,) of the whole stack whenever trees are dropped or progress is looked at.
    """
    metric = Identity() if metric is None else metric
    shapes = [part.shape[1:] for part in start]
    value, *gradient = function.value_and_gradient(*start)
    state = _begin(side_by_side(start), value, side_by_side(gradient), settings, metric)
    best, loss, cut_off = state.x.clone(), state.f.clone(), torch.zeros_like(state.moving)
    rows: Tensor | slice = slice(None)
    watch, last = _Watch(late=runs_ahead(best)), 4 * settings.max_iterations
    round_began, pace = time.monotonic(), 0.0
    for number in range(1, last + 1):
        trial = state.x + state.step[:, None] * state.direction
        value, *gradient = function.value_and_gradient(*_parts(trial, shapes))
        _advance(state, trial, value, side_by_side(gradient), settings, metric)
        pace, round_began = time.monotonic() - round_began, time.monotonic()
        over = budget is not None and not budget.end_unless(pace)
        if number % LOOK_EVERY and number < last and not over:
            continue
        best[rows], loss[rows] = state.x, state.f
        cut_off[rows] = state.taken >= settings.max_iterations
        if on_round is not None:
            on_round(loss)
        if over:
            break
        keep = watch(function.whole_groups(state.moving))
        if keep is None:
            continue
        left = torch.nonzero(keep)[:, 0]
        if len(left) == 0:
            break
        if 4 * len(left) <= 3 * len(keep):  # narrowing copies the data: only when it pays
            left = left.to(best.device, non_blocking=True)
            rows = left if isinstance(rows, slice) else rows[left]
            function, metric, state = function.take(left), metric.take(left), state.take(left)
            watch.narrow()
    return Minimum(_parts(best, shapes), loss, ~cut_off)


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """The tensors (m, ...) of a point as one table (m, D)."""
    return parts[0].flatten(1) if len(parts) == 1 else torch.cat([part.flatten(1) for part in parts], 1)


def _parts(table: Tensor, shapes: Sequence[torch.Size]) -> Point:
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
    steepest = metric(g)
    m, d = x.shape
    memory = x.new_zeros(settings.memory, m, d)
    first = 1 / (g * steepest).sum(1).clamp(min=1.0).sqrt()  # a first step of at most unit length in the metric
    zeros = torch.zeros(m, dtype=torch.int64, device=x.device)
    return _State(
        x=x,
        f=f,
        g=g,
        direction=-steepest,
        step=first,
        tries=zeros,
        taken=zeros.clone(),
        moving=torch.isfinite(f) & (g.abs().amax(1) > settings.gtol),
        s=memory,
        y=memory.clone(),
        rho=x.new_zeros(settings.memory, m),
    )


def _advance(state: _State, trial: Tensor, f: Tensor, g: Tensor, settings: LbfgsSettings, metric: Metric) -> None:
    """Take each tree's trial (m, D) or shorten its step, in place."""
    descent = (state.g * state.direction).sum(1)
    enough = torch.isfinite(f) & (f <= state.f + SUFFICIENT_DECREASE * state.step * descent)
    accepted = enough & state.moving
    _remember(state, trial, g, accepted)
    gained = state.f - f
    # the first step's length is a guess: that it gains little says nothing about the minimum
    flat = (gained <= settings.ftol * state.f.abs().clamp(min=1.0)) & (state.taken > 0)
    # minimum of the parabola through f, its slope and the failed trial, kept within [0.1, 0.5] of the step
    curved = torch.nan_to_num(f - state.f - state.step * descent, nan=0.0, posinf=0.0)
    shrink = (-0.5 * state.step * descent / curved.clamp(min=1e-300)).clamp(0.1, 0.5)
    pick = accepted[:, None]
    state.x = torch.where(pick, trial, state.x)
    state.g = torch.where(pick, g, state.g)
    state.f = torch.where(accepted, f, state.f)
    state.taken = state.taken + accepted
    state.tries = torch.where(accepted, 0, state.tries + 1)
    direction = _two_loop(state, metric)
    downhill = (direction * state.g).sum(1) < 0
    direction = torch.where(downhill[:, None], direction, -metric(state.g))
    state.direction = torch.where(pick, direction, state.direction)
    state.step = torch.where(accepted, torch.ones_like(state.step), state.step * shrink)
    stuck = state.tries > MAX_BACKTRACKS
    small = state.g.abs().amax(1) <= settings.gtol
    done = (accepted & (flat | small | (state.taken >= settings.max_iterations))) | stuck
    state.moving = state.moving & ~done


def _remember(state: _State, trial: Tensor, g: Tensor, accepted: Tensor) -> None:
    """Push the accepted trees' (s, y) pairs; a pair without positive curvature is not kept."""
    s, y = trial - state.x, g - state.g
    curvature = (s * y).sum(1)
    fit = accepted & (curvature > 1e-10 * y.square().sum(1)) & torch.isfinite(curvature)
    push = fit[:, None]
    inverse = torch.where(fit, 1 / torch.where(fit, curvature, 1.0), 0.0)
    state.s = torch.where(push, torch.cat([state.s[1:], s[None]]), state.s)
    state.y = torch.where(push, torch.cat([state.y[1:], y[None]]), state.y)
    state.rho = torch.where(fit, torch.cat([state.rho[1:], inverse[None]]), state.rho)


def _two_loop(state: _State, metric: Metric) -> Tensor:
    """Quasi-Newton direction -H g of every tree; empty pairs have rho = 0 and change nothing."""
    q = state.g
    pairs = list(zip(state.s.unbind(), state.y.unbind(), state.rho.unbind(), strict=True))
    alphas = []
    for s, y, rho in reversed(pairs):
        alpha = (rho * (s * q).sum(1))[:, None]
        q = torch.addcmul(q, alpha, y, value=-1)
        alphas.append(alpha)
    _, last_y, last_rho = pairs[-1]
    width = last_rho * (last_y * metric(last_y)).sum(1)
    scale = torch.where(last_rho > 0, 1 / width.clamp(min=1e-300), 1.0)
    r = scale[:, None] * metric(q)
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        r = torch.addcmul(r, alpha - (rho * (y * r).sum(1))[:, None], s)
    return -r
