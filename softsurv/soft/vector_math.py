"""Exponential and logarithm in compiled loops, which LLVM turns into vector instructions.

A loop that calls the C library's ``exp`` gets no vector instructions. These functions are plain arithmetic: a reduction
of the argument, then a polynomial, exact to about one unit in the last place.
"""

from __future__ import annotations

from softsurv.float_bits import from_bits, to_bits
from softsurv.soft.jit import FUSED, loop_part

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts, the first of which has zeros for its last bits (fdlibm)."""

SHIFTER = 6755399441055744.0
"""1.5 * 2^52: added to a number below 2^51 it leaves the nearest integer in the last bits."""

ROOT_HALF = 0x3FE6A09E667F3BCD
"""Bits of the square root of one half."""

INFINITY, NOT_A_NUMBER = float("inf"), float("nan")

LEAST_EXPONENT = -708.0
"""Below it the result would lose bits: exp(-708) = 3e-308 stands for all that is smaller."""


@loop_part(**FUSED)
def exponential(x):
    """``exp(x)`` for x <= 700; NaN stays NaN."""
    x = LEAST_EXPONENT if x < LEAST_EXPONENT else x
    shifted = x * LOG2_E + SHIFTER
    whole = shifted - SHIFTER
    r = (x - whole * LN2_HIGH) - whole * LN2_LOW  # within log(2) / 2
    # Taylor's series: the first term left out is 0.35^14 / 14! = 4e-18
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * from_bits((to_bits(shifted) + 1023) << 52)


@loop_part(**FUSED)
def atanh_terms(z):
    """``(2 atanh(s) / s - 2) / z`` for z = s^2 up to 0.03, as fdlibm has it in ``log``."""
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    return p * z + 6.666666666666735130e-01


@loop_part(**FUSED)
def log_one_plus(e):
    """``log(1 + e)`` for e in [0, 1], without the loss of digits where e is small."""
    # log(1 + e) = k log 2 + 2 atanh(s), with |s| <= 0.172
    big = e > 0.41421356237309503
    s = (e - 1.0) / (e + 3.0) if big else e / (e + 2.0)
    z = s * s
    p = atanh_terms(z)
    return (LN2_HIGH + LN2_LOW if big else 0.0) + (2.0 * s + s * (z * p))


@loop_part(**FUSED)
def logarithm(x):
    """``log(x)`` for a positive number that is not subnormal; minus infinity at 0, NaN below it and of NaN."""
    # x = 2^k f with f in [sqrt(1/2), sqrt(2)): log x = k log 2 + 2 atanh(s) with |s| <= 0.172
    bits = to_bits(x)
    k = (bits - ROOT_HALF) >> 52
    f = from_bits(bits - (k << 52))
    s = (f - 1.0) / (f + 1.0)
    z = s * s
    p = atanh_terms(z)
    found = k * LN2_HIGH + (2.0 * s + (s * (z * p) + k * LN2_LOW))
    if x > 0.0:
        return found if x < INFINITY else x
    return -INFINITY if x == 0.0 else NOT_A_NUMBER
