"""Arguments of OptimalSurvivalTree: defaults and checks."""

from __future__ import annotations

from typing import Any

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidParameterError
from softsurv.estimators.checks import jobs, number, one_of, whole
from softsurv.exact.search import MAX_DEPTH

OBJECTIVES = {"relative_risk": ("nelson_aalen", "km"), "ibs": ("km", "ipcw")}
"""Leaf curves of each objective, the default first."""


class OptimalParameters:
    """Constructor of `OptimalSurvivalTree`; arguments are documented there."""

    def __init__(
        self,
        objective: str = "relative_risk",
        max_depth: int | None = 4,
        max_leaves: int | None = None,
        *,
        min_samples_leaf: int = 1,
        complexity: float = 0.0,
        thresholds: Any = DEFAULT_THRESHOLDS,
        max_levels: int | None = None,
        min_share: float = 0.0,
        leaf: str = "auto",
        reference: Any = None,
        tune: str | None = None,
        time_limit: float | None = 60.0,
        memory_limit: float = 1e9,
        n_jobs: int | None = 1,
        random_state: int | None = None,
        progress: bool = False,
    ) -> None:
        self.objective = objective
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.complexity = complexity
        self.thresholds = thresholds
        self.max_levels = max_levels
        self.min_share = min_share
        self.leaf = leaf
        self.reference = reference
        self.tune = tune
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress


def leaf_kind(p: Any) -> str:
    """The leaf curve that the arguments ask for."""
    return OBJECTIVES[p.objective][0] if p.leaf == "auto" else p.leaf


def check_parameters(p: Any) -> None:
    """Check every argument once; the sentence names it, what it must be and what it got."""
    one_of("objective", p.objective, tuple(OBJECTIVES))
    one_of("leaf", p.leaf, ("auto", *OBJECTIVES[p.objective]), f" for objective={p.objective!r}")
    one_of("tune", p.tune, (None, "cv"))
    _check_size(p)
    whole("min_samples_leaf", p.min_samples_leaf, 1)
    number("complexity", p.complexity, 0.0)
    number("memory_limit", p.memory_limit, 1e6, "bytes")
    if p.time_limit is not None:
        number("time_limit", p.time_limit, 0.0, "seconds")
    jobs(p.n_jobs)
    if p.random_state is not None:
        whole("random_state", p.random_state, 0)
    if p.reference is not None and p.objective != "ibs":
        raise InvalidParameterError(
            f"reference must be None for objective={p.objective!r}, whose search needs no guess; "
            'leave it out or take objective="ibs"'
        )


def _check_size(p: Any) -> None:
    if p.max_leaves is not None:
        whole("max_leaves", p.max_leaves, 1)
    if p.max_depth is not None:
        whole("max_depth", p.max_depth, 0)
    if p.objective == "relative_risk" and (p.max_depth is None or p.max_depth > MAX_DEPTH):
        raise InvalidParameterError(
            f"max_depth must be an integer from 0 to {MAX_DEPTH} for objective='relative_risk', got {p.max_depth!r}"
        )
    if p.tune == "cv" and p.max_depth is None:
        raise InvalidParameterError('max_depth must be given where tune="cv" chooses up to it, got None; 4 is usual')
