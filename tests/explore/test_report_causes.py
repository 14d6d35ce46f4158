"""Measures of causes and of rows at risk in a report: the numbers of `evaluate`, and one curve for all beside them."""

import re

import numpy as np
import pytest
from oracles.cut_rows import cut_rows
from oracles.simulated import two_causes

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.aalen_johansen import aalen_johansen
from softsurv.explore.report_causes import cause_quality, quality_at_risk
from softsurv.metrics import integrated_brier_score_incidence


@pytest.fixture(scope="module")
def data():
    return two_causes()


@pytest.fixture(scope="module")
def tree(data):
    return OptimalSurvivalTree(max_depth=1, min_samples_leaf=10).fit(data)


def cells(section, name):
    """Cells of a row of a table."""
    row = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', section)[1]
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_each_cause_has_its_measures_beside_one_curve_for_all(tree, data):
    section, result = cause_quality(tree, data), tree.evaluate(data)
    grid = np.linspace(*result["range"], result["n_times"])
    time, codes = data.time.numpy(), data.cause.numpy()
    for code, (name, found) in enumerate(result["causes"].items(), start=1):
        common = np.broadcast_to(aalen_johansen(time, codes, n_causes=2).of_cause(code)(grid), (data.n, grid.size))
        null = integrated_brier_score_incidence(time, codes, common, grid, tree.censoring_, code)
        values = (found["concordance"], found["auc"], found["ibs"], null)
        assert cells(section, name) == [str(found["events"]), *(f"{value:.3f}" for value in values)]


def test_one_curve_for_all_knows_weights_and_late_entries(tree, data):
    """It stands beside measures that know them."""
    rng = np.random.default_rng(0)
    weight, entry = (
        rng.integers(1, 4, data.n).astype(float),
        np.where(rng.random(data.n) < 0.5, 0.5, 0.0) * data.time.numpy(),
    )
    rows = survival_data(
        data.X, time=data.time, cause=data.cause, weight=weight, entry=entry, cause_names=data.cause_names
    )
    section, result = cause_quality(tree, rows), tree.evaluate(rows)
    grid, time, codes = np.linspace(*result["range"], result["n_times"]), rows.time.numpy(), rows.cause.numpy()
    at_risk = {"weight": weight, "entry": rows.entry.numpy()}
    for code, name in enumerate(rows.cause_names, start=1):
        common = aalen_johansen(time, codes, n_causes=2, **at_risk).of_cause(code)(grid)
        curves = np.broadcast_to(common, (rows.n, grid.size))
        null = integrated_brier_score_incidence(time, codes, curves, grid, tree.censoring_, code, **at_risk)
        assert cells(section, name)[-1] == f"{null:.3f}"


def test_a_cause_that_these_rows_lack_has_dashes(tree, data):
    code = data.cause_names.index("seal") + 1
    part = data.take(np.flatnonzero(data.cause.numpy() != code))
    events, concordance, auc, *_ = cells(cause_quality(tree, part), "seal")
    assert (events, concordance, auc) == ("0", "-", "-")


def test_rows_at_risk_have_a_concordance_with_its_interval(tree, data):
    rows = cut_rows(data)
    rows.X["x"] += np.linspace(0, 0.1, rows.n)  # the rows of a subject differ
    section = quality_at_risk(tree, rows, 20, 0)
    assert f"{rows.n} rows of 150 subjects." in section
    assert "20 bootstrap samples of these subjects" in section
    with pytest.warns(UserWarning, match="need one row for each subject"):
        result = tree.evaluate(rows)
    events, value, interval = cells(section, "all events")
    assert (events, value) == (str(result["events"]), f"{result['harrell_c']:.3f}")
    low, high = map(float, interval.split(" to "))
    assert low <= result["harrell_c"] + 5e-4
    assert high >= result["harrell_c"] - 5e-4
    for name, found in result["causes"].items():
        assert cells(section, name) == [str(found["events"]), f"{found['concordance']:.3f}", "-"]


def test_one_curve_for_all_is_weighted_as_the_trees(tree, data):
    rows = data._derive({"weight": 1.0 + (data.time > data.time.median())})
    grid = np.linspace(*tree.evaluate(rows)["range"], tree.evaluate(rows)["n_times"])
    time, codes, weight = rows.time.numpy(), rows.cause.numpy(), rows.weight.numpy()
    common = np.broadcast_to(aalen_johansen(time, codes, weight).of_cause(1)(grid), (data.n, grid.size))
    null = integrated_brier_score_incidence(time, codes, common, grid, tree.censoring_, 1, weight=weight)
    assert cells(cause_quality(tree, rows), data.cause_names[0])[-1] == f"{null:.3f}"
