"""Functions that only compiled code calls: they become machine code within their callers, once.

Numba brings every function to machine code by itself, with all that it calls, and again within each caller. The engine
is sixty functions in a chain five calls deep, so most of a first fit was spent on code that nobody runs. A part is
translated, checked and kept; the function that Python calls, or that is called through its address, takes in all of its
parts, and the compiler sees the whole once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from softsurv.kernel_cache import njit


class Part(JITCodeLibrary):
    """The code of one function and of its parts, as translated."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Left to whoever takes the part in."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):
    """Numba's compiler for a part."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Translate a function; what Python would call is empty."""
        state = self.state
        state.library = Part(state.targetctx.codegen(), func.__qualname__)
        state.flags.no_compile = True  # no address is looked up
        translated = super().compile_extra(func)
        described = translated.fndesc
        empty = _dynfunc.make_function(
            described.lookup_module(), func.__name__, "part", 0, translated.environment, (state.library,)
        )
        state.targetctx.insert_user_function(empty, described, [state.library])
        return translated._replace(entry_point=empty)


def part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `njit`, for a function that only compiled code calls."""
    return njit(pipeline_class=PartCompiler, **options)
