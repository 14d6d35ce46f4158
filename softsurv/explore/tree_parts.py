"""A large tree in parts, each with few enough leaves for a picture on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from softsurv.explore.view import TreeView, ViewNode

MOST_LEAVES = 6
"""Most leaves of a picture whose words are legible on a page of A4 or letter paper in landscape."""


@dataclass(frozen=True)
class TreePart:
    """A part of a tree: from one node down to leaves, and to nodes where other parts begin.

    Attributes
    ----------
    number : int
        1 for the part with the root; parts nearer to the root come first, then those of lower risk.
    view : TreeView
        The nodes of this part. The end where another part begins has the number of a leaf that the tree does not have.
    leaves : mapping
        For every end of this part, the tree's leaves below it.
    goes_on : mapping
        The number of the part that begins at an end; without entry for a leaf.
    where : str
        The rules that lead to this part; empty at the root.
    """

    number: int
    view: TreeView
    leaves: Mapping[int, tuple[int, ...]]
    goes_on: Mapping[int, int]
    where: str


def tree_parts(view: TreeView, most_leaves: int = MOST_LEAVES) -> list[TreePart]:
    """The tree in parts of at most ``most_leaves`` ends; a small tree is one part."""
    places = view.centres()
    begins = sorted(_cuts(view, most_leaves), key=lambda index: (view.nodes[index].level, places[index]))
    number = {index: k for k, index in enumerate([0, *begins], 1)}
    return [_part(view, root, number) for root in number]


def _cuts(view: TreeView, most_leaves: int) -> set[int]:
    """Nodes where a part begins, but the root: the large sides of every node that has too many ends below it."""
    ends: dict[int, int] = {}
    cuts: set[int] = set()
    for node in reversed(view.nodes):  # children before their parents
        sides = [child for child in (node.left, node.right) if child >= 0]
        if sum(ends[child] for child in sides) > most_leaves:
            large = {child for child in sides if ends[child] > most_leaves // 2}
            ends |= dict.fromkeys(large, 1)
            cuts |= large
        ends[node.index] = sum(ends[child] for child in sides) or 1
    return cuts


def _part(view: TreeView, root: int, number: Mapping[int, int]) -> TreePart:
    """The part that begins at a node; ``number`` has every node where a part begins."""
    nodes: list[ViewNode] = []
    leaves: dict[int, tuple[int, ...]] = {}
    goes_on: dict[int, int] = {}
    place: dict[int, float] = {}
    places = view.centres()

    def add(index: int, level: int, parent: int) -> int:
        """Append a node and what belongs to this part below it; return its place in the list."""
        node, here = view.nodes[index], len(nodes)
        nodes.append(node)
        if node.leaf >= 0 or (index in number and index != root):
            end = node.leaf if node.leaf >= 0 else max(view.leaves) + number[index]
            leaves[end], place[end] = tuple(view.leaves_below(node)), places[index]
            if node.leaf < 0:
                goes_on[end] = number[index]
            nodes[here] = ViewNode(here, level, parent, -1, -1, end, None, -1)
            return here
        left, right = (add(child, level + 1, here) for child in (node.left, node.right))
        nodes[here] = replace(node, index=here, level=level, parent=parent, left=left, right=right)
        return here

    add(root, 0, -1)
    own = replace(view, nodes=tuple(nodes), order=tuple(sorted(place, key=place.__getitem__)))
    where = view.path_words(view.nodes[root]) if root else ""
    return TreePart(number[root], own, leaves, goes_on, where)
