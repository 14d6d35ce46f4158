"""An evaluator of printed trees: it reads the text as a person would and sends raw rows to leaves.

It knows the features, what stands for a missing value of each, and nothing else of the model. Conditions it reads:

    age <= 45        grade = III        grade in I, II        grade in {I, II}
    age + 2.5 [grade = III] - 0.1 size > 7

A row for which the condition holds takes ``yes``.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.data.encoding import Source
from softsurv.data.preprocess import Preprocessor
from softsurv.data.rules import fill, level_words

INDENT = 4
COMPARE = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
ROUNDING = 1e-12
"""Share of the sizes of a sum's terms below which the machine may have rounded: a person adds decimals exactly."""

NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"


class UnreadableTreeError(ValueError):
    """The text has a form that the evaluator does not know."""


@dataclass(frozen=True)
class Table:
    """Raw rows by column name, missing values replaced as learned in training."""

    columns: dict[str, NDArray]
    sources: dict[str, Source]
    n: int

    @classmethod
    def of(cls, train: pd.DataFrame, rows: pd.DataFrame) -> Table:
        """Rows as a model fitted to ``train`` reads them."""
        sources = Preprocessor().fit(train).sources_
        return cls({s.name: fill(rows[s.name], s) for s in sources}, {s.name: s for s in sources}, len(rows))

    def terms(self) -> dict[str, NDArray[np.float64]]:
        """What may stand in a sum: a number by its name, a level as ``[column = level]``, 1 or 0."""
        found: dict[str, NDArray[np.float64]] = {}
        for name, source in self.sources.items():
            values = self.columns[name]
            if source.levels is None:
                found[name] = values.astype(float)
            else:
                words = {level: f"[{name} = {level_words(level)}]" for level in source.levels}
                found |= {words[level]: (values == level).astype(float) for level in source.levels}
        return found


def leaves_of_text(text: str, table: Table) -> NDArray[np.int64]:
    """Leaf of each row, (n,), by the printed tree."""
    lines = text.splitlines()
    leaf = np.full(table.n, -1)

    def walk(number: int, rows: NDArray[np.int64], level: int) -> int:
        """Send rows through the node printed in a line; the number of the first line after it and all below it."""
        content = re.sub(r"^(yes|no): *", "", lines[number].strip())
        if number and len(lines[number]) - len(lines[number].lstrip()) != INDENT * level:
            raise UnreadableTreeError(f"line {number + 1} must be indented by {INDENT * level} spaces")
        if reached := re.match(r"leaf (\d+)\b", content):
            leaf[rows] = int(reached[1])
            return number + 1
        holds = condition(content, table)[rows]
        if number + 1 >= len(lines) or not lines[number + 1].strip().startswith("yes:"):
            raise UnreadableTreeError(f"line {number + 2} must begin with yes:")
        after = walk(number + 1, rows[holds], level + 1)
        if after >= len(lines) or not lines[after].strip().startswith("no:"):
            raise UnreadableTreeError(f"line {after + 1} must begin with no:")
        return walk(after, rows[~holds], level + 1)

    walk(0, np.arange(table.n), 0)
    return leaf


def condition(text: str, table: Table) -> NDArray[np.bool_]:
    """Whether a printed condition holds, (n,)."""
    for name in sorted(table.sources, key=len, reverse=True):
        if table.sources[name].levels is None:
            continue
        values = table.columns[name].astype(str)
        if text.startswith(f"{name} = "):
            return values == next((v for v in set(values) if level_words(v) == text.removeprefix(f"{name} = ")), None)
        if text.startswith(f"{name} in "):
            listed = re.sub(r"^\{(.*)\}$", r"\1", text.removeprefix(f"{name} in "))
            return np.isin(values, [level for level in table.sources[name].levels or () if _lists(listed, level)])
    match = re.match(rf"^(.*) (<=|<|>=|>) (-?{NUMBER})$", text)
    if match is None:
        raise UnreadableTreeError(f"no condition: {text!r}")
    value, sizes = total(match[1], table)
    above = value - float(match[3])
    above[np.abs(above) <= ROUNDING * (sizes + abs(float(match[3])))] = 0.0
    return COMPARE[match[2]](above, 0.0)


def _lists(listed: str, level: str) -> bool:
    return re.search(rf"(^|, ){re.escape(level_words(level))}(, |$)", listed) is not None


def total(text: str, table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A printed sum of terms, and the sum of their sizes, both (n,)."""
    terms = table.terms()
    names = "|".join(map(re.escape, sorted(terms, key=len, reverse=True)))
    one = re.compile(rf"(?P<sign>[+-]?) ?(?:(?P<size>{NUMBER}) )?(?P<name>{names})(?= [+-]|$)")
    rest, value, sizes = text, np.zeros(table.n), np.zeros(table.n)
    while rest:
        term = one.match(rest)
        if term is None:
            raise UnreadableTreeError(f"no term: {rest!r}")
        factor = float(term["size"] or 1) * (-1 if term["sign"] == "-" else 1)
        summand, rest = factor * terms[term["name"]], rest[term.end() :].lstrip()
        value, sizes = value + summand, sizes + np.abs(summand)
    return value, sizes
