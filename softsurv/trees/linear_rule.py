"""Splits of few terms in the data's own units: what a sparse tree prints is what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.rules import level_words, number_text

TIE = 1e-9
"""On encoded features a score counts as equal to the threshold where it exceeds it by less than this share of the
largest weight, so that rounding of the features does not decide. A row whose score equals the threshold goes right."""

SINGLE_TIE = 2e-6
"""The same in single precision, whose rounding of a score of three terms may come to 7e-7."""


def tie_of(double: bool) -> float:
    """The tie in double or in single precision."""
    return TIE if double else SINGLE_TIE


ROUNDING = 1e-12
"""The same in the data's units, as a share of the summed sizes of the terms."""


@dataclass(frozen=True)
class LinearRule:
    """``sum of coefficient * feature > threshold``; rows for which it holds go left.

    Attributes
    ----------
    columns : tuple of int
        Encoded columns in printed order. Several indicators of one category, each with coefficient 1 and the threshold
        0.5, are a set of levels.
    coefficients : tuple of float
        In the data's units, with few digits.
    threshold : float
    """

    columns: tuple[int, ...]
    coefficients: tuple[float, ...]
    threshold: float

    def score(self, values: FloatArray) -> FloatArray:
        """Left-hand side (N,) for features in the data's units (P, N), summed in the printed order."""
        total: FloatArray = self.coefficients[0] * values[self.columns[0]]
        for column, coefficient in zip(self.columns[1:], self.coefficients[1:], strict=True):
            total = total + coefficient * values[column]
        return total

    def holds(self, values: FloatArray) -> BoolArray:
        """Whether each row goes left, (N,); the machine's rounding of a sum does not decide."""
        score = self.score(values)
        if len(self.columns) == 1:
            return score > self.threshold
        sizes = abs(self.threshold) + sum(
            abs(coefficient) * np.abs(values[column])
            for column, coefficient in zip(self.columns, self.coefficients, strict=True)
        )
        return score - self.threshold > ROUNDING * sizes

    def routing(self, columns: Sequence[OutputColumn], sharpness: float, tie: float = TIE) -> FloatArray:
        """Intercept and weights (P + 1,) on encoded features of the log-odds ``sharpness (score - threshold)``."""
        out = np.zeros(len(columns) + 1)
        out[0] = -self.threshold
        for k, coefficient in zip(self.columns, self.coefficients, strict=True):
            out[1 + k] = coefficient * columns[k].scale
            out[0] += coefficient * columns[k].offset
        out[0] -= tie * np.abs(out[1:]).max()
        return sharpness * out

    def is_level_set(self, columns: Sequence[OutputColumn]) -> bool:
        """Whether the rule asks for levels of one category."""
        asked = [columns[k] for k in self.columns]
        return (
            all(c.kind == "level" and c.source == asked[0].source for c in asked)
            and set(self.coefficients) == {1.0}
            and 0 <= self.threshold < 1
        )

    def sources(self, columns: Sequence[OutputColumn]) -> tuple[str, ...]:
        """Raw features that the rule asks for, in printed order."""
        return tuple(dict.fromkeys(columns[k].source for k in self.columns))

    def text(self, columns: Sequence[OutputColumn], name: Callable[[str], str] = str) -> str:
        """The rule in words: ``age > 45``, ``grade in {II, III}`` or ``age + 2.5 [grade = III] > 60``."""
        first = columns[self.columns[0]]
        if self.is_level_set(columns):
            levels = [level_words(str(columns[k].level)) for k in self.columns]
            source = name(first.source)
            return f"{source} = {levels[0]}" if len(levels) == 1 else f"{source} in {{{', '.join(levels)}}}"
        if len(self.columns) == 1 and self.coefficients[0] == -1.0:
            return f"{term_text(first, name)} < {number_text(-self.threshold)}"
        terms = [
            _signed(coefficient, term_text(columns[k], name), first=place == 0)
            for place, (k, coefficient) in enumerate(zip(self.columns, self.coefficients, strict=True))
        ]
        return f"{' '.join(terms)} > {number_text(self.threshold)}"

    def state(self) -> dict[str, Any]:
        """The rule as JSON values."""
        return {
            "columns": list(self.columns),
            "coefficients": list(self.coefficients),
            "threshold": self.threshold,
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> LinearRule:
        """The rule that :meth:`state` described."""
        return cls(tuple(state["columns"]), tuple(state["coefficients"]), float(state["threshold"]))


Rules = tuple[LinearRule | None, ...]
"""Rules of the branch nodes of a complete tree in heap order; at a node with None all rows go left."""


def term_text(column: OutputColumn, name: Callable[[str], str] = str) -> str:
    """An encoded feature as a term: a number by its name, an indicator in brackets."""
    if column.kind == "level":
        return f"[{name(column.source)} = {level_words(str(column.level))}]"
    return f"[{name(column.source)} is missing]" if column.kind == "missing" else name(column.source)


def _signed(coefficient: float, term: str, first: bool) -> str:
    size = number_text(abs(coefficient))
    shown = term if size == "1" else f"{size} {term}"
    if first:
        return f"-{shown}" if coefficient < 0 else shown
    return f"{'-' if coefficient < 0 else '+'} {shown}"


def answers_of(rules: Rules, values: FloatArray) -> BoolArray:
    """Whether each row goes left at each branch node, (B, N), for features in the data's units (P, N)."""
    n = values.shape[1]
    answers = np.ones((len(rules), n), dtype=bool)
    for node, rule in enumerate(rules):
        if rule is not None:
            answers[node] = rule.holds(values)
    return answers


def leaf_below(answers: BoolArray, node: int) -> IntArray:
    """Leaf (N,) that each row reaches from a node (heap order), from the answers (B, N) of all rules."""
    n_branches, n = answers.shape
    at = np.full(n, node, dtype=np.int64)
    row = np.arange(n)
    while n and at[0] < n_branches:
        at = 2 * at + 2 - answers[at, row]
    return at - n_branches


def leaf_of(rules: Rules, values: FloatArray) -> IntArray:
    """Leaf of each row, (N,)."""
    return leaf_below(answers_of(rules, values), 0)


def rows_at(answers: BoolArray, node: int) -> BoolArray:
    """Which rows reach a branch node, (N,)."""
    reach = np.ones(answers.shape[1], dtype=bool)
    while node > 0:
        parent = (node - 1) // 2
        reach &= answers[parent] if node == 2 * parent + 1 else ~answers[parent]
        node = parent
    return reach
