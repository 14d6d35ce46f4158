"""Parts: compiled code that only its callers bring to machine code, with the values of plain Python."""

import numpy as np

from softsurv.exact.entries import entry
from softsurv.exact.jit import FAST
from softsurv.kernel_cache import njit
from softsurv.kernel_parts import Part, part

OPTIONS = {name: value for name, value in FAST.items() if name != "cache"}


@part(**OPTIONS)
def halved(x):
    return 0.5 * x


@part(**OPTIONS)
def summed(values, n):
    total = 0.0
    for i in range(n):
        total += halved(values[i])
    return total


@njit(**OPTIONS)
def whole(values):
    return summed(values, len(values)) + halved(1.0)


def libraries(function):
    """What numba keeps of each compiled form of a function."""
    return [compiled.library for compiled in function.overloads.values()]


def test_parts_are_taken_in_by_who_calls_them():
    values = np.arange(5.0)
    assert whole(values) == 0.5 * values.sum() + 0.5
    assert [len(libraries(one)) for one in (halved, summed, whole)] == [1, 1, 1]


def test_parts_have_no_machine_code_of_their_own():
    whole(np.arange(5.0))
    for one in (halved, summed):
        (library,) = libraries(one)
        name = next(iter(one.overloads.values())).fndesc.llvm_func_name
        assert isinstance(library, Part)
        assert library.get_pointer_to_function(name) == 0
    (library,) = libraries(whole)
    assert not isinstance(library, Part)
    assert "fmul" in library.get_llvm_str()  # the part's own instruction, put into its caller


def test_an_entry_takes_parts_in():
    @entry(float, returns=float)
    def quartered(x):
        """A quarter."""
        return halved(halved(x))

    assert quartered(3.0) == 0.75
