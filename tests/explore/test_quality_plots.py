"""Pictures of quality: calibration, Brier score over time, gaps between groups, and size against quality."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.explore import (
    fairness_frame,
    plot_brier,
    plot_calibration,
    plot_d_calibration,
    plot_fairness_trend,
    plot_size_quality,
    plot_trace,
)


def axes():
    return Figure(figsize=(7, 5)).subplots()


def test_the_key_of_a_calibration_hides_no_group(gbsg2):
    ax = plot_calibration(gbsg2.tree, gbsg2.test)
    ax.figure.canvas.draw()
    key = ax.get_legend().get_window_extent()
    assert key.y1 < ax.xaxis.label.get_window_extent().y0
    assert key.y0 >= ax.figure.bbox.y0
    assert key.x1 <= ax.figure.bbox.x1


def test_size_and_quality_of_an_optimal_tree(uneven):
    ax = plot_size_quality(uneven.tree, axes())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [one.max_leaves for one in uneven.tree.path_])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [one.objective for one in uneven.tree.path_])


def test_several_trees_share_a_brier_picture(gbsg2, stump):
    ax = plot_brier({"soft": gbsg2.tree, "again": gbsg2.tree}, gbsg2.test, axes())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label.split(" (")[0] for label in labels] == ["soft", "again", "no features"]


def test_size_against_quality():
    path = pd.DataFrame({"leaves": [3, 1, 2], "training": [0.7, 1.0, 0.8]})
    ax = plot_size_quality(path, axes())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3])
    with pytest.raises(InvalidParameterError, match="path must have the column 'leaves'"):
        plot_size_quality(path.drop(columns="leaves"))


def test_sizes_are_drawn_with_the_errors_of_their_held_out_losses(gbsg2):
    tree = OptimalSurvivalTree(max_depth=2, tune="cv", random_state=0).fit(gbsg2.train)
    ax = plot_size_quality(tree, axes())
    assert ax.get_ylabel() == "Held-out loss above the best limit"
    costly = tree.selection_["complexity"] > 0
    for container, settings in zip(ax.containers, (tree.selection_[~costly], tree.selection_[costly]), strict=True):
        best = settings.loc[settings.groupby("leaves")["loss"].idxmin()]
        np.testing.assert_allclose(container[0].get_xdata(orig=False), best["leaves"].to_numpy(dtype=float))
        np.testing.assert_allclose(container[0].get_ydata(orig=False), best["difference"].to_numpy(dtype=float))
    assert min(ax.containers[0][0].get_ydata(orig=False)) == 0
    chosen = next(line for line in ax.lines if line.get_label() == "chosen")
    assert chosen.get_xdata()[0] == tree.selection_.loc[tree.selection_["chosen"], "leaves"].iloc[0]


def test_fairness_trend_over_rho(mixed):
    settings = {"depth": 1, "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 1}
    trees = {rho: SoftSurvivalTree(fairness=rho, **settings).fit(mixed.data) for rho in (0, 20)}
    frame = fairness_frame(trees, mixed.data, "f")
    assert frame.loc[20, "mean_gap"] <= frame.loc[0, "mean_gap"]
    assert frame["gini"].between(0, 1).all()
    ax = plot_fairness_trend(trees, mixed.data, axes(), group="f")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "20"]


def test_one_tree_has_its_own_rho(mixed):
    tree = SoftSurvivalTree(depth=0, l2=1.0, fairness=2.0).fit(mixed.data)
    pd.testing.assert_frame_equal(fairness_frame(tree, mixed.data), fairness_frame({2: tree}, mixed.data))
    assert [t.get_text() for t in plot_fairness_trend(tree, mixed.data, axes()).get_xticklabels()] == ["2"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda tree: {}, "trees must hold at least one fitted tree, got none"),
        (lambda tree: {"fair": tree}, "trees must map weights of the penalty, numbers, to trees, got 'fair'"),
        (
            lambda tree: [tree],
            "trees must be .* a mapping of weight of the penalty to fitted tree, got list; pass a dict",
        ),
    ],
)
def test_what_is_no_tree_over_rho_is_said(mixed, gbsg2, make, said):
    with pytest.raises(InvalidParameterError, match=said):
        fairness_frame(make(gbsg2.tree), mixed.data)


def test_a_brier_plot_of_no_tree_is_refused(gbsg2):
    with pytest.raises(InvalidParameterError, match="at least one fitted tree"):
        plot_brier({}, gbsg2.test, axes())
    with pytest.raises(InvalidParameterError, match="a mapping of name to fitted tree, got tuple; pass a dict"):
        plot_brier((gbsg2.tree, gbsg2.tree), gbsg2.test, axes())


def test_horizons_of_a_calibration_are_numbers(gbsg2):
    with pytest.raises(InvalidTimesError, match="horizons must be numbers"):
        plot_calibration(gbsg2.tree, gbsg2.test, horizons="a year")


def test_bars_of_d_calibration_are_shares_of_all_rows(gbsg2):
    ax = plot_d_calibration(gbsg2.tree, gbsg2.test, axes(), n_bins=5)
    heights = [bar.get_height() for bar in ax.patches]
    assert len(heights) == 5
    assert sum(heights) == pytest.approx(1.0)


def test_a_trace_never_rises(optimal):
    ax = plot_trace(optimal.tree, axes())
    values = np.asarray(ax.lines[0].get_ydata())
    assert (np.diff(values) <= 0).all()
    assert values[-1] == optimal.tree.report_.trace[-1]


@pytest.mark.parametrize("plot", [plot_trace, plot_size_quality])
def test_one_leaf_has_one_point_at_a_whole_number(gbsg2, plot):
    """A line through one point is nothing, and no tree has .945 leaves."""
    ax = plot(OptimalSurvivalTree(max_depth=0, tune=None).fit(gbsg2.train), axes())
    assert ax.lines[0].get_marker() == "o"
    low, high = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert shown == [*ax.lines[0].get_xdata()]


def test_a_tree_of_rules_has_no_trace_to_draw(gbsg2):
    rules = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(gbsg2.train)
    with pytest.raises(InvalidParameterError, match="got none: trees of rules keep none, dense trees"):
        plot_trace(rules, axes())
