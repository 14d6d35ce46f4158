"""How a fit ended, as a value: shared by the soft and the exact solvers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Why a solver stopped."""

    OPTIMAL = "optimal"
    """Proven optimal for the stated objective (exact solver)."""
    CONDITIONALLY_OPTIMAL = "conditionally_optimal"
    """Optimal only under a stated assumption, such as a reference model's bound."""
    NEAR_OPTIMAL = "near_optimal"
    """Chosen from the trees near a proven optimum (`RashomonSet`); its gap is the distance to that optimum."""
    CONTINUED = "continued"
    """A proven tree that goes on below its leaves, split by split: as a whole it is not proven."""
    CONVERGED = "converged"
    """A stopping tolerance was met (soft solver)."""
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"


def how_it_ended(what: str, status: Status) -> str:
    """What became of work that did not come to its end, in words."""
    if status is Status.INTERRUPTED:
        return f"{what} was interrupted"
    return f"{what} ended at its {str(status).replace('_', ' ')}"


@dataclass(frozen=True)
class FitReport:
    """What a solver did.

    Attributes
    ----------
    status : Status
        Why it stopped.
    objective : float
        Objective of the returned tree, on the training data.
    lower_bound : float
        Proven lower bound of the objective; ``-inf`` where the solver proves none.
    seconds : float
        Wall-clock time of the fit.
    trace : tuple of float
        Best objective after each sweep or improvement, never rising.
    details : dict
        What else the solver has to tell, JSON-serialisable.
    """

    status: Status
    objective: float
    lower_bound: float = -math.inf
    seconds: float = 0.0
    trace: tuple[float, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a missing bound is None."""
        bound = self.lower_bound if math.isfinite(self.lower_bound) else None
        return asdict(self) | {"status": str(self.status), "lower_bound": bound, "trace": list(self.trace)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> FitReport:
        """The report that :meth:`to_dict` wrote."""
        bound = -math.inf if state["lower_bound"] is None else state["lower_bound"]
        plain = {"status": Status(state["status"]), "lower_bound": bound, "trace": tuple(state["trace"])}
        return cls(**(state | plain))

    @property
    def gap(self) -> float:
        """Objective minus lower bound (>= 0), ``inf`` without a bound."""
        return max(self.objective - self.lower_bound, 0.0)
