"""How the trees of a stack ended: the best start of each recipe, and reports as plain numbers."""

import math
import time

import pytest
import torch

from softsurv.errors import NumericalError
from softsurv.results import Status
from softsurv.soft.ended import Ended
from softsurv.soft.nodec import Trained
from softsurv.soft.optimisers import Minimum
from softsurv.soft.parallel import Machine
from softsurv.stopping import StopSignal

OBJECTIVES = torch.tensor([3.0, 1.0, math.nan, 5.0, 2.0, math.inf], dtype=torch.float64)


def ended(anchor_loss=(0.5, 0.5), budget=None):
    """Two sets of rows, a recipe with two starts and one with one."""
    nothing = torch.empty(0)
    converged = torch.tensor([True, False, True, True, True, False])
    trained = Trained(nothing, nothing, OBJECTIVES, converged, (OBJECTIVES + 1, OBJECTIVES))
    anchors = Minimum((), torch.tensor([anchor_loss] * 2), torch.tensor([[True, False]] * 2))
    machine = Machine(torch.device("cpu"), budget=budget)
    return Ended(trained, anchors, [slice(0, 2), slice(2, 3)], 2, machine, time.perf_counter(), "operators")


def test_the_start_of_the_lowest_objective_is_the_best():
    assert ended().best.tolist() == [[1, 2], [4, 5]]


def test_reports_say_how_the_best_start_ended():
    end = ended()
    first, other = end.report(0, 0), end.report(1, 0)
    assert (first.status, first.objective, first.trace) == (Status.ITERATION_LIMIT, 1.0, (2.0, 1.0))
    assert first.details == {"objectives": [3.0, 1.0], "single_leaf_converged": True, "objective_by": "operators"}
    assert (other.status, other.objective) == (Status.CONVERGED, 2.0)
    none = {"objectives": [], "single_leaf_converged": False, "objective_by": "operators"}
    assert end.report(0, 1).details == none
    assert first.seconds == other.seconds >= 0


def test_a_stack_that_was_stopped_says_so():
    stopped = StopSignal(0.0)
    assert stopped.exhausted
    assert ended(budget=stopped).report(0, 0).status == Status.TIME_LIMIT


def test_a_single_leaf_that_left_the_finite_numbers_is_an_error():
    with pytest.raises(NumericalError):
        ended((0.5, math.inf)).read()
