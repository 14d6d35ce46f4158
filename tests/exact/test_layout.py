"""Scratch in two pieces of memory is the structure that kernels and Python read."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from softsurv.exact.kernels.views import Floats, IntMatrix, Longs, Packed
from softsurv.exact.layout import GIVEN, LINE, Laid, Layout, Same, Space


class ScratchedPart(NamedTuple):
    table: IntMatrix
    flat: Longs


class Scratched(NamedTuple):
    first: Floats
    inner: ScratchedPart
    plane: int
    control: Longs
    whole: IntMatrix
    again: IntMatrix


SPACES = {
    "first": Space((3,), zero=True),
    "inner": {"table": Space((2, 5), zero=True), "flat": Space((0,))},
    "plane": 7,
    "control": GIVEN,
    "whole": Space((2, 6), zero=True),
    "again": Same("whole", (3, 4)),
}


@njit
def write(view):
    """Change every array through the view."""
    view.first[2] = 2.5
    view.inner.table[1, 4] = view.plane
    view.control[0] += 1
    view.whole[1, 5] = 9


def test_kernels_and_python_share_the_memory():
    layout, control = Layout(Scratched, SPACES), np.array([4, 5])
    laid = [Laid(layout, control=control) for _ in range(2)]
    write(laid[0])
    one, other = laid[0].value, laid[1].value
    assert one.first.tolist() == [0, 0, 2.5]
    assert one.inner.table.tolist() == [[0] * 5, [0, 0, 0, 0, 7]]
    assert one.again.tolist() == [[0] * 4, [0] * 4, [0, 0, 0, 9]]
    assert one.control is control
    assert control.tolist() == [5, 5]
    assert not other.first.any()
    assert other.plane == 7
    assert other.inner.flat.shape == (0,)
    for array in (one.first, one.inner.table, one.whole):
        assert array.ctypes.data % LINE == 0
    assert layout.nbytes == 3 * LINE
    with pytest.raises(AttributeError, match="no field 'second'"):
        one.second  # noqa: B018


def test_words_are_those_of_the_same_arrays_packed():
    laid = Laid(Layout(Scratched, SPACES), control=np.array([4, 5]))
    fields = laid.value
    inner = ScratchedPart(fields.inner.table, fields.inner.flat)
    same = Scratched(fields.first, inner, 7, fields.control, fields.whole, fields.again)
    assert laid.words.tolist() == Packed(same).words.tolist()
