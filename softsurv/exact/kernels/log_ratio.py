"""A logarithm of a ratio that the compiler can put on the vector unit."""

from __future__ import annotations

from numba import njit

from softsurv.float_bits import from_bits, to_bits

LN2 = 0.6931471805599453
HALF_STEP = 0x0008000000000000  # half of one step of the exponent field, to round to the nearest power of two


@njit(inline="always")
def log_ratio(a, b):
    """log(a / b) for normal positive a, b; absolute error about 3e-16 max(|log(a / b)|, 1).

    b is scaled by a power of two so that 2/3 <= a/b <= 3/2; then log(a/b) = 2 atanh(s) with s = (a - b)/(a + b), by
    its series in z = s^2 <= 1/25, cut after z^10 (the rest is below 3e-17). Written out: a loop would not be unrolled.
    """
    steps = (to_bits(a) - to_bits(b) + HALF_STEP) >> 52
    near = from_bits(to_bits(b) + (steps << 52))
    s = (a - near) / (a + near)
    z = s * s
    series = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21))))
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * series))))
    return steps * LN2 + 2.0 * (s + s * z * series)
