"""TreeView: any fitted tree as nodes with rules in the data's units, children and leaves.

Pictures, words and pages are written against this one form; what sets a kind of tree apart stays in here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.frames import as_frame, numeric_matrix
from softsurv.data.rules import OR_MISSING, fill, indicator_name
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.splits import LinearSplit, QuestionSplit, Split, ranked
from softsurv.explore.style import survival_tree
from softsurv.nonparametric import restricted_mean
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.soft_text import encoded_columns
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import parting_node
from softsurv.trees.typical_rows import typical_row


@dataclass(frozen=True)
class ViewNode:
    """A node in preorder; ``left``, ``right`` and ``parent`` are positions in ``TreeView.nodes``, -1 for none."""

    index: int
    level: int
    parent: int
    left: int
    right: int
    leaf: int
    split: Split | None
    branch: int
    """Column of the node in ``routing_probability``, -1 for a leaf."""


class CauseWeights(NamedTuple):
    """Effects of the features on one cause, as `TreeView` has them of one kind of event."""

    cause: str
    weights: FloatArray  # (L, P)
    effect: str


@dataclass(frozen=True)
class TreeView:
    """A tree to look at.

    Attributes
    ----------
    nodes : tuple of ViewNode
        Preorder, the root first.
    leaf_weights : ndarray (L, P) or None
        Effect of each encoded feature in each leaf, over the feature's training range; None where the leaves'
        curves do not vary, and where each cause has effects of its own.
    names : tuple of str, length P
        Encoded features.
    effect : str
        What ``leaf_weights`` are: a log hazard ratio, a log odds ratio or a shift on the probit scale.
    """

    nodes: tuple[ViewNode, ...]
    leaf_weights: FloatArray | None
    names: tuple[str, ...]
    effect: str = ""
    columns: tuple[OutputColumn, ...] = ()
    """Where each encoded feature comes from."""
    sources: tuple[Source, ...] = ()
    """What training knows of the raw features; empty for a tree on numbers as they are."""
    preprocessor: Any = None
    soft: bool = True
    """Whether branch nodes have routing probabilities."""
    whole: frozenset[str] = frozenset()
    """Raw features whose training values were all whole numbers, as far as that is known."""
    centre: FloatArray | None = None
    """Training means of the encoded features (P,), where training kept them."""
    cause_weights: tuple[CauseWeights, ...] = ()
    """Effects of the features on each cause, where there are causes."""
    order: tuple[int, ...] = ()
    """Leaves as pictures place them from the left; empty: by number."""

    @property
    def typical(self) -> FloatArray:
        """Encoded training means and most frequent levels (P,); the middle of the range where none were kept."""
        return typical_row(self.columns, self.sources, self.centre)

    def is_category(self, source: str) -> bool:
        """Whether a raw feature holds categories."""
        return bool(self.levels(source))

    def levels(self, source: str) -> tuple[str, ...]:
        """Levels of a raw category in training; empty where none are known."""
        return self._levels.get(source, ())

    @cached_property
    def _levels(self) -> dict[str, tuple[str, ...]]:
        return {source.name: source.levels for source in self.sources if source.levels is not None}

    def encode(self, X: Any) -> FloatArray:
        """Encoded features (n, P) of a raw table."""
        frame = as_frame(X.X if isinstance(X, SurvivalData) else X)
        if self.preprocessor is not None:
            return np.asarray(self.preprocessor.transform(frame), dtype=np.float64)
        if self.soft and not self.sources:
            return numeric_matrix(frame)
        known = {source.name: fill(frame[source.name], source) for source in self.sources}
        encoded = [_encoded(column, known[column.source]) for column in self.columns]
        return np.column_stack([np.empty((len(frame), 0)), *encoded])  # a tree may have no feature that can be split

    @property
    def leaves(self) -> list[int]:
        """Numbers of the leaves from the left: 0, 1, 2, ..."""
        return [node.leaf for node in self.nodes if node.leaf >= 0]

    @property
    def n_leaves(self) -> int:
        """How many leaves can be reached."""
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return max(node.level for node in self.nodes)

    @property
    def branches(self) -> list[ViewNode]:
        """Branch nodes, in preorder."""
        return [node for node in self.nodes if node.split is not None]

    def leaf_node(self, leaf: int) -> ViewNode:
        """The node of a leaf."""
        return next(node for node in self.nodes if node.leaf == leaf)

    def leaves_below(self, node: ViewNode) -> list[int]:
        """Numbers of the leaves below a node, or its own."""
        if node.leaf >= 0:
            return [node.leaf]
        return [leaf for child in (node.left, node.right) for leaf in self.leaves_below(self.nodes[child])]

    def path(self, end: int | ViewNode) -> list[tuple[ViewNode, bool]]:
        """Branch nodes from the root to a leaf, given by its number, or to a node, with whether the path goes left."""
        steps: list[tuple[ViewNode, bool]] = []
        node = end if isinstance(end, ViewNode) else self.leaf_node(end)
        while node.parent >= 0:
            parent = self.nodes[node.parent]
            steps.append((parent, parent.left == node.index))
            node = parent
        return steps[::-1]

    def place_words(self, node: ViewNode) -> str:
        """Where a branch node stands: the answers that lead to it."""
        answers: list[str] = []
        while node.parent >= 0:
            parent = self.nodes[node.parent]
            answers.append("yes" if parent.left == node.index else "no")
            node = parent
        return ", ".join(answers[::-1]) or "root"

    def path_words(self, end: int | ViewNode, max_terms: int = 3) -> str:
        """The rules that lead to a leaf, given by its number, or to a node."""
        words = []
        for node, left in self.path(end):
            assert node.split is not None
            text = node.split.text(max_terms)
            alone = left and not text.endswith(OR_MISSING)  # "a or missing and b" can be read in two ways
            words.append(text if alone else f"({text})" if left else f"not ({text})")
        return " and ".join(words) or "all rows"

    def top_features(self, leaf: int, count: int = 3) -> list[str]:
        """Features with the strongest say on the path to a leaf and within it."""
        total: dict[str, float] = {}
        sources = [node.split.strengths() for node, _ in self.path(leaf) if node.split is not None]
        if self.leaf_weights is not None:
            sources.append(ranked(self.names, np.abs(self.leaf_weights[leaf])))
        for strengths in sources:
            for name, value in strengths.items():
                total[name] = total.get(name, 0.0) + value
        return sorted(total, key=lambda name: (-total[name], name))[:count]

    def centres(self) -> dict[int, float]:
        """Horizontal place of each node: leaves at 0, 1, 2, ..., a branch node midway between its children."""
        places = {self.leaf_node(leaf).index: float(k) for k, leaf in enumerate(self.order or self.leaves)}
        for node in reversed(self.nodes):
            if node.leaf < 0:
                places[node.index] = 0.5 * (places[node.left] + places[node.right])
        return places

    def heights(self) -> dict[int, float]:
        """Vertical place of each node in a picture with a line for each leaf: leaves at 0.5, 1.5, 2.5, ...

        A branch node stands between the last leaf of its upper side and the first of its lower side.
        """
        first = {self.leaf_node(leaf).index: k for k, leaf in enumerate(self.order or self.leaves)}
        last, places = dict(first), {index: k + 0.5 for index, k in first.items()}
        for node in reversed(self.nodes):  # children before their parents
            if node.leaf < 0:
                upper, lower = sorted((node.left, node.right), key=first.__getitem__)
                first[node.index], last[node.index] = first[upper], last[lower]
                places[node.index] = last[upper] + 1.0
        return places


def tree_view(tree: Any) -> TreeView:
    """The view of a fitted soft or optimal survival tree, or of a bare `HardTree`."""
    if isinstance(tree, HardTree):
        return hard_view(tree)
    inner = survival_tree(tree).tree_
    view = _soft_view(tree) if isinstance(inner, SoftTree) else hard_view(inner)
    return replace(view, order=by_risk(view, tree.leaf_table_, float(tree.unique_times_[-1])))


def by_risk(view: TreeView, table: LeafTable, end: float) -> tuple[int, ...]:
    """Leaves from the left so that at every split the side of the lower risk is on the left.

    The risk of a side is judged by the restricted mean survival of its training rows up to ``end``.
    """

    def placed(node: ViewNode) -> tuple[tuple[int, ...], float, float]:
        """Leaves below a node in order, their rows, and the time that these live in all."""
        if node.leaf >= 0:
            n = float(table.n[node.leaf])
            return (node.leaf,), n, n * restricted_mean(table.curves[node.leaf], end) if n else 0.0
        sides = [placed(view.nodes[child]) for child in (node.left, node.right)]
        sides.sort(key=lambda side: -side[2] / max(side[1], 1.0))
        (first, n, lived), (second, m, more) = sides
        return first + second, n + m, lived + more

    return placed(view.nodes[0])[0]


EFFECTS = {
    "proportional_hazards": "log hazard ratio",
    "proportional_odds": "log odds ratio of the event",
    "probit": "shift on the probit scale",
}


def _soft_view(tree: Any) -> TreeView:
    module = tree.tree_
    names = tuple(tree.encoded_names_)
    columns = encoded_columns(tree.preprocessor_, names)
    routing = module.routing[0].detach().double().cpu().numpy()
    number = {int(leaf): k for k, leaf in enumerate(module.used_leaves)}
    leaves = None if tree.cause_trees_ else _slopes(module, list(number), len(names))
    causes = tuple(
        CauseWeights(cause, _slopes(own, list(number), len(names)), _effect(own))
        for cause, own in zip(tree.cause_names_, tree.cause_trees_, strict=True)
    )
    nodes: list[ViewNode] = []

    def add(heap: int, level: int, parent: int) -> int:
        """Append a node and all below it, the left side first; return its place in the list."""
        heap = parting_node(routing, heap)
        index = len(nodes)
        if heap >= len(routing):
            nodes.append(ViewNode(index, level, parent, -1, -1, number[heap - len(routing)], None, -1))
            return index
        split = LinearSplit(names, routing[heap], module, heap, columns)
        nodes.append(ViewNode(index, level, parent, -1, -1, -1, split, heap))
        left, right = add(2 * heap + 1, level + 1, index), add(2 * heap + 2, level + 1, index)
        nodes[index] = ViewNode(index, level, parent, left, right, -1, split, heap)
        return index

    add(0, 0, -1)
    sources = () if tree.preprocessor_ is None else tuple(tree.preprocessor_.sources_)
    whole = frozenset(tree.report_.details.get("whole", ()))
    return TreeView(
        tuple(nodes),
        leaves,
        names,
        _effect(module),
        columns,
        sources,
        tree.preprocessor_,
        whole=whole,
        centre=tree.centre_,
        cause_weights=causes,
    )


def _slopes(module: SoftTree, leaves: list[int], n_features: int) -> FloatArray:
    """Slopes in some leaves, (L, P)."""
    return module.leaves[0].detach().double().cpu().numpy()[leaves, 1 : n_features + 1]


def _effect(module: SoftTree) -> str:
    """What the slopes are, in words."""
    return EFFECTS.get(module.family.link.name, "effect")


def hard_view(tree: HardTree) -> TreeView:
    """The view of a tree of questions."""
    parent = np.full(tree.n_nodes, -1)
    for side in (tree.left, tree.right):
        parent[side[side >= 0]] = np.flatnonzero(side >= 0)
    level, branch = tree.level, np.cumsum(tree.feature >= 0) - 1
    asked = tuple(dict.fromkeys(tree.sources[k].name for k in tree.feature if k >= 0))
    nodes = []
    for index in range(tree.n_nodes):
        is_leaf = tree.leaf[index] >= 0
        split = None if is_leaf else QuestionSplit(tree.rule(index), tree.sources[tree.feature[index]], asked)
        place = (int(level[index]), int(parent[index]), int(tree.left[index]), int(tree.right[index]))
        nodes.append(ViewNode(index, *place, int(tree.leaf[index]), split, -1 if is_leaf else int(branch[index])))
    sources = tuple(dict.fromkeys(tree.sources))  # a column that is cut in several ways stands there several times
    columns = tuple(column for source in sources for column in _plain_columns(source))
    names = tuple(column.name for column in columns)
    return TreeView(tuple(nodes), None, names, "", columns, sources, None, soft=False)


def _plain_columns(source: Source) -> list[OutputColumn]:
    """A raw feature as numbers: itself, or one indicator per level; where missing values are routed, one of these."""
    missing = [OutputColumn(f"{source.name} is missing", source.name, "missing")] if source.fill is None else []
    if source.levels is None:
        return [OutputColumn(source.name, source.name, "number"), *missing]
    named = ((indicator_name(source.name, level), level) for level in source.levels)
    return [OutputColumn(name, source.name, "level", level) for name, level in named] + missing


def _encoded(column: OutputColumn, values: Any) -> FloatArray:
    """Raw values (n,) as a column of a hard tree's view."""
    if column.kind == "missing":
        return np.asarray(pd.isna(values), dtype=np.float64)
    return np.asarray(
        values == column.level if column.kind == "level" else (values - column.offset) / column.scale, dtype=np.float64
    )
