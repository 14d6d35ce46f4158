"""Every picture: takes axes, returns them, has labels with units and a legend; the tree's parts do not overlap."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.explore import (
    leaf_summary,
    plot_brier,
    plot_calibration,
    plot_cumulative_hazard,
    plot_d_calibration,
    plot_hazard,
    plot_leaf_curves,
    plot_leaf_effects,
    plot_routing_effects,
    plot_trace,
    plot_tree,
)
from softsurv.explore.curves import curves_by_leaf
from softsurv.explore.view import tree_view


def axes():
    return Figure(figsize=(7, 5)).subplots()


PICTURES = {
    "leaf_curves": (lambda s, ax: plot_leaf_curves(s.tree, s.test, ax, show_kaplan_meier=True), "Time (days)"),
    "hazard": (lambda s, ax: plot_hazard(s.tree, s.test, ax), "Time (days)"),
    "cumulative_hazard": (lambda s, ax: plot_cumulative_hazard(s.tree, s.test, ax), "Time (days)"),
    "calibration": (lambda s, ax: plot_calibration(s.tree, s.test, [365, 1000], ax), "Predicted survival probability"),
    "d_calibration": (
        lambda s, ax: plot_d_calibration(s.tree, s.test, ax),
        "Predicted survival probability at own time",
    ),
    "brier": (lambda s, ax: plot_brier(s.tree, s.test, ax), "Time (days)"),
    "routing": (lambda s, ax: plot_routing_effects(s.tree, ax), "Effect on the log-odds of yes"),
    "leaves": (lambda s, ax: plot_leaf_effects(s.tree, ax), "Effect over the feature's range"),
    "trace": (lambda s, ax: plot_trace(s.tree, ax), "Round"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_use_the_axes_they_are_given(gbsg2, name):
    draw, label = PICTURES[name]
    ax = axes()
    assert draw(gbsg2, ax) is ax
    assert ax.get_xlabel().startswith(label)
    assert ax.get_ylabel() or name in ("routing", "leaves")
    assert ax.get_legend() is not None


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_make_their_own_axes(gbsg2, name):
    assert PICTURES[name][0](gbsg2, None).figure.get_axes()


def test_every_row_has_a_curve_in_the_colour_of_its_leaf(gbsg2):
    ax = plot_leaf_curves(gbsg2.tree, gbsg2.test, axes(), max_curves=10_000)
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in lines) == gbsg2.test.n
    assert len(lines) == len(np.unique(gbsg2.tree.apply(gbsg2.test)))


def test_empty_leaves_are_told_in_the_tree_and_no_entry_of_the_legend(lopsided):
    ax = plot_leaf_curves(lopsided.tree, lopsided.data, axes())
    empty = np.array([k for k in tree_view(lopsided.tree).leaves if lopsided.tree.leaf_table_.n[k] == 0])
    full = [k for k in tree_view(lopsided.tree).leaves if k not in empty]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == [f"leaf {k}" for k in full]
    assert empty.size
    tree = plot_tree(lopsided.tree, lopsided.data)
    words = [text.get_text() for panel in tree.child_axes for text in panel.texts]
    assert words.count("no rows\narrive here") == empty.size


OPTIMAL_TOO = [name for name in PICTURES if name not in ("leaves", "routing")]


@pytest.mark.parametrize("name", OPTIMAL_TOO)
def test_optimal_trees_share_the_pictures(optimal, name):
    ax = PICTURES[name][0](optimal, axes())
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_the_key_of_eight_leaves_hides_no_curve(deep, optimal):
    for subject in (deep, optimal):
        data = getattr(subject, "data", None) or subject.test
        for draw in (plot_leaf_curves, plot_hazard, plot_cumulative_hazard):
            ax = draw(subject.tree, data)
            ax.figure.canvas.draw()
            assert len(ax.get_legend().get_texts()) > 5
            assert ax.get_legend().get_window_extent().x0 > ax.bbox.x1
            assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1


def test_the_median_of_every_leaf_is_in_view(gbsg2, optimal):
    for subject in (gbsg2, optimal):
        for draw in (plot_hazard, plot_cumulative_hazard):
            ax = draw(subject.tree, subject.test, axes())
            top = max(np.nanmax(line.get_ydata()) for line in ax.lines if line.get_label().startswith("leaf"))
            assert top <= ax.get_ylim()[1]


def test_curves_of_steps_are_upright(optimal):
    ax = plot_leaf_curves(optimal.tree, optimal.test, axes())
    line = ax.lines[-1]
    x, y = line.get_xdata(), line.get_ydata()
    falls = np.flatnonzero(np.diff(y) < 0)
    assert falls.size
    assert (np.diff(x)[falls] < 1e-6).all()


def test_hazards_of_steps_are_means_over_spans(optimal):
    ax = plot_hazard(optimal.tree, optimal.test, axes(), horizon=1000)
    row = optimal.test.X.iloc[[int(np.argmax(optimal.tree.apply(optimal.test) == 0))]]
    rise = np.diff(optimal.tree.predict_cumulative_hazard_function(row, times=[600, 650])[0])
    line = next(one for one in ax.lines if one.get_label().startswith("leaf 0"))
    np.testing.assert_allclose(line.get_ydata()[24:26], np.repeat(rise / 50, 2), atol=1e-12)


def test_tables_are_named_as_in_fit(gbsg2):
    table = gbsg2.test.X.assign(days=gbsg2.test.time.numpy(), relapse=gbsg2.test.event.numpy())
    expected = leaf_summary(gbsg2.tree, gbsg2.test)
    pd.testing.assert_frame_equal(leaf_summary(gbsg2.tree, table, time="days", event="relapse"), expected)
    ax = plot_leaf_curves(gbsg2.tree, table, axes(), time="days", event="relapse")
    assert ax.get_xlabel() == "Time"


def test_data_may_be_a_pair(gbsg2):
    ax = plot_leaf_curves(gbsg2.tree, (gbsg2.test.X, gbsg2.test.y), axes(), time_unit="days")
    assert ax.get_xlabel() == "Time (days)"


def test_hazards_of_leaves_that_nobody_survives_end_there():
    X = pd.DataFrame({"old": np.repeat([0.0, 1.0], 30)})
    data = survival_data(X, time=np.concatenate([np.arange(31.0, 61), np.arange(1.0, 31)]), event=np.ones(60, bool))
    tree = OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=0).fit(data)
    times = np.array([29.0, 30.0, 40.0])
    one = next(one for one in curves_by_leaf(tree, data, times, "cumulative_hazard") if 59 in one.rows)
    assert one.middle[0] == pytest.approx(np.log(30))
    assert np.isposinf(one.middle[1:]).all()
    for draw in (plot_hazard, plot_cumulative_hazard):
        assert 0 < draw(tree, data, axes()).get_ylim()[1] < 10


def test_hazards_without_any_finite_height_have_an_axis():
    X = pd.DataFrame({"old": np.repeat([0.0, 1.0], 10)})
    data = survival_data(X, time=np.full(20, 7.0), event=np.ones(20, bool))
    tree = OptimalSurvivalTree(max_depth=0, leaf="km").fit(data)
    assert plot_cumulative_hazard(tree, data, axes()).get_ylim() == (0, 1)
    assert plot_hazard(tree, data, axes(), horizon=1000.0).get_ylim() == (0, 1)  # the curve ends within the first span
