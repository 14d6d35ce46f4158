"""Every picture: takes axes, returns them, has labels with units and a legend; the tree's parts do not overlap."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.explore import (
    fairness_frame,
    leaf_summary,
    plot_brier,
    plot_calibration,
    plot_cumulative_hazard,
    plot_d_calibration,
    plot_fairness_trend,
    plot_feature_profile,
    plot_hazard,
    plot_leaf_curves,
    plot_leaf_effects,
    plot_path,
    plot_routing_effects,
    plot_size_quality,
    plot_trace,
    plot_tree,
    plot_tree_parts,
)
from softsurv.explore.effect_plots import profile
from softsurv.explore.path_plot import YES
from softsurv.explore.style import series_marker, series_style, with_unit
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


def boxes(ax):
    """Extents of everything that must not overlap: rules, panels with their words, edge labels, the key."""
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    found = [
        ("rule", text.get_text(), text.get_bbox_patch().get_window_extent(renderer))
        for text in ax.texts
        if text.get_bbox_patch()
    ]
    found += [
        ("edge", text.get_text(), text.get_window_extent(renderer)) for text in ax.texts if not text.get_bbox_patch()
    ]
    found += [("panel", panel.get_title(), panel.get_tightbbox(renderer)) for panel in ax.child_axes]
    found.append(("key", "key", ax.get_legend().get_window_extent(renderer)))
    found += [("heading", text.get_text(), text.get_window_extent(renderer)) for text in figure.texts]
    return found


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


def test_the_key_of_a_tree_is_where_a_page_begins_and_names_what_is_drawn(gbsg2, optimal):
    spread, steps = (plot_tree(case.tree, case.test).get_legend() for case in (gbsg2, optimal))
    assert "5–95 % of rows" in [text.get_text() for text in spread.get_texts()]
    assert [text.get_text() for text in steps.get_texts()] == ["predicted", "observed: Kaplan-Meier"]
    axes = steps.axes
    assert steps.get_window_extent().x0 - axes.get_window_extent().x0 < 0.1 * axes.get_window_extent().width


def test_the_median_of_every_leaf_is_in_view(gbsg2, optimal):
    for subject in (gbsg2, optimal):
        for draw in (plot_hazard, plot_cumulative_hazard):
            ax = draw(subject.tree, subject.test, axes())
            top = max(np.nanmax(line.get_ydata()) for line in ax.lines if line.get_label().startswith("leaf"))
            assert top <= ax.get_ylim()[1]


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


def test_the_key_of_a_calibration_hides_no_group(gbsg2):
    ax = plot_calibration(gbsg2.tree, gbsg2.test)
    ax.figure.canvas.draw()
    key = ax.get_legend().get_window_extent()
    assert key.y1 < ax.xaxis.label.get_window_extent().y0
    assert key.y0 >= ax.figure.bbox.y0
    assert key.x1 <= ax.figure.bbox.x1


@pytest.mark.parametrize(
    ("value", "text"), [(12340.4, "12340 hours"), (3.14159, "3.142 hours"), (np.inf, "not reached")]
)
def test_long_times_are_written_in_full(value, text):
    assert with_unit(value, "hours") == text


def test_no_two_of_many_effects_look_alike():
    looks = [(series_style(k).color, series_marker(k)) for k in range(64)]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("plot", [plot_routing_effects, plot_leaf_effects])
def test_no_two_effects_of_a_deep_tree_look_alike(deep, plot):
    handles = plot(deep.tree).get_legend().legend_handles
    looks = [(to_rgba(handle.get_color()), handle.get_marker()) for handle in handles]
    assert len(looks) > 5
    assert len(set(looks)) == len(looks)


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


def test_size_and_quality_of_an_optimal_tree(uneven):
    ax = plot_size_quality(uneven.tree, axes())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [one.max_leaves for one in uneven.tree.path_])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [one.objective for one in uneven.tree.path_])


def test_leaf_effects_need_curves_that_vary(optimal):
    with pytest.raises(InvalidParameterError, match="tree must have leaves whose curves vary"):
        plot_leaf_effects(optimal.tree)


@pytest.mark.parametrize("which", ["deep", "gbsg2", "lopsided", "stump", "optimal", "uneven"])
def test_nothing_overlaps_in_the_tree_and_nothing_is_cut(which, request):
    subject = request.getfixturevalue(which)
    data = getattr(subject, "data", None) or subject.test
    drawn = [plot_tree(subject.tree, data, time_unit="days")]
    drawn += plot_tree_parts(subject.tree, data, most_leaves=3, time_unit="days")
    for ax in drawn:
        found, frame = boxes(ax), ax.figure.bbox
        for (_, one, a), (_, other, b) in itertools.combinations(found, 2):
            assert not a.overlaps(b), f"{one!r} overlaps {other!r}"
        for kind, name, box in found:
            across, down = (
                (box.x0 >= frame.x0 - 1, box.x1 <= frame.x1 + 1),
                (box.y0 >= frame.y0 - 1, box.y1 <= frame.y1 + 1),
            )
            assert all(across + down), f"{kind} {name!r} is cut"


def test_the_key_tells_predicted_from_observed_also_with_two_leaves(gbsg2):
    """Of two leaves one is nearly black, as the observed curve is."""
    tree = OptimalSurvivalTree(max_depth=1).fit(gbsg2.train)
    predicted, observed = plot_tree(tree, gbsg2.test, axes()).get_legend().get_lines()
    luminance = [np.dot(to_rgb(line.get_color()), (0.2126, 0.7152, 0.0722)) for line in (predicted, observed)]
    assert luminance[0] > luminance[1] + 0.3


def test_a_leaf_panel_holds_its_curves_and_numbers(gbsg2):
    ax = plot_tree(gbsg2.tree, gbsg2.test, axes())
    leaf = gbsg2.tree.apply(gbsg2.test)
    for k, panel in enumerate(ax.child_axes):
        rows = leaf == k
        title = panel.get_title()
        assert title.startswith(f"leaf {k}\n")
        assert f"n = {rows.sum()}" in title
        if rows.any():
            assert f"events = {int(gbsg2.test.event[rows].sum())}" in title
            assert "days" in title or "not reached" in title
            assert len(panel.lines) == 2


def test_profile_is_what_moving_the_feature_does(mixed):
    X = mixed.data.X.iloc[:20]
    shares, means = profile(mixed.tree, X, "age", [40.0, 80.0], 500.0)
    moved = X.assign(age=80.0)
    leaf = mixed.tree.apply(moved)
    np.testing.assert_allclose(shares[1], [(leaf == k).mean() for k in range(4)])
    assert means[1] == pytest.approx(mixed.tree.predict_expectation(moved, 500.0).mean())


@pytest.mark.parametrize("feature", ["age", "grade", "marker"])
def test_feature_profiles_of_numbers_and_categories(mixed, feature):
    ax = plot_feature_profile(mixed.tree, mixed.data, feature, axes(), time_unit="days")
    assert ax.get_xlabel() == feature


def test_fairness_trend_over_rho(mixed):
    settings = {"depth": 1, "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 1}
    trees = {rho: SoftSurvivalTree(fairness=rho, **settings).fit(mixed.data) for rho in (0, 20)}
    frame = fairness_frame(trees, mixed.data, "f")
    assert frame.loc[20, "mean_gap"] <= frame.loc[0, "mean_gap"]
    assert frame["gini"].between(0, 1).all()
    ax = plot_fairness_trend(trees, mixed.data, axes(), group="f")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "20"]


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


@pytest.mark.parametrize("kind", ["gbsg2", "optimal", "deep"])
def test_a_path_shows_the_subject_at_every_split(kind, request):
    subject = request.getfixturevalue(kind)
    data = getattr(subject, "data", None) or subject.test
    row = data.X.iloc[[0]]
    ax = plot_path(subject.tree, data, row)
    steps = subject.tree.explain(row).steps
    panels = ax.figure.get_axes()
    assert len(panels) == len(steps) + 1
    for panel, step in zip(panels, steps, strict=False):
        assert panel.get_title().endswith("yes" if step.left else "no")
        marks = [line for line in panel.lines if line.get_marker() in ("^", ">")]
        assert len(marks) == 1
        edges = [line.get_xdata()[0] for line in panel.lines if line.get_linestyle() == "--"]
        if edges and panel.lines[-1].get_marker() == "^" and "<=" in panel.get_title():
            assert (marks[0].get_xdata()[0] <= edges[0]) == step.left
    shown = [text.get_text() for text in panels[-1].get_legend().get_texts()]
    alone = ["the subject, as all of the leaf's rows"]  # one curve: no band and no mean of its own
    assert shown == (alone if kind == "optimal" else ["5–95 % of the leaf's rows", "their mean", "the subject"])


def rows_whose_age_counts_by_grade(low):
    """Grades, one of them missing at times, and ages: among the ``low`` grades a higher age is worse, else better."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"grade": rng.choice(["I", "II", "III", "IV"], 400), "age": rng.normal(60, 10, 400)})
    X.loc[:5, "grade"] = None
    slope = np.where(X["grade"].isin(low), -0.15, 0.15)  # no regression on all rows has both
    return X, (rng.random(400) < 0.8, rng.exponential(np.exp(slope * (X["age"] - 60))) + 0.01)


