"""What a branch node decides by, for every kind of tree: its rule in words, its strongest features, its boundaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.rules import Rule, rounded_text, rule_text
from softsurv.explore.style import shorten_all
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_text import points, split_label, split_text
from softsurv.trees.soft_tree import SoftTree


class Split(Protocol):
    """The decision of a branch node."""

    def text(self, max_terms: int = 3, name_limit: int = 60) -> str:
        """The rule in the data's own units; where it is true a row goes left."""
        ...

    def strengths(self) -> dict[str, float]:
        """How strongly each encoded feature decides, strongest first, the strongest 1."""
        ...

    def effects(self) -> dict[str, float]:
        """Signed effect of each encoded feature that decides, over its training range; above 0 goes left."""
        ...

    def pushes(self, row: FloatArray, typical: FloatArray) -> dict[str, float]:
        """What each encoded feature of a row adds towards going left against a typical row, strongest first."""
        ...

    def plain(self) -> dict[str, Any]:
        """The split as JSON values."""
        ...

    def boundaries(self, columns: tuple[OutputColumn, ...], row: FloatArray, source: str) -> list[float]:
        """Values of a numeric raw feature at which the decision on an encoded row (P,) of these columns flips."""
        ...


def told_apart(names: Iterable[str], limit: int) -> dict[str, str]:
    """A short form of each name, different from those of the others."""
    different = list(dict.fromkeys(names))
    return dict(zip(different, shorten_all(different, limit), strict=True))


@dataclass(frozen=True)
class LinearSplit:
    """A soft branch node: the log-odds of going left are linear in the encoded features.

    Attributes
    ----------
    names : tuple of str, length P
        Encoded features.
    weights : ndarray (P + 1,)
        Intercept, then the weight of each encoded feature.
    tree : SoftTree
    node : int
        The branch node in heap order.
    columns : tuple of OutputColumn (P,)
        Where each encoded feature comes from.
    """

    names: tuple[str, ...]
    weights: FloatArray
    tree: SoftTree
    node: int
    columns: tuple[OutputColumn, ...]

    def text(self, max_terms: int = 3, name_limit: int = 60) -> str:
        if self.tree.rules:
            asked = (self.columns[k].source for rule in self.tree.rules if rule is not None for k in rule.columns)
            return split_text(self.tree, self.node, self.columns, told_apart(asked, name_limit).__getitem__)
        threshold = points(self.tree, self.node, self.columns)[0]  # in full beside the points, in `export_text`
        strongest = ", ".join(shorten_all(list(self.strengths())[:max_terms], name_limit))
        return f"points {split_label(self.node)} > {rounded_text(threshold)} (strongest: {strongest})"

    def strengths(self) -> dict[str, float]:
        return ranked(self.names, np.abs(self.weights[1:]))

    def effects(self) -> dict[str, float]:
        return {name: float(w) for name, w in zip(self.names, self.weights[1:], strict=True) if w != 0}

    def pushes(self, row: FloatArray, typical: FloatArray) -> dict[str, float]:
        return pushes_of(self.names, self.weights[1:], row, typical)

    def plain(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist()}

    def sources(self) -> tuple[str, ...]:
        """Raw features that decide."""
        return tuple(dict.fromkeys(c.source for c, w in zip(self.columns, self.weights[1:], strict=True) if w != 0))

    def printed(self) -> tuple[float, FloatArray]:
        """Threshold, and coefficients (P,) of the features in the data's units, as in `text`: yes is above it."""
        rule = self.rule
        if rule is None:
            return points(self.tree, self.node, self.columns)
        coefficients = np.zeros(len(self.columns))
        coefficients[list(rule.columns)] = rule.coefficients
        return rule.threshold, coefficients

    @property
    def rule(self) -> LinearRule | None:
        """The rule of few terms; None in a dense tree."""
        return self.tree.rules[self.node] if self.tree.rules else None

    def boundaries(self, columns: tuple[OutputColumn, ...], row: FloatArray, source: str) -> list[float]:
        margin = self.weights[0] + self.weights[1:] @ row
        return [
            column.to_units(row[k] - margin / self.weights[k + 1])
            for k, column in enumerate(columns)
            if column.source == source and column.kind == "number" and self.weights[k + 1] != 0
        ]


@dataclass(frozen=True)
class QuestionSplit:
    """A branch node of a hard tree: one question about one raw feature.

    Attributes
    ----------
    rule : Rule
        Threshold or levels, and where missing values go; rows that answer yes go left.
    source : Source
        The raw feature.
    asked : tuple of str
        Names of all raw features that the tree asks, which short names tell apart.
    """

    rule: Rule
    source: Source
    asked: tuple[str, ...] = ()

    def text(self, max_terms: int = 3, name_limit: int = 60) -> str:
        name = self.source.name
        return rule_text(self.rule, told_apart((name, *self.asked), name_limit)[name])

    def strengths(self) -> dict[str, float]:
        return {self.source.name: 1.0}

    def effects(self) -> dict[str, float]:
        return {self.source.name: 1.0 if self.rule.levels else -1.0}

    def pushes(self, row: FloatArray, typical: FloatArray) -> dict[str, float]:
        return {}

    def plain(self) -> dict[str, Any]:
        known = {"source": self.source.name, "missing": self.rule.missing}
        if self.rule.levels:
            return known | {"levels": list(self.rule.levels)}
        return known if self.rule.asks_missing else known | {"threshold": self.rule.threshold}

    def boundaries(self, columns: tuple[OutputColumn, ...], row: FloatArray, source: str) -> list[float]:
        asks_number = not self.rule.levels and not self.rule.asks_missing
        return [self.rule.threshold] if source == self.source.name and asks_number else []


def pushes_of(names: tuple[str, ...], slopes: FloatArray, row: FloatArray, typical: FloatArray) -> dict[str, float]:
    """Terms of a linear combination against those of a typical row, strongest first."""
    terms = slopes * (row - typical)
    return {names[k]: float(terms[k]) for k in np.argsort(-np.abs(terms), kind="stable") if terms[k] != 0}


def ranked(names: tuple[str, ...], sizes: FloatArray) -> dict[str, float]:
    """Sizes above 0 by name, the largest first and set to 1."""
    top = float(sizes.max()) if sizes.size else 0.0
    return {names[k]: float(sizes[k]) / top for k in np.argsort(-sizes, kind="stable") if sizes[k] > 0}
