"""Limits of an exact search: as arguments of an estimator, and as the one frozen value that a solver takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from softsurv.cores import n_threads
from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import flag, jobs, number, whole
from softsurv.exact.memory import Room
from softsurv.exact.problem import MAX_DEPTH
from softsurv.stopping import StopSignal


@dataclass(frozen=True)
class SearchLimits:
    """What a tree may be, and what finding it may take.

    Attributes
    ----------
    depth : int
    leaves : int or None
        ``2**depth`` where None.
    min_leaf : int
        Least rows per leaf.
    min_weight : float
        Least share of the total weight per leaf; not together with ``min_leaf``.
    complexity : float
        Cost per leaf, in the unit of the objective.
    stop : StopSignal
        The clock of the fit, which runs since these limits were made; it does not count compilation.
    n_jobs : int
        Threads.
    room : Room
        Bytes for the fit.
    progress : bool
        Whether to show a progress bar.
    path : bool
        Whether the best trees with fewer leaves are wanted too.
    """

    depth: int
    leaves: int | None
    min_leaf: int
    min_weight: float
    complexity: float
    stop: StopSignal = field(compare=False)
    n_jobs: int = 1
    room: Room = field(default_factory=lambda: Room(1e9))
    progress: bool = False
    path: bool = False

    @property
    def most_leaves(self) -> int:
        """The largest number of leaves that a tree may have."""
        return (1 << self.depth) if self.leaves is None else min(self.leaves, 1 << self.depth)

    @property
    def limits_leaves(self) -> bool:
        """Whether ``leaves`` allows fewer leaves than ``depth`` does."""
        return self.most_leaves < 1 << self.depth


@dataclass(kw_only=True, eq=False, repr=False)
class TreeArguments:
    """Arguments of every estimator for a separable objective; an estimator adds ``max_depth`` and ``max_leaves``.

    scikit-learn reads the arguments off the constructor that ``dataclass`` writes.
    """

    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    complexity: float = 0.0
    thresholds: Any = DEFAULT_THRESHOLDS
    max_levels: int | None = None
    min_share: float = 0.0
    missing: str = "impute"
    time_limit: float | None = 60.0
    memory_limit: float = 1e9
    n_jobs: int | None = 1
    progress: bool = False

    def _limits(self, max_depth: int, max_leaves: int | None) -> SearchLimits:
        """The limits that the arguments set, once they are checked; the clock starts here."""
        whole("max_depth", max_depth, 0)
        if max_depth > MAX_DEPTH:
            raise InvalidParameterError(f"max_depth must be an integer from 0 to {MAX_DEPTH}, got {max_depth!r}")
        if max_leaves is not None:
            whole("max_leaves", max_leaves, 1)
        self._check_leaf_size()
        number("complexity", self.complexity, 0.0)
        number("memory_limit", self.memory_limit, 1e6, "bytes")
        jobs(self.n_jobs)
        flag("progress", self.progress)
        if self.time_limit is not None:
            number("time_limit", self.time_limit, 0.0, "seconds")
        return SearchLimits(
            max_depth,
            max_leaves,
            self.min_samples_leaf,
            float(self.min_weight_fraction_leaf),
            float(self.complexity),
            StopSignal(self.time_limit),
            n_threads(self.n_jobs),
            Room(self.memory_limit),
            self.progress,
        )

    def _check_leaf_size(self) -> None:
        whole("min_samples_leaf", self.min_samples_leaf, 1)
        number("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.0)
        if self.min_weight_fraction_leaf > 0.5:
            raise InvalidParameterError(
                f"min_weight_fraction_leaf must be at most 0.5, half the weight, got {self.min_weight_fraction_leaf!r}"
            )
        if self.min_weight_fraction_leaf > 0 and self.min_samples_leaf > 1:
            raise InvalidParameterError(
                "min_weight_fraction_leaf and min_samples_leaf must not both limit the leaves; leave one of them out"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class SearchArguments(TreeArguments):
    """A further argument, of the estimators whose search lists smaller trees."""

    path: bool = False

    def _limits(self, max_depth: int, max_leaves: int | None) -> SearchLimits:
        flag("path", self.path)
        return replace(super()._limits(max_depth, max_leaves), path=self.path)
