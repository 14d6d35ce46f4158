"""A cache for numba's type inference while entries are compiled.

For every ``a + b`` numba tries all registered forms of ``+`` until one takes these types. In the engine nine of ten
calls repeat an earlier one, so the answers are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction


@contextmanager
def resolved_once() -> Iterator[None]:
    """Have numba resolve a call once for each function, types and options; for one compiler at a time."""
    resolve = BaseFunction.get_call_type
    known: dict[Any, Any] = {}  # keys are addresses: the values keep the objects alive
    options: dict[int, Any] = {}

    def resolved(self: Any, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call. Where numba finds none it raises, and nothing is kept."""
        flags = ConfigStack.top_or_none()
        if id(flags) not in options:
            options[id(flags)] = flags, None if flags is None else tuple(map(str, flags.values().items()))
        key = id(self), id(context), tuple(args), tuple(kws.items()), options[id(flags)][1]
        if key not in known:
            known[key] = self, context, resolve(self, context, args, kws)
        return known[key][2]

    BaseFunction.get_call_type = resolved  # type: ignore[method-assign]
    try:
        yield
    finally:
        BaseFunction.get_call_type = resolve  # type: ignore[method-assign]
