"""A tree of many leaves as SVG text."""

import re

import pytest

from softsurv.explore.sideways_html import leaf_words, sideways_svg
from softsurv.explore.view import tree_view


@pytest.mark.parametrize("which", ["deep", "optimal", "large"])
def test_leaves_stand_below_one_another_with_the_lower_risk_above(which, request):
    tree = request.getfixturevalue(which).tree
    view = tree_view(tree)
    svg = sideways_svg(tree, view, 3)
    leaves = re.findall(r'y="([\d.]+)" text-anchor="start" fill="#1a1a1a">leaf (\d+):', svg)
    shown = [int(leaf) for _, leaf in sorted(leaves, key=lambda pair: float(pair[0]))]
    assert shown == list(view.order)
    assert svg.count(">yes<") == svg.count(">no<") == len(view.branches)


def test_a_leaf_without_training_rows_says_so(lopsided):
    table = lopsided.tree.leaf_table_
    empty = int((table.n == 0).argmax())
    assert leaf_words(lopsided.tree, empty) == [f"leaf {empty}: no training rows"]
