"""How a survival tree shows itself: the same as `softsurv.explore`, and a safe page where nothing is fitted."""

import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, explore, load_dataset


@pytest.fixture(scope="module")
def tree():
    data = load_dataset("veterans")
    return OptimalSurvivalTree(max_depth=1, min_samples_leaf=10).fit(data.X, data.y)


def test_methods_are_the_functions_of_explore(tree):
    data = load_dataset("veterans")
    pd.testing.assert_frame_equal(tree.leaf_summary(data), explore.leaf_summary(tree, data))
    assert set(tree.leaf_summary(data, horizon=100.0)["horizon"]) == {100.0}
    row = data.X.iloc[[3]]
    assert str(tree.explain(row)) == str(explore.explain(tree, row))
    assert tree._repr_html_() == explore.tree_html(tree)


def test_a_notebook_is_given_text_and_a_page(tree):
    shown = tree._repr_mimebundle_()
    assert shown["text/plain"] == repr(tree)
    assert "<svg" in shown["text/html"]


def test_an_unfitted_tree_is_shown_as_text_that_runs_nothing():
    tree = OptimalSurvivalTree(leaf="<script>alert(1)</script>")
    page = tree._repr_html_()
    assert page.startswith("<pre>")
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
