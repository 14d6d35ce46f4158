"""What a notebook shows for a tree."""

import re
from xml.etree import ElementTree

import pytest

from softsurv.explore import tree_html
from softsurv.explore.view import tree_view


@pytest.mark.parametrize("which", ["gbsg2", "lopsided", "deep", "stump", "optimal", "uneven"])
def test_page_is_well_formed_and_stands_alone(which, request):
    page = tree_html(request.getfixturevalue(which).tree)
    root = ElementTree.fromstring(page)
    tree = request.getfixturevalue(which).tree
    shown = tree_view(tree).leaves
    words = " ".join(text for text in root.itertext())
    assert all(f"leaf {k}" in words for k in shown)
    assert words.count("no training rows") == (tree.leaf_table_.n[shown] == 0).sum()
    assert "<script" not in page
    assert re.findall(r'https?://[^"]*', page) == ["http://www.w3.org/2000/svg"]


def test_names_are_escaped():
    import numpy as np

    from softsurv.data.encoding import OutputColumn
    from softsurv.explore.html import rule_box
    from softsurv.explore.view import LinearSplit, ViewNode
    from softsurv.hazards import get_family
    from softsurv.trees.linear_rule import LinearRule
    from softsurv.trees.soft_tree import SoftTree

    tree = SoftTree(1, 1, get_family("weibull"))
    tree.rules = (LinearRule((0,), (1.0,), 0.0),)
    split = LinearSplit(("<b>&",), np.array([0.0, 1.0]), tree, 0, (OutputColumn("<b>&", "<b>&", "number"),))
    node = ViewNode(0, 0, -1, 1, 2, -1, split, 0)
    assert "&lt;b&gt;&amp;" in rule_box(node, 100.0, 3)


def test_rule_boxes_do_not_overlap(deep):
    root = ElementTree.fromstring(tree_html(deep.tree))
    svg = "{http://www.w3.org/2000/svg}"
    boxes = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in root.iter(f"{svg}rect")]
    assert len(boxes) == 7
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, p, q in boxes[:i]:
            assert x + w <= u or u + p <= x or y + h <= v or v + q <= y
