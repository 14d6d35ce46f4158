"""Leaf numbers, words and pictures of rows with late entry, weights and intervals: one story everywhere."""

import lifelines
import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidSurvivalDataError
from softsurv.explore import explain, explorer, leaf_summary, plot_calibration, plot_leaf_curves, plot_tree
from softsurv.explore.curves import curve_name, leaf_interval
from softsurv.explore.report import report_html
from softsurv.nonparametric import survival_interval

SOFT = {"depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 1.0, "routing_l2": 1.0, "n_restarts": 1}


@pytest.fixture(scope="module")
def late():
    """Rows with late entry and weights, a quarter of them 0."""
    rng = np.random.default_rng(0)
    x, entry = rng.normal(size=400), rng.uniform(0, 8, 400)
    failure, censored = rng.exponential(10 * np.exp(-x)), entry + rng.exponential(10, 400)
    kept = failure > entry
    time, event = np.minimum(failure, censored)[kept], (failure <= censored)[kept]
    weight = rng.integers(0, 4, kept.sum()).astype(float)
    return survival_data(pd.DataFrame({"x": x[kept]}), (event, time), entry=entry[kept], weight=weight)


@pytest.fixture(scope="module")
def visited():
    """Events known to lie between visits at whole times; nobody is seen for longer than 6."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    failure = np.exp(1 + 0.5 * x + 0.5 * rng.normal(size=200))
    begin, end = np.floor(failure), np.floor(failure) + 1
    begin[failure > 6], end[failure > 6] = 6, np.inf
    return survival_data(pd.DataFrame({"x": x, "z": rng.normal(size=200)}), (np.zeros(200, bool), begin), upper=end)


@pytest.mark.parametrize("tree", [OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=0.0), SoftSurvivalTree(**SOFT)])
def test_leaves_are_told_with_late_entry_and_weights(tree, late):
    tree.fit(late)
    leaf, summary = tree.apply(late.X), leaf_summary(tree)
    pd.testing.assert_frame_equal(summary, leaf_summary(tree, late))
    for k in np.unique(leaf):
        part = late.take((leaf == k) & (late.weight.numpy() > 0))
        time, event, weight, entry = (getattr(part, c).numpy() for c in ("time", "event", "weight", "entry"))
        reference = lifelines.KaplanMeierFitter().fit(time, event, entry=entry, weights=weight)
        middle = reference.median_survival_time_
        row = summary.loc[k]
        assert (row["n"], row["events"], row["median"]) == (part.n, part.n_events, middle)
        predicted = tree.leaf_table_.predicted
        said = f"{middle:.4g}" if predicted is None else f"{float(f'{predicted[k]:.3g}'):g}"
        line = f"leaf {k}: n {part.n}, events {part.n_events}, predicted median {said}"
        assert line in tree.export_text()
        assert line.partition(": ")[2] in tree.export_dot()
        assert f"median {middle:.4g}{';' if predicted is None else '.'}" in str(explain(tree, part.X.head(1)))
        ours, theirs = leaf_interval(part, np.arange(part.n)), survival_interval(time, event, weight, entry)
        np.testing.assert_array_equal(ours[0].values, theirs[0].values)
    if isinstance(tree, OptimalSurvivalTree):
        assert sorted(np.unique(tree.predict_median(late.X))) == sorted(summary["median"])
        assert [one["median"] for one in tree.to_dict()["leaves"]] == summary["median"].tolist()


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_weights_and_copies_give_the_same_medians(objective, late):
    event, time, weight = late.event.numpy(), late.time.numpy(), late.weight.numpy().astype(int)
    copies = np.repeat(np.arange(late.n), weight)
    weighted = OptimalSurvivalTree(objective, max_depth=1, thresholds="all").fit(
        late.X, (event, time), sample_weight=weight
    )
    repeated = OptimalSurvivalTree(objective, max_depth=1, thresholds="all").fit(
        late.X.iloc[copies].reset_index(drop=True), (event[copies], time[copies])
    )
    for name in ("median", "median_lower", "median_upper"):
        np.testing.assert_array_equal(getattr(weighted.leaf_table_, name), getattr(repeated.leaf_table_, name))


def test_intervals_count_as_events_everywhere(visited):
    tree = SoftSurvivalTree(**SOFT).fit(visited)
    n_failed = int(visited.failed.sum())
    summary = leaf_summary(tree, visited)
    assert summary["events"].sum() == n_failed
    pd.testing.assert_frame_equal(summary, leaf_summary(tree))
    assert summary["median"].between(1, 6).all()
    assert summary[["median_lower", "median_upper"]].isna().all(axis=None)
    assert tree.unique_times_.tolist() == np.unique(visited.upper[visited.failed]).tolist()
    assert tree.predict_survival_function(visited.X).shape == (200, tree.unique_times_.size)
    assert np.isfinite(tree.predict(visited.X)).all()
    assert f"events {summary['events'].iloc[0]}" in tree._repr_html_()
    assert curve_name(visited) == "Turnbull"
    labels = [text.get_text() for text in plot_leaf_curves(tree, visited, show_kaplan_meier=True).get_legend().texts]
    assert "steps: Turnbull\nof the leaf" in labels
    titles = [panel.get_title() for panel in plot_tree(tree, visited).child_axes]
    assert any(f"events = {summary['events'].iloc[0]}" in title for title in titles)
    assert f'"events": {summary["events"].iloc[0]}' in explorer(tree, visited).page


def test_a_report_of_intervals_leaves_out_what_it_cannot_measure(visited):
    tree = SoftSurvivalTree(**SOFT).fit(visited)
    page = report_html(tree, visited, n_boot=20)
    assert "Turnbull curve of all rows" in page
    assert "they are left out here" in page
    assert "Harrell" not in page
    with pytest.raises(InvalidSurvivalDataError, match="intervals; judge a tree by"):
        plot_calibration(tree, visited)


def test_events_without_any_known_time():
    """Every row failed between two visits, so that no time is known."""
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=50)})
    tree = SoftSurvivalTree(depth=0, l2=1.0).fit(X, (np.zeros(50, bool), np.arange(50.0)), upper=np.arange(50.0) + 1)
    assert tree.predict(X).shape == (50,)
    first, _, predicted = tree.export_text().splitlines()[0].rpartition(" ")
    assert first == "leaf 0: n 50, events 50, predicted median"
    assert 20 < float(predicted) < 30
    assert tree.leaf_table_.median[0] == 24.5
