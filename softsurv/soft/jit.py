"""How the loops of soft trees are compiled: those that Python calls, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import types

from softsurv.kernel_cache import digest_of
from softsurv.kernel_parts import NO_WRAPPERS, part
from softsurv.loops import FLOAT, INT, Loop, flags, floats, ints, together

PACKAGE = Path(__file__).parents[1]

BESIDE = ("loops.py", "soft/jit.py", "soft/packed_rows.py", "soft/vector_math.py", "float_bits.py", "clamps.py")
"""Files besides those called kernels whose code or constants become part of a loop."""

ONE_CAUSE = types.UniTuple(INT, 1)
"""Type of what `sparse.kernels.causes_of` gives where events have one cause."""


FUSED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
"""Options of numba: a zero divisor raises nothing, and multiply-add may be one instruction."""

REORDERED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}
"""Sums may also be added up in another order, as vector instructions do."""


POINTS = together(*floats(2, 1, 2, 3, 2, 1), *ints(1, 1), *flags(1))
"""Type of the points of `softsurv.soft.bfgs`."""

LIMITS = together(FLOAT, FLOAT, FLOAT, INT, INT)
"""Type of its limits."""


def loop(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function that Python calls, when it is first needed, for arguments of these types."""
    return lambda function: Loop(function, arguments, _digest, **options)


def of_causes(one: Loop, n: int) -> Loop:
    """A loop over the sums of one cause, to be compiled for those of n causes."""
    return one.with_types(ONE_CAUSE, types.UniTuple(INT, n))


def loop_part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that only loops call."""
    return part(nogil=True, **NO_WRAPPERS, **options)


@cache
def _digest() -> str:
    """Changes with every file of loops."""
    return digest_of([*PACKAGE.glob("*/*kernels.py"), *(PACKAGE / name for name in BESIDE)])
