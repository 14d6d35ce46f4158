"""Compiled functions that are called from Python, or by other compiled code through their address.

What is called through an address is compiled once, however many kernels call it, and only when it is needed.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc

from softsurv.exact.helper import Helper
from softsurv.exact.jit import FAST, source_digest, without_garbage_collection
from softsurv.exact.kernels.views import Packed, start_of, view_of
from softsurv.exact.one_compiler import ONE_COMPILES
from softsurv.exact.resolved import resolved_once
from softsurv.kernel_cache import holds, need_compiler, open_cache
from softsurv.stopping import StopSignal, heard_at_once, interrupt_if_heard

logger = logging.getLogger("softsurv")

FOLDER = Path(__file__).parent

SAY_EVERY = 1.0
"""Seconds between two lines on what is compiled."""

ADDRESS = LONG = int
"""Arguments that are whole numbers: the address of an array's first element, a count."""

NUMBERS: dict[Any, Any] = {int: types.int64, float: types.float64, np.uint64: types.uint64}

IN_C: dict[Any, Any] = {types.int64: ctypes.c_int64, types.float64: ctypes.c_double, types.uint64: ctypes.c_uint64}


class Compiled(Protocol):
    """What is compiled once on a machine: an `Entry`, or a loop of soft trees."""

    title: str

    @property
    def is_ready(self) -> bool:
        """Whether this process has it already."""

    @property
    def is_on_disk(self) -> bool:
        """Whether an earlier process kept it."""

    @property
    def place(self) -> str | None:
        """Name, "module:name", by which another process finds it. None if it cannot be found or kept on disk."""

    def compile(self) -> None:
        """Compile it, or read it from disk."""


class Entry:
    """A compiled function with fixed types of arguments; compiled, or read from disk, when it is needed first.

    Parameters
    ----------
    function : callable
    arguments : sequence of type
        ``int``, ``float``, ``np.uint64``, or the NamedTuple of a view.
    returns : type, optional
        ``float``, or nothing.
    digest : callable () -> str, optional
        Changes with every file whose code ends up in it; by default that of the engine.
    options : dict, optional
        Options of numba.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Iterable[Any], returns: Any = None,
        *, digest: Callable[[], str] | None = None, options: dict[str, Any] = FAST,
    ) -> None:  # fmt: skip
        self.function, self.options = function, options
        self.arguments, self.returns, self._digest = tuple(arguments), returns, digest or engine_digest
        self.title = (function.__doc__ or function.__name__).partition(".")[0].partition("\n")[0]

    @cached_property
    def _cache(self) -> Any:
        # Numba compiles again when the file of a function changes, but not when a function that it calls changes. So
        # the name on disk holds a digest of all files, and the module's name: modules of one template share a file.
        need_compiler()
        module = self.function.__module__.rpartition(".")[2]
        self.function.__qualname__ = f"{self.function.__name__}_{module}_{self._digest()}"
        return open_cache(self.function)

    @cached_property
    def _signature(self) -> Any:
        kinds = (NUMBERS[one] if one in NUMBERS else view_of(one) for one in self.arguments)
        result = types.void if self.returns is None else NUMBERS[self.returns]
        return result(*kinds)

    @cached_property
    def _compiled(self) -> Any:
        kept, types_of = self._cache, self._signature
        options = {name: value for name, value in self.options.items() if name != "cache"}
        compiled: Any = CFunc(self.function, (types_of.args, types_of.return_type), {}, options)
        if kept is not None:
            compiled._cache = kept
        compiled.compile()
        return compiled

    @property
    def address(self) -> int:
        """Address of the machine code."""
        return int(self._compiled.address)

    def compile(self) -> None:
        """Compile it, or read it from disk."""
        self.address  # noqa: B018

    @cached_property
    def _callable(self) -> Any:
        given = [IN_C[NUMBERS[one]] if one in NUMBERS else ctypes.c_void_p for one in self.arguments]
        returned = None if self.returns is None else IN_C[NUMBERS[self.returns]]
        return ctypes.CFUNCTYPE(returned, *given)(self.address)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function without Python's lock, with packed structures, arrays in C order, and numbers."""
        return self._callable(*(_as_word(one) for one in arguments))

    @property
    def is_on_disk(self) -> bool:
        """Whether an earlier process kept it."""
        return holds(self._cache, self._signature)

    @property
    def place(self) -> str | None:
        """Name, "module:name", by which another process finds it. None if it cannot be found or kept on disk."""
        module, name = self.function.__module__, self.function.__name__
        kept = self._cache is not None and os.access(self._cache.cache_path, os.W_OK)
        spec = getattr(sys.modules.get(module), "__spec__", None)
        # a module made from a template has another name than its file
        own_file = spec is not None and Path(spec.origin or "").stem == module.rpartition(".")[2]
        known = own_file and vars(sys.modules[module]).get(name) is self
        return f"{module}:{name}" if kept and known else None

    @property
    def is_ready(self) -> bool:
        """Whether this process has it already."""
        return "_compiled" in vars(self)


def entry(*arguments: Any, returns: Any = None) -> Callable[[Callable[..., Any]], Entry]:
    """Compile a function, when it is first needed, for arguments of these types."""
    return lambda function: Entry(function, arguments, returns)


def _as_word(one: Any) -> Any:
    if isinstance(one, Packed):
        return one.address
    if isinstance(one, np.ndarray):
        return start_of(one)
    return int(one) if isinstance(one, np.integer) else one


def engine_files() -> list[str]:
    """All files whose code becomes part of an entry."""
    found = [file for folder in ("kernels", "base_cases", "cuts", "joint") for file in (FOLDER / folder).glob("*.py")]
    own = (str(file.relative_to(FOLDER)) for file in found)
    return [*own, "entries.py", "jit.py", "problem.py", "split_costs.py", "../float_bits.py"]


@cache
def engine_digest() -> str:
    """Changes with every one of these files."""
    return source_digest(engine_files())


def make_ready(
    entries: Iterable[Compiled],
    what: str,
    stop: StopSignal | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Compile entries or read them from disk; says on the logger ``softsurv`` what it compiles, every second or so.

    The clock of ``stop`` does not count the time that this takes. A Ctrl-C interrupts it at once. On a fresh machine a
    second process compiles too; once it is started, ``meanwhile`` is called.
    """
    entries = list(entries)
    if all(one.is_ready for one in entries):
        return
    clock = stop.paused() if stop is not None else nullcontext()
    with heard_at_once(), clock, ONE_COMPILES, without_garbage_collection():
        waiting = [one for one in entries if not one.is_ready]
        missing = [one for one in waiting if not one.is_on_disk]
        for one in waiting:
            if one not in missing:
                one.compile()  # reads
                interrupt_if_heard()
        _compile(missing, what, meanwhile)


def _compile(missing: list[Compiled], what: str, meanwhile: Callable[[], object] | None) -> None:
    """Compile entries, with the help of a second process where there are several and the disk keeps them."""
    place_of = {one: one.place for one in missing}
    shared = [place for place in place_of.values() if place is not None]
    with Helper(shared if len(missing) > 1 else []) as helper, resolved_once():
        if missing and meanwhile is not None:
            meanwhile()
        told, parts = -math.inf, len(missing)
        for k, one in enumerate(helper.in_turn(missing, place_of.__getitem__), 1):
            if time.monotonic() - told >= SAY_EVERY:
                told = time.monotonic()
                logger.warning("compiling %s, once on this machine: part %d of %d, %s", what, k, parts, one.title)
            helper.wait_for(place_of[one])
            one.compile()  # or reads what the helper compiled
            interrupt_if_heard()
