"""Words of 64 bits inside compiled kernels."""

from __future__ import annotations

from typing import Any

from numba.core import types

from softsurv.exact.jit import intrinsic


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of bits that are 1."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate
