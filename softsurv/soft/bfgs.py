"""Batched BFGS with whole matrices, as SciPy's SLSQP goes where there are no constraints (paper `sst`, section 5.1).

Every tree of a stack has its own inverse Hessian, which begins as the identity: no scale is guessed, and the first
step is the gradient. So the path depends on the units of the features, which the paper scales to [0, 1]. Measured in
`scripts/bench_paper.py`: a metric that knows the features' curvature comes to a lower training objective of NODEC-DR
and to worse scores on held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from softsurv.errors import InvalidParameterError
from softsurv.soft import dense_kernels
from softsurv.soft.nelder_mead import where_finite
from softsurv.soft.newton import NewtonSettings
from softsurv.soft.node_rounds import Rounds
from softsurv.soft.one_pass import arrays, is_compiled
from softsurv.soft.optimisers import Function, LbfgsSettings, Metric, Minimum, Point, apart, minimise, side_by_side
from softsurv.soft.problem import taken
from softsurv.soft.replay import Repeated, capture_on
from softsurv.soft.watch import Watch, runs_ahead
from softsurv.stopping import StopSignal

SUFFICIENT_DECREASE = 0.1
"""Share of the promised decrease that a step must bring, as in SLSQP (Kraft 1988)."""

LEAST_CURVATURE = 1e-10
"""A pair of steps of less curvature, relative to the change of the gradient, leaves the matrix as it is."""

MAX_HALVINGS = 25
"""A step 3e-8 of the first trial or less: rounding, not the model, is what it meets there."""

ALONE = AT_ONCE = 1
"""Rounds that are taken one by one before some are recorded, and rounds in a record. A minimisation takes some
tens of rounds or hardly any, and each one is recorded anew: to record costs rounds by operators, to replay one at a
time does not, as a device needs longer for a round than the host to ask for it."""

NARROWER = 0.25
"""Share of a stack's trees up to which it is narrowed where its rounds are recorded. A narrower stack is recorded anew,
which costs as much as many replays: these take their time from the number of kernels, not from that of the trees."""

MATRIX_BYTES = 2**30
"""Memory for matrices: as many trees are solved at once as have room in it, and one in any case."""


@dataclass(frozen=True)
class BfgsSettings:
    """When the optimiser stops; SciPy's defaults for SLSQP.

    ``accuracy`` bounds the change of the value, the length of a step and the promised decrease, all absolute.
    """

    max_iterations: int = 100
    accuracy: float = 1e-6

    @property
    def limits(self) -> tuple[float, ...]:
        """All that the compiled rounds stop by."""
        return SUFFICIENT_DECREASE, LEAST_CURVATURE, self.accuracy, self.max_iterations, MAX_HALVINGS


@runtime_checkable
class ByNode(Protocol):
    """A function whose rounds may be compiled as a whole."""

    def compiled_rounds(self) -> Rounds | None:
        """Them, or None where operators of torch are to be taken."""


Inner = LbfgsSettings | BfgsSettings | NewtonSettings
"""Settings of an optimiser that solves subproblems."""


def solve(
    function: Function, start: Point, settings: Inner, metric: Metric | None = None, budget: StopSignal | None = None
) -> Minimum:
    """Minimise the function of every tree by the optimiser of these settings; BFGS takes no metric."""
    if isinstance(settings, NewtonSettings):  # the function does not fall apart
        settings = settings.otherwise
    if isinstance(settings, LbfgsSettings):
        return minimise(function, start, settings, metric, budget)
    return minimise_dense(function, start, settings, budget)


@dataclass
class _Points:
    x: Tensor  # (m, D)
    f: Tensor  # (m,)
    g: Tensor  # (m, D)
    inverse: Tensor  # (m, D, D) inverse Hessian
    direction: Tensor  # (m, D)
    step: Tensor  # (m,)
    tries: Tensor  # (m,) failed trials of this direction
    taken: Tensor  # (m,) accepted steps
    moving: Tensor  # (m,) bool

    def take(self, rows: Tensor) -> _Points:
        """The trees (r,) of the stack."""
        return _Points(**{name: taken(value, rows) for name, value in vars(self).items()})


def minimise_dense(
    function: Function, start: Point, settings: BfgsSettings, budget: StopSignal | None = None
) -> Minimum:
    """Minimise the function of every tree.

    Parameters
    ----------
    function : Function
    start : tuple of Tensor (M, ...)
        Where a value is not finite there, Nelder and Mead's method looks for a better one first.
    settings : BfgsSettings
    budget : StopSignal, optional
        Once it is exhausted, the points so far are returned.

    Returns
    -------
    Minimum
        A tree whose value never was finite stays at its start.

    Raises
    ------
    InvalidParameterError
        If the matrix of one tree takes more than `MATRIX_BYTES`.
    """
    n_trees, at_once = len(start[0]), room_for(start)
    if at_once >= n_trees:
        return _minimise_together(function, start, settings, budget)
    parts = [
        _minimise_together(function.take(some), tuple(taken(one, some) for one in start), settings, budget).tensors
        for some in torch.arange(n_trees).split(at_once)
    ]
    *point, loss, converged = (torch.cat(of_parts) for of_parts in zip(*parts, strict=True))
    return Minimum(tuple(point), loss, converged)


def room_for(start: Point) -> int:
    """How many trees' matrices have room.

    Raises
    ------
    InvalidParameterError
        If not even one tree's has.
    """
    size, byte = sum(part[0].numel() for part in start), start[0].element_size()
    most = math.isqrt(MATRIX_BYTES // byte)
    if size > most:
        raise InvalidParameterError(
            f"a tree must have at most {most} coefficients for BFGS, whose matrix has a row and a column for each, got "
            f"{size}, that is {size * size * byte / 1e9:.3g} GB; leave columns out, lower depth, or leave out "
            'preset="paper"'
        )
    return MATRIX_BYTES // (size * size * byte)


def _minimise_together(function: Function, start: Point, settings: BfgsSettings, budget: StopSignal | None) -> Minimum:
    """Minimise the functions of trees whose matrices have room together.

    Nelder and Mead's method works on the host. So trees whose start has no finite value wait until the others have
    ended: by then the host knows of them without waiting for a device.
    """
    value, *gradient = function.value_and_gradient(*start)
    begun = Watch(late=runs_ahead(value))
    finite = begun(torch.isfinite(value))
    end = _go_down(function, start, value, side_by_side(gradient), settings, budget)
    if budget is not None and budget.exhausted:
        return end
    finite = begun.last() if finite is None else finite
    if finite is None or bool(finite.all()):
        return end
    trees = torch.nonzero(~finite)[:, 0]
    function, start = function.take(trees), tuple(taken(part, trees) for part in start)
    start = where_finite(function, start, taken(value, trees))
    value, *gradient = function.value_and_gradient(*start)
    found = _go_down(function, start, value, side_by_side(gradient), settings, budget)
    at = trees.to(value.device)
    for whole, part in zip(end.tensors, found.tensors, strict=True):
        whole[at] = part
    return end


def _go_down(
    function: Function, start: Point, value: Tensor, gradient: Tensor, settings: BfgsSettings, budget: StopSignal | None
) -> Minimum:
    """Minimise from a start whose values (m,) and gradients (m, D) are known; without a value a tree stays there."""
    shapes = [part.shape[1:] for part in start]
    state = _begin(side_by_side(start), value, gradient, settings)
    rounds = function.compiled_rounds() if isinstance(function, ByNode) else None
    if rounds is None:
        return _round_by_round(function, state, shapes, settings, budget)
    while bool(state.moving.any()) and not (budget is not None and budget.exhausted):
        rounds(tuple(arrays(*vars(state).values())), settings.limits)
    return Minimum(apart(state.x, shapes), state.f, ~state.moving)


def _round_by_round(
    function: Function,
    state: _Points,
    shapes: Sequence[torch.Size],
    settings: BfgsSettings,
    budget: StopSignal | None,
) -> Minimum:
    """The same by operators, which are recorded where the device can.

    A tree leaves as soon as the host knows that it has stopped. While rounds are recorded the stack is narrowed in
    steps instead, see :data:`NARROWER`.
    """
    ended, loss, cut_off = state.x.clone(), state.f.clone(), torch.zeros_like(state.moving)
    trees: Tensor | slice = slice(None)
    watch = Watch(late=runs_ahead(ended))
    take_rounds = _rounds_of(function, state, shapes, settings, ALONE)
    while not (budget is not None and budget.exhausted):
        moving = watch(state.moving)
        left = None if moving is None else torch.nonzero(moving)[:, 0]
        most = NARROWER * len(state.f) if take_rounds.recorded else len(state.f) - 1
        if left is not None and (len(left) == 0 or len(left) <= most):
            ended[trees], loss[trees] = state.x, state.f
            if len(left) == 0:
                break
            here = left.to(ended.device, non_blocking=True)
            trees = here if isinstance(trees, slice) else trees[here]
            state, function = state.take(left), function.take(left)
            watch.narrow(left)
            take_rounds = _rounds_of(function, state, shapes, settings, max(take_rounds.alone, 1))
        take_rounds()
    ended[trees], loss[trees], cut_off[trees] = state.x, state.f, state.moving
    return Minimum(apart(ended, shapes), loss, ~cut_off)


def _rounds_of(
    function: Function, state: _Points, shapes: Sequence[torch.Size], settings: BfgsSettings, alone: int
) -> Repeated:
    """Rounds of every tree; all that they change are the tensors of the state, which stay where they are."""

    def rounds(count: int) -> None:
        for _ in range(count):
            trial = torch.addcmul(state.x, state.step[:, None], state.direction)
            value, *gradient = function.value_and_gradient(*apart(trial, shapes))
            _advance(state, trial, value, side_by_side(gradient), settings)

    tensors, results = tuple(vars(state).values()), (state.f, state.x)
    return Repeated(rounds, capture_on(state.f.device), tensors, results, AT_ONCE, alone)


def _begin(x: Tensor, f: Tensor, g: Tensor, settings: BfgsSettings) -> _Points:
    m, d = x.shape
    g = g.clone(memory_format=torch.contiguous_format)  # written into by compiled loops
    counts = torch.zeros(m, dtype=torch.int64, device=x.device)
    return _Points(
        x=x.clone(),
        f=f.clone(),
        g=g,
        inverse=torch.eye(d, dtype=x.dtype, device=x.device).expand(m, d, d).clone(),
        direction=-g,
        step=torch.ones_like(f),
        tries=counts,
        taken=counts.clone(),
        moving=torch.isfinite(f) & (g.square().sum(1) >= settings.accuracy),
    )


def _advance(state: _Points, trial: Tensor, f: Tensor, g: Tensor, settings: BfgsSettings) -> None:
    """Take each tree's trial (m, D) or shorten its step, in place."""
    if is_compiled(state.x):
        dense_kernels.advance(tuple(arrays(*vars(state).values())), *arrays(trial, f, g), settings.limits)
        return
    promised = state.step * (state.g * state.direction).sum(1)  # (m,) below 0
    enough = torch.isfinite(f) & (f <= torch.add(state.f, promised, alpha=SUFFICIENT_DECREASE))
    accepted = enough & state.moving
    length = state.step * torch.linalg.vector_norm(state.direction, dim=1)
    small = ((state.f - f).abs() < settings.accuracy) | (length < settings.accuracy)
    # minimum of the parabola through f, its slope and the failed trial, kept within [0.1, 0.5] of the step
    curved = torch.nan_to_num(f - state.f - promised, nan=torch.inf)
    shrink = (-0.5 * promised / curved.clamp(min=1e-300)).clamp(0.1, 0.5)
    _learn(state, trial - state.x, g - state.g, accepted)
    pick = accepted[:, None]
    for new, old in ((trial, state.x), (g, state.g), (-(state.inverse @ g[..., None])[..., 0], state.direction)):
        torch.where(pick, new, old, out=old)
    torch.where(accepted, f, state.f, out=state.f)
    state.taken.add_(accepted)
    state.tries.add_(1).masked_fill_(accepted, 0)
    state.step.mul_(shrink).masked_fill_(accepted, 1.0)
    flat = (state.g * state.direction).sum(1).abs() < settings.accuracy
    done = accepted & (small | flat | (state.taken >= settings.max_iterations))
    state.moving.gt_(done | (state.tries > MAX_HALVINGS))


def _learn(state: _Points, s: Tensor, y: Tensor, accepted: Tensor) -> None:
    """Update the inverse Hessians by the accepted trees' steps and changes of gradient, in place.

    H + ((1 + y'Hy / s'y) ss' - Hy s' - s y'H) / s'y (Nocedal & Wright 2006, eq. 6.17); the matrix stays positive
    definite as long as s'y > 0.
    """
    curvature = (s * y).sum(1)
    fit = accepted & (curvature > LEAST_CURVATURE * y.square().sum(1)) & torch.isfinite(curvature)
    rho = torch.where(fit, 1 / torch.where(fit, curvature, 1.0), 0.0)[:, None]
    s, y = torch.where(fit[:, None], s, 0.0), torch.where(fit[:, None], y, 0.0)
    turned = (state.inverse @ y[..., None])[..., 0]  # Hy
    along = rho * (0.5 * (1 + rho * (y * turned).sum(1, keepdim=True)) * s - turned)
    state.inverse.baddbmm_(along[..., None], s[:, None])
    state.inverse.baddbmm_(s[..., None], along[:, None])
