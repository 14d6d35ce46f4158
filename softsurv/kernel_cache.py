"""Compiled functions on disk: kept where the disk allows it, in memory where it does not."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
from numba import extending
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.registry import cpu_target

from softsurv.errors import NoCompilerError

logger = logging.getLogger("softsurv")

intrinsic: Any = extending.intrinsic  # hides a first argument from callers in a way that type checkers cannot follow

_said: set[str] = set()
"""Sentences that were logged already: each is logged once per process."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As ``numba.njit``. A cache that cannot be read or written costs a compilation, never an error.

    Parameters
    ----------
    cache : bool
        Keep the compiled function on disk, beside its source or where ``NUMBA_CACHE_DIR`` says.
    **options
        Options of ``numba.njit``.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        kept = open_cache(function) if cache else None
        if kept is not None:
            dispatcher._cache = kept
        return dispatcher

    return compile_later


def kept_as(digest: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `njit`, for a function that is kept on disk under a name that ends in ``digest``, that of its sources.

    Numba compiles a function again when its own file changes, but not when a function that it calls does.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        need_compiler()
        function.__qualname__ = f"{function.__name__}_{digest}"
        return njit(cache=True, **options)(function)

    return compile_later


def digest_of(files: Iterable[Path]) -> str:
    """Ten hex digits that change with the content of files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


def need_compiler() -> None:
    """Check that numba compiles. Without it a fit would end deep inside numba: its pointers are none of Python's.

    Raises
    ------
    NoCompilerError
        If the user switched it off.
    """
    if getattr(config, "DISABLE_JIT", 0):  # numba makes its settings at run time
        raise NoCompilerError(
            "NUMBA_DISABLE_JIT switches numba's compiler off, and no tree is fitted without it; "
            "unset this environment variable, or set it to 0, and start Python again"
        )


class KernelCache(FunctionCache):
    """Numba's cache of one function, which treats damage as absence."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, or None where it is absent or damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # pickle raises nearly anything on damaged bytes
            self._forget(error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function where the disk allows it."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say(f"the kernel cache in {self.cache_path} cannot be written ({error.strerror}); kept in memory alone")
        except RuntimeError as error:  # a Ctrl-C was lost (`interrupt_if_heard`), and with it the machine code to keep
            logger.debug("%s is not kept: %s", self._name, error)
        except Exception as error:  # the index is read once more, and was damaged since
            self._forget(error)

    def holds(self, arguments: Any) -> bool:
        """Whether the compiled function for these types is there, as this processor and this numba want it."""
        try:
            kept = self._cache_file._load_index()
            name = kept.get(self._index_key(arguments, cpu_target.target_context.codegen()))
        except Exception:  # damaged
            return False
        return name is not None and Path(self.cache_path, name).is_file()

    def _forget(self, error: Exception) -> None:
        """Write an empty index in the place of a damaged one."""
        _say(f"the kernel cache in {self.cache_path} is damaged ({type(error).__name__}); compiling anew")
        try:
            self.flush()
        except OSError:
            self.disable()


def holds(cache: Any, arguments: Any) -> bool:
    """Whether a cache keeps the compiled function for these types. Where the disk keeps nothing, none does."""
    return isinstance(cache, KernelCache) and cache.holds(arguments)


def open_cache(function: Callable[..., Any]) -> KernelCache | None:
    """The cache of a function, or None where no folder for it can be written."""
    try:
        return KernelCache(function)
    except (RuntimeError, OSError):
        _say(
            "no folder for compiled functions can be written, so each process compiles its own; "
            "name one in the environment variable NUMBA_CACHE_DIR"
        )
        return None


def _say(text: str) -> None:
    if text not in _said:
        _said.add(text)
        logger.warning(text)
