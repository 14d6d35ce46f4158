"""Loops: compiled for the types of usual arguments, and known by what the disk keeps."""

import numpy as np
import pytest
from numba import types

from softsurv.loops import FLOAT, Loop, flags, floats, ints, together


def doubled_sum(values, more):
    """Twice the sum. Of all."""
    total = more
    for i in range(values.size):
        total += 2.0 * values[i]
    return total


def named(digest="0123456789"):
    return Loop(doubled_sum, (*floats(1), FLOAT), lambda: digest)


def test_types_of_arrays():
    assert floats(1, 3) == (types.Array(types.float64, 1, "C"), types.Array(types.float64, 3, "C"))
    assert ints(2) == (types.Array(types.int64, 2, "C"),)
    assert ints(2, of=types.int16) == (types.Array(types.int16, 2, "C"),)
    assert flags(1) == (types.Array(types.boolean, 1, "C"),)
    assert together(FLOAT, FLOAT) == types.UniTuple(types.float64, 2)


def test_a_loop_is_compiled_for_its_usual_arguments_and_others_when_they_come():
    one = named()
    assert not one.is_ready
    assert one.compiled_for == []
    one.compile()
    assert one.is_ready
    assert one.compiled_for == [one.arguments]
    assert one(np.arange(4.0), 1.0) == 13.0
    assert one(np.arange(8.0)[::2], 1.0) == 25.0  # no array in C order
    assert len(one.compiled_for) == 2
    assert one.title == "Twice the sum"


def test_a_ctrl_c_while_numba_makes_the_answer_is_one(monkeypatch):
    """In the place of the answer of numba, which goes on after the Ctrl-C: a SystemError that it led to."""
    one = named()
    cause, late, own = KeyboardInterrupt(), SystemError("returned a result with an exception set"), SystemError("own")
    late.__cause__ = SystemError("of a function inside")
    late.__cause__.__cause__ = cause
    for told, expected in ((late, KeyboardInterrupt), (own, SystemError)):
        monkeypatch.setattr(type(one), "_compiled", property(lambda self, told=told: _Raising(told)))
        with pytest.raises(expected) as raised:
            one(np.arange(4.0), 1.0)
        assert told in (raised.value, raised.value.__cause__)


class _Raising:
    def __init__(self, error):
        self.error = error

    def __call__(self, *arguments):
        raise self.error


def test_the_name_on_disk_ends_in_the_digest():
    assert named("abc")._compiled.py_func.__qualname__ == "doubled_sum_abc"


def test_another_process_finds_no_loop_that_the_disk_does_not_keep(monkeypatch):
    one = named()
    monkeypatch.setattr(type(one), "_compiled", property(lambda self: _Kept(None)))
    assert one.place is None
    assert not one.is_on_disk


def test_a_loop_that_its_module_does_not_name_has_no_place():
    assert named().place is None


def test_what_was_kept_is_seen_on_disk_for_its_own_arguments(monkeypatch, tmp_path):
    """A fit of another kind, on a fresh machine, keeps the loop for other arguments alone."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    one = named()
    assert one(np.arange(8.0)[::2], 1.0) == 25.0
    assert any(tmp_path.rglob("*.nbi"))
    assert not one.is_on_disk
    one.compile()
    assert one.is_on_disk
    assert named().is_on_disk
    assert not named("other").is_on_disk


def test_another_type_in_the_place_of_one():
    one = named()
    twin = one.with_types(FLOAT, types.int64)
    assert twin.arguments == (*floats(1), types.int64)
    twin.compile()
    assert twin.is_ready
    assert not one.is_ready
    assert one.compiled_for == [twin.arguments]  # they are one function


class _Kept:
    """A compiled function whose files are in a folder."""

    def __init__(self, folder):
        self.stats = self
        self.cache_path = folder
        self._cache = None
