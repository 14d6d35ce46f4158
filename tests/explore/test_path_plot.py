"""The path of one subject, drawn: its value at every split, in the units of the rule, among the training rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from sklearn.exceptions import ConvergenceWarning

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.explore import plot_path
from softsurv.explore.path_plot import YES


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
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Rows", f"grade: {X['grade'][9]}")  # the bars lie
    assert [bar.get_facecolor() == to_rgba(YES) for bar in ax.patches] == [level in asked for level in shown]
    assert sum(bar.get_width() for bar in ax.patches) == 400  # a missing grade counts as the most frequent level


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
        assert max(bar.get_height() for bar in ax.patches) < 0.95 * ax.get_ylim()[1]  # the words stand above
        assert [text.get_text() for text in ax.texts] == [f"40 missing: taken as {X['age'].mean():.4g}"]


def test_a_question_of_many_levels_leaves_room_for_the_bars():
    rng = np.random.default_rng(0)
    country = rng.integers(0, 30, 600)
    X = pd.DataFrame({"country": [f"a country with a long name {k}" for k in country]})
    y = np.ones(600, dtype=bool), rng.exponential(np.where(country % 2 == 0, 0.2, 5.0))
    tree = OptimalSurvivalTree(max_depth=1, tune=None, level_sets=True).fit(X, y)
    assert tree.export_text().splitlines()[0].count("a country") > 10
    assert plot_path(tree, (X, y), X.head(1)).get_title().count("\n") <= 4
