"""Pictures and words of trees whose events have causes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.aalen_johansen import aalen_johansen
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.explore import explain, plot_incidences, split_stability
from softsurv.explore.incidence_plot import cause_color

PENALTIES = {"l2": 0.3, "shrinkage": 10.0, "slope_shrinkage": 10.0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    first, second = rng.exponential(np.where(X > 0, 1.0, 8.0)).T
    time = np.minimum(np.minimum(first, second), 4.0)
    return survival_data(X, time=time, cause=np.select([time == first, time == second], ["ill", "dead"], "0"))


@pytest.fixture(scope="module")
def tree(data):
    return SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, **PENALTIES).fit(data)


def test_areas_are_the_mean_prediction_and_steps_are_what_was_observed(tree, data):
    axes = plot_incidences(tree, data).figure.axes
    leaf = tree.apply(data.X)
    assert len(axes) == leaf.max() + 1
    for number, ax in enumerate(axes):
        rows = np.flatnonzero(leaf == number)
        assert ax.get_title() == f"leaf {number}: n {rows.size}"
        times = ax.lines[0].get_xdata()
        total = tree.predict_cumulative_incidence(data.X.iloc[rows], times[-1:]).mean(0)[0].sum()
        top = max(path.vertices[:, 1].max() for area in ax.collections for path in area.get_paths())
        assert top == pytest.approx(total, abs=1e-12)
        seen = aalen_johansen(data.time.numpy()[rows], data.cause.numpy()[rows])
        np.testing.assert_allclose(ax.lines[1].get_ydata(), 1 - seen.state_probabilities(times)[:, 0], atol=1e-12)


@pytest.mark.parametrize("kind", [SoftSurvivalTree, OptimalSurvivalTree])
def test_lines_with_intervals_for_both_kinds_of_tree(kind, tree, data):
    drawn = tree if kind is SoftSurvivalTree else OptimalSurvivalTree(max_depth=1).fit(data)
    ax = plot_incidences(drawn, data, stacked=False, time_unit="years")
    assert len(ax.collections) == 2
    assert len(ax.lines) == 4
    assert ax.figure._supxlabel.get_text() == "Time (years)"
    labels = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert labels == ["dead", "ill", "observed, 95% interval"]


def test_words_tell_the_shares_of_the_causes(tree, data):
    text = str(explain(tree, data.X.head(1), time_unit="years"))
    last = text.splitlines()[-1]
    assert last.startswith("The curve is that of no event at all. By ")
    assert "dead " in last
    assert "ill " in last


def test_rules_are_found_again_for_all_causes(tree, data):
    found = split_stability(tree, data, n=2)
    assert len(found)


def test_weights_count_in_the_mean_prediction_too(tree, data):
    weight = np.random.default_rng(0).integers(1, 9, data.n).astype(float)
    names = {"cause": data.cause, "cause_names": data.cause_names}
    weighted = survival_data(data.X, time=data.time, weight=weight, **names)
    ax = plot_incidences(tree, weighted, stacked=False)
    rows = np.flatnonzero(tree.apply(data.X) == 0)
    thick = ax.lines[1]
    expected = tree.predict_cumulative_incidence(data.X.iloc[rows], thick.get_xdata(), 1)
    np.testing.assert_allclose(thick.get_ydata(), np.average(expected, axis=0, weights=weight[rows]))


def test_nine_causes_have_a_colour_each():
    assert len({cause_color(k) for k in range(9)}) == 9


def test_tree_and_data_have_the_same_causes(tree, data):
    with pytest.raises(InvalidParameterError, match="tree and data must have the same causes"):
        plot_incidences(tree, data.of_cause("ill"))
    with pytest.raises(InvalidParameterError, match="tree and data must have the same causes"):
        split_stability(tree, data.of_cause("ill"), n=2)
    one = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(data.of_cause("ill"))
    with pytest.raises(InvalidParameterError, match="tree must be fitted to causes, got one kind of event"):
        plot_incidences(one, data)
