"""Loops: compiled functions that Python calls, with the types of their usual arguments stated.

So two processes can compile a list of them, one by one (`softsurv.exact.helper`), and what a machine has is known
before anything is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

from numba import types

from softsurv.kernel_cache import holds, kept_as

FLOAT, INT, INT32, INT16, FLAG = types.float64, types.int64, types.int32, types.int16, types.boolean


def floats(*n_dim: int) -> tuple[Any, ...]:
    """Types of arrays of floats in C order with these numbers of axes."""
    return _arrays(FLOAT, n_dim)


def ints(*n_dim: int, of: Any = INT) -> tuple[Any, ...]:
    """The same for whole numbers."""
    return _arrays(of, n_dim)


def flags(*n_dim: int) -> tuple[Any, ...]:
    """The same for truth values."""
    return _arrays(FLAG, n_dim)


def _arrays(one: Any, n_dim: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(types.Array(one, n, "C") for n in n_dim)


def together(*kinds: Any) -> Any:
    """Type of a tuple."""
    return types.Tuple(kinds)


class Loop:
    """A function that Python calls; compiled, or read from disk, when first needed.

    Parameters
    ----------
    function : callable
    arguments : tuple of numba types
        Types of the arguments of usual fits. For others the function is compiled again when they come.
    digest : callable () -> str
        Part of its name on disk: changes with every file whose code ends up in it.
    **options
        Options of numba.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], digest: Callable[[], str], **options: Any
    ) -> None:
        self.py_func, self.arguments = function, arguments
        self.title = (function.__doc__ or function.__name__).partition(".")[0].partition("\n")[0]
        self._digest, self._options = digest, options

    @cached_property
    def _compiled(self) -> Any:
        return kept_as(self._digest(), nogil=True, **self._options)(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        """Run it, without Python's lock."""
        try:
            return self._compiled(*arguments)
        except SystemError as error:
            if was_interrupted(error):
                raise KeyboardInterrupt from error
            raise

    def compile(self) -> None:
        """Compile it for the usual arguments, or read it from disk."""
        self._compiled.compile(self.arguments)

    @property
    def compiled_for(self) -> list[Any]:
        """Types of arguments for which this process has it."""
        return list(self._compiled.overloads)

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

    def with_types(self, before: Any, after: Any) -> Loop:
        """The same loop, to be compiled for arguments of another type in the place of one."""
        twin = copy(self)
        vars(twin)["_compiled"] = self._compiled
        twin.arguments = tuple(after if one == before else one for one in self.arguments)
        return twin


def was_interrupted(error: BaseException | None) -> bool:
    """Whether a Ctrl-C led to an error.

    Numba calls Python to make the arrays that a compiled function returns. A Ctrl-C that is raised there is noticed too
    late: Python then reports that a function "returned a result with an exception set".
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
