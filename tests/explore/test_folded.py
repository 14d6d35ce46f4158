"""The tree as an outline that folds: whole, in the order of risk, and safe with any names."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.explore.folded import folded_tree
from softsurv.explore.view import tree_view


class Balance(HTMLParser):
    """Whether every element is closed in its turn, and how deep lists go."""

    def __init__(self, page):
        super().__init__()
        self.open, self.deepest, self.tags = [], 0, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "path":
            self.open.append(tag)
        self.deepest = max(self.deepest, self.open.count("details"))

    def handle_endtag(self, tag):
        if tag != "path":
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def deep():
    """An optimal tree of many leaves, with a hostile name."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "</details><script>", "c"])
    time = rng.weibull(1.5, 400) * np.exp(-X["a"] - 0.5 * X["</details><script>"])
    return OptimalSurvivalTree(max_depth=4, min_samples_leaf=5, shrinkage=0).fit(X, (np.ones(400, bool), time))


def test_every_rule_and_leaf_is_there_once(deep):
    view, outline = tree_view(deep), folded_tree(deep)
    assert view.n_leaves > 8
    seen = Balance(outline)
    assert seen.open == []
    assert seen.deepest == view.depth
    assert seen.tags.count("details") == len(view.branches)
    assert "script" not in seen.tags
    leaves = [int(number) for number in re.findall(r'href="#leaf-(\d+)"', outline)]
    assert sorted(leaves) == view.leaves


def test_the_lower_risk_comes_first(deep):
    leaves = [int(number) for number in re.findall(r'href="#leaf-(\d+)"', folded_tree(deep))]
    assert tuple(leaves) == tree_view(deep).order


def test_answers_are_those_of_the_tree(deep):
    """The first leaf's way: its answers in the outline are those that lead there."""
    outline = folded_tree(deep)
    first = tree_view(deep).order[0]
    answers = re.findall(r'class="answer">(\w+)<', outline.split('href="#leaf-')[0])
    assert answers == ["yes" if left else "no" for _, left in tree_view(deep).path(first)]
