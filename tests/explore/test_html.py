"""What a notebook shows for a tree."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.explore import tree_html
from softsurv.explore.svg import text_width
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
    from softsurv.explore.svg import rule_box, rule_lines
    from softsurv.explore.view import LinearSplit, ViewNode
    from softsurv.hazards import get_family
    from softsurv.trees.linear_rule import LinearRule
    from softsurv.trees.soft_tree import SoftTree

    tree = SoftTree(1, 1, get_family("weibull"))
    tree.rules = (LinearRule((0,), (1.0,), 0.0),)
    split = LinearSplit(("<b>&",), np.array([0.0, 1.0]), tree, 0, (OutputColumn("<b>&", "<b>&", "number"),))
    node = ViewNode(0, 0, -1, 1, 2, -1, split, 0)
    assert "&lt;b&gt;&amp;" in rule_box(rule_lines(node, 3, 40), 100.0, 50.0)


def boxes_of(tree):
    """(x, y, width, height) of every rule."""
    root = ElementTree.fromstring(tree_html(tree))
    rects = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("rx")]
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


@pytest.mark.parametrize("which", ["gbsg2", "deep", "large"])
def test_rule_boxes_do_not_overlap(which, request):
    tree = request.getfixturevalue(which).tree
    boxes = boxes_of(tree)
    assert len(boxes) == len(tree_view(tree).branches)
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, p, q in boxes[:i]:
            assert x + w <= u or u + p <= x or y + h <= v or v + q <= y


@pytest.mark.parametrize("which", ["gbsg2", "deep", "large", "uneven", "stump"])
def test_the_page_is_about_as_wide_as_a_notebook(which, request):
    page = tree_html(request.getfixturevalue(which).tree)
    svg = next(ElementTree.fromstring(page).iter("{http://www.w3.org/2000/svg}svg"))
    assert float(svg.get("width")) < 800
    assert ("lower risk above" in page) == (len(tree_view(request.getfixturevalue(which).tree).leaves) > 4)


def test_leaves_with_many_causes_have_room_for_their_words():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=300)})
    cause = rng.choice(["death of the heart", "death of other causes", "relapse in the liver"], 300)
    time = rng.exponential(np.where(X["age"] > 0, 1.0, 9.0))
    tree = OptimalSurvivalTree(max_depth=1).fit(X.assign(t=time, c=cause), time="t", cause="c")
    page = ElementTree.fromstring(tree_html(tree))
    width = float(next(page.iter("{http://www.w3.org/2000/svg}svg")).get("width"))
    ends = [
        float(text.get("x")) + text_width(text.text)
        for text in page.iter("{http://www.w3.org/2000/svg}text")
        if text.get("text-anchor") == "start"
    ]
    assert max(ends) <= width < 800
