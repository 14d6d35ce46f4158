"""What exact trees ask of a raw column, and how a column becomes codes that answer it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.data.encoding import Source, raw_values

PLAIN_LEVEL = re.compile(r"\w[\w .:/%-]*")
"""Levels that need no quotes: nothing in them reads as an operator."""


@dataclass(frozen=True)
class Rule:
    """A question with two answers about one raw column; rows that answer yes go left.

    Attributes
    ----------
    feature : int
        Place of the column in ``Binarizer.sources_``.
    threshold : float
        For a number: is it at most the threshold? nan for a category.
    levels : tuple of str
        For a category: is it one of these levels? Levels not seen in training never are.
    """

    feature: int
    threshold: float = math.nan
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodedColumn:
    """How one raw column becomes small integers.

    Attributes
    ----------
    cuts : tuple of float
        Of a number, ascending: the code is the number of cuts below the value, so code <= k where value <= cuts[k].
    levels : tuple of str
        Of a category: the code is the place of the level, ``len(levels)`` for every other level.
    other : bool
        Whether training has levels that are not in ``levels``.
    ordered : bool
        Whether ``levels`` are cut in their order: code <= k where the level is one of the first k + 1.
    """

    name: str
    cuts: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    other: bool = False
    ordered: bool = False

    @property
    def nominal(self) -> bool:
        return bool(self.levels) and not self.ordered

    @property
    def n_codes(self) -> int:
        """Codes that occur in training."""
        return len(self.levels) + self.other if self.levels else len(self.cuts) + 1

    @property
    def splits(self) -> range:
        """Codes that name a split: of two levels, one says it all."""
        return range(self.n_codes if self.nominal and self.n_codes > 2 else self.n_codes - 1)


def fill(column: pd.Series, source: Source) -> NDArray[Any]:
    """A raw column (N,) as its source says, with the source's value in the place of missing ones."""
    values = raw_values(column, source)
    return np.where(pd.isna(values), source.fill, values) if source.fill is not None else values


def number_text(value: float) -> str:
    """A number in six digits, or in as many as say exactly what it is: a printed rule is the rule."""
    short = f"{value:.6g}"
    exact = float(short) == value and "e+" not in short
    return short if exact else repr(float(value)).removesuffix(".0")


def level_words(level: str) -> str:
    """A level, in quotes where it could be read as anything else, such as ``"<=20mm"``."""
    return level if PLAIN_LEVEL.fullmatch(level) else '"' + level.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rule_text(rule: Rule, name: str) -> str:
    """The question in words: ``age <= 45``, ``grade = III`` or ``grade in I, II``."""
    if not rule.levels:
        return f"{name} <= {number_text(rule.threshold)}"
    levels = [level_words(level) for level in rule.levels]
    return f"{name} = {levels[0]}" if len(levels) == 1 else f"{name} in {', '.join(levels)}"
