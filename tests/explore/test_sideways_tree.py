"""Places of a tree with a line for each leaf."""

import itertools

import pytest

from softsurv.explore import plot_tree
from softsurv.explore.sideways_tree import PANEL_HEIGHT, places_of
from softsurv.explore.view import tree_view


@pytest.mark.parametrize("which", ["deep", "lopsided", "optimal", "large"])
def test_every_rule_and_leaf_has_a_line_of_its_own(which, request):
    view = tree_view(request.getfixturevalue(which).tree)
    place = places_of(view, 3)
    assert place.y.keys() == {node.index for node in view.nodes}
    heights = sorted(place.y.values())
    assert min(b - a for a, b in itertools.pairwise(heights)) > PANEL_HEIGHT / 2
    for node in view.branches:
        upper, lower = sorted((node.left, node.right), key=place.y.__getitem__)
        assert place.y[upper] < place.y[node.index] < place.y[lower]
        assert place.x[node.index] < place.panels
    leaves = [place.y[view.leaf_node(leaf).index] for leaf in view.order]
    assert leaves == sorted(leaves)


def test_the_answers_stand_on_the_edges_and_the_numbers_beside_the_panels(large):
    ax = plot_tree(large.tree, large.test)
    words = [text.get_text() for text in ax.texts]
    view = tree_view(large.tree)
    assert words.count("yes") == words.count("no") == len(view.branches)
    leaf = large.tree.apply(large.test)
    for k in view.leaves:
        numbers = next(text for text in words if text.startswith(f"leaf {k}: "))
        assert f"n = {(leaf == k).sum()}" in numbers
    assert sum(bool(panel.get_xlabel()) for panel in ax.child_axes) == 1
