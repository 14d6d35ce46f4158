"""Rows with the same codes: one of each stands for all."""

from __future__ import annotations

import numpy as np

MANY_ROWS = 1 << 17
"""Rows from which on a sample says whether to look for equal ones."""

SAMPLE = 1 << 14
"""Rows of that sample. If one in a hundred of a million rows had an equal one, it would hold one such pair or more."""


EXACT_BITS = 53
"""Bits of a whole number that is exact as float64."""


def merge_equal_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First occurrence of every distinct row of codes (U,), and the group of every row (N,).

    Where hardly any rows are equal, each row is a group of its own: to find the equal ones costs more than they save.
    """
    if codes.shape[1] == 0:
        return np.zeros(1, np.intp), np.zeros(len(codes), np.intp)
    if len(codes) >= MANY_ROWS and _look_distinct(codes):
        return np.arange(len(codes)), np.arange(len(codes))
    words = as_words(codes)
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words[::-1])
    ordered, is_new, group = words[:, order], np.ones(len(codes), np.bool_), np.empty(len(codes), np.intp)
    is_new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    group[order] = np.cumsum(is_new) - 1
    return order[is_new], group


def _look_distinct(codes: np.ndarray) -> bool:
    """Whether no two of some neighbours, nor of some rows far from each other, are equal."""
    half = SAMPLE // 2
    sample = np.concatenate([codes[:half], codes[half :: (len(codes) - half) // half]])
    words = as_words(sample)
    ordered = words[:, np.lexsort(words[::-1])]
    return bool((ordered[:, 1:] != ordered[:, :-1]).any(axis=0).all())


def as_words(codes: np.ndarray) -> np.ndarray:
    """Rows of codes (N, P) as whole numbers (W, N) that order the rows as their codes do: few keys sort fast."""
    if codes.max() == 1:  # eight columns to a byte, the first of them on top
        padded = np.zeros((len(codes), -(-codes.shape[1] // 64) * 64), np.uint8)
        padded[:, : codes.shape[1]] = codes
        return np.ascontiguousarray(np.packbits(padded).view(">u8").reshape(len(codes), -1).T, dtype=np.uint64)
    bits = [max(1, most.bit_length()) for most in codes.max(axis=0).tolist()]
    columns, words, begin, end = codes.T.astype(np.float64), list[np.ndarray](), 0, 0
    while end < len(bits):
        below = 0  # bits of the word behind a column
        while end < len(bits) and below + bits[end] <= EXACT_BITS:
            below, end = below + bits[end], end + 1
        powers = np.ones(end - begin)
        for k in range(begin, end):
            below -= bits[k]
            powers[k - begin] = 2.0**below
        words.append(powers @ columns[begin:end])
        begin = end
    return np.stack(words)
