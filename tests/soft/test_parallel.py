"""Parts on the cores of a CPU, and the time that is left for those that follow."""

import threading

import pytest
import torch

from softsurv.soft import parallel
from softsurv.soft.parallel import MOST_FINISHING, Machine, map_parts, one_core_each, unless_stopped
from softsurv.stopping import StopSignal

CPU = torch.device("cpu")


@pytest.fixture
def still(monkeypatch):
    """The clock stands still: a busy machine may take seconds between two readings."""
    monkeypatch.setattr("time.monotonic", lambda: 100.0)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_parts(workers):
    gate = threading.Event()

    def work(part):
        if workers > 1 and part == 0:
            assert gate.wait(30)  # the first part ends last
        if part == 1:
            gate.set()
        return part * part

    assert map_parts(work, range(5), workers) == [0, 1, 4, 9, 16]
    assert map_parts(work, [], workers) == []


def test_an_error_in_a_part_is_raised():
    def fails(part):
        if part == 2:
            raise ZeroDivisionError
        return part

    for workers in (1, 2):
        with pytest.raises(ZeroDivisionError):
            map_parts(fails, range(4), workers)


def test_threads_use_one_core_each():
    with one_core_each():
        assert set(map_parts(lambda _: torch.get_num_threads(), range(4), 2)) == {1}


@pytest.mark.parametrize("before", [1, 2])
def test_the_number_of_threads_is_as_before_also_after_an_error(monkeypatch, before):
    monkeypatch.setattr(parallel, "n_cores", lambda: 2)
    was = torch.get_num_threads()
    torch.set_num_threads(before)
    try:
        with one_core_each() as threads:
            assert (threads, torch.get_num_threads()) == (before, 1)
        with pytest.raises(KeyError), one_core_each():
            raise KeyError
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(was)


def test_without_a_limit_nothing_ends_sooner():
    machine = Machine(CPU)
    assert machine.time_limit is None
    assert machine.ending_sooner(0.5) is machine
    assert machine.start_seconds(3) is None


def test_a_share_of_the_time_is_left_for_what_follows(still):
    machine = Machine(CPU, budget=StopSignal(100.0))
    assert machine.time_limit == pytest.approx(100.0)
    assert machine.start_seconds(5) == pytest.approx(5.0)
    sooner = machine.ending_sooner(0.3)
    assert machine.time_limit - sooner.time_limit == pytest.approx(30.0)
    assert machine.budget.left > sooner.budget.left + 29  # the first keeps its own


def test_reading_long_leaves_as_long_for_finishing_up_to_a_quarter(still):
    budget = StopSignal(100.0)
    budget.started -= 5.0  # five seconds were taken to read the rows
    machine = Machine(CPU, budget=budget)
    assert machine.time_limit - machine.ending_sooner().time_limit == pytest.approx(10.0)
    budget.started -= 35.0
    whole = machine.time_limit
    assert whole - machine.ending_sooner().time_limit == pytest.approx(MOST_FINISHING * whole)


def test_a_gpu_trains_one_stack_at_a_time():
    """Its memory is what the stack was sized for."""
    assert Machine(CPU, workers=3).at_once == 3
    assert Machine(torch.device("cuda"), workers=3).at_once == 1


def test_an_empty_tensor_is_of_the_device_and_type():
    like = Machine(CPU, torch.float32).like
    assert (like.device, like.dtype, like.numel()) == (CPU, torch.float32, 0)


def test_work_that_hears_no_ctrl_c_is_left_to_itself():
    budget, release, here = StopSignal(), threading.Event(), []

    def work():
        here.append(threading.current_thread())
        budget.interrupted = True
        release.wait(60.0)
        return "too late"

    assert unless_stopped(work, budget) is None
    assert here[0] is not threading.current_thread()
    release.set()
    assert unless_stopped(lambda: "done", StopSignal()) == "done"
    assert unless_stopped(lambda: "done", None) == "done"
    with pytest.raises(ZeroDivisionError):
        unless_stopped(lambda: 1 / 0, StopSignal())
