"""How the kernels of the integrated Brier score are compiled: they make arrays, and are the same for every search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softsurv.exact.jit import NO_WRAPPERS, source_digest
from softsurv.kernel_cache import njit

COMPILED = "bounds", "coarse", "depth_two", "jit", "kernels", "packed", "table"
DIGEST = source_digest(["bits.py", *(f"ibs/{name}.py" for name in COMPILED)])
"""Changes with any file whose code ends up inside the compiled kernels."""

ARRAYS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
"""Options of these kernels, which make arrays of their own and so count references."""

FUSE: dict[str, Any] = {"fastmath": {"contract"}}
"""Only fused multiply-add is allowed: sums are never reassociated, so results do not depend on the lane."""


def array_entry(function: Callable[..., Any]) -> Any:
    """Compile a function of the modules of this folder that is called from Python.

    Numba compiles it again when its own file changes, but not when a function that it calls does: so its name on disk
    holds a digest of all of them.
    """
    function.__qualname__ = f"{function.__name__}_{DIGEST}"
    return njit(**(ARRAYS | {"cache": True}))(function)


def array_kernel(function: Callable[..., Any]) -> Any:
    """As `array_entry`, for a function that only compiled code calls."""
    return njit(**(ARRAYS | NO_WRAPPERS))(function)


def fused_kernel(function: Callable[..., Any]) -> Any:
    """As `array_kernel`, with fused multiply-add."""
    return njit(**(ARRAYS | NO_WRAPPERS | FUSE))(function)


def fused_inlined(function: Callable[..., Any]) -> Any:
    """As `fused_kernel`, put into its caller: a loop that calls a helper is not vectorised."""
    return njit(**(ARRAYS | NO_WRAPPERS | FUSE | {"inline": "always"}))(function)
