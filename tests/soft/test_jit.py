"""How loops are compiled: for the arguments of usual fits, under a name that follows every source."""

import numpy as np
import pytest
from numba import types

from softsurv.soft import jit, step_kernels
from softsurv.soft.jit import FLOAT, FUSED, Loop, flags, floats, ints, loop, loop_part, together


@loop_part(**FUSED)
def doubled(x):
    return 2.0 * x


@loop(*floats(1), FLOAT, **FUSED)
def doubled_sum(values, more):
    """Twice the sum. Of all."""
    total = more
    for i in range(values.size):
        total += doubled(values[i])
    return total


def test_types_of_arrays():
    assert floats(1, 3) == (types.Array(types.float64, 1, "C"), types.Array(types.float64, 3, "C"))
    assert ints(2) == (types.Array(types.int64, 2, "C"),)
    assert ints(2, of=types.int16) == (types.Array(types.int16, 2, "C"),)
    assert flags(1) == (types.Array(types.boolean, 1, "C"),)
    assert together(FLOAT, FLOAT) == types.UniTuple(types.float64, 2)


def test_a_loop_is_compiled_for_its_usual_arguments_and_others_when_they_come():
    one = Loop(doubled_sum.py_func, doubled_sum.arguments, **FUSED)
    assert not one.is_ready
    one.compile()
    assert one.is_ready
    assert one(np.arange(4.0), 1.0) == 13.0
    assert one(np.arange(8.0)[::2], 1.0) == 25.0  # no array in C order
    assert one.title == "Twice the sum"


def test_the_name_on_disk_follows_every_source(tmp_path, monkeypatch):
    """Numba looks at a function's own file alone; what it calls may be in another."""
    monkeypatch.setattr(jit, "PACKAGE", tmp_path)
    for name in ("soft/step_kernels.py", "sparse/kernels.py", *jit.BESIDE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    names = set()
    for changed in (None, "soft/step_kernels.py", "sparse/kernels.py", *jit.BESIDE):
        if changed is not None:
            (tmp_path / changed).write_text("after")
        jit._digest.cache_clear()
        names.add(jit._digest())
    jit._digest.cache_clear()
    assert len(names) == 3 + len(jit.BESIDE)


def test_files_beside_the_kernels_are_there():
    assert all((jit.PACKAGE / name).is_file() for name in jit.BESIDE)


def test_another_process_finds_a_loop_where_the_disk_keeps_it(monkeypatch):
    assert step_kernels.move.place == "softsurv.soft.step_kernels:move"
    one = Loop(step_kernels.move.py_func, step_kernels.move.arguments)
    monkeypatch.setattr(type(one), "_compiled", property(lambda self: _Kept(None)))
    assert one.place is None
    assert not one.is_on_disk


def test_what_was_kept_is_seen_on_disk_for_its_own_arguments(monkeypatch, tmp_path):
    """A fit of another kind, on a fresh machine, keeps the loop for other arguments alone."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    one = Loop(doubled_sum.py_func, doubled_sum.arguments, **FUSED)
    assert one(np.arange(8.0)[::2], 1.0) == 25.0
    assert any(tmp_path.rglob("*.nbi"))
    assert not one.is_on_disk
    one.compile()
    assert one.is_on_disk
    assert Loop(doubled_sum.py_func, doubled_sum.arguments, **FUSED).is_on_disk


class _Kept:
    """A compiled function whose files are in a folder."""

    def __init__(self, folder):
        self.stats = self
        self.cache_path = folder
        self._cache = None


@pytest.mark.parametrize("values", [[3.0, -4.0], [np.nan, 1.0], [1.0, np.nan, 0.5], []])
def test_the_largest_absolute_value_is_that_of_numpy(values):
    @loop(*floats(1))
    def outer(values):
        return step_kernels.largest(values)

    found = outer(np.array(values, dtype=float))
    np.testing.assert_equal(found, np.abs(values).max() if values else 0.0)


def test_the_loop_of_several_causes_is_compiled_beside_that_of_one():
    from softsurv.sparse import kernels

    two = kernels.gain_of_leaf.of_causes(2)
    assert two.arguments == (*floats(1), FLOAT, types.UniTuple(types.int64, 2))
    assert two.place is None  # another process would compile the loop of one cause
    two.compile()
    assert two.is_ready
    kernels.gain_of_leaf.compile()
    assert {two.arguments, kernels.gain_of_leaf.arguments} <= set(kernels.gain_of_leaf._compiled.overloads)
