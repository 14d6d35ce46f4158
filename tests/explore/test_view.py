"""The view of a tree: nodes, paths and rules agree with the tree itself."""

import copy
import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from softsurv import OptimalRegressionTree, OptimalSurvivalTree, explore, survival_data
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.explore.curves import leaf_looks, leaf_summary
from softsurv.explore.style import NO_ROWS, risk_styles
from softsurv.explore.view import tree_view
from softsurv.nonparametric import restricted_mean
from softsurv.trees.leaf_table import leaf_table_of


def test_nodes_form_a_complete_tree(deep):
    view = tree_view(deep.tree)
    assert (view.n_leaves, view.depth, len(view.branches)) == (8, 3, 7)
    assert [n.leaf for n in view.nodes if n.leaf >= 0] == list(range(8))
    for node in view.branches:
        for child in (node.left, node.right):
            assert view.nodes[child].parent == node.index
            assert view.nodes[child].level == node.level + 1


def test_splits_of_the_view_lead_every_row_to_its_leaf(mixed):
    view, encoded = tree_view(mixed.tree), tree_view(mixed.tree).encode(mixed.data)
    for row, leaf in zip(encoded, mixed.tree.apply(mixed.data), strict=True):
        for node, left in view.path(int(leaf)):
            assert (node.split.weights[0] + node.split.weights[1:] @ row >= 0) == left


def test_branch_order_is_that_of_the_routing_probabilities(mixed):
    view = tree_view(mixed.tree)
    encoded = view.encode(mixed.data)
    p = mixed.tree.routing_probability(mixed.data.X)
    for node in view.branches:
        margin = node.split.weights[0] + encoded @ node.split.weights[1:]
        np.testing.assert_allclose(p[:, node.branch], 1 / (1 + np.exp(-margin)), rtol=1e-9)


def test_a_branch_node_stands_between_its_children_and_leaves_are_evenly_spaced(deep):
    view = tree_view(deep.tree)
    places = view.centres()
    assert sorted(view.order) == view.leaves
    assert [places[view.leaf_node(k).index] for k in view.order] == list(range(8))
    for node in view.branches:
        assert 2 * places[node.index] == places[node.left] + places[node.right]


def test_the_side_of_the_lower_risk_is_on_the_left(deep, optimal):
    for tree in (deep.tree, optimal.tree):
        view, table, end = tree_view(tree), tree.leaf_table_, float(tree.unique_times_[-1])
        places = view.centres()
        lived = {k: restricted_mean(table.curves[k], end) for k in view.leaves if table.n[k]}

        def mean(node, view=view, table=table, lived=lived):
            below = [
                k
                for k in lived
                if any(step.index == node for step, _ in view.path(k)) or view.leaf_node(k).index == node
            ]
            return np.average([lived[k] for k in below], weights=table.n[below])

        for node in view.branches:
            left, right = sorted((node.left, node.right), key=places.get)
            assert mean(left) >= mean(right)


def test_typical_row_holds_means_and_most_frequent_levels(mixed):
    view, X = tree_view(mixed.tree), mixed.data.X
    usual = X.mode().iloc[[0]].assign(age=X["age"].mean(), marker=X["marker"].mean())
    np.testing.assert_allclose(view.typical, view.encode(usual)[0], atol=1e-12)


def test_branch_nodes_that_send_all_rows_one_way_are_left_out(mixed):
    tree = copy.deepcopy(mixed.tree)
    with torch.no_grad():
        tree.tree_.routing[0, 1, 1:] = 0.0
        tree.tree_.routing[0, 1, 0] = -40.0  # the left child of the root sends all rows right
    view = tree_view(tree)
    assert view.leaves == [0, 1, 2]
    assert (view.n_leaves, len(view.branches), view.nodes[view.nodes[0].left].leaf) == (3, 2, 0)
    assert sorted(view.centres().values()) == sorted([0.0, 1.0, 2.0, 1.5, 0.75])
    assert set(tree.apply(mixed.data)) <= {0, 1, 2}
    assert list(leaf_summary(tree, mixed.data).index) == [0, 1, 2]
    assert tree.leaf_probability(mixed.data).shape == (mixed.data.n, 3)
    np.testing.assert_allclose(tree.leaf_probability(mixed.data).sum(1), 1.0)
    tree.leaf_table_ = leaf_table_of(mixed.data, tree.apply(mixed.data), 3)
    text = tree.export_text()
    assert all(node.split.text().split(" > ")[0] in text for node in view.branches)
    assert re.findall(r"leaf (\d)", text) == ["0", "1", "2"]