@pytest.mark.parametrize("how", [{}, {"max_terms": None, "l2": 0.1, "max_iter": 20}])
def test_the_axis_of_a_sum_is_in_the_units_that_the_rule_is_printed_in(how):
    X, y = rows_whose_age_counts_by_grade(["I", "II"])
    tree = SoftSurvivalTree(depth=1, leaf="exponential", **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tree.fit(X, y)
    for k in (20, 27):
        ax = plot_path(tree, (X, y), X.iloc[[k]])
        step = tree.explain(X.iloc[[k]]).steps[0]
        assert ("] + " in step.rule) or how
        threshold = float(step.rule.rpartition(">")[2].partition("(")[0])
        edge = next(line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--")
        assert edge == pytest.approx(threshold, rel=1e-3 if how else 1e-6)  # a dense one is printed in four digits
        subject = next(line.get_xdata()[0] for line in ax.lines if line.get_marker() == "^")
        assert (subject > threshold) == step.left
        assert float(ax.get_xlabel().partition(": ")[2]) == pytest.approx(subject, rel=1e-3)


def test_levels_that_a_soft_rule_asks_for_are_drawn_as_levels():
    X, (event, _) = rows_whose_age_counts_by_grade([])
    shapes = np.random.default_rng(6).weibull(np.where(X["grade"].isin(["III", "IV"]), 5.0, 0.7))
    rows = (X, (event, shapes + 0.01))  # no regression has two shapes
    tree = SoftSurvivalTree(depth=1, leaf="weibull").fit(*rows)
    assert tree.export_text().startswith("grade in {")
    asked = tree.export_text().partition("{")[2].partition("}")[0].split(", ")
    ax = plot_path(tree, rows, X.iloc[[9]])
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(shown) == ["I", "II", "III", "IV"]
    assert [bar.get_facecolor() == to_rgba(YES) for bar in ax.patches] == [level in asked for level in shown]
    assert sum(bar.get_width() for bar in ax.patches) == 400  # a missing grade counts as the most frequent level


def test_tables_are_named_as_in_fit(gbsg2):
    table = gbsg2.test.X.assign(days=gbsg2.test.time.numpy(), relapse=gbsg2.test.event.numpy())
    expected = leaf_summary(gbsg2.tree, gbsg2.test)
    pd.testing.assert_frame_equal(leaf_summary(gbsg2.tree, table, time="days", event="relapse"), expected)
    ax = plot_leaf_curves(gbsg2.tree, table, axes(), time="days", event="relapse")
    assert ax.get_xlabel() == "Time"


def test_what_cannot_be_drawn_is_said(stump, gbsg2):
    with pytest.raises(InvalidParameterError, match="tree must have a branch node"):
        plot_routing_effects(stump.tree)
    with pytest.raises(InvalidParameterError, match="feature must be a column of the data, got 'nope'"):
        plot_feature_profile(gbsg2.tree, gbsg2.test, "nope")


def test_data_may_be_a_pair(gbsg2):
    ax = plot_leaf_curves(gbsg2.tree, (gbsg2.test.X, gbsg2.test.y), axes(), time_unit="days")
    assert ax.get_xlabel() == "Time (days)"


def test_no_bar_lies_on_both_sides_of_a_threshold_and_imputed_rows_are_told():
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"age": rng.integers(30, 80, 300).astype(float)})
    time = rng.exponential(np.where(X["age"] > 47, 1.0, 9.0)) + 0.01
    X.loc[rng.choice(300, 40, replace=False), "age"] = np.nan
    rows = (X, (rng.random(300) < 0.8, time))
    for tree in (OptimalSurvivalTree(max_depth=1), SoftSurvivalTree(depth=1, leaf="exponential", max_terms=1)):
        tree.fit(*rows)
        ax = plot_path(tree, rows, X.iloc[[0]])
        edge = next(line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--")
        ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches if bar.get_height()])
        assert ((ends[:, 1] <= edge + 1e-9) | (ends[:, 0] >= edge - 1e-9)).all()
        assert sum(bar.get_height() for bar in ax.patches) == 300
        assert [text.get_text() for text in ax.texts] == [f"40 missing: taken as {X['age'].mean():.4g}"]
