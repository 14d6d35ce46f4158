"""Limits of a search in a thread of its own: what stops it, and what is as before afterwards."""

import math
import sys

import pytest

from softsurv.exact.brier.limits import RECURSION_LIMIT, Limits
from softsurv.results import Status
from softsurv.stopping import Stopped, StopSignal


def test_nothing_stops_a_search_without_limits():
    limits = Limits()
    limits.check(10**9)
    assert limits.run(lambda: limits.check()) == Status.OPTIMAL


def test_memory_stops_at_the_first_entry_too_many():
    limits = Limits(max_entries=3)
    limits.check(2)
    with pytest.raises(Stopped) as told:
        limits.check(3)
    assert told.value.status == Status.MEMORY_LIMIT
    assert limits.run(lambda: limits.check(3)) == Status.MEMORY_LIMIT


def test_the_flag_of_the_compiled_loops_stops_the_search_too():
    limits = Limits(StopSignal(math.inf))

    def work():
        limits.flag[0] = 1
        limits.check()
        raise AssertionError("went on")

    assert limits.run(work) == limits.stop.reason


def test_deep_recursion_is_allowed_while_a_search_runs():
    before, depths = sys.getrecursionlimit(), []

    def fails():
        depths.append(sys.getrecursionlimit())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Limits().run(fails)
    assert depths == [max(before, RECURSION_LIMIT)]
    assert sys.getrecursionlimit() == before
