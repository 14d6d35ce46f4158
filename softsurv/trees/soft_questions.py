"""The question of a branch node of a soft tree, whatever the language it is written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch

from softsurv.data.encoding import OutputColumn, Source
from softsurv.trees.linear_rule import LinearRule, tie_of
from softsurv.trees.soft_text import points
from softsurv.trees.soft_tree import SoftTree

CHAIN = 100
"""Most terms that are added up without brackets."""


class Wording(ABC):
    """Encoded features in some language, in the data's units; ``sources`` is what training knows of the raw ones."""

    def __init__(self, columns: Sequence[OutputColumn], sources: Sequence[Source]) -> None:
        self.columns = columns
        self.sources = {source.name: source for source in sources}

    @abstractmethod
    def literal(self, value: float) -> str:
        """A constant."""

    @abstractmethod
    def number(self, source: str) -> str:
        """A number of the table, or what training filled in."""

    @abstractmethod
    def is_one_of(self, source: str, levels: Sequence[str]) -> str:
        """Whether a category has one of some levels; missing values have the one that training filled in."""

    @abstractmethod
    def if_level(self, source: str, level: str, coefficient: float) -> str:
        """The coefficient if a category has a level, else 0."""

    @abstractmethod
    def if_missing(self, source: str, coefficient: float) -> str:
        """The coefficient if the value is missing, else 0."""

    def term(self, column: OutputColumn, coefficient: float) -> str:
        """A feature times its coefficient."""
        if column.kind == "number":
            return f"{self.literal(coefficient)} * {self.number(column.source)}"
        if column.kind == "level":
            return self.if_level(column.source, str(column.level), coefficient)
        return self.if_missing(column.source, coefficient)


def question(tree: SoftTree, node: int, words: Wording) -> str:
    """The question of a branch node: of a rule as it is printed, of a dense split its points."""
    if not tree.rules:
        threshold, per_unit = points(tree, node, words.columns)
        return _sum_exceeds([(k, float(per_unit[k])) for k in np.flatnonzero(per_unit).tolist()], threshold, words)
    rule, columns = tree.rules[node], words.columns
    assert rule is not None
    first = columns[rule.columns[0]]
    if rule.is_level_set(columns):
        return words.is_one_of(first.source, [str(columns[k].level) for k in rule.columns])
    if len(rule.columns) == 1 and first.kind == "number" and abs(rule.coefficients[0]) == 1.0:
        sign = rule.coefficients[0]  # exact as it is: a difference of one term has no rounding
        return f"{words.number(first.source)} {'>' if sign > 0 else '<'} {words.literal(sign * rule.threshold + 0.0)}"
    terms = list(zip(rule.columns, rule.coefficients, strict=True))
    return _sum_exceeds(terms, rule.threshold + _margin(rule, tree, columns), words)


def _margin(rule: LinearRule, tree: SoftTree, columns: Sequence[OutputColumn]) -> float:
    """By how much a score must exceed the threshold: as in `apply`, rounding of a sum does not decide."""
    tie = tie_of(tree.routing.dtype == torch.float64)
    return tie * max(abs(size) * columns[k].scale for k, size in zip(rule.columns, rule.coefficients, strict=True))


def _sum_exceeds(terms: Sequence[tuple[int, float]], threshold: float, words: Wording) -> str:
    """Whether a sum of terms, by encoded feature and coefficient, exceeds a threshold."""
    return f"{_sum([words.term(words.columns[k], size) for k, size in terms])} > {words.literal(threshold)}"


def _sum(terms: Sequence[str]) -> str:
    """Terms added up: many of them in halves, as SQLite refuses a chain of a thousand operators."""
    if len(terms) <= CHAIN:
        return " + ".join(terms)
    middle = len(terms) // 2
    return f"({_sum(terms[:middle])}) + ({_sum(terms[middle:])})"
