"""Words and numbers inside compiled kernels."""

from __future__ import annotations

from typing import Any

from numba.core import types

from softsurv.kernel_cache import intrinsic


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of bits that are 1."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


def _select(sign: str) -> Any:
    @intrinsic
    def select(typingctx: Any, a: Any, b: Any) -> Any:
        """The first of two numbers where the comparison holds, else the second, without a branch."""
        whole = isinstance(a, types.Integer) and isinstance(b, types.Integer)
        number = types.int64 if whole else types.float64

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            first = builder.icmp_signed(sign, *args) if whole else builder.fcmp_ordered(sign, *args)
            return builder.select(first, *args)

        return number(number, number), generate

    return select


lower = _select("<")
"""The smaller of two numbers, neither of them NaN; ``min`` of Python is compiled for each pair of types."""

higher = _select(">")
"""The larger of two numbers."""
