"""How loops are compiled: for the arguments of usual fits, under a name that follows every source."""

import numpy as np
import pytest
from numba import types

from softsurv.loops import FLOAT, floats
from softsurv.soft import jit, step_kernels
from softsurv.soft.jit import loop, of_causes


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


def test_another_process_finds_a_loop():
    assert step_kernels.move.place == "softsurv.soft.step_kernels:move"


@pytest.mark.parametrize("values", [[3.0, -4.0], [np.nan, 1.0], [1.0, np.nan, 0.5], []])
def test_the_largest_absolute_value_is_that_of_numpy(values):
    @loop(*floats(1))
    def outer(values):
        return step_kernels.largest(values)

    found = outer(np.array(values, dtype=float))
    np.testing.assert_equal(found, np.abs(values).max() if values else 0.0)


def test_the_loop_of_several_causes_is_compiled_beside_that_of_one():
    from softsurv.sparse import kernels

    two = of_causes(kernels.gain_of_leaf, 2)
    assert two.arguments == (*floats(1), FLOAT, types.UniTuple(types.int64, 2))
    assert two.place is None  # another process would compile the loop of one cause
    two.compile()
    assert two.is_ready
    kernels.gain_of_leaf.compile()
    assert {two.arguments, kernels.gain_of_leaf.arguments} <= set(kernels.gain_of_leaf.compiled_for)
