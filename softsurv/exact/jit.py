"""How the engine's functions are compiled."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba.extending import intrinsic as _intrinsic

from softsurv.kernel_cache import njit

logger = logging.getLogger("softsurv")

intrinsic: Any = _intrinsic
"""Numba's decorator, which hides a first argument from callers in a way that type checkers cannot follow."""

FAST: dict[str, Any] = {
    "fastmath": {"nnan", "nsz", "contract", "reassoc"},
    "error_model": "numpy",
    "cache": True,
    "nogil": True,
    "_nrt": False,
}
"""Options of numba.

No reference counts: every array is owned by the caller for the whole call, and the atomic counts took three quarters of
the time; so a kernel may not make arrays. Infinities are used, NaN never is; a zero divisor raises nothing.

Reordered sums are harmless: the sums are exact (`problem.round_to_grid`).
"""


NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that only compiled code calls: wrappers for Python would double the compilation."""

INNER: dict[str, Any] = FAST | NO_WRAPPERS

INLINED: dict[str, Any] = INNER | {"inline": "always"}
"""Options of functions that are put into their caller before compilation: their arguments cost nothing."""


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function of a template module that is called from Python.

    Numba names a cached function after its file and qualified name. A template is executed once per task under
    different module names (`compile.specialise`), so the module's name goes into the qualified name.
    """
    return njit(**FAST)(_named(function))


def kernel(function: Callable[..., Any]) -> Any:
    """As `entry`, for a function that only compiled code calls."""
    return njit(**INNER)(_named(function))


def inlined(function: Callable[..., Any]) -> Any:
    """As `kernel`, put into its caller."""
    return njit(**INLINED)(_named(function))


def shared_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, for a module that is the same for all tasks; on disk it is part of the kernels that call it."""
    return njit(**(INNER | {"cache": False}))(function)


def shared_inlined(function: Callable[..., Any]) -> Any:
    """As `shared_kernel`, put into its caller."""
    return njit(**(INLINED | {"cache": False}))(function)


ARRAYS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
"""Options of kernels that make arrays of their own, and so count references; they are the same for every search."""

FUSE: dict[str, Any] = {"fastmath": {"contract"}}
"""Only fused multiply-add is allowed: sums are never reassociated, so results do not depend on the lane."""


def array_entry(*files: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile functions that make arrays and are called from Python.

    Numba compiles one again when its own file changes, but not when a function that it calls does: so its name on disk
    holds a digest of the ``files`` whose code ends up in it.
    """
    digest = source_digest(files)

    def compiled(function: Callable[..., Any]) -> Any:
        function.__qualname__ = f"{function.__name__}_{digest}"
        return njit(**(ARRAYS | {"cache": True}))(function)

    return compiled


def array_kernel(function: Callable[..., Any]) -> Any:
    """As `array_entry`, for a function that only compiled code calls."""
    return njit(**(ARRAYS | NO_WRAPPERS))(function)


def fused_kernel(function: Callable[..., Any]) -> Any:
    """As `array_kernel`, with fused multiply-add."""
    return njit(**(ARRAYS | NO_WRAPPERS | FUSE))(function)


def fused_inlined(function: Callable[..., Any]) -> Any:
    """As `fused_kernel`, put into its caller: a loop that calls a helper is not vectorised."""
    return njit(**(ARRAYS | NO_WRAPPERS | FUSE | {"inline": "always"}))(function)


def say_compiling(function: Any, what: str) -> None:
    """Say on the logger ``softsurv`` that a function called from Python will be compiled, where it is not on disk."""
    if not is_on_disk(function):
        logger.warning("compiling %s, once on this machine: about 20 seconds", what)


def is_on_disk(function: Any) -> bool:
    """Whether a compiled function that is called from Python was kept by an earlier process."""
    folder = function.stats.cache_path
    return folder is not None and any(Path(folder).glob(f"*{function.py_func.__qualname__}*.nbi"))


def source_digest(names: Iterable[str]) -> str:
    """Ten hex digits that change with the source of files of this folder, such as "jit.py" or "kernels/cache.py"."""
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()[:10]


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__qualname__ = f"{function.__name__}_{function.__module__.rpartition('.')[2]}"
    return function
