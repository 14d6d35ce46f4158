"""From a hard tree to the start of a soft one: routing weights that reproduce its splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.preprocess import Preprocessor
from softsurv.data.rules import Rule
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.soft.starts import soft_splits
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.topology import n_branches

if TYPE_CHECKING:
    from softsurv.estimators.optimal.tree import OptimalSurvivalTree


def start_tree(init: HardTree | OptimalSurvivalTree, data: SurvivalData) -> HardTree:
    """The hard tree that a soft tree is to start from.

    An `OptimalSurvivalTree` that is not fitted is fitted to the training rows first: scikit-learn's tools clone an
    estimator together with the one it starts from.
    """
    if isinstance(init, HardTree):
        return init
    if hasattr(init, "tree_"):
        return init.tree_
    return clone(init).fit(data).tree_


def check_start(init: Any) -> None:
    """Raise where ``init`` is neither a hard tree nor an estimator that fits one."""
    if isinstance(init, HardTree):
        return
    from softsurv.estimators.optimal.tree import OptimalSurvivalTree

    if not isinstance(init, OptimalSurvivalTree):
        raise InvalidParameterError(
            f"init must be the name of a start, an OptimalSurvivalTree or a HardTree, got {type(init).__name__}"
        )


def routing_from_tree(
    tree: HardTree,
    preprocessor: Preprocessor | None,
    x: FloatArray,
    depth: int | None = None,
    names: Sequence[str] | None = None,
) -> FloatArray:
    """Routing weights of a complete soft tree that sends every row where a hard tree sends it.

    Parameters
    ----------
    tree : HardTree
    preprocessor : Preprocessor or None
        What encoded ``x``; None where the features are the raw columns ``names``.
    x : ndarray (N, P)
        Encoded training rows: cuts are placed midway between their values, as `soft_splits` does.
    depth : int, optional
        Depth of the soft tree: at least that of the hard tree, which is the default. Below a leaf of the hard tree all
        rows go left.
    names : sequence of str (P,), optional

    Returns
    -------
    ndarray (B, P + 1)
        Intercept and weights in heap order.

    Raises
    ------
    InvalidParameterError
        The soft tree is too shallow, lacks a column that the hard tree asks, or fills its missing values so that
        they would fall on the other side of a split.
    """
    depth = tree.depth if depth is None else depth
    if depth < tree.depth:
        raise InvalidParameterError(f"depth must be at least that of the tree in init, {tree.depth}, got {depth}")
    columns, fills = _encoding(preprocessor, names)
    at = _heap_places(tree)
    branches = [node for node in range(tree.n_nodes) if tree.feature[node] >= 0]
    # every question becomes "z <= cut" about one affine function z of the encoded features
    offset, slopes, cuts = np.zeros(len(branches)), np.zeros((len(branches), x.shape[1])), np.zeros(len(branches))
    for k, node in enumerate(branches):
        source, rule = tree.sources[tree.feature[node]], tree.rule(node)
        offset[k], slopes[k], cuts[k] = _question(source, rule, columns)
        _check_fill(source, rule, fills)
    feature, threshold = np.full(n_branches(depth), -1), np.zeros(n_branches(depth))
    for k, node in enumerate(branches):
        feature[at[node]], threshold[at[node]] = k, cuts[k]
    on_z = soft_splits(offset + x @ slopes.T, feature, threshold)  # (B, number of questions + 1)
    return np.column_stack([on_z[:, 0] + on_z[:, 1:] @ offset, on_z[:, 1:] @ slopes])


def _encoding(
    preprocessor: Preprocessor | None, names: Sequence[str] | None
) -> tuple[list[OutputColumn], dict[str, Any]]:
    """Encoded columns, and the value that fills missing ones of each raw column."""
    if preprocessor is not None:
        return list(preprocessor.columns_), {source.name: source.fill for source in preprocessor.sources_}
    return [OutputColumn(name, name, "number") for name in names or ()], {}


def _heap_places(tree: HardTree) -> IntArray:
    """Place of each node in heap order, (V,)."""
    at = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in np.flatnonzero(tree.feature >= 0):  # preorder: parents first
        at[tree.left[node]], at[tree.right[node]] = 2 * at[node] + 1, 2 * at[node] + 2
    return at


def _question(source: Source, rule: Rule, columns: list[OutputColumn]) -> tuple[float, FloatArray, float]:
    """Intercept, slopes (P,) and cut of a question: rows with intercept + slopes.x <= cut go left."""
    if rule.asks_missing:
        raise InvalidParameterError(
            f"init asks whether {source.name!r} is missing, which a soft tree cannot ask; fit the tree of init with "
            "missing='impute'"
        )
    mine = [k for k, column in enumerate(columns) if column.source == source.name and column.kind != "missing"]
    kind = "number" if source.levels is None else "level"
    if not mine or columns[mine[0]].kind != kind:
        raise InvalidParameterError(
            f"init asks the column {source.name!r} as a {'number' if kind == 'number' else 'category'}, which the "
            "features of this fit do not have; fit both trees on the same columns"
        )
    slopes = np.zeros(len(columns))
    if kind == "number":
        column = columns[mine[0]]
        slopes[mine[0]] = 1.0
        return 0.0, slopes, (rule.threshold - column.offset) / column.scale
    # a category of two levels has one indicator only: the other level is "not this one"
    with_column = {columns[k].level for k in mine}
    if set(rule.levels) <= with_column:
        for k in mine:
            slopes[k] = -float(columns[k].level in rule.levels)
        return 1.0, slopes, 0.5
    for k in mine:
        slopes[k] = float(columns[k].level not in rule.levels)
    return 0.0, slopes, 0.5


def _check_fill(source: Source, rule: Rule, fills: dict[str, Any]) -> None:
    """Refuse an imputation that would send rows with a missing value to the other side."""
    mine, theirs = source.fill, fills.get(source.name, source.fill)
    if rule.missing is not None and theirs is not None:
        goes = theirs in rule.levels if rule.levels else float(theirs) <= rule.threshold
        if goes != rule.missing:
            raise InvalidParameterError(
                f"init routes missing values of {source.name!r} and this fit fills them with {theirs!r}, on the other "
                "side of a split; fit the tree of init with missing='impute'"
            )
    if mine is None or theirs is None or mine == theirs:
        return
    sides = [value in rule.levels if rule.levels else float(value) <= rule.threshold for value in (mine, theirs)]
    if sides[0] != sides[1]:
        raise InvalidParameterError(
            f"init fills missing values of {source.name!r} with {mine!r} and this fit with {theirs!r}, on the other "
            "side of a split; fit both trees on the same rows"
        )
