"""HardTree: an axis-parallel tree as frozen arrays, readable in the data's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import Source
from softsurv.data.frames import as_frame
from softsurv.data.rules import Rule, fill, rule_text
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, ModelFileError
from softsurv.trees.hard_text import hard_tree_dot, hard_tree_python, hard_tree_text

FORMAT = 1  # version of the state that to_dict writes


class Branch(NamedTuple):
    """A branch node, from which `HardTree.grow` builds a tree. A child that is None is a leaf."""

    rule: Rule
    left: Branch | None
    right: Branch | None


@dataclass(frozen=True, eq=False)
class HardTree:
    """A binary tree with one question per branch node; rows that answer yes go left.

    Nodes are in preorder, the root first, so that a left child follows its parent; leaves are numbered from the left.

    Parameters
    ----------
    sources : tuple of Source
        Raw columns that nodes may ask, each with the value that fills missing ones.
    feature : ndarray of int (V,)
        Place in ``sources`` of the column that a branch node asks, -1 at a leaf.
    threshold : ndarray (V,)
        Numbers at most this go left; nan where a node does not ask a number.
    levels : tuple of tuple of str, length V
        Levels that go left; empty where a node does not ask a category. A level not seen in training goes right.
    left, right : ndarray of int (V,)
        Children, -1 at a leaf.
    value : ndarray (L, K)
        Numbers of each leaf, such as its relative risk; K may be 0.
    value_names : tuple of str, length K
    missing : tuple of bool or None, length V
        Whether missing values go left. None, the default everywhere: they are filled first. True at a node that has
        neither threshold nor levels: the node asks whether the value is missing.

    Raises
    ------
    InvalidParameterError
        The arrays do not make up a tree.

    Examples
    --------
    >>> age = Source("age", None, 52.0)
    >>> tree = HardTree.grow([age], Branch(Rule(0, threshold=45.0), None, None), [[0.5], [2.0]], ["relative risk"])
    >>> tree.apply({"age": [40, 60, None]}).tolist()
    [0, 1, 1]
    >>> print(tree.export_text())
    age <= 45
        yes: leaf 0: relative risk 0.5
        no:  leaf 1: relative risk 2
    """

    sources: tuple[Source, ...]
    feature: IntArray
    threshold: FloatArray
    levels: tuple[tuple[str, ...], ...]
    left: IntArray
    right: IntArray
    value: FloatArray
    value_names: tuple[str, ...] = ()
    missing: tuple[bool | None, ...] = ()
    leaf: IntArray = field(init=False)
    """Number of each leaf, -1 at a branch node, (V,)."""

    def __post_init__(self) -> None:
        for name, kind in (("feature", int), ("threshold", float), ("left", int), ("right", int), ("value", float)):
            array = np.array(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "levels", tuple(tuple(some) for some in self.levels))
        object.__setattr__(self, "value_names", tuple(self.value_names))
        object.__setattr__(self, "missing", tuple(self.missing) or (None,) * self.feature.size)
        _check(self)
        is_leaf = self.feature < 0
        object.__setattr__(self, "leaf", np.where(is_leaf, np.cumsum(is_leaf) - 1, -1))
        self.leaf.setflags(write=False)

    @classmethod
    def grow(
        cls,
        sources: Sequence[Source],
        root: Branch | None,
        value: Any = None,
        value_names: Sequence[str] = (),
    ) -> HardTree:
        """The tree of nested branches; ``value`` (L, K) defaults to no numbers."""
        rules: list[Rule | None] = []
        left: list[int] = []
        right: list[int] = []

        def add(branch: Branch | None) -> int:
            """Append a node and all below it, the left side first; its number."""
            node = len(rules)
            rules.append(None if branch is None else branch.rule)
            left.append(-1)
            right.append(-1)
            if branch is not None:
                left[node], right[node] = add(branch.left), add(branch.right)
            return node

        add(root)
        feature = [-1 if rule is None else rule.feature for rule in rules]
        threshold = [np.nan if rule is None else rule.threshold for rule in rules]
        levels = tuple(() if rule is None else rule.levels for rule in rules)
        numbers = np.empty((feature.count(-1), 0)) if value is None else value
        return cls(
            tuple(sources),
            np.array(feature),
            np.array(threshold),
            levels,
            np.array(left),
            np.array(right),
            numbers,
            tuple(value_names),
            tuple(None if rule is None else rule.missing for rule in rules),
        )

    def with_values(self, value: Any, value_names: Sequence[str]) -> HardTree:
        """A tree with the same splits and other values in its leaves, ``value`` (L, K)."""
        tree, numbers = object.__new__(HardTree), np.array(value, dtype=float)
        numbers.setflags(write=False)
        vars(tree).update(vars(self), value=numbers, value_names=tuple(value_names))
        _check_values(tree)
        return tree

    # -- shape ---------------------------------------------------------------------------------------------------
    @property
    def n_nodes(self) -> int:
        """V."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """L."""
        return int((self.feature < 0).sum())

    @property
    def level(self) -> IntArray:
        """Distance of each node from the root, (V,)."""
        level = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):
            level[[self.left[node], self.right[node]]] = level[node] + 1
        return level

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return int(self.level.max())

    # -- routing -------------------------------------------------------------------------------------------------
    def apply(self, X: Any) -> IntArray:
        """Leaf of each row of a raw table, (n,); columns are found by name, missing values treated as in training.

        Raises
        ------
        InvalidSurvivalDataError
            A column that the tree asks is missing, or holds text where training had numbers.
        """
        frame = as_frame(X)
        asked = [self.sources[f] for f in sorted(set(self.feature[self.feature >= 0].tolist()))]
        absent = [source.name for source in asked if source.name not in frame.columns]
        if absent:
            raise InvalidSurvivalDataError(
                f"X must have every column that the tree asks, got none named {absent[0]!r}; add or rename columns"
            )
        return self.leaf_of({source.name: fill(frame[source.name], source) for source in asked}, len(frame))

    def leaf_of(self, table: Mapping[str, NDArray[Any]], n: int) -> IntArray:
        """Leaf of each of n rows, (n,), of columns by name as ``Binarizer.filled`` gives them."""
        return self.leaf[self.node_of(table, n)]

    def node_of(self, table: Mapping[str, NDArray[Any]], n: int) -> IntArray:
        """Node at which each of n rows ends, (n,); see :meth:`leaf_of`."""
        at, rows = np.zeros(n, dtype=np.int64), {0: np.arange(n)}  # rows of the nodes to come
        for node, leaf in enumerate(self.leaf.tolist()):  # preorder: parents first
            here = rows.pop(node)
            if leaf >= 0:
                at[here] = node
                continue
            yes = self.rule(node).answers(table[self.sources[self.feature[node]].name][here])
            rows[int(self.left[node])], rows[int(self.right[node])] = here[yes], here[~yes]
        return at

    def path(self, leaf: int) -> list[tuple[int, bool]]:
        """Branch nodes from the root to a leaf, with whether the path goes left."""
        node, steps = int(np.flatnonzero(self.leaf == leaf)[0]), []
        while node:
            parent = int(np.flatnonzero((self.left == node) | (self.right == node))[0])
            steps.append((parent, bool(self.left[parent] == node)))
            node = parent
        return steps[::-1]

    # -- reading -------------------------------------------------------------------------------------------------
    def rule(self, node: int) -> Rule:
        """The question of a branch node."""
        return Rule(int(self.feature[node]), float(self.threshold[node]), self.levels[node], self.missing[node])

    def text(self, node: int) -> str:
        """The question of a branch node in the data's units; rows for which it is true go left."""
        return rule_text(self.rule(node), self.sources[self.feature[node]].name)

    def leaf_lines(self) -> list[str]:
        """The numbers of each leaf in words."""
        return [
            ", ".join(f"{name} {value:.4g}" for name, value in zip(self.value_names, row, strict=True))
            for row in self.value
        ]

    def export_text(self, lines: Sequence[str] | None = None) -> str:
        """The tree as indented text, with ``lines`` in the place of the leaves' numbers where given."""
        return hard_tree_text(self, self.leaf_lines() if lines is None else lines)

    def export_dot(self, lines: Sequence[str] | None = None) -> str:
        """The tree in Graphviz's language; ``lines`` as in :meth:`export_text`."""
        return hard_tree_dot(self, self.leaf_lines() if lines is None else lines)

    def to_python(self, name: str = "leaf_of", lines: Sequence[str] | None = None) -> str:
        """Source of a plain function that takes one row as a mapping and returns its leaf; it needs no import."""
        return hard_tree_python(self, name, self.leaf_lines() if lines is None else lines)

    # -- saving --------------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; numbers survive `from_dict` exactly."""
        return {
            "format": FORMAT,
            "sources": [
                {"name": s.name, "levels": None if s.levels is None else list(s.levels), "fill": s.fill}
                for s in self.sources
            ],
            "feature": self.feature.tolist(),
            "threshold": [None if np.isnan(cut) else cut for cut in self.threshold.tolist()],
            "levels": [list(some) for some in self.levels],
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "value": self.value.tolist(),
            "value_names": list(self.value_names),
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> HardTree:
        """The tree that :meth:`to_dict` wrote; a damaged state is a `ModelFileError`."""
        if state.get("format") != FORMAT:
            raise ModelFileError(f"tree state must have format {FORMAT}, got {state.get('format')!r}")
        try:
            sources = tuple(
                Source(s["name"], None if s["levels"] is None else tuple(s["levels"]), s["fill"])
                for s in state["sources"]
            )
            threshold = np.array([np.nan if cut is None else cut for cut in state["threshold"]], dtype=float)
            names = tuple(state["value_names"])
            value = np.array(state["value"], dtype=float)
            feature, left, right = (np.array(state[k], dtype=np.int64) for k in ("feature", "left", "right"))
            levels, missing = tuple(map(tuple, state["levels"])), tuple(state.get("missing", ()))
            return cls(sources, feature, threshold, levels, left, right, value, names, missing)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"tree state is incomplete or damaged: {error}") from error


