"""The features of a soft tree: names, where encoded columns come from, and how much each raw feature matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.blocks import NumberBlock, are_numbers, column_types, over_rows
from softsurv.data.encoding import is_number, numbers
from softsurv.data.kinds import text_columns
from softsurv.data.preprocess import Preprocessor
from softsurv.data.rules import fills_text
from softsurv.data.threads import LONG_COLUMN, MANY_CELLS, in_threads, threads_for
from softsurv.results import FitReport
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.topology import paths

if TYPE_CHECKING:
    from softsurv.trees.soft_tree import SoftTree

LEAST_SLOPE = 0.05
"""Features whose slope over their range is below this are not named in the notes."""


RECURRENT = (
    "Events recur: a leaf holds the rate of a counting process. The median is that of the first event, were events to "
    "come at random; predict_mean_count() gives their mean number."
)


def encoded_names(encoder: Preprocessor | None, n_features: int, names: NDArray[np.object_] | None) -> list[str]:
    """Names of the encoded features; ``names`` are those of the raw features, None if they have none."""
    if encoder is not None:
        return [str(name) for name in encoder.get_feature_names_out()]
    return [f"x{k}" for k in range(n_features)] if names is None else [str(n) for n in names]


def source_numbers(encoder: Preprocessor | None, n_encoded: int) -> tuple[int, ...]:
    """Number of the raw column that each encoded column comes from."""
    if encoder is None:
        return tuple(range(n_encoded))
    sources = [column.source for column in encoder.columns_]
    order = {name: k for k, name in enumerate(dict.fromkeys(sources))}
    return tuple(order[name] for name in sources)


def whole_numbers(X: pd.DataFrame) -> list[str]:
    """Columns whose known numbers are all whole: counts, and years of age."""
    block = NumberBlock.of(X)
    whole = np.ones(len(block.place), dtype=bool)
    for rows in (slice(0, 100), slice(None)):  # for most columns the first rows decide
        whole[whole] = _are_whole(block.values[whole, rows])
    whole[whole] = ~over_rows(lambda some: np.isnan(some).all(axis=1), block.values[whole])
    words = set(text_columns(X))  # text that shows numbers is read as numbers by `SurvivalData`
    return [
        name
        for name in X.columns.tolist()
        if (whole[block.place[name]] if name in block.place else name not in words and _holds_whole(X[name], name))
    ]


def incomplete(X: pd.DataFrame) -> list[str]:
    """Columns with missing values."""
    if len(X) < LONG_COLUMN or X.size < MANY_CELLS or not are_numbers(column_types(X)):
        return list(X.columns[X.isna().any().to_numpy()])
    names = X.columns.tolist()
    columns = [X[name].to_numpy() for name in names]
    gone = in_threads(lambda values: bool(np.isnan(values).any()), columns, threads_for(X.size))
    return [name for name, is_gone in zip(names, gone, strict=True) if is_gone]


def _are_whole(values: FloatArray) -> BoolArray:
    """Which columns (Q, N) have no number with a fraction, (Q,)."""

    def without_fraction(some: FloatArray) -> BoolArray:
        """The same of some columns."""
        with np.errstate(invalid="ignore"):  # some processors say so of a missing value; it is set for each thread
            return np.asarray((np.isnan(some) | (some == np.rint(some))).all(axis=1))

    return over_rows(without_fraction, values)


def _holds_whole(column: pd.Series, name: str) -> bool:
    """Whether a column of a type that numpy lacks holds whole numbers only."""
    values = numbers(column, name)[None] if is_number(column) else np.full((1, 1), np.nan)
    return bool(_are_whole(values)[0]) and not np.isnan(values).all()


def strongest_slopes(trees: Sequence[SoftTree], names: Sequence[str], count: int = 3) -> list[str]:
    """The features with the largest slopes in the leaves, for any cause; ``names`` has the feature of each column."""
    slopes = np.max([_slopes(tree, len(names)).mean(0) for tree in trees], 0)
    order = [k for k in np.argsort(-slopes, kind="stable") if slopes[k] > LEAST_SLOPE]
    return list(dict.fromkeys(names[k] for k in order))[:count]


def _slopes(tree: SoftTree, p: int) -> FloatArray:
    """Sizes of the slopes in the leaves that rows reach, (L, P)."""
    leaves: FloatArray = tree.leaves[0].detach().double().cpu().numpy()
    return np.abs(leaves[tree.used_leaves, 1 : p + 1])


def reading_notes(
    trees: Sequence[SoftTree],  # one for each cause
    encoder: Preprocessor | None,
    report: FitReport,
    names: Sequence[str],
    cause_names: Sequence[str] = (),
) -> list[str]:
    """Notes below a printed tree: why it has one leaf, how missing values are filled, which splits were taken out."""
    tree, notes = trees[0], []
    if tree.depth == 0 and "reason" in report.details:
        families = " and ".join(dict.fromkeys(one.family.name for one in trees))
        notes.append(f"One {families} regression for all rows: {report.details['reason']}.")
    if compared := report.details.get("compared"):
        some, rows = compared["rows"], compared["of"]
        notes.append(f"Settings were compared on {some:,} of {rows:,} rows, and the tree was trained on all.")
    if cause_names:
        hazards = ", ".join(f"{name} {one.family.name}" for name, one in zip(cause_names, trees, strict=True))
        notes.append(f"Each leaf holds a hazard for each cause: {hazards}. The median is that of any event.")
    if report.details.get("recurrent"):
        notes.append(RECURRENT)
    named = strongest_slopes(trees, names if encoder is None else [column.source for column in encoder.columns_])
    if named:
        notes.append(f"Within a leaf, a regression counts too, most of all on {', '.join(named)}: see summary().")
    columns = [] if encoder is None else encoder.columns_
    asked = {columns[k].source for rule in tree.rules if rule is not None for k in rule.columns} if columns else set()
    fills = {} if encoder is None else {source.name: source.fill for source in encoder.sources_}
    parts = len(tree.used_leaves) > 1  # a dense split asks for every column
    used = asked if tree.rules else fills.keys() if parts else set()
    imputed = [name for name in report.details.get("imputed", ()) if name in used]
    if imputed:
        notes.append(fills_text(fills, imputed))
    for gone in report.details.get("collapsed", ()):
        notes.append(
            f"Taken out: {gone['rule']}; it changed no training row's survival by more than {gone['difference']:.2g}."
        )
    return notes


def importances(
    trees: Sequence[SoftTree],  # one for each cause
    table: LeafTable,
    spread: FloatArray,  # (P,) standard deviation of each encoded feature
    split_sizes: FloatArray | None,  # (B,)
    encoder: Preprocessor | None,
) -> FloatArray:
    """Share of each raw feature in the tree, summing to one; zero for an unused feature."""
    tree, used = trees[0], trees[0].used_leaves
    routing = tree.routing[0].detach().double().cpu().numpy()
    share = table.n / max(table.n.sum(), 1)  # (L,)
    if split_sizes is None:  # a model of an earlier version: each split counts as a difference of one
        sides = paths(tree.depth)[used].T  # (B, L)
        split_sizes = np.sqrt(((sides > 0) @ share) * ((sides < 0) @ share))
    p = len(spread)
    size = share @ np.sum([_slopes(one, p) for one in trees], 0) * spread
    for sizes, weights in zip(split_sizes, np.abs(routing[:, 1:]) * spread, strict=True):
        if weights.any():
            size = size + sizes * weights / weights.sum()
    if encoder is None:
        total = size
    else:
        names = [str(name) for name in encoder.input_names_]
        total = np.zeros(len(names))
        for value, column in zip(size, encoder.columns_, strict=True):
            total[names.index(column.source)] += value
    return total / total.sum() if total.sum() > 0 else total
