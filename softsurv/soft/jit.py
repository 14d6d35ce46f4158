"""How the loops of soft trees are compiled: those that Python calls, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from softsurv.kernel_cache import digest_of, kept_as
from softsurv.kernel_parts import NO_WRAPPERS, part

PACKAGE = Path(__file__).parents[1]

BESIDE = ("soft/jit.py", "soft/packed_rows.py", "soft/vector_math.py", "float_bits.py", "numerics.py")
"""Files besides those called kernels whose code or constants become part of a loop."""


def loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls, without Python's lock; options of numba. It is kept on disk."""
    return kept_as(_digest(), nogil=True, **options)


def loop_part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The same for a function that only loops call."""
    return part(nogil=True, **NO_WRAPPERS, **options)


@cache
def _digest() -> str:
    """Changes with every file of loops."""
    return digest_of([*PACKAGE.glob("*/*kernels.py"), *(PACKAGE / name for name in BESIDE)])