def _check(tree: HardTree) -> None:
    """Refuse arrays that do not make up a tree in preorder."""
    size = tree.feature.size
    shapes = {name: getattr(tree, name).shape for name in ("feature", "threshold", "left", "right")}
    if size == 0 or set(shapes.values()) != {(size,)} or not len(tree.levels) == len(tree.missing) == size:
        raise InvalidParameterError(f"a tree must have one entry per node in every array, got {shapes}")
    # plain lists: for so few nodes they are faster than arrays
    feature, left, right = tree.feature.tolist(), tree.left.tolist(), tree.right.tolist()
    nodes = [node for node, asked in enumerate(feature) if asked >= 0]
    children = sorted([*(left[node] for node in nodes), *(right[node] for node in nodes)])
    ordered = all(left[node] == node + 1 for node in nodes) and children == list(range(1, size))
    if not ordered or any(max(left[node], right[node]) >= 0 for node in range(size) if feature[node] < 0):
        raise InvalidParameterError("left and right must hold every node but the root once, in preorder")
    if max(feature) >= len(tree.sources):
        raise InvalidParameterError(f"feature must be below {len(tree.sources)}, got {max(feature)}")
    for node in nodes:
        source, rule = tree.sources[feature[node]], tree.rule(node)
        good = not rule.levels and math.isfinite(rule.threshold) if source.levels is None else bool(rule.levels)
        good = bool(rule.missing) and math.isnan(rule.threshold) if rule.asks_missing else good
        if not good:
            raise InvalidParameterError(
                f"node {node} must ask {source.name!r} by its kind, a threshold or levels, or whether it is missing"
            )
    _check_values(tree)


def _check_values(tree: HardTree) -> None:
    """Refuse numbers that do not fit the leaves."""
    expected = (tree.n_leaves, len(tree.value_names))
    if tree.value.shape != expected:
        raise InvalidParameterError(f"value must have shape (leaves, names) = {expected}, got {tree.value.shape}")
