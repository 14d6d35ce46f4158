"""Effects of features, drawn: on the routing, in leaves, and along one feature."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from softsurv import OptimalSurvivalTree
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.explore import (
    plot_feature_profile,
    plot_leaf_effects,
    plot_routing_effects,
)
from softsurv.explore.effect_plots import profile
from softsurv.explore.page import new_figure
from softsurv.explore.view import tree_view


def axes():
    return Figure(figsize=(7, 5)).subplots()


def test_routing_effects_name_the_place_of_each_node(deep, optimal):
    with pytest.raises(InvalidParameterError, match="tree must be soft"):
        plot_routing_effects(optimal.tree)
    ax = plot_routing_effects(deep.tree, axes())
    view = tree_view(deep.tree)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "root"
    for node, name in zip(view.branches[1:], names[1:], strict=True):
        at = view.nodes[0]
        for answer in name.split(", "):
            at = view.nodes[at.left if answer == "yes" else at.right]
        assert at is node


@pytest.mark.parametrize("plot", [plot_routing_effects, plot_leaf_effects])
def test_no_two_effects_of_a_deep_tree_look_alike(deep, plot):
    handles = plot(deep.tree).get_legend().legend_handles
    looks = [(to_rgba(handle.get_color()), handle.get_marker()) for handle in handles]
    assert len(looks) > 5
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("width", [5.6, 6.4])
def test_the_label_of_the_axis_is_not_cut(deep, width):
    """In the report the names of the features take half of the picture."""
    ax = plot_leaf_effects(deep.tree, new_figure(width, 3.9))
    figure = ax.figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = ax.xaxis.label.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_leaf_effects_need_curves_that_vary(optimal):
    with pytest.raises(InvalidParameterError, match="tree must have leaves whose curves vary"):
        plot_leaf_effects(optimal.tree)


def test_profile_is_what_moving_the_feature_does(mixed):
    X = mixed.data.X.iloc[:20]
    shares, means = profile(mixed.tree, X, "age", [40.0, 80.0], 500.0)
    moved = X.assign(age=80.0)
    leaf = mixed.tree.apply(moved)
    np.testing.assert_allclose(shares[1], [(leaf == k).mean() for k in range(4)])
    assert means[1] == pytest.approx(mixed.tree.predict_expectation(moved, 500.0).mean())


@pytest.mark.parametrize("name", ["stage", "self"])  # pandas' own argument of assign is called self
def test_profile_sets_levels_that_are_numbers(name):
    """Categories of whole numbers got no level at all: all rows counted as missing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: pd.Categorical(rng.integers(1, 4, 200))})
    time = rng.exponential(np.where(X[name] == 2, 0.2, 2.0))
    tree = OptimalSurvivalTree(max_depth=1).fit(SurvivalData(X, time, np.ones(200, dtype=bool)))
    shares, _ = profile(tree, X, name, ["1", "2", "3"], 1.0)
    expected = [np.bincount(tree.apply(pd.DataFrame({name: [k]})), minlength=2) for k in (1, 2, 3)]
    np.testing.assert_array_equal(shares, expected)
    assert (shares[0] != shares[1]).any()


@pytest.mark.parametrize("feature", ["age", "grade", "marker"])
def test_feature_profiles_of_numbers_and_categories(mixed, feature):
    ax = plot_feature_profile(mixed.tree, mixed.data, feature, axes(), time_unit="days")
    assert ax.get_xlabel() == feature


def test_a_long_name_of_a_feature_fits_below_its_profile(mixed):
    name = (
        "age at the first visit to one of the hospitals of the region, in years since the date of birth as registered"
    )
    tree = OptimalSurvivalTree(max_depth=1, tune=None)
    X = mixed.data.X.rename(columns={"age": name})
    ax = plot_feature_profile(tree.fit(X, mixed.data.y), (X, mixed.data.y), name)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    box = ax.xaxis.label.get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= ax.figure.bbox.x1
    assert ax.get_xlabel().startswith("age at the first visit")


def test_no_two_of_many_levels_cover_each_other():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "country": [f"a country with the name {k % 30}" for k in range(300)]})
    y = np.ones(300, dtype=bool), rng.exponential(np.exp(-X["x"]))
    ax = plot_feature_profile(OptimalSurvivalTree(max_depth=1, tune=None).fit(X, y), (X, y), "country")
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) == 30
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_what_cannot_be_drawn_is_said(stump, gbsg2):
    with pytest.raises(InvalidParameterError, match="tree must have a branch node"):
        plot_routing_effects(stump.tree)
    with pytest.raises(InvalidParameterError, match="feature must be a column of the data, got 'nope'"):
        plot_feature_profile(gbsg2.tree, gbsg2.test, "nope")
    unknown = stump.data.with_features(stump.data.X.assign(marker=np.nan))
    with pytest.raises(InvalidParameterError, match="feature must have known values in the data, got none of 'marker'"):
        plot_feature_profile(stump.tree, unknown, "marker")
