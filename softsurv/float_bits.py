"""The 64 bits of a float as an integer, and back, in compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from softsurv.kernel_cache import intrinsic


@intrinsic
def to_bits(typingctx: Any, x: Any) -> Any:
    """The 64 bits of a float64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def from_bits(typingctx: Any, bits: Any) -> Any:
    """The float64 of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Machine code of the call."""
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate
