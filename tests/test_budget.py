"""Budgets: time limit, the first and the second Ctrl-C, nesting, threads."""

import os
import signal
import threading

import pytest

from softsurv import budget as module
from softsurv.budget import Budget
from softsurv.results import Status


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_without_a_limit_it_never_runs_out(clock):
    budget = Budget()
    clock[0] += 1e9
    assert budget.status is None
    assert not budget.exhausted
    assert budget.seconds == 1e9


def test_time_limit(clock):
    budget = Budget(5.0)
    clock[0] += 4.9
    assert not budget.exhausted
    clock[0] += 0.2
    assert budget.status is Status.TIME_LIMIT


def test_first_interrupt_is_kept_and_the_second_raises():
    with Budget(60.0) as budget:
        assert not budget.exhausted
        interrupt()
        assert budget.status is Status.INTERRUPTED
        with pytest.raises(KeyboardInterrupt):
            interrupt()


def test_interrupt_outranks_the_time_limit(clock):
    with Budget(1.0) as budget:
        clock[0] += 2
        assert budget.status is Status.TIME_LIMIT
        interrupt()
        assert budget.status is Status.INTERRUPTED


def test_handler_is_put_back_also_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with Budget():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError, match="inside"), Budget():
        raise RuntimeError("inside")
    assert signal.getsignal(signal.SIGINT) is before


def test_inner_budget_takes_the_interrupt_and_gives_the_outer_one_back():
    with Budget() as outer:
        with Budget() as inner:
            interrupt()
        assert inner.exhausted
        assert not outer.exhausted
        interrupt()
        assert outer.exhausted


def test_other_threads_leave_the_signals_alone():
    seen = []

    def work():
        with Budget(10.0) as budget:
            seen.append((signal.getsignal(signal.SIGINT), budget.exhausted))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, False)]


def test_an_outer_budget_may_hear_of_what_an_inner_one_took():
    with Budget(hears_inner=True) as outer:
        with Budget():
            assert not outer.exhausted
        assert not outer.exhausted
        with Budget():
            interrupt()
        assert outer.status is Status.INTERRUPTED
