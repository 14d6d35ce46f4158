"""Functions that only compiled code calls: they become machine code once, within their callers.

Numba compiles every function to machine code by itself, together with all functions that it calls, and again within
each caller. With sixty functions in chains of five calls most of the time goes into code that never runs.
A part is only translated to LLVM's language and kept. The function that Python calls, or that is called through its
address, is linked with all of its parts, and LLVM compiles the whole once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from softsurv.kernel_cache import njit

NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that only compiled code calls: wrappers for Python would double the compilation."""


class Part(JITCodeLibrary):
    """The code of one function and of its parts, as translated."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Not here: the function that takes the part in is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):
    """Numba's compiler for a part."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Translate a function. The object for Python is empty, as Python never calls a part."""
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
