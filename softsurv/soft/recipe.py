"""How a soft tree is made: its setting, its starts, and how far it is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from softsurv.errors import InvalidParameterError
from softsurv.hazards.base import LeafFamily
from softsurv.soft.nodec import NodecSettings
from softsurv.soft.optimisers import LbfgsSettings

Solver = Literal["lbfgs", "nodec"]
SOLVERS: tuple[Solver, ...] = ("lbfgs", "nodec")

LeafStart = Literal["near", "random", "own", "spline"]


@dataclass(frozen=True)
class Candidate:
    """One setting: penalties are in units of 1 / N, as in ``strength / N``.

    Attributes
    ----------
    family : str
    depth : int
    ridge : float
        On the slopes of the leaves.
    shrinkage : float
        On each leaf's distance from the single-leaf fit; in a tree of rules on its own level and shape.
    routing_l2 : float
        On the routing weights of a dense tree.
    leaves, max_terms : int, optional
        In a tree of rules: number of leaves that was tried, most features in a split.
    slope_shrinkage : float, optional
        In a tree of rules: on each leaf's own slopes. None where the leaves share their slopes.
    """

    family: str
    depth: int
    ridge: float
    shrinkage: float = 0.0
    routing_l2: float = 0.0
    leaves: int | None = None
    max_terms: int | None = None
    slope_shrinkage: float | None = None


@dataclass(frozen=True)
class Training:
    """How trees are trained from their starts.

    Attributes
    ----------
    solver : {"lbfgs", "nodec"}
    joint : LbfgsSettings
        Settings of the solver "lbfgs", which trains all parameters jointly.
    nodec : NodecSettings
    stops_early : bool
        Whether the limit of rounds was chosen by validation. More rounds would fit closer and predict no better, so no
        warning is due where a fit reaches the limit.
    leaf_start : {"near", "random", "own", "spline"}
        Where the leaves begin. "near": near the single-leaf fit, fitted a little to the start's routing. "own": at the
        fit of the rows whose path ends in them. "spline": at a Cox regression and least squares
        (`softsurv.soft.spline_start`); in a stack of folds at random.
    """

    solver: Solver = "lbfgs"
    joint: LbfgsSettings = field(default_factory=lambda: LbfgsSettings(max_iterations=100, ftol=1e-7))
    nodec: NodecSettings = field(default_factory=NodecSettings)
    stops_early: bool = True
    leaf_start: LeafStart = "near"

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise InvalidParameterError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")

    def rounds(self, depth: int) -> int:
        """The limit of rounds for a tree of this depth; a single leaf is fitted jointly by either solver."""
        return self.nodec.max_sweeps if self.solver == "nodec" and depth else self.joint.max_iterations


@dataclass(frozen=True)
class Recipe:
    """One soft tree with nothing left to choose.

    Attributes
    ----------
    family : LeafFamily
    candidate : Candidate
        Depth and penalties, in units of 1 / N.
    starts : tuple of str or ndarray (B, P + 1)
        Kind of each start, or its routing weights.
    training : Training
    l2_all : float
        Ridge on every leaf parameter, in units of 1 / N.
    fairness : float
    l1 : float
        Group lasso over features, in units of 1 / sqrt(N). It chooses the features; these are then fitted without it.
    seed : int
        Start k uses ``seed + k``.
    counts : tuple of float, optional
        Where events have causes: the factor of each cause in the objective that the routing minimises, 1 by default.
    """

    family: LeafFamily
    candidate: Candidate
    starts: tuple[str | np.ndarray, ...] = ("logrank",)
    training: Training = field(default_factory=Training)
    l2_all: float = 0.0
    fairness: float = 0.0
    l1: float = 0.0
    seed: int = 0
    counts: tuple[float, ...] | None = None

    @property
    def used_starts(self) -> tuple[str | np.ndarray, ...]:
        """The starts that are used: a single leaf needs only one."""
        return self.starts if self.candidate.depth else self.starts[:1]
