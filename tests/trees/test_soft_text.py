"""A soft tree as text and for Graphviz: branch nodes that part no rows are left out, names are quoted."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from softsurv.hazards import get_family
from softsurv.trees.leaf_table import leaf_table
from softsurv.trees.soft_text import parting_node, soft_tree_dot, soft_tree_text
from softsurv.trees.soft_tree import SoftTree

NAMES = ["a", 'with "quotes"', "back\\slash"]


@pytest.fixture
def tree():
    """Depth 3; the root's left child sends all rows to its right."""
    tree = SoftTree(3, 3, get_family("weibull"))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        tree.routing.copy_(torch.randn(1, 7, 4, generator=generator, dtype=torch.float64))
        tree.routing[0, 1] = torch.tensor([-40.0, 0, 0, 0])
    return tree


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return leaf_table(rng.integers(0, 8, 200), rng.exponential(size=200), rng.random(200) < 0.5, 8)


def test_one_way_nodes_are_passed_over(tree):
    routing = tree.routing[0].detach().numpy()
    assert [parting_node(routing, node) for node in (0, 1, 2, 3, 4, 9)] == [0, 4, 2, 3, 4, 9]


def test_graphviz_and_text_hold_the_nodes_that_part_rows(tree, table):
    dot, text = soft_tree_dot(tree, None, NAMES, table), soft_tree_text(tree, None, NAMES, table)
    assert "goes right" not in dot + text
    assert set(re.findall(r"leaf (\d)", dot)) == set(re.findall(r"leaf (\d)", text)) == set("012345")
    nodes = set(re.findall(r"^  (\d+) \[", dot, re.MULTILINE))
    edges = re.findall(r"^  (\d+) -> (\d+) ", dot, re.MULTILINE)
    assert nodes == {"0", "2", "4", "5", "6", *map(str, range(9, 15))}
    assert {node for edge in edges for node in edge} == nodes
    assert len(edges) == len(nodes) - 1


def test_names_are_quoted(tree, table):
    dot = soft_tree_dot(tree, None, NAMES, table)
    assert 'with \\"quotes\\"' in dot
    assert "back\\\\slash" in dot
    assert "\\nn " in dot
