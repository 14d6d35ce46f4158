"""Arguments of SoftSurvivalTree: defaults, checks, and what they mean to the trainer."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from softsurv.errors import InvalidParameterError
from softsurv.estimators.bridge import check_start
from softsurv.hazards import get_family
from softsurv.hazards.base import LeafFamily
from softsurv.soft.decomposition import NodecSettings
from softsurv.soft.selection import Candidate, Grid
from softsurv.soft.train import SOLVERS, STARTS, TrainSettings
from softsurv.trees.topology import check_depth

PAPER_RESTARTS = 20
PAPER_L2 = 4.0
"""The paper adds twice the squared norm to the summed error: l2/2 with l2 = 4, over N for the mean."""


class SoftParameters:
    """Constructor of `SoftSurvivalTree`; arguments are documented there."""

    def __init__(
        self,
        depth: int | None = None,
        leaf: str | LeafFamily = "loglogistic",
        *,
        n_knots: int = 2,
        solver: str = "lbfgs",
        n_restarts: int = 5,
        init: Any = "auto",
        l2: float | None = None,
        shrinkage: float | None = None,
        routing_l2: float | None = None,
        fairness: float = 0.0,
        l1: float = 0.0,
        max_iter: int | None = None,
        preset: str | None = None,
        time_limit: float | None = None,
        device: str = "auto",
        dtype: str = "float64",
        random_state: int | None = None,
        preprocess: bool = True,
        progress: bool = False,
    ) -> None:
        self.depth = depth
        self.leaf = leaf
        self.n_knots = n_knots
        self.solver = solver
        self.n_restarts = n_restarts
        self.init = init
        self.l2 = l2
        self.shrinkage = shrinkage
        self.routing_l2 = routing_l2
        self.fairness = fairness
        self.l1 = l1
        self.max_iter = max_iter
        self.preset = preset
        self.time_limit = time_limit
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.preprocess = preprocess
        self.progress = progress


@dataclass(frozen=True)
class FitSettings:
    """What the arguments ask of the trainer."""

    candidate: Candidate | None
    """The setting, where nothing is left to choose."""
    grid: Grid | None
    """What to choose from, otherwise."""
    families: tuple[LeafFamily, ...]
    family_settings: dict[str, int]
    starts: tuple[str, ...]
    training: TrainSettings
    l2_all: float


def settings_of(p: Any, start_depth: int | None = None) -> FitSettings:
    """Translate the arguments of an estimator that :func:`check_parameters` has passed.

    ``start_depth`` is the depth of the hard tree that the soft one starts from, the default of ``depth``.
    """
    depth = start_depth if p.depth is None else p.depth
    family_settings = {"n_knots": p.n_knots} if str(p.leaf).startswith("spline") else {}
    family = get_family(p.leaf, **family_settings)
    if p.preset == "paper":
        kind = p.init if isinstance(p.init, str) and p.init != "auto" else "random"
        iterations = 10 if p.max_iter is None else p.max_iter
        nodec = NodecSettings(max_sweeps=iterations, patience=iterations)
        assert depth is not None
        candidate = Candidate(family.name, depth, 0.0)
        training = TrainSettings("nodec", nodec=nodec)
        return FitSettings(candidate, None, (family,), family_settings, (kind,) * PAPER_RESTARTS, training, PAPER_L2)
    training = _training(p)
    open_penalties = [name for name in ("l2", "shrinkage", "routing_l2") if getattr(p, name) is None]
    if depth is None or (open_penalties and not (depth == 0 and p.l2 is not None)):
        grid = _grid(p, depth)
        if p.max_iter is None and p.solver == "lbfgs":
            training = grid.training  # what was validated: more rounds fit closer and predict no better
        return FitSettings(None, grid, (family,), family_settings, _kinds(p), training, 0.0)
    given = Candidate(family.name, depth, p.l2, p.shrinkage or 0.0, p.routing_l2 or 0.0)
    return FitSettings(given, None, (family,), family_settings, _kinds(p), training, 0.0)


def _training(p: Any) -> TrainSettings:
    plain = TrainSettings(p.solver)
    if p.max_iter is None:
        return plain
    return TrainSettings(
        p.solver,
        joint=replace(plain.joint, max_iterations=p.max_iter),
        nodec=replace(plain.nodec, max_sweeps=p.max_iter),
    )


def _grid(p: Any, depth: int | None) -> Grid:
    grid = Grid()
    if depth is not None:
        grid = replace(grid, depths=(depth,))
    grid = replace(
        grid,
        ridge=grid.ridge if p.l2 is None else (float(p.l2),),
        shrinkage=grid.shrinkage if p.shrinkage is None else (float(p.shrinkage),),
        routing_l2=grid.routing_l2 if p.routing_l2 is None else (float(p.routing_l2),),
    )
    if isinstance(p.init, str) and p.init != "auto":
        grid = replace(grid, starts=(p.init,) * (1 if p.init == "logrank" else 3))
    if p.solver == "nodec":
        grid = replace(grid, training=replace(grid.training, solver="nodec", nodec=NodecSettings(max_sweeps=4)))
    return grid


def _kinds(p: Any) -> tuple[str, ...]:
    if p.init == "logrank":
        return ("logrank",)
    if p.init in ("random", "kmeans"):
        return (p.init,) * p.n_restarts
    return ("logrank",) + ("random",) * (p.n_restarts - 1)


def choose_device(device: str) -> torch.device:
    """The torch device; "auto" is CUDA where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InvalidParameterError(f'device must be "auto", "cpu" or "cuda", got {device!r}') from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InvalidParameterError(f'device {device!r} asks for CUDA, but torch sees no CUDA device; use "auto"')
    return chosen


def check_parameters(p: Any) -> None:
    """Check every argument once; the sentence names it, what it must be and what it got."""
    if p.depth is not None:
        check_depth(p.depth)
    get_family(p.leaf, **({"n_knots": p.n_knots} if str(p.leaf).startswith("spline") else {}))
    _one_of("solver", p.solver, SOLVERS)
    _one_of("dtype", p.dtype, ("float64", "float32"))
    _one_of("preset", p.preset, (None, "paper"))
    if isinstance(p.init, str):
        _one_of("init", p.init, ("auto", *STARTS))
    else:
        check_start(p.init)
    _whole("n_restarts", p.n_restarts, 1)
    if p.max_iter is not None:
        _whole("max_iter", p.max_iter, 1)
    for name in ("l2", "shrinkage", "routing_l2", "time_limit"):
        if getattr(p, name) is not None:
            _not_negative(name, getattr(p, name))
    for name in ("fairness", "l1"):
        _not_negative(name, getattr(p, name))
    if p.random_state is not None:
        _whole("random_state", p.random_state, 0)
    choose_device(p.device)
    if p.preset == "paper" and p.depth is None and isinstance(p.init, str):
        raise InvalidParameterError('preset="paper" needs a depth, as the paper has no rule for it; pass depth=1 or 2')


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise InvalidParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise InvalidParameterError(f"{name} must be an integer >= {least}, got {value!r}")


def _not_negative(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < math.inf:
        raise InvalidParameterError(f"{name} must be a finite number >= 0, got {value!r}")
