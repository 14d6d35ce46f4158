"""How the loops of soft trees are compiled: those that Python calls, and their parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from numba import types

from softsurv.kernel_cache import digest_of, holds, kept_as
from softsurv.kernel_parts import NO_WRAPPERS, part

PACKAGE = Path(__file__).parents[1]

BESIDE = ("soft/jit.py", "soft/packed_rows.py", "soft/vector_math.py", "float_bits.py", "clamps.py")
"""Files besides those called kernels whose code or constants become part of a loop."""

FLOAT, INT, INT32, INT16 = types.float64, types.int64, types.int32, types.int16

ONE_CAUSE = types.UniTuple(INT, 1)
"""Type of what `sparse.kernels.causes_of` gives where events have one cause."""


FUSED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
"""Options of numba: a zero divisor raises nothing, and multiply-add may be one instruction."""

REORDERED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}
"""Sums may also be added up in another order, as vector instructions do."""


def floats(*n_dim: int) -> tuple[Any, ...]:
    """Types of arrays of floats in C order with these numbers of axes."""
    return _arrays(FLOAT, n_dim)


def ints(*n_dim: int, of: Any = INT) -> tuple[Any, ...]:
    """The same for whole numbers."""
    return _arrays(of, n_dim)


def flags(*n_dim: int) -> tuple[Any, ...]:
    """The same for truth values."""
    return _arrays(types.boolean, n_dim)


def _arrays(one: Any, n_dim: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(types.Array(one, n, "C") for n in n_dim)


def together(*kinds: Any) -> Any:
    """Type of a tuple."""
    return types.Tuple(kinds)


POINTS = together(*floats(2, 1, 2, 3, 2, 1), *ints(1, 1), *flags(1))
"""Type of the points of `softsurv.soft.bfgs`."""

LIMITS = together(FLOAT, FLOAT, FLOAT, INT, INT)
"""Type of its limits."""


class Loop:
    """A function that Python calls and that runs without its lock; compiled, or read from disk, when first needed.

    Parameters
    ----------
    function : callable
    arguments : tuple of numba types
        Types of the arguments of usual fits. For others the function is compiled again when they come.
    **options
        Options of numba.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any) -> None:
        self.py_func, self.arguments = function, arguments
        self.title = (function.__doc__ or "").partition(".")[0].partition("\n")[0]
        self._options = options

    @cached_property
    def _compiled(self) -> Any:
        return kept_as(_digest(), nogil=True, **self._options)(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self._compiled(*arguments)

    def compile(self) -> None:
        """Compile it for the usual arguments, or read it from disk."""
        self._compiled.compile(self.arguments)

    @property
    def is_ready(self) -> bool:
        """Whether this process has it already."""
        return self.arguments in self._compiled.overloads

    @property
    def is_on_disk(self) -> bool:
        """Whether an earlier process kept it."""
        return holds(self._compiled._cache, self.arguments)

    @property
    def place(self) -> str | None:
        """Name, "module:name", by which another process finds it. None if it cannot be found or kept on disk."""
        module, name = self.py_func.__module__, self.py_func.__name__
        folder = self._compiled.stats.cache_path
        kept = folder is not None and os.access(folder, os.W_OK)
        known = getattr(sys.modules.get(module), name, None) is self
        return f"{module}:{name}" if kept and known else None

    def of_causes(self, n: int) -> Loop:
        """The same loop, to be compiled for the sums of n causes."""
        twin = copy(self)
        vars(twin)["_compiled"] = self._compiled
        twin.arguments = tuple(types.UniTuple(INT, n) if one == ONE_CAUSE else one for one in self.arguments)
        return twin


def loop(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function that Python calls, when it is first needed, for arguments of these types."""
    return lambda function: Loop(function, arguments, **options)


def loop_part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that only loops call."""
    return part(nogil=True, **NO_WRAPPERS, **options)


@cache
def _digest() -> str:
    """Changes with every file of loops."""
    return digest_of([*PACKAGE.glob("*/*kernels.py"), *(PACKAGE / name for name in BESIDE)])
