"""Batched limited-memory BFGS: every tree of a stack has its own direction, step and memory.

Each round evaluates all moving trees once. A tree whose trial fails the sufficient-decrease test shortens its
step and waits; the others go on (Nocedal & Wright 2006, algorithms 3.1 and 7.4). Trees that have stopped
leave the stack, so a round costs what the trees still moving cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from softsurv.budget import Budget

Function = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""Maps parameters (m, D) of the trees ``rows`` (None: all) to values (m,) and gradients (m, D)."""

Metric = Callable[[Tensor, Tensor | None], Tensor]
"""Maps gradients (m, D) of the trees ``rows`` (None: all) to steps, by a positive definite matrix for each tree."""

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant, the usual value for quasi-Newton steps."""

MAX_BACKTRACKS = 25
"""A step 1e-7 of the first trial: rounding, not the model, is what it meets there."""

LOOK_EVERY = 4
"""Rounds between looks at which trees have stopped."""


@dataclass(frozen=True)
class Settings:
    """When the optimiser stops.

    ``ftol`` is relative to max(1, |f|); ``gtol`` is the largest entry of the gradient.
    """

    max_iterations: int = 200
    ftol: float = 1e-8
    gtol: float = 1e-6
    memory: int = 8


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
    start: Tensor,  # (M, D)
    settings: Settings,
    widen: Callable[[Tensor], Tensor] | None = None,
    budget: Budget | None = None,
    on_round: Callable[[Tensor, Tensor], None] | None = None,
    metric: Metric | None = None,
    cut_off: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Minimise every row's function; returns the points (M, D) and their values (M,), none above its start.

    Parameters
    ----------
    function : Function
    start : Tensor (M, D)
    settings : Settings
    widen : callable, optional
        Widens the mask of trees to keep, where the function can only drop whole groups of trees.
    budget : Budget, optional
        Once it is exhausted, the best points so far are returned.
    on_round : callable, optional
        Called with the points and values of the whole stack whenever trees are dropped or progress is looked at.
    metric : Metric, optional
        First guess of the inverse curvature, up to a factor; the identity by default.
    cut_off : Tensor (M,) bool, optional
        Set where a tree took all its iterations instead of converging.
    """
    metric = _identity if metric is None else metric
    best_x = start.clone()
    state = _begin(function, start, settings, metric)
    best_f = state.f.clone()
    rows: Tensor | None = None
    watch = _Watch(late=start.is_cuda)
    for round_number in range(1, 4 * settings.max_iterations + 1):
        _advance(function, state, rows, settings, metric)
        if round_number % LOOK_EVERY and round_number < 4 * settings.max_iterations:
            continue
        where = slice(None) if rows is None else rows
        best_x[where], best_f[where] = state.x, state.f
        if cut_off is not None:
            cut_off[where] = state.taken >= settings.max_iterations
        if on_round is not None:
            on_round(best_x, best_f)
        if budget is not None and budget.exhausted:
            break
        keep = watch(_still_moving(state.moving, rows, len(start), widen))
        if keep is None:
            continue
        left = torch.nonzero(keep)[:, 0]
        if len(left) == 0:
            break
        if 4 * len(left) <= 3 * len(keep):  # narrowing copies the data: only when it pays
            left = left.to(start.device, non_blocking=True)
            rows, state = left if rows is None else rows[left], state.take(left)
            watch.narrow()
    return best_x, best_f


def _still_moving(moving: Tensor, rows: Tensor | None, total: int, widen: Callable[[Tensor], Tensor] | None) -> Tensor:
    if widen is None:
        return moving
    mask = torch.zeros(total, dtype=torch.bool, device=moving.device)
    where = slice(None) if rows is None else rows
    mask[where] = moving
    return widen(mask)[where]


def _identity(gradient: Tensor, rows: Tensor | None) -> Tensor:
    return gradient


def _begin(function: Function, start: Tensor, settings: Settings, metric: Metric) -> _State:
    f, g = function(start, None)
    steepest = metric(g, None)
    m, d = start.shape
    memory = start.new_zeros(settings.memory, m, d)
    first = 1 / (g * steepest).sum(1).clamp(min=1.0).sqrt()  # a first step of at most unit length in the metric
    zeros = torch.zeros(m, dtype=torch.int64, device=start.device)
    return _State(
        x=start.clone(),
        f=f,
        g=g,
        direction=-steepest,
        step=first,
        tries=zeros,
        taken=zeros.clone(),
        moving=torch.isfinite(f) & (g.abs().amax(1) > settings.gtol),
        s=memory,
        y=memory.clone(),
        rho=start.new_zeros(settings.memory, m),
    )


def _advance(function: Function, state: _State, rows: Tensor | None, settings: Settings, metric: Metric) -> None:
    """One trial of every tree, in place."""
    trial = state.x + state.step[:, None] * state.direction
    f, g = function(trial, rows)
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
    direction = _two_loop(state, rows, metric)
    downhill = (direction * state.g).sum(1) < 0
    direction = torch.where(downhill[:, None], direction, -metric(state.g, rows))
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


def _two_loop(state: _State, rows: Tensor | None, metric: Metric) -> Tensor:
    """Quasi-Newton direction -H g of every tree; empty pairs have rho = 0 and change nothing."""
    q = state.g
    pairs = list(zip(state.s.unbind(), state.y.unbind(), state.rho.unbind(), strict=True))
    alphas = []
    for s, y, rho in reversed(pairs):
        alpha = (rho * (s * q).sum(1))[:, None]
        q = torch.addcmul(q, alpha, y, value=-1)
        alphas.append(alpha)
    _, last_y, last_rho = pairs[-1]
    width = last_rho * (last_y * metric(last_y, rows)).sum(1)
    scale = torch.where(last_rho > 0, 1 / width.clamp(min=1e-300), 1.0)
    r = scale[:, None] * metric(q, rows)
    for (s, y, rho), alpha in zip(pairs, reversed(alphas), strict=True):
        r = torch.addcmul(r, alpha - (rho * (y * r).sum(1))[:, None], s)
    return -r
