"""The parts of a large tree, drawn: the rows that arrive, words legible on paper, and a report with both."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.errors import InvalidParameterError
from softsurv.explore import plot_tree_parts, report_html
from softsurv.explore.page import ACROSS
from softsurv.explore.tree_parts import MOST_LEAVES, tree_parts
from softsurv.explore.tree_plot import LEAF_WIDTH
from softsurv.explore.view import tree_view


@pytest.fixture(scope="module")
def large():
    """An optimal tree of sixteen leaves."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 4)).round(2), columns=list("abcd"))
    time = rng.weibull(1.5, 600) * np.exp(-X["a"] - 0.7 * X["b"] - 0.5 * X["c"])
    data = survival_data(X, time=time.to_numpy(), event=np.ones(600, bool), name="large")
    tree = OptimalSurvivalTree(max_depth=4, min_samples_leaf=5, complexity=0.0, shrinkage=0, thresholds=6).fit(data)
    assert tree_view(tree).n_leaves == 16
    return SimpleNamespace(tree=tree, data=data)


def test_panels_hold_the_rows_that_arrive(large):
    leaf, seen = large.tree.apply(large.data), []
    for part, ax in zip(tree_parts(tree_view(large.tree)), plot_tree_parts(large.tree, large.data), strict=True):
        titles = [panel.get_title() for panel in ax.child_axes]
        for end, title in zip(part.view.leaves, titles, strict=True):
            assert f"n = {np.isin(leaf, part.leaves[end]).sum()}," in title
            name = f"part {part.goes_on[end]}: " if end in part.goes_on else f"leaf {end}\n"
            assert title.startswith(name)
            seen += [] if end in part.goes_on else [end]
        (heading,) = ax.figure.texts
        assert heading.get_text().startswith(f"Part {part.number} of 5")
    assert sorted(seen) == list(range(16))


@pytest.mark.parametrize("most", [1, 2.0, True])
def test_a_picture_has_two_leaves_at_least(large, most):
    with pytest.raises(InvalidParameterError, match="most_leaves must be an integer >= 2"):
        plot_tree_parts(large.tree, large.data, most_leaves=most)


def test_a_report_has_the_parts_for_paper_and_the_whole_for_the_screen(large, in_browser):
    page = report_html(large.tree, large.data, n_boot=20)
    assert len(re.findall(r'alt="Part \d of 5 of the tree"', page)) == 5
    shown = (
        "return ['.screen img', '.paper img'].map((s) => document.querySelector(s).getBoundingClientRect().width > 0)"
    )
    assert in_browser(page, shown) == [True, False]
    on_paper = page.replace("@media print{", "@media screen{")
    assert in_browser(on_paper, shown) == [False, True]


def test_words_of_a_part_are_legible_on_paper(large):
    """At least six points on letter paper: 7.7 inches between its margins, and 25 cm across for a wide picture."""
    (ax,) = plot_tree_parts(large.tree, large.data, most_leaves=16)
    smallest = min(text.get_fontsize() for panel in ax.child_axes for text in [panel.title, *panel.texts])
    upright = int(ACROSS / 96 / LEAF_WIDTH)  # leaves of a picture on an upright page
    assert smallest * 0.86 * 7.7 / (upright * LEAF_WIDTH) >= 6
    assert smallest * 25 / 2.54 / (MOST_LEAVES * LEAF_WIDTH) >= 6
