"""TreeView: any fitted tree as nodes with rules in the data's units, children and leaves.

Pictures, words and pages are written against this one form; what sets a kind of tree apart stays in here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softsurv.data.encoding import OutputColumn
from softsurv.data.frames import as_frame, numeric_matrix
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.style import shorten
from softsurv.trees.soft_text import rule

FloatArray = NDArray[np.float64]


class Split(Protocol):
    """What a branch node decides by."""

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

    def boundaries(self, view: TreeView, row: FloatArray, source: str) -> list[float]:
        """Values of a numeric raw feature at which the decision on an encoded row (P,) flips."""
        ...


@dataclass(frozen=True)
class LinearSplit:
    """A soft branch node: the log-odds of going left are linear in the encoded features.

    Attributes
    ----------
    names : tuple of str, length P
        Encoded features.
    weights : ndarray (P + 1,)
        Intercept, then the weight of each encoded feature.
    preprocessor : Preprocessor or None
        Gives the data's own units.
    """

    names: tuple[str, ...]
    weights: FloatArray
    preprocessor: Any

    def text(self, max_terms: int = 3, name_limit: int = 60) -> str:
        return rule(self.weights, [shorten(n, name_limit) for n in self.names], self.preprocessor, max_terms)

    def strengths(self) -> dict[str, float]:
        return _ranked(self.names, np.abs(self.weights[1:]))

    def effects(self) -> dict[str, float]:
        return {name: float(w) for name, w in zip(self.names, self.weights[1:], strict=True) if w != 0}

    def pushes(self, row: FloatArray, typical: FloatArray) -> dict[str, float]:
        return pushes_of(self.names, self.weights[1:], row, typical)

    def plain(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist()}

    def boundaries(self, view: TreeView, row: FloatArray, source: str) -> list[float]:
        margin = self.weights[0] + self.weights[1:] @ row
        return [
            column.to_units(row[k] - margin / self.weights[k + 1])
            for k, column in enumerate(view.columns)
            if column.source == source and column.kind == "number" and self.weights[k + 1] != 0
        ]


@dataclass(frozen=True)
class Node:
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


@dataclass(frozen=True)
class TreeView:
    """A tree to look at.

    Attributes
    ----------
    nodes : tuple of Node
        Preorder, the root first.
    leaf_weights : ndarray (L, P) or None
        Effect of each encoded feature in each leaf, over the feature's training range; None where the leaves'
        curves do not vary.
    names : tuple of str, length P
        Encoded features.
    effect : str
        What ``leaf_weights`` are: a log hazard ratio, a log odds ratio or a shift on the probit scale.
    """

    nodes: tuple[Node, ...]
    leaf_weights: FloatArray | None
    names: tuple[str, ...]
    effect: str = ""
    columns: tuple[OutputColumn, ...] = ()
    """Where each encoded feature comes from."""
    preprocessor: Any = None

    soft: bool = True
    """Whether branch nodes have routing probabilities."""

    @property
    def typical(self) -> FloatArray:
        """Encoded training means and most frequent levels (P,); mid-range where the preprocessor kept none."""
        sources = {} if self.preprocessor is None else {s.name: s.fill for s in self.preprocessor.sources_}
        return np.array([_typical(column, sources.get(column.source)) for column in self.columns])

    def leaf_survival(self, leaf: int, times: FloatArray) -> FloatArray:
        """Survival curve of a leaf that holds one for all its rows, (T,)."""
        raise NotImplementedError

    def is_category(self, source: str) -> bool:
        """Whether a raw feature holds categories."""
        return bool(self.levels(source))

    def levels(self, source: str) -> tuple[str, ...]:
        """Levels of a raw category in training; empty where none are known."""
        known = () if self.preprocessor is None else self.preprocessor.sources_
        return next((s.levels for s in known if s.name == source and s.levels is not None), ())

    def encode(self, X: Any) -> FloatArray:
        """Encoded features (n, P) of a raw table."""
        frame = X.X if isinstance(X, SurvivalData) else X
        if self.preprocessor is not None:
            return np.asarray(self.preprocessor.transform(frame), dtype=np.float64)
        return numeric_matrix(as_frame(frame))

    @property
    def n_leaves(self) -> int:
        """L."""
        return sum(node.leaf >= 0 for node in self.nodes)

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return max(node.level for node in self.nodes)

    @property
    def branches(self) -> list[Node]:
        """Branch nodes, in preorder."""
        return [node for node in self.nodes if node.split is not None]

    def leaf_node(self, leaf: int) -> Node:
        """The node of a leaf."""
        return next(node for node in self.nodes if node.leaf == leaf)

    def path(self, leaf: int) -> list[tuple[Node, bool]]:
        """Branch nodes from the root to a leaf, with whether the path goes left."""
        steps: list[tuple[Node, bool]] = []
        node = self.leaf_node(leaf)
        while node.parent >= 0:
            parent = self.nodes[node.parent]
            steps.append((parent, parent.left == node.index))
            node = parent
        return steps[::-1]

    def path_words(self, leaf: int, max_terms: int = 3) -> str:
        """The rules that lead to a leaf."""
        words = []
        for node, left in self.path(leaf):
            assert node.split is not None
            text = node.split.text(max_terms)
            if node.split.strengths():
                words.append(text if left else f"not ({text})")
            elif (text == "goes left") != left:
                return "no row, as a branch node above sends every row to its other side"
        return " and ".join(words) or "all rows"

    def top_features(self, leaf: int, count: int = 3) -> list[str]:
        """Features with the strongest say on the path to a leaf and within it."""
        total: dict[str, float] = {}
        sources = [node.split.strengths() for node, _ in self.path(leaf) if node.split is not None]
        if self.leaf_weights is not None:
            sources.append(_ranked(self.names, np.abs(self.leaf_weights[leaf])))
        for strengths in sources:
            for name, value in strengths.items():
                total[name] = total.get(name, 0.0) + value
        return sorted(total, key=lambda name: (-total[name], name))[:count]

    def centres(self) -> dict[int, float]:
        """Horizontal place of each node: leaves at 0, 1, 2, ..., a branch node midway between its children."""
        places: dict[int, float] = {}
        for node in reversed(self.nodes):
            places[node.index] = float(node.leaf) if node.leaf >= 0 else 0.5 * (places[node.left] + places[node.right])
        return places


def tree_view(tree: Any) -> TreeView:
    """The view of a fitted soft or optimal tree."""
    from softsurv.trees.soft_tree import SoftTree

    return _soft_view(tree) if isinstance(tree.tree_, SoftTree) else _hard_view(tree)


EFFECTS = {
    "proportional_hazards": "log hazard ratio",
    "proportional_odds": "log odds ratio of the event",
    "probit": "shift on the probit scale",
}


def _soft_view(tree: Any) -> TreeView:
    module = tree.tree_
    names = tuple(tree.encoded_names_)
    routing = module.routing[0].detach().double().cpu().numpy()
    leaves = module.leaves[0].detach().double().cpu().numpy()[:, 1 : len(names) + 1]
    nodes: list[Node] = []

    def add(heap: int, level: int, parent: int) -> int:
        index = len(nodes)
        if level == module.depth:
            nodes.append(Node(index, level, parent, -1, -1, heap - (2**level - 1), None, -1))
            return index
        split = LinearSplit(names, routing[heap], tree.preprocessor_)
        nodes.append(Node(index, level, parent, -1, -1, -1, split, heap))
        left, right = add(2 * heap + 1, level + 1, index), add(2 * heap + 2, level + 1, index)
        nodes[index] = Node(index, level, parent, left, right, -1, split, heap)
        return index

    add(0, 0, -1)
    effect = EFFECTS.get(module.family.link.name, "effect")
    return TreeView(tuple(nodes), leaves, names, effect, _columns_of(tree.preprocessor_, names), tree.preprocessor_)


def _columns_of(preprocessor: Any, names: tuple[str, ...]) -> tuple[OutputColumn, ...]:
    if preprocessor is not None:
        return tuple(preprocessor.columns_)
    return tuple(OutputColumn(name, name, "number") for name in names)


def _hard_view(tree: Any) -> TreeView:
    raise NotImplementedError


def _typical(column: OutputColumn, fill: float | str | None) -> float:
    if column.kind != "number":
        return float(fill is not None and column.level == fill)
    return 0.5 if fill is None else (float(fill) - column.offset) / column.scale


def pushes_of(names: tuple[str, ...], slopes: FloatArray, row: FloatArray, typical: FloatArray) -> dict[str, float]:
    """Terms of a linear combination against those of a typical row, strongest first."""
    terms = slopes * (row - typical)
    return {names[k]: float(terms[k]) for k in np.argsort(-np.abs(terms), kind="stable") if terms[k] != 0}


def _ranked(names: tuple[str, ...], sizes: FloatArray) -> dict[str, float]:
    top = float(sizes.max()) if sizes.size else 0.0
    order: Iterator[int] = (int(k) for k in np.argsort(-sizes, kind="stable") if sizes[k] > 0)
    return {names[k]: float(sizes[k]) / top for k in order}
