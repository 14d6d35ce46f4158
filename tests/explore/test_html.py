"""What a notebook shows for a tree."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree
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


def boxes_of(tree):
    """(x, y, width, height) of every rule."""
    root = ElementTree.fromstring(tree_html(tree))
    rects = root.iter("{http://www.w3.org/2000/svg}rect")
    return [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in rects]


def test_a_rule_of_many_long_levels_has_room():
    rng = np.random.default_rng(0)
    levels = [f"{k} of the left upper lobe, confirmed by histology at the reference centre" for k in range(9)]
    X = pd.DataFrame({"type": rng.choice(levels, 400), "age": rng.normal(size=400)})
    time = rng.exponential(np.where(X["type"] > levels[4], 1.0, 9.0) * np.where(X["age"] > 0, 1.0, 3.0))
    tree = OptimalSurvivalTree(max_depth=2, level_sets=True, shrinkage=0).fit(X, (np.ones(400, bool), time))
    boxes = boxes_of(tree)
    root = max(boxes, key=lambda box: box[3])
    assert root[3] > 120
    assert root[1] >= 0
    assert all(y >= root[1] + root[3] for x, y, w, h in boxes if (x, y, w, h) != root)


def test_rule_boxes_do_not_overlap(deep):
    boxes = boxes_of(deep.tree)
    assert len(boxes) == 7
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, p, q in boxes[:i]:
            assert x + w <= u or u + p <= x or y + h <= v or v + q <= y
