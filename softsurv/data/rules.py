"""What exact trees ask of a raw column, in arithmetic and in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import BoolArray
from softsurv.data.encoding import Source, is_level, raw_values

PLAIN_LEVEL = re.compile(r"\w[\w .:/%-]*")
"""Levels that need no quotes: nothing in them reads as an operator."""

OR_MISSING = " or missing"
"""Ends the words of a question to which missing values answer yes."""


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
    missing : bool or None
        Whether a missing value answers yes; None where it is filled before the question. True without threshold and
        levels: is the value missing?
    """

    feature: int
    threshold: float = math.nan
    levels: tuple[str, ...] = ()
    missing: bool | None = None

    @property
    def asks_missing(self) -> bool:
        """Whether the question is whether the value is missing."""
        return not self.levels and math.isnan(self.threshold)

    def answers(self, values: NDArray[Any]) -> BoolArray:
        """Which values (n,) answer yes: numbers, or text with None where missing."""
        gone = np.asarray(pd.isna(values)) if self.missing is not None else np.zeros(len(values), np.bool_)
        if self.asks_missing:
            return gone
        yes = is_level(values, self.levels) if self.levels else values <= self.threshold
        return np.where(gone, bool(self.missing), yes) if gone.any() else np.asarray(yes)


def fills_text(fills: Mapping[str, float | str | None], names: Iterable[str]) -> str:
    """What a missing value of each named column counts as, in a sentence."""
    words = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in fills.items()}
    return f"Missing values: {', '.join(f'{name} counts as {words[name]}' for name in names)}."


def fill(column: pd.Series, source: Source) -> NDArray[Any]:
    """A raw column (N,) as its source says; the fill of the source, if it has one, replaces missing values."""
    values = raw_values(column, source)
    return np.where(pd.isna(values), source.fill, values) if source.fill is not None else values


def number_text(value: float) -> str:
    """A number in six digits, or in as many as say exactly what it is: a printed rule is the rule."""
    short = f"{value:.6g}"
    exact = float(short) == value and "e+" not in short
    return short if exact else repr(float(value)).removesuffix(".0")


def rounded_text(value: float, digits: int = 4) -> str:
    """A number in so many digits; a large one in full, 12340 and not 1.234e+04."""
    return number_text(float(f"{value:.{digits}g}"))


def level_words(level: str) -> str:
    """A level, in quotes where it could be read as anything else, such as ``"<=20mm"``."""
    plain = PLAIN_LEVEL.fullmatch(level) and not level.endswith(OR_MISSING)
    return level if plain else '"' + level.replace("\\", "\\\\").replace('"', '\\"') + '"'


def indicator_name(source: str, level: str) -> str:
    """Name of the 0/1 column of a level: ``grade=III``, ``size="<=20mm"``."""
    return f"{source}={level_words(level)}"


def rule_text(rule: Rule, name: str) -> str:
    """The question in words: ``age <= 45 or missing``, ``grade = III``, ``grade in I, II`` or ``age is missing``."""
    if rule.asks_missing:
        return f"{name} is missing"
    end = OR_MISSING if rule.missing else ""
    if not rule.levels:
        return f"{name} <= {number_text(rule.threshold)}{end}"
    levels = [level_words(level) for level in rule.levels]
    return f"{name} = {levels[0]}{end}" if len(levels) == 1 else f"{name} in {', '.join(levels)}{end}"
