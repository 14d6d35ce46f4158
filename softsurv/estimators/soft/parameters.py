"""Arguments of SoftSurvivalTree as one value: checked once, then turned into recipes and grids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.cause_weights import cause_weights
from softsurv.estimators.shared.checks import flag, number, one_of, whole
from softsurv.estimators.soft.devices import choose_device, torch_dtype
from softsurv.estimators.soft.hard_start import check_start
from softsurv.hazards import get_family, takes
from softsurv.hazards.base import LeafFamily
from softsurv.soft import paper
from softsurv.soft.nodec import NodecSettings
from softsurv.soft.recipe import SOLVERS, Candidate, Recipe, Training
from softsurv.soft.selection import DenseGrid
from softsurv.soft.starts import STARTS
from softsurv.sparse.folds import Grid
from softsurv.trees.topology import check_depth

PENALTIES = ("l2", "shrinkage", "routing_l2")

FAMILIES = ("loglogistic", "weibull", "lognormal", "spline_po", "spline_ph")
"""Leaf families that inner validation chooses from, the usual one first."""

USUAL_OF_CAUSES = "weibull"
"""The usual family with competing causes: proportional cause-specific hazards, which add up to the hazard of any event.
The odds of one cause would refer to a world without the others."""

EXACT = "exact"
"""The start that the exact search finds."""

PREFERENCES = ("tree", "simplest")

USUAL_TERMS = 3
"""Most features in a split by default: a reader cannot weigh more in his head."""

MOST_RESTARTS = 10_000
"""Starts are trained together: more of them take the memory before the first step."""

LEAST_CHOICE_ROWS = 1000
"""Least ``choice_rows``: fewer rows say little about the settings."""

MAX_RULE_DEPTH = 3

RULE_LEAVES = {0: (1,), 1: (2,), 2: (2, 3, 4), 3: (2, 3, 4, 6, 8)}
"""Numbers of leaves that are tried for a given depth; the smaller ones serve where there are too few rows for it."""


@dataclass(frozen=True)
class SoftParameters:
    """The arguments of a `SoftSurvivalTree`, documented there.

    Raises
    ------
    InvalidParameterError
        The sentence names the argument, what it must be and what it got.
    """

    depth: int | None
    leaf: str | LeafFamily
    max_terms: int | str | None
    prefer: str
    n_knots: int
    solver: str
    n_restarts: int
    init: Any
    l2: float | None
    shrinkage: float | None
    slope_shrinkage: float | None
    routing_l2: float | None
    fairness: float
    l1: float
    max_iter: int | None
    preset: str | None
    time_limit: float | None
    device: str
    dtype: str
    random_state: int | None
    preprocess: bool
    progress: bool
    choice_rows: int | str | None
    cause_weights: Any = None

    def __post_init__(self) -> None:
        if self.depth is not None:
            check_depth(self.depth)
        _ = self.families
        for name in ("fairness", "l1"):  # which decide whether there are rules
            number(name, getattr(self, name), 0.0)
        if self.max_terms not in (None, "auto"):
            whole("max_terms", self.max_terms, 1)
            self._check_rules()
        if self.slope_shrinkage is not None and not self.has_rules:
            raise InvalidParameterError(
                "slope_shrinkage is there for rules of few terms alone; leave it out, or pass max_terms for rules"
            )
        one_of("prefer", self.prefer, PREFERENCES)
        one_of("solver", self.solver, SOLVERS)
        one_of("dtype", self.dtype, ("float64", "float32"))
        one_of("preset", self.preset, (None, "paper"))
        if isinstance(self.init, str):
            one_of("init", self.init, ("auto", *STARTS, EXACT))
        else:
            check_start(self.init)
        whole("n_restarts", self.n_restarts, 1)
        if self.n_restarts > MOST_RESTARTS:
            raise InvalidParameterError(f"n_restarts must be at most {MOST_RESTARTS}, got {self.n_restarts!r}")
        if self.max_iter is not None:
            whole("max_iter", self.max_iter, 1)
        if self.choice_rows not in (None, "auto"):
            if isinstance(self.choice_rows, str):
                raise InvalidParameterError(
                    f'choice_rows must be "auto", None for all rows, or an integer, got {self.choice_rows!r}'
                )
            whole("choice_rows", self.choice_rows, LEAST_CHOICE_ROWS)
        for name in (*PENALTIES, "slope_shrinkage", "time_limit"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), 0.0)
        if self.random_state is not None:
            whole("random_state", self.random_state, 0)
        choose_device(self.device)
        for name in ("preprocess", "progress"):
            flag(name, getattr(self, name))
        if self.preset == "paper" and self.depth is None and isinstance(self.init, str):
            raise InvalidParameterError(
                'preset="paper" needs a depth, as the paper has no rule for it; pass depth=1 or 2'
            )

    @cached_property
    def families(self) -> tuple[LeafFamily, ...]:
        """The survival models of the leaves to choose from, the usual one first."""
        names = FAMILIES if isinstance(self.leaf, str) and self.leaf == "auto" else (self.leaf,)
        return tuple(get_family(leaf, **({"n_knots": self.n_knots} if _has_knots(leaf) else {})) for leaf in names)

    def families_of(self, n_causes: int) -> tuple[LeafFamily, ...]:
        """The same families; with several causes `USUAL_OF_CAUSES` comes first."""
        if n_causes == 1:
            return self.families
        return tuple(sorted(self.families, key=lambda family: family.name != USUAL_OF_CAUSES))

    @property
    def family(self) -> LeafFamily:
        """The survival model of the leaves of a dense tree."""
        return self.families[0]

    @property
    def has_rules(self) -> bool:
        """Whether splits are rules of few terms; with "auto" they are, unless an argument is for dense trees alone."""
        if self.max_terms == "auto":
            return not self._dense_arguments() and (self.depth is None or self.depth <= MAX_RULE_DEPTH)
        return self.max_terms is not None

    @property
    def terms(self) -> tuple[int, ...]:
        """Numbers of terms that are tried."""
        most = USUAL_TERMS if self.max_terms == "auto" else int(self.max_terms or 1)
        return (1,) if most == 1 else (1, most)

    def _dense_arguments(self) -> list[str]:
        """Names of the given arguments that only dense trees have."""
        given = {
            "preset": self.preset is not None,
            "solver": self.solver != "lbfgs",
            "init": not (isinstance(self.init, str) and self.init == "auto"),
            "routing_l2": self.routing_l2 is not None,
            "fairness": self.fairness > 0,
            "l1": self.l1 > 0,
            "max_iter": self.max_iter is not None,
        }
        return [name for name, there in given.items() if there]

    def _check_rules(self) -> None:
        """Refuse what a tree of rules does not have."""
        dense = self._dense_arguments()
        if dense:
            raise InvalidParameterError(
                f"{dense[0]} is there for dense splits alone; leave it out, or pass max_terms=None for a dense tree"
            )
        if self.depth is not None and self.depth > MAX_RULE_DEPTH:
            raise InvalidParameterError(
                f"depth must be at most {MAX_RULE_DEPTH} for rules of few terms, got {self.depth}; pass "
                "max_terms=None for a dense tree"
            )

    def counts(self, causes: tuple[str, ...]) -> tuple[float, ...] | None:
        """The factor of each of these causes in a dense tree; None where all are 1.

        Raises
        ------
        InvalidParameterError
            If a cause has the factor 0 and ``fairness`` is given, which compares the groups' curves of all events.
        """
        if self.cause_weights is None:
            return None
        counts = tuple(cause_weights(self.cause_weights, causes).tolist())
        if self.fairness > 0 and not all(counts):
            raise InvalidParameterError(
                "fairness compares the groups' curves of all events, so cause_weights must be > 0 for every cause, got "
                f"{self.cause_weights!r}; give each cause a weight, or leave fairness out"
            )
        return counts

    def rule_grid(self) -> Grid:
        """The grid that is tried for a tree of rules."""
        grid = Grid(terms=self.terms)
        if self.depth is not None:
            grid = replace(grid, leaves=RULE_LEAVES[self.depth], more_leaves=(), depth=self.depth)
        if self.l2 is not None:
            grid = replace(grid, single_ridges=(float(self.l2),), ridges=(float(self.l2),), ridge_given=True)
        pairs = grid.shrinkage
        if self.shrinkage is not None:
            pairs = tuple(dict.fromkeys((float(self.shrinkage), slopes) for _, slopes in pairs))
        if self.slope_shrinkage is not None:
            pairs = tuple(dict.fromkeys((level, float(self.slope_shrinkage)) for level, _ in pairs))
        return replace(grid, shrinkage=pairs)

    @property
    def seed(self) -> int:
        """Seed of folds and starts."""
        return 0 if self.random_state is None else int(self.random_state)

    @property
    def torch_dtype(self) -> torch.dtype:
        """Precision of training."""
        return torch_dtype(self.dtype)

    def given(self, depth: int | None) -> Candidate | None:
        """The setting if nothing is left to choose, else None; ``depth`` is that of a hard tree in ``init``, if any."""
        depth = depth if self.depth is None else self.depth
        if self.preset == "paper":
            assert depth is not None
            return Candidate(self.family.name, depth, 0.0)
        some_open = any(getattr(self, name) is None for name in PENALTIES)
        if depth is None or self.l2 is None or (some_open and depth > 0):
            return None
        return Candidate(self.family.name, depth, self.l2, self.shrinkage or 0.0, self.routing_l2 or 0.0)

    def grid(self, depth: int | None) -> DenseGrid:
        """The grid that inner validation tries where something is left to choose."""
        grid, depth = DenseGrid(), depth if self.depth is None else self.depth
        if depth is not None:
            grid = replace(grid, depths=(depth,))
        grid = replace(
            grid,
            ridge=grid.ridge if self.l2 is None else (float(self.l2),),
            shrinkage=grid.shrinkage if self.shrinkage is None else (float(self.shrinkage),),
            routing_l2=grid.routing_l2 if self.routing_l2 is None else (float(self.routing_l2),),
        )
        if isinstance(self.init, str) and self.init not in ("auto", EXACT):
            grid = replace(grid, starts=(self.init,) * (1 if self.init == "logrank" else 3))
        if self.solver == "nodec":
            grid = replace(grid, training=replace(grid.training, solver="nodec", nodec=NodecSettings(max_sweeps=4)))
        return grid

    def recipe(
        self,
        candidate: Candidate,
        chosen: DenseGrid | None = None,
        start: np.ndarray | None = None,
        causes: tuple[str, ...] = (),
    ) -> Recipe:
        """How the final tree is made.

        Parameters
        ----------
        candidate : Candidate
        chosen : DenseGrid, optional
            What the candidate was chosen from.
        start : ndarray (B, P + 1), optional
            Routing weights of the only start; with ``init="exact"`` of the first one, and random starts follow.
        causes : tuple of str
            Names of the causes, for ``cause_weights``.
        """
        published = self.preset == "paper"
        training = self._paper_training(start) if published else self._training(chosen)
        starts = self._kinds() if start is None else (start,)
        if self.starts_exact and not published:
            starts += ("random",) * (self.n_restarts - 1)
        l2_all = paper.L2 if published else 0.0
        counts = self.counts(causes)
        return Recipe(self.family, candidate, starts, training, l2_all, self.fairness, self.l1, self.seed, counts)

    def _paper_training(self, start: np.ndarray | None) -> Training:
        sweeps = paper.SWEEPS if self.max_iter is None else self.max_iter
        init = "kmeans" if start is not None else str(self._kinds()[0])  # given splits are clusters of rows too
        return paper.training(self.family.name, init, sweeps=sweeps)

    def _training(self, chosen: DenseGrid | None) -> Training:
        if self.max_iter is None:
            if chosen is not None and self.solver == "lbfgs":
                return chosen.training  # as validated: more rounds fit closer and predict no better
            return Training(self.solver)  # type: ignore[arg-type]  # checked above
        plain = Training()
        joint = replace(plain.joint, max_iterations=self.max_iter)
        nodec = replace(plain.nodec, max_sweeps=self.max_iter)
        return Training(self.solver, joint, nodec, stops_early=False)  # type: ignore[arg-type]  # checked above

    @property
    def starts_exact(self) -> bool:
        """Whether training starts from the optimal tree of corrections to one regression."""
        return isinstance(self.init, str) and self.init == EXACT

    @property
    def n_starts(self) -> int:
        """Starts that a dense tree trains from."""
        return len(self._kinds())

    def _kinds(self) -> tuple[str | np.ndarray, ...]:
        """The kind of each start."""
        if self.preset == "paper":
            named = isinstance(self.init, str) and self.init not in ("auto", EXACT)
            return (self.init if named else "random",) * paper.RESTARTS
        if self.init == "logrank":
            return ("logrank",)
        if self.init in ("random", "kmeans"):
            return (self.init,) * self.n_restarts
        return ("logrank",) + ("random",) * (self.n_restarts - 1)


def _has_knots(leaf: str | LeafFamily) -> bool:
    """Whether a leaf family is a spline by name. A user's own family may have such a name and no knots."""
    return str(leaf).startswith("spline") and takes(leaf, "n_knots")
