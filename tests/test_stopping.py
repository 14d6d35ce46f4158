"""StopSignals: time limit, the first and the second Ctrl-C, nesting, threads."""

import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from softsurv import stopping as module
from softsurv.exact import compile as compile_
from softsurv.exact.objectives import relative_risk
from softsurv.results import Status
from softsurv.stopping import StopSignal, heard_at_once, interrupt_if_heard, many_fits


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_without_a_limit_it_never_runs_out(clock):
    budget = StopSignal()
    clock[0] += 1e9
    assert budget.status is None
    assert not budget.exhausted
    assert budget.seconds == 1e9


def test_time_limit(clock):
    budget = StopSignal(5.0)
    clock[0] += 4.9
    assert not budget.exhausted
    clock[0] += 0.2
    assert budget.status is Status.TIME_LIMIT


def test_first_interrupt_is_kept_and_the_second_raises():
    with StopSignal(60.0) as budget:
        assert not budget.exhausted
        interrupt()
        assert budget.status is Status.INTERRUPTED
        with pytest.raises(KeyboardInterrupt):
            interrupt()


def test_interrupt_outranks_the_time_limit(clock):
    with StopSignal(1.0) as budget:
        clock[0] += 2
        assert budget.status is Status.TIME_LIMIT
        interrupt()
        assert budget.status is Status.INTERRUPTED


def test_handler_is_put_back_also_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with StopSignal():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError, match="inside"), StopSignal():
        raise RuntimeError("inside")
    assert signal.getsignal(signal.SIGINT) is before


def test_inner_budget_takes_the_interrupt_and_gives_the_outer_one_back():
    with StopSignal() as outer:
        with StopSignal() as inner:
            interrupt()
        assert inner.exhausted
        assert not outer.exhausted
        interrupt()
        assert outer.exhausted


def test_no_fit_of_many_takes_the_interrupt(usual_ctrl_c):
    """Its tree would be measured as if the fit were whole."""
    with many_fits(), StopSignal(), pytest.raises(KeyboardInterrupt):
        interrupt()
    with StopSignal() as alone:
        interrupt()
        assert alone.exhausted


def test_other_threads_leave_the_signals_alone():
    seen = []

    def work():
        with StopSignal(10.0) as budget:
            seen.append((signal.getsignal(signal.SIGINT), budget.exhausted))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, False)]


def test_an_outer_budget_may_hear_of_what_an_inner_one_took():
    with StopSignal(hears_inner=True) as outer:
        with StopSignal():
            assert not outer.exhausted
        assert not outer.exhausted
        with StopSignal():
            interrupt()
        assert outer.status is Status.INTERRUPTED


