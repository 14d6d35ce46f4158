"""Yes/no columns in groups: the compiled part of `nesting.py`.

Pairs of columns are compared by bits, 64 rows at a time. Nested columns go into as few chains as possible. Match
columns with columns inside them, each column at most once as the outer and once as the inner one. Columns that are
matched inside no other begin the chains, so the largest matching gives the fewest chains (Dilworth's theorem). It is
found in rounds (Hopcroft and Karp 1973): each takes disjoint shortest paths that make it larger, columns in order, so
that it depends on the columns alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsurv.exact.entries import entry
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.views import ByteMatrix, IntMatrix, Ints, Longs, WordMatrix
from softsurv.exact.kernels.words import popcount

FAR = 1 << 30
"""Layer of a column that no path has reached."""

COUNT, FREE, INNER, OUTER, N_INSIDE, LAYER, LINE, CAME, AT = range(9)
"""Rows of ``of_column``: rows with a 1; whether it is in no level; the column matched inside it, and the one that it is
matched inside, -1 for none; columns inside it; layer; columns in line; column before it on a path; its next edge."""


class Columns(NamedTuple):
    """B columns of zeros and ones over U rows, and what is found of them: F groups."""

    answer: ByteMatrix  # (B, U) int8
    words: WordMatrix  # (B, W) uint64 the same as bits
    pair: IntMatrix  # (B, B) int32 rows that answer both with 1; then the columns inside each
    of_column: IntMatrix  # (9, B) int32
    place: Ints  # (2 B,) int32 columns of the groups, one after the other; of a chain the last one twice
    size: Ints  # (B,) int32 places that each group takes
    codes: IntMatrix  # (B, U) int32 codes of each group in its first F rows
    found: Longs  # (2,) int64 levels, groups


def columns_of(answers: np.ndarray) -> Columns:
    """Room for the groups of columns (B, U), whose answers are 0 or 1."""
    b, n = answers.shape
    padded = np.zeros((b, -(-n // 64) * 8), np.uint8)
    packed = np.packbits(answers, axis=1)
    padded[:, : packed.shape[1]] = packed
    return Columns(
        np.ascontiguousarray(answers, dtype=np.int8),
        padded.view(np.uint64),
        np.empty((b, b), np.int32),
        np.empty((9, b), np.int32),
        np.empty(2 * b, np.int32),
        np.empty(b, np.int32),
        np.empty((b, n), np.int32),
        np.zeros(2, np.int64),
    )


@shared_kernel
def _count_pairs(columns):
    """Rows that answer two columns with 1."""
    words, pair, of_column = columns.words, columns.pair, columns.of_column
    for i in range(words.shape[0]):
        for j in range(i + 1):
            both = 0
            for k in range(words.shape[1]):
                both += popcount(words[i, k] & words[j, k])
            pair[i, j] = both
            pair[j, i] = both
        of_column[COUNT, i] = pair[i, i]
        of_column[FREE, i] = 1


@shared_kernel
def _add_levels(columns):
    """Groups of three or more columns, where each row has its 1 in exactly one; the first that fit are taken."""
    pair, count, free, place = columns.pair, columns.of_column[COUNT], columns.of_column[FREE], columns.place
    b, n, begin = pair.shape[0], columns.answer.shape[1], 0
    for first in range(b):
        reach = count[first]
        for j in range(b):
            if pair[first, j] == 0:
                reach += count[j]
        if free[first] == 0 or reach < n:
            continue
        place[begin] = first
        end, total = begin + 1, count[first]
        for j in range(first + 1, b):
            apart = free[j] == 1 and total + count[j] <= n
            for k in range(begin, end):
                apart = apart and pair[place[k], j] == 0
            if apart:
                place[end] = j
                end += 1
                total += count[j]
        if total == n and end - begin > 2:
            for k in range(begin, end):
                free[place[k]] = 0
            columns.size[columns.found[0]] = end - begin
            columns.found[0] += 1
            begin = end
    return begin


@shared_kernel
def _list_inside(columns):
    """The free columns inside each free column, in the place of its pairs."""
    pair, of_column = columns.pair, columns.of_column
    count, free = of_column[COUNT], of_column[FREE]
    for i in range(pair.shape[0]):
        n = 0
        for j in range(pair.shape[0]):
            if pair[i, j] == count[j] and count[j] < count[i] and free[i] == 1 and free[j] == 1:
                pair[i, n] = j
                n += 1
        of_column[N_INSIDE, i] = n
        of_column[INNER, i] = -1
        of_column[OUTER, i] = -1


@shared_kernel
def _find_layers(columns):
    """Layer of each column: the fewest steps from a column with no match inside. Returns the layer where paths end."""
    pair, of_column = columns.pair, columns.of_column
    layer, line, outer = of_column[LAYER], of_column[LINE], of_column[OUTER]
    n, last = 0, FAR
    for i in range(pair.shape[0]):
        layer[i] = FAR
        if of_column[INNER, i] < 0:
            layer[i] = 0
            line[n] = i
            n += 1
    at = 0
    while at < n:
        i = line[at]
        at += 1
        if layer[i] >= last:
            break
        for k in range(of_column[N_INSIDE, i]):
            then = outer[pair[i, k]]
            if then < 0:
                last = layer[i]
            elif layer[then] == FAR:
                layer[then] = layer[i] + 1
                line[n] = then
                n += 1
    return last


@shared_kernel
def _end_path(columns, i):
    """Whether a path can end at column i, as a column inside it is not taken yet; all on the path are matched anew."""
    pair, of_column = columns.pair, columns.of_column
    inner, outer, came = of_column[INNER], of_column[OUTER], of_column[CAME]
    for k in range(of_column[N_INSIDE, i]):
        taken = pair[i, k]
        if outer[taken] < 0:
            while i >= 0:
                of_column[LAYER, i] = FAR  # paths of one round are disjoint
                left = inner[i]
                inner[i], outer[taken] = taken, i
                taken, i = left, came[i]
            return True
    return False


@shared_kernel
def _walk(columns, first, last):
    """Look for a path to the last layer from a column with no match inside."""
    pair, of_column = columns.pair, columns.of_column
    layer, came, at = of_column[LAYER], of_column[CAME], of_column[AT]
    i, n_inside = first, of_column[N_INSIDE]
    came[i], at[i] = -1, n_inside[i]
    while i >= 0:
        if layer[i] == last and at[i] == n_inside[i] and _end_path(columns, i):
            return
        then = -1
        while at[i] > 0 and then < 0:
            at[i] -= 1
            beyond = of_column[OUTER, pair[i, at[i]]]
            if beyond >= 0 and layer[i] < last and layer[beyond] == layer[i] + 1:
                then = beyond
        if then >= 0:
            came[then], at[then] = i, n_inside[then]
            i = then
        else:
            layer[i] = FAR  # no path goes this way
            i = came[i]


@shared_kernel
def _match(columns):
    """Match as many columns as possible, each with one inside it."""
    last = _find_layers(columns)
    while last < FAR:
        for i in range(columns.pair.shape[0]):
            if columns.of_column[INNER, i] < 0 and columns.of_column[LAYER, i] == 0:
                _walk(columns, i, last)
        last = _find_layers(columns)


@shared_kernel
def _add_chains(columns, begin):
    """The chains of free columns, each from the largest column to the smallest, behind the levels."""
    of_column, place = columns.of_column, columns.place
    groups = columns.found[0]
    for first in range(of_column.shape[1]):
        if of_column[FREE, first] == 1 and of_column[OUTER, first] < 0:
            end, i = begin, first
            while i >= 0:
                place[end] = i
                end += 1
                i = of_column[INNER, i]
            place[end] = place[end - 1]
            columns.size[groups] = end + 1 - begin
            groups += 1
            begin = end + 1
    columns.found[1] = groups


@shared_kernel
def _add_codes(columns):
    """In levels the place of the column that a row answers with 1; in a chain the number that it answers with 1."""
    answer, codes, place, begin = columns.answer, columns.codes, columns.place, 0
    for group in range(columns.found[1]):
        is_level, size = group < columns.found[0], columns.size[group]
        for row in range(codes.shape[1]):
            codes[group, row] = 0
        for k in range(size if is_level else size - 1):
            column, weight = place[begin + k], k if is_level else 1
            for row in range(codes.shape[1]):
                codes[group, row] += weight * answer[column, row]
        begin += size


@entry(Columns)
def group(columns):
    """Yes/no columns that belong together."""
    _count_pairs(columns)
    begin = _add_levels(columns)
    _list_inside(columns)
    _match(columns)
    _add_chains(columns, begin)
    _add_codes(columns)
