"""Compiled work that is looked after from another thread."""

from __future__ import annotations

import time

import numpy as np
import pytest

from softsurv.exact.clock import Clock, run_watched


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
    assert run_watched(lambda: until(flag, 60.0), Clock(0.05), flag) == "stopped"
    assert flag[0] == 1


def test_work_that_ends_in_time_leaves_no_flag():
    flag = np.ones(1, np.int64)
    assert run_watched(lambda: until(flag, 0.01), Clock(60.0), flag) == "done"
    assert flag[0] == 0


def test_grace_lets_short_work_end_after_the_clock():
    flag = np.zeros(1, np.int64)
    assert run_watched(lambda: until(flag, 0.01), Clock(0.0), flag, grace=60.0) == "done"
    assert run_watched(lambda: until(flag, 60.0), Clock(0.0), flag, grace=0.05) == "stopped"


def test_what_the_work_raises_is_raised():
    flag = np.zeros(1, np.int64)

    def broken():
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        run_watched(broken, Clock(60.0), flag)
