"""Rows copied column by column into contiguous memory, and the two products that compiled loops take of them."""

from __future__ import annotations

from softsurv.soft.jit import FUSED, REORDERED, loop_part
from softsurv.soft.step_kernels import inner


@loop_part(**FUSED)
def packed(table, order, count, out):
    """Fill ``out`` (R, N) with the rows of a table (N, R) in order, one behind the other."""
    for at in range(count):
        for r in range(out.shape[0]):
            out[r, at] = table[order[at], r]


@loop_part(**FUSED)
def packed_columns(table, order, count, out):
    """The same from a table (R, N)."""
    for r in range(out.shape[0]):
        for at in range(count):
            out[r, at] = table[r, order[at]]


@loop_part(**FUSED)
def add_linear(weights, table, first, last, z):
    """Add the linear combination of the rows of a table (R, N) to ``z`` (n,), four at a time."""
    r = 0
    while r + 4 <= weights.size:
        a, b, c, d = table[r, first:last], table[r + 1, first:last], table[r + 2, first:last], table[r + 3, first:last]
        p, q, s, t = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        for i in range(a.size):  # on slices, as an index that is a sum prevents vector instructions
            z[i] += p * a[i] + q * b[i] + s * c[i] + t * d[i]
        r += 4
    while r < weights.size:
        a, p = table[r, first:last], weights[r]
        for i in range(a.size):
            z[i] += p * a[i]
        r += 1


@loop_part(**REORDERED)
def add_products(table, first, last, slope, out):
    """Add the inner products of ``slope`` (n,) with the rows of a table (R, N) to ``out`` (R,), four at a time."""
    r = 0
    while r + 4 <= out.size:
        a, b, c, d = table[r, first:last], table[r + 1, first:last], table[r + 2, first:last], table[r + 3, first:last]
        p, q, s, t = 0.0, 0.0, 0.0, 0.0
        for i in range(slope.size):
            p += a[i] * slope[i]
            q += b[i] * slope[i]
            s += c[i] * slope[i]
            t += d[i] * slope[i]
        out[r] += p
        out[r + 1] += q
        out[r + 2] += s
        out[r + 3] += t
        r += 4
    while r < out.size:
        out[r] += inner(table[r, first:last], slope)
        r += 1


@loop_part(**FUSED)
def fill_few(weights, order, begin, column, value, first, last, z):
    """Fill ``z`` with the linear combinations of rows of few numbers.

    Those of row i are ``begin[i]`` to ``begin[i + 1]``. ``order`` (N,): the rows; ``first`` to ``last`` are meant.
    """
    for i in range(last - first):
        row, total = order[first + i], 0.0
        for at in range(begin[row], begin[row + 1]):
            total += weights[column[at]] * value[at]
        z[i] = total


@loop_part(**FUSED)
def add_few_products(order, begin, column, value, first, last, slope, out):
    """Add the inner products of ``slope`` with the columns of such rows to ``out`` (Q,)."""
    for i in range(last - first):
        row = order[first + i]
        for at in range(begin[row], begin[row + 1]):
            out[column[at]] += slope[i] * value[at]
