"""How the trees of a stack ended, kept on their device until a report is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch

from softsurv.results import FitReport, Status
from softsurv.soft.fit_stack import Stack, refuse_infinite
from softsurv.soft.nodec import Trained
from softsurv.soft.objective import FUSED, OPERATORS
from softsurv.soft.optimisers import Minimum
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Training


def form_of(stack: Stack, training: Training) -> str:
    """How the objective of a training goes over the rows, see :meth:`Objective.form`; that of NODEC is never fused."""
    found, by_nodes = stack.objective.form(stack.leaves), training.solver == "nodec" and stack.objective.depth > 0
    return OPERATORS if found == FUSED and by_nodes else found


class Ended:
    """How the trees of a stack ended: on their device until a report is asked for.

    Parameters
    ----------
    trained : Trained
    anchors : Minimum
        The single-leaf fits, (F, C, 1, Q + K).
    spans : sequence of slice (C,)
        Where the starts of each recipe lie among the trees of a set of rows.
    n_rows : int
        F, the number of sets of rows.
    machine : Machine
    began : float
        When training began, by `time.perf_counter`.
    form : str
        How the objective went over the rows, :func:`form_of`.

    Attributes
    ----------
    best : Tensor (F, C)
        Number in the stack of each recipe's best start, the one with the lowest training objective.
    """

    def __init__(
        self,
        trained: Trained,
        anchors: Minimum,
        spans: Sequence[slice],
        n_rows: int,
        machine: Machine,
        began: float,
        form: str,
    ) -> None:
        self.trained, self.anchors, self.spans, self.machine, self.began = trained, anchors, spans, machine, began
        self.form = form
        objective = torch.where(trained.objective.isnan(), torch.inf, trained.objective).view(n_rows, -1)
        first = torch.arange(n_rows, device=objective.device) * objective.shape[1]
        self.best = torch.stack([first + span.start + objective[:, span].argmin(1) for span in spans], 1)

    @cached_property
    def _values(self) -> _Values:
        """What reports say, copied to the host.

        Raises
        ------
        NumericalError
            If a single-leaf fit left the finite numbers.
        """
        t = self.trained
        trace = torch.stack(t.trace) if t.trace else t.objective.new_zeros(0, len(t.objective))
        best, objective, converged, looks, anchored = (
            v.cpu().tolist() for v in (self.best, t.objective, t.converged, trace, self.anchors.converged)
        )
        refuse_infinite(self.anchors.loss)
        return _Values(best, objective, converged, looks, anchored, time.perf_counter() - self.began)

    def read(self) -> None:
        """Wait for the device, and copy to the host what the reports say."""
        _ = self._values

    def report(self, row: int, k: int) -> FitReport:
        """The report of one recipe on one set of rows; ``seconds`` is the stack's time divided by its fits."""
        v, n_rows = self._values, len(self._values.best)
        best, size = v.best[row][k], len(v.objective) // n_rows
        of = v.objective[row * size + self.spans[k].start : row * size + self.spans[k].stop]
        budget = self.machine.budget
        return FitReport(
            (None if budget is None else budget.status)
            or (Status.CONVERGED if v.converged[best] else Status.ITERATION_LIMIT),
            v.objective[best],
            seconds=v.seconds / (n_rows * len(self.spans)),
            trace=tuple(losses[best] for losses in v.trace),
            details={
                "objectives": [value for value in of if math.isfinite(value)],
                "single_leaf_converged": v.anchored[row][k],
                "objective_by": self.form,
            },
        )


class _Values(NamedTuple):
    """What reports say, as plain numbers."""

    best: list[list[int]]  # (F, C)
    objective: list[float]  # (M,)
    converged: list[bool]  # (M,)
    trace: list[list[float]]  # (looks, M)
    anchored: list[list[bool]]  # (F, C)
    seconds: float
