"""How a raw column becomes small integers, and what each of their splits asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.data.blocks import Labels, NumberBlock, in_blocks, stacked
from softsurv.data.cuts import YES_NO
from softsurv.data.encoding import records
from softsurv.data.in_time import look_at_numbers
from softsurv.data.rules import Rule

FEW_CUTS = 32
"""So few cuts are compared with all values: a block of columns at a time is faster than a search in each."""

FEW_ROWS = 2048
"""In so few rows a column is searched nevertheless, where fewer columns than every second cut go together."""


class CodedColumn(NamedTuple):
    """How one raw column becomes small integers.

    Attributes
    ----------
    cuts : tuple of float
        Cuts of a number, ascending. The code is how many cuts lie below the value, so code <= k where value <= cuts[k].
    levels : tuple of str
        Levels of a category. The code is the place of the level, ``len(levels)`` for every other level.
    other : bool
        Whether training has levels that are not in ``levels``.
    ordered : bool
        Whether ``levels`` are cut in their order: code <= k where the level is one of the first k + 1.
    missing : {"", "first", "last", "apart"}
        Code of a missing value: none, as it is filled or was not met in training; the first code; the last; one of
        its own behind all others.
    as_one : bool
        Whether all ``levels`` are code 0, and all others code 1.
    """

    name: str
    cuts: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    other: bool = False
    ordered: bool = False
    missing: Literal["", "first", "last", "apart"] = ""
    as_one: bool = False

    @property
    def nominal(self) -> bool:
        return bool(self.levels) and not self.ordered

    @property
    def n_codes(self) -> int:
        """Codes that occur in training."""
        known = (1 if self.as_one else len(self.levels)) + self.other if self.levels else len(self.cuts) + 1
        return known + (self.missing == "apart")

    @property
    def splits(self) -> range:
        """Codes that name a split: of two levels, one says it all."""
        return range(self.n_codes if self.nominal and self.n_codes > 2 else self.n_codes - 1)

    @property
    def missing_code(self) -> int:
        """Code of a missing value, where it has one."""
        return 0 if self.missing == "first" else self.n_codes - 1

    def codes_of(self, labels: Labels, fill: Any) -> NDArray[np.int32]:
        """Codes (N,) of a category that is read already; ``fill`` is the level that stands for a missing value."""
        place, rest = self._code_of_levels()
        missing = self.missing_code if self.missing else place.get(fill, rest)
        return labels.of_each([place.get(text, rest) for text in labels.texts], missing, np.int32)

    def _code_of_levels(self) -> tuple[dict[str, int], int]:
        """Code of each level, and of all others."""
        place = {level: 0 if self.as_one else code for code, level in enumerate(self.levels)}
        return place, 1 if self.as_one else len(place)

    def codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        """Codes (N,) of raw values (N,): numbers, or text with None where missing."""
        if self.levels:
            place, rest = self._code_of_levels()
            codes = np.array([place.get(value, rest) for value in values], dtype=np.int32)
        else:
            codes = np.empty(len(values), dtype=np.int32)
            order = np.argsort(values) if len(self.cuts) > FEW_CUTS else slice(None)
            codes[order] = np.searchsorted(self.cuts, values[order], side="left")  # sorted ones are found faster
        if self.missing:
            codes[pd.isna(values)] = self.missing_code
        return codes

    def rule(self, feature: int, code: int, *, routes: bool) -> tuple[Rule, bool]:
        """The question of a split, and whether its answers are swapped; ``routes`` where missing values are routed.

        The code of "other" asks for the levels that are named instead, so that a level never seen before stays with
        the rest; rows with that code then answer no.
        """
        if self.missing == "apart" and code == (self.n_codes - 1 if self.nominal else self.n_codes - 2):
            return Rule(feature, missing=True), not self.nominal
        levels, swapped = self.levels, False
        if self.ordered:
            levels = tuple(sorted(levels[: code + 1]))
        elif levels:
            swapped = code == (1 if self.as_one else len(levels))
            levels = levels if swapped or self.as_one else (levels[code],)
        goes = self.missing_code == code if self.nominal else self.missing_code <= code
        missing = (bool(self.missing) and goes != swapped) if routes else None
        if levels:
            return Rule(feature, levels=levels, missing=missing), swapped
        return Rule(feature, threshold=self.cuts[code], missing=missing), swapped


def number_columns(cuts: Mapping[str, tuple[float, ...]]) -> list[CodedColumn]:
    """Columns of numbers by their cuts."""
    no, no_levels = repeat(False), repeat(())
    return records(CodedColumn, cuts, cuts.values(), no_levels, no, no, repeat(""), no)


def routed(column: CodedColumn, n_missing: int, n: int, least: int) -> Sequence[CodedColumn]:
    """Columns of codes with every split of a column twice, its missing values left and right, and "is missing" once.

    The last is left out where fewer than ``least`` of the n rows would be on a side.
    """
    apart = least <= n_missing <= n - least
    if not column.levels:
        high = column._replace(missing="apart" if apart else "last")
        return [high, column._replace(missing="first")] if column.cuts else [high]
    single = [column._replace(levels=(level,), other=True, as_one=True) for level in column.levels]
    named = [column._replace(as_one=True)] if column.other else []  # all others against the levels that are named
    with_missing = [one._replace(missing="first") for one in single] + [all_._replace(missing="last") for all_ in named]
    if not apart:
        others = [one._replace(missing="last") for one in single] + [all_._replace(missing="first") for all_ in named]
        return others + with_missing
    base = column._replace(missing="apart")
    return [base] if len(column.levels) + column.other < 3 else [base, *with_missing]


def codes_by_cuts(
    columns: Sequence[CodedColumn],
    table: Mapping[str, NDArray[Any]],
    out: NDArray[np.int32],  # (Q, N)
    block: NumberBlock | None = None,
) -> list[int]:
    """Fill in the codes of the columns of numbers with few cuts and no missing values.

    Returns the places of all other columns. ``block`` holds numbers of the table that are read already.
    """
    alike: dict[int, list[int]] = {}
    rest: list[int] = []
    for k, column in enumerate(columns):
        plain = not column.levels and not column.missing and len(column.cuts) <= FEW_CUTS
        (alike.setdefault(len(column.cuts), []) if plain else rest).append(k)
    for places in alike.values():
        for some in in_blocks(places, out.shape[1]):
            names = [columns[k].name for k in some]
            here = slice(None) if len(some) == len(out) else some
            of_block = block is not None and block.place.keys() >= set(names) and block.are_yes_no.all()
            if block is not None and of_block and all(columns[k].cuts == YES_NO for k in some):
                out[here] = block.values.astype(np.uint8)[[block.place[name] for name in names]]
                continue
            if out.shape[1] <= FEW_ROWS and 2 * len(some) <= len(columns[some[0]].cuts) + 1:
                rest += some
                continue
            found = None if block is None else block.found(names)
            values = stacked([table[name] for name in names]) if found is None else found.values
            cuts = np.array([columns[k].cuts for k in some]).T[:, :, None]
            codes = np.zeros(values.shape, dtype=np.int8)
            for cut in cuts:
                codes += ~(values <= cut)  # NaN lies above all cuts
            out[here] = codes
            look_at_numbers(out.shape[1], len(columns))
    return rest


def answers(
    columns: Sequence[CodedColumn],
    codes: NDArray[np.int32],  # (Q, N)
    *,
    routes: bool,
) -> NDArray[np.uint8]:
    """Answers (B, N) to all questions: 1 where a row answers yes to the rule of a split."""
    ends = np.cumsum([0, *(len(column.splits) for column in columns)])
    out = np.empty((ends[-1], codes.shape[1]), dtype=np.uint8)
    special = [f for f, column in enumerate(columns) if column.levels or column.missing]
    for some in in_blocks(range(len(columns)), codes.shape[1]):
        first, last = ends[some[0]], ends[some[-1] + 1]
        feature = np.repeat(some, np.diff(ends[some[0] : some[-1] + 2]))
        out[first:last] = codes[feature] <= (np.arange(first, last) - ends[feature])[:, None]
        look_at_numbers(codes.shape[1], len(columns))
    for f in special:
        column, code = columns[f], np.arange(len(columns[f].splits))[:, None]
        yes = codes[f] == code if column.nominal else codes[f] <= code
        swapped = [column.rule(f, k, routes=routes)[1] for k in column.splits]
        out[ends[f] : ends[f + 1]] = yes != np.array(swapped, dtype=bool)[:, None]
    return out


def level_column(name: str, count: Mapping[str, int], n: int, max_levels: int | None, min_share: float) -> CodedColumn:
    """How a category is coded: its most frequent levels, at most so many, each in that share of the n rows."""
    levels = sorted(count)  # the order of a categorical type moves no fit
    known = sum(count.values())
    # stable: of equally frequent levels the first in alphabetical order is kept
    ranked = sorted(levels, key=lambda level: -count[level])
    kept = ranked if max_levels is None or len(ranked) <= max_levels else ranked[: max_levels - 1]
    kept = [level for level in kept if count[level] >= min_share * n]
    while kept and 0 < known - sum(count[k] for k in kept) < min_share * n:
        kept.pop()  # "other" is a level too, and too rare
    if not kept:
        return CodedColumn(name)
    ordered = tuple(level for level in levels if level in kept)
    return CodedColumn(name, (), ordered, other=len(ordered) < len(levels))
