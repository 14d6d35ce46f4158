"""A large tree in parts: every leaf once, none too wide for a page, each part where the one above says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.explore.tree_parts import tree_parts
from softsurv.explore.view import TreeView, ViewNode


class Rule:
    """A split that says its number."""

    def __init__(self, number):
        self.number = number

    def text(self, max_terms=3):
        return f"rule {self.number}"


def view_of(shape):
    """The view of nested pairs; anything else is a leaf."""
    nodes, leaves = [], iter(range(1000))

    def add(part, level, parent):
        index = len(nodes)
        nodes.append(None)
        if not isinstance(part, tuple):
            nodes[index] = ViewNode(index, level, parent, -1, -1, next(leaves), None, -1)
        else:
            left, right = (add(side, level + 1, index) for side in part)
            nodes[index] = ViewNode(index, level, parent, left, right, -1, Rule(index), index)
        return index

    add(shape, 0, -1)
    return TreeView(tuple(nodes), None, ())


def complete(depth):
    return (complete(depth - 1),) * 2 if depth else None


def chain(leaves):
    return (None, chain(leaves - 1)) if leaves > 1 else None


SHAPES = st.recursive(st.none(), lambda side: st.tuples(side, side), max_leaves=40)


@given(SHAPES, st.integers(2, 8))
def test_every_leaf_is_in_one_part_and_no_part_is_wide(shape, most):
    view = view_of(shape)
    parts = tree_parts(view, most)
    ends = [end for part in parts for end in part.view.leaves if end not in part.goes_on]
    assert sorted(ends) == view.leaves
    assert sum(len(part.view.branches) for part in parts) == len(view.branches)
    assert max(part.view.n_leaves for part in parts) <= most
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert sorted(number for part in parts for number in part.goes_on.values()) == list(range(2, len(parts) + 1))


@given(SHAPES, st.integers(2, 8))
def test_a_part_begins_where_another_says(shape, most):
    view = view_of(shape)
    parts = tree_parts(view, most)
    for part in parts:
        for end, number in part.goes_on.items():
            below = parts[number - 1]
            assert number > part.number
            assert part.leaves[end] == tuple(sorted(leaf for leaves in below.leaves.values() for leaf in leaves))
            here = " and ".join(filter(None, [part.where, part.view.path_words(end).removeprefix("all rows")]))
            assert below.where == here


@given(SHAPES)
def test_a_small_tree_is_one_part(shape):
    view = view_of(shape)
    (part,) = tree_parts(view, max(view.n_leaves, 2))
    assert (part.where, part.goes_on) == ("", {})
    assert [node.leaf for node in part.view.nodes] == [node.leaf for node in view.nodes]


@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        (complete(4), [4, 4, 4, 4, 4]),
        (complete(3), [2, 4, 4]),
        (complete(2), [4]),
        ((complete(3), complete(1)), [4, 4, 4]),
        (chain(9), [4, 6]),
    ],
)
def test_parts_are_even(shape, widths):
    assert [part.view.n_leaves for part in tree_parts(view_of(shape))] == widths
