"""The picture of a tree: its key, its panels, and that nothing overlaps or is cut."""

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from softsurv import OptimalSurvivalTree, SurvivalData, load_dataset
from softsurv.explore import plot_tree, plot_tree_parts
from softsurv.explore.tree_plot import LEAF_WIDTH, MOST_ACROSS
from softsurv.explore.view import tree_view

EIGHT = {"max_depth": 3, "max_leaves": 8, "min_samples_leaf": 8}


@pytest.fixture(scope="module")
def eight():
    """An optimal tree of eight leaves with names of more than 30 characters, and a level of 50."""
    train, test = (long_names(part) for part in load_dataset("gbsg2").split(test_size=0.4, seed=0))
    return SimpleNamespace(tree=OptimalSurvivalTree(**EIGHT).fit(train), test=test)


def long_names(data):
    frame = data.X.rename(columns=lambda name: f"{name}_as_recorded_at_the_first_visit")
    levels = {"I": "I according to the revised classification of 1997"}
    frame["tgrade_as_recorded_at_the_first_visit"] = data.X["tgrade"].astype(str).replace(levels)
    return SurvivalData(frame, data.time, data.event)


def axes():
    return Figure(figsize=(7, 5)).subplots()


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


def test_the_key_of_a_tree_is_where_a_page_begins_and_names_what_is_drawn(gbsg2, optimal):
    spread, steps = (plot_tree(case.tree, case.test).get_legend() for case in (gbsg2, optimal))
    assert "5–95 % of rows" in [text.get_text() for text in spread.get_texts()]
    assert [text.get_text() for text in steps.get_texts()] == ["predicted", "observed: Kaplan-Meier"]
    axes = steps.axes
    assert steps.get_window_extent().x0 - axes.get_window_extent().x0 < 0.1 * axes.get_window_extent().width


@pytest.mark.parametrize("which", ["deep", "gbsg2", "lopsided", "stump", "optimal", "uneven", "large"])
def test_nothing_overlaps_in_the_tree_and_nothing_is_cut(which, request):
    subject = request.getfixturevalue(which)
    data = getattr(subject, "data", None) or subject.test
    drawn = [plot_tree(subject.tree, data, time_unit="days", sideways=sideways) for sideways in (None, True)]
    drawn += plot_tree_parts(subject.tree, data, most_leaves=3, time_unit="days")
    for ax in drawn:
        found, frame = boxes(ax), ax.figure.bbox
        assert not overlaps(found)
        for kind, name, box in found:
            across, down = (
                (box.x0 >= frame.x0 - 1, box.x1 <= frame.x1 + 1),
                (box.y0 >= frame.y0 - 1, box.y1 <= frame.y1 + 1),
            )
            assert all(across + down), f"{kind} {name!r} is cut"


@pytest.mark.parametrize("leaves", [2, 4, 8])
def test_rules_of_many_levels_hide_neither_key_nor_answers_nor_panels(leaves):
    """A level of rules is as high as its longest rule needs, here with eighteen long names of levels."""
    rng = np.random.default_rng(0)
    clinic, age = rng.integers(0, 36, 1500), rng.integers(20, 90, 1500)
    frame = pd.DataFrame({"clinic": [f"university hospital of town {k}" for k in clinic], "age": age})
    time = rng.exponential(np.exp(1.5 * (clinic % 2) + 0.5 * (age > 60) - 0.5 * (age > 40)))
    data = SurvivalData(frame, time, np.ones(1500, bool))
    tree = OptimalSurvivalTree(max_depth=3, max_leaves=leaves, level_sets=True).fit(data)
    assert tree.export_text().partition("\n")[0].count("university") == 18
    drawn = [plot_tree(tree, data), plot_tree(tree, data, sideways=True), *plot_tree_parts(tree, data, most_leaves=2)]
    for ax in drawn:
        assert not overlaps(boxes(ax))
        assert all(box.y1 <= ax.figure.bbox.y1 + 1 for _, _, box in boxes(ax))


def overlaps(found):
    return [(one, other) for (_, one, a), (_, other, b) in itertools.combinations(found, 2) if a.overlaps(b)]


def test_eight_leaves_are_as_wide_as_a_notebook_shows_and_no_texts_overlap(eight):
    """A picture of more than ten inches is shrunk there, and its words with it."""
    ax = plot_tree(eight.tree, eight.test)
    assert tree_view(eight.tree).n_leaves == 8
    assert ax.figure.get_figwidth() < 9
    found = boxes(ax)
    assert not overlaps(found)
    assert all(box.width > 1.5 * ax.figure.dpi for kind, _, box in found if kind == "panel")
    texts = [text for one in (ax, *ax.child_axes) for text in one.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 7


@pytest.mark.parametrize(("size", "sideways"), [((9, 6), None), ((13, 6), False), ((16, 6), None), ((20, 6), None)])
def test_eight_leaves_fit_into_axes_that_are_narrower_or_wider(gbsg2, size, sideways):
    tree = OptimalSurvivalTree(**EIGHT).fit(gbsg2.train)
    ax = plot_tree(tree, gbsg2.test, plt.subplots(figsize=size)[1], sideways=sideways, time_unit="days")
    assert not overlaps(boxes(ax))
    across = len({panel.get_position().y0 for panel in ax.child_axes}) == 1
    assert across == (sideways is False or size[0] == 20)  # 1.9 inches a leaf are 15.2, and subplots leave 78 %


def test_a_large_tree_is_as_wide_as_a_page(large):
    """One line for each leaf, from the lower risk down, as its view orders them."""
    ax = plot_tree(large.tree, large.test)
    n = tree_view(large.tree).n_leaves
    assert n > MOST_ACROSS
    assert ax.figure.get_figwidth() < 12
    tops = [panel.get_position().y1 for panel in ax.child_axes]
    order = [int(leaf) for leaf in np.argsort(np.negative(tops))]
    assert order == list(tree_view(large.tree).order)
    across = plot_tree(large.tree, large.test, sideways=False)
    assert across.figure.get_figwidth() == pytest.approx(n * LEAF_WIDTH)


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
