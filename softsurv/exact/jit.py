"""How the engine's functions are compiled."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from softsurv.kernel_cache import digest_of, njit
from softsurv.kernel_parts import NO_WRAPPERS, part
from softsurv.loops import Loop

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

INNER: dict[str, Any] = FAST | NO_WRAPPERS

INLINED: dict[str, Any] = INNER | {"inline": "always"}
"""Options of functions that are put into their caller before compilation: passing arguments costs nothing."""


def shared_kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls; on disk it is part of the entries that call it."""
    return part(**(INNER | {"cache": False}))(function)


def shared_inlined(function: Callable[..., Any]) -> Any:
    """As `shared_kernel`, put into its caller."""
    return njit(**(INLINED | {"cache": False}))(function)


ARRAYS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
"""Options of kernels that make arrays of their own, and so count references; they are the same for every search."""

FUSE: dict[str, Any] = {"fastmath": {"contract"}}
"""Only fused multiply-add is allowed: sums are never reassociated, so results do not depend on the lane."""


def array_entry(*files: str) -> Callable[..., Callable[[Callable[..., Any]], Loop]]:
    """A decorator, given types of arguments, for functions that make arrays and are called from Python.

    ``files`` are those whose code ends up in them.
    """
    digest = cache(partial(source_digest, files))
    return lambda *arguments: lambda function: Loop(function, arguments, digest, error_model="numpy")


def array_kernel(function: Callable[..., Any]) -> Any:
    """As `array_entry`, for a function that only compiled code calls."""
    return part(**(ARRAYS | NO_WRAPPERS))(function)


def fused_kernel(function: Callable[..., Any]) -> Any:
    """As `array_kernel`, with fused multiply-add."""
    return part(**(ARRAYS | NO_WRAPPERS | FUSE))(function)


def fused_inlined(function: Callable[..., Any]) -> Any:
    """As `fused_kernel`, put into its caller: a loop that calls a helper is not vectorised."""
    return njit(**(ARRAYS | NO_WRAPPERS | FUSE | {"inline": "always"}))(function)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Stop the garbage collector meanwhile: it would search millions of objects, a quarter of the compilation time.

    Afterwards all objects count as old, so that the next collection of young ones does not search them either: half a
    second of a first fit. A program that has frozen objects of its own keeps them so, and its young objects young.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # puts them with the oldest
        if enabled:
            gc.enable()


def source_digest(names: Iterable[str]) -> str:
    """Ten hex digits that change with the source of files of this folder, such as "jit.py" or "kernels/cache.py"."""
    return digest_of(Path(__file__).parent / name for name in names)