def until(flag, seconds):
    """Work that reads its flag: whether it was stopped before its time."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        if flag[0]:
            return "stopped"
        time.sleep(0.001)
    return "done"


def test_work_is_stopped_at_the_end_of_the_clock():
    flag = np.zeros(1, np.int64)
    assert StopSignal(0.05).run(lambda: until(flag, 60.0), flag) == "stopped"
    assert flag[0] == 1


def test_work_that_ends_in_time_leaves_no_flag():
    flag = np.ones(1, np.int64)
    assert StopSignal(60.0).run(lambda: until(flag, 0.01), flag) == "done"
    assert flag[0] == 0


def test_grace_lets_short_work_end_after_the_clock():
    flag = np.zeros(1, np.int64)

    def work(signal, seconds, grace):
        signal.stage(grace)
        return until(flag, seconds)

    for seconds, grace, answer in ((0.01, 60.0, "done"), (60.0, 0.05, "stopped")):
        signal = StopSignal(0.0)
        assert signal.run(lambda one=signal, s=seconds, g=grace: work(one, s, g), flag) == answer


@pytest.mark.parametrize(
    ("late", "share"), [(-60.0, 1.0), (0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (0.75, 0.25), (60.0, 0.25)]
)
def test_what_the_clock_is_over_already_shortens_the_grace(clock, late, share):
    signal = StopSignal(5.0)
    clock[0] += 5.0 + (late if abs(late) > 1 else late * module.GRACE_SECONDS)
    assert signal.grace == pytest.approx(share * module.GRACE_SECONDS)
    assert StopSignal().grace == module.GRACE_SECONDS


def test_a_fit_without_which_there_is_no_model_has_its_grace(clock):
    signal = StopSignal(5.0)
    early = signal.with_grace()
    clock[0] += 60.0
    late = signal.with_grace()
    assert [one.status for one in (signal, early, late)] == [Status.TIME_LIMIT, Status.TIME_LIMIT, None]
    clock[0] += 1.01 * module.GRACE_SECONDS
    assert late.status is Status.TIME_LIMIT
    assert StopSignal().with_grace().left == np.inf


def test_the_grace_after_a_ctrl_c_begins_when_it_is_noticed(clock):
    signal = StopSignal()
    sure = signal.with_grace()
    signal.interrupted = True
    clock[0] += 60.0
    assert sure.status is None
    clock[0] += 4.01 * module.GRACE_SECONDS
    assert sure.status is Status.INTERRUPTED


def test_work_inside_work_takes_the_same_thread_and_both_flags():
    outer, inner, signal = np.zeros(1, np.int64), np.zeros(1, np.int64), StopSignal(0.05)
    here = []

    def work():
        here.append(threading.current_thread())
        return signal.run(lambda: here.append(threading.current_thread()) or until(inner, 60.0), inner)

    assert signal.run(work, outer) == "stopped"
    assert here[0] is here[1] is not threading.current_thread()
    assert outer[0] == inner[0] == 1


def test_an_interruption_outside_counts_inside():
    with StopSignal() as outer:
        inner = StopSignal(60.0, outer=outer)
        assert inner.status is None
        interrupt()
        assert inner.status is Status.INTERRUPTED


def test_what_the_work_raises_is_raised():
    flag = np.zeros(1, np.int64)

    def broken():
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        StopSignal(60.0).run(broken, flag)


def test_work_that_others_follow_leaves_them_time():
    assert StopSignal().leaving(2.0, 0.5).deadline is None
    timer = StopSignal(10.0)
    timer.started -= 3.0
    timer.deadline -= 3.0
    assert timer.leaving(1.0, 0.5).left == pytest.approx(timer.left - 3.0, abs=0.1)
    assert timer.leaving(9.0, 0.5).left == pytest.approx(timer.left - 5.0, abs=0.1)
    part = timer.leaving(1.0, 0.5)
    timer.interrupted = True
    assert part.exhausted


# -- compiling -----------------------------------------------------------------------------------------------------
def test_time_is_kept_for_what_follows(clock):
    stop = StopSignal(10.0)
    with stop.keeping(3.0):
        assert stop.left == pytest.approx(7.0)
    assert stop.left == pytest.approx(10.0)
    assert stop.status is None
    with stop.keeping(11.0):
        assert stop.status is Status.TIME_LIMIT
    assert stop.status is Status.TIME_LIMIT
    free = StopSignal()
    with free.keeping(3.0):
        assert free.left == np.inf


def test_a_ctrl_c_does_not_wait_for_what_is_compiled(monkeypatch):
    """Nothing is there yet that the signal of the fit could keep."""

    class Slow:
        title, place, is_ready, is_on_disk = "a part", None, False, True

        def compile(self):
            interrupt()
            raise AssertionError("a Ctrl-C waited for the compilation")

    monkeypatch.setattr(compile_, "price_of", lambda task: Slow())
    monkeypatch.setattr(compile_, "_known", {})  # as in a process that has asked for nothing yet
    with StopSignal() as stop:
        usual = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            compile_.ready(relative_risk.TASK)
        with pytest.raises(KeyboardInterrupt):
            compile_.ready(relative_risk.TASK, compile_.CUTS)
        assert signal.getsignal(signal.SIGINT) == usual
        assert not stop.interrupted


def test_a_handler_of_the_user_stays_while_kernels_are_compiled():
    heard = []
    previous = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with heard_at_once():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert heard == [1]


def test_a_ctrl_c_that_python_drops_is_raised_later(usual_ctrl_c):
    """LLVM calls Python when it has compiled, and what is raised in a callback of C is dropped."""

    def _raw_object_cache_notify():
        signal.raise_signal(signal.SIGINT)

    interrupt_if_heard()
    with heard_at_once():
        with suppress(KeyboardInterrupt):
            interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupt_if_heard()
    with heard_at_once():
        _raw_object_cache_notify()
        with pytest.raises(KeyboardInterrupt):
            interrupt_if_heard()
    interrupt_if_heard()