def test_a_single_leaf_has_no_rule(stump):
    view = tree_view(stump.tree)
    assert (view.n_leaves, view.depth, view.path_words(0)) == (1, 0, "all rows")


def test_a_rule_with_or_stands_in_brackets_within_a_path():
    """``a <= 1 or missing and b <= 1`` could be read in two ways."""
    a, b = np.tile([0.0, 2.0, np.nan, 0.0], 30), np.repeat([0.0, 2.0], 60)
    time = np.where(a == 2.0, 1.0, 4.0) + b + np.linspace(0.0, 0.5, 120)
    tree = OptimalSurvivalTree(max_depth=2, missing="route").fit({"a": a, "b": b}, (np.ones(120, bool), time))
    paths = [tree_view(tree).path_words(leaf) for leaf in range(3)]
    assert paths[0] == "(a <= 1 or missing) and b <= 1"
    assert paths[2] == "not (a <= 1 or missing) and b <= 1"


def test_leaves_are_coloured_by_the_risk_of_their_training_rows(optimal, lopsided):
    looks = leaf_looks(optimal.tree)
    means = leaf_summary(optimal.tree)["restricted_mean"]
    assert list(looks) == means.sort_values(ascending=False, kind="stable").index.tolist()
    assert list(looks.values()) == risk_styles(len(means))
    empty = leaf_summary(lopsided.tree).query("n == 0").index
    assert [leaf_looks(lopsided.tree)[leaf] for leaf in empty] == [NO_ROWS] * len(empty)
    assert len(empty) > 0


@pytest.mark.parametrize("which", ["optimal", "uneven"])
def test_the_view_of_an_optimal_tree_is_the_tree(which, request):
    subject = request.getfixturevalue(which)
    tree, view = subject.tree.tree_, tree_view(subject.tree)
    assert [node.leaf for node in view.nodes] == tree.leaf.tolist()
    assert [(node.left, node.right) for node in view.nodes] == list(zip(tree.left, tree.right, strict=True))
    for leaf in range(view.n_leaves):
        assert [(node.index, left) for node, left in view.path(leaf)] == tree.path(leaf)
    assert all(node.split.text() == tree.text(node.index) for node in view.branches)
    assert view.leaf_weights is None
    assert not view.soft


def test_encoded_features_of_an_optimal_tree_are_filled_and_in_their_own_units(uneven):
    view, X = tree_view(uneven.tree), uneven.data.X
    encoded = dict(zip(view.names, view.encode(X).T, strict=True))
    np.testing.assert_array_equal(encoded["age"], X["age"])
    np.testing.assert_array_equal(encoded["grade=II"], X["grade"] == "II")
    np.testing.assert_allclose(encoded["marker"][X["marker"].isna()], X["marker"].mean())


def test_a_column_that_is_cut_in_several_ways_counts_once(mixed):
    tree = OptimalSurvivalTree(max_depth=1, level_sets=True, missing="route", tune=None).fit(mixed.data)
    expected = ["age", "age is missing", "grade=I", "grade=II", "grade=III", "grade is missing"]
    assert len(tree.tree_.sources) > len({source.name for source in tree.tree_.sources})
    assert tree_view(tree).names == (*expected, "marker", "marker is missing")
    assert tree_view(tree).encode(mixed.data).shape == (mixed.data.n, 8)


@pytest.mark.parametrize(
    "show",
    [
        "explorer",
        "report_html",
        "plot_tree",
        "plot_leaf_curves",
        "plot_calibration",
        "plot_brier",
        "plot_incidences",
        "plot_history",
        "explain",
    ],
)
def test_trees_without_curves_or_fit_are_refused_by_name(show, stump):
    data = stump.data.take(np.arange(1)) if show == "explain" else stump.data
    with pytest.raises(InvalidParameterError, match="tree must be a survival tree, got OptimalRegressionTree"):
        getattr(explore, show)(OptimalRegressionTree(), data)
    with pytest.raises(NotFittedError):
        getattr(explore, show)(OptimalSurvivalTree(), data)


def test_a_tree_without_features_that_can_be_split_is_explained_and_explored():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": ["a"] * 60, "one": np.ones(60)})
    data = survival_data(X, time=rng.exponential(5.0, 60), event=rng.random(60) < 0.7)
    with pytest.warns(DataWarning, match="no feature can be split"):
        tree = OptimalSurvivalTree(max_depth=2).fit(data)
    assert tree_view(tree).encode(X).shape == (60, 0)
    assert tree.explain(X.head(1)).leaf == 0
    assert "<html" in explore.explorer(tree, data).page
