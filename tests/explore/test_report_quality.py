"""The report's section on trust: measures as `evaluate` has them, training rows told, and what cannot be measured."""

import copy
import re

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.explore.curves import table_of
from softsurv.explore.quality import default_horizons
from softsurv.explore.report_quality import UNMEASURED, calibration_section, quality_section
from softsurv.nonparametric import kaplan_meier
from softsurv.trees.leaf_table import same_rows


@pytest.fixture(scope="module")
def sections(gbsg2):
    return {name: quality_section(gbsg2.tree, getattr(gbsg2, name), None, 20, 0) for name in ("train", "test")}


def test_training_rows_are_called_so(gbsg2, sections):
    assert same_rows(gbsg2.tree.leaf_table_, table_of(gbsg2.tree, gbsg2.train))
    assert not same_rows(gbsg2.tree.leaf_table_, table_of(gbsg2.tree, gbsg2.test))
    assert "rows the tree was trained on" in sections["train"]
    assert "rows the tree was trained on" not in sections["test"]


def test_training_rows_are_called_so_where_subjects_have_several(gbsg2):
    x = np.linspace(-1, 1, 60)
    start, stop = np.tile([0.0, 1.0], 30), np.tile([1.0, 0.0], 30)
    stop[1::2] = 2.0 + np.arange(30) % 7
    histories = survival_data(
        pd.DataFrame({"x": x}), time=stop, event=(start > 0) & (np.arange(60) % 3 > 0), start=start,
        id=np.repeat(np.arange(30), 2),
    )  # fmt: skip
    tree = OptimalSurvivalTree(max_depth=1, tune=None).fit(histories)
    assert "rows the tree was trained on" in quality_section(tree, histories, None, 20, 0)
    assert "rows the tree was trained on" not in quality_section(tree, histories.take(np.arange(40)), None, 20, 0)


@pytest.mark.parametrize("name", ["train", "test"])
def test_measures_are_those_of_evaluate_with_their_intervals(gbsg2, sections, name):
    expected = gbsg2.tree.evaluate(getattr(gbsg2, name))
    words = {"harrell_c": "Harrell&#x27;s concordance", "uno_c": "Uno&#x27;s concordance",
             "cd_auc": "cumulative/dynamic AUC", "ibs": "integrated Brier score"}  # fmt: skip
    for measure, label in words.items():
        row = re.search(rf'<th scope="row">{label}</th>(.*?)</tr>', sections[name])[1]
        value, interval, _ = re.findall(r"<td[^>]*>(.*?)</td>", row)
        assert value == f"{expected[measure]:.3f}"
        low, high = map(float, interval.split(" to "))
        assert low <= float(value) <= high
    n, events = getattr(gbsg2, name).n, getattr(gbsg2, name).n_events
    assert f"On {n} rows with {events} events, from" in sections[name]


def test_calibration_compares_with_kaplan_meier_of_all_rows(gbsg2):
    section = calibration_section(gbsg2.tree, gbsg2.test, None)
    curve = kaplan_meier(gbsg2.test.time.numpy(), gbsg2.test.event.numpy())
    found = re.findall(r'<th scope="row">(\S+) days</th>(.*?)</tr>', section)
    for horizon, (shown, cells) in zip(default_horizons(gbsg2.tree, gbsg2.test), found, strict=True):
        assert float(shown) == pytest.approx(horizon, rel=1e-3)
        rows, groups, predicted, observed = map(float, re.findall(r"<td[^>]*>(.*?)</td>", cells))
        assert rows == gbsg2.test.n
        assert 1 < groups <= 8
        assert observed == pytest.approx(float(curve(horizon)), abs=1e-3)
        mean = gbsg2.tree.predict_survival_function(gbsg2.test.X, [horizon]).mean()
        assert predicted == pytest.approx(mean, abs=1e-3)
    assert re.search(r"D-calibration: χ² = \S+, p (=|&lt;) \S+: ", section)


def test_a_small_p_value_is_not_laid_on_the_curves_alone(gbsg2):
    """D-calibration rejects true curves, too, where rows share times."""
    test = gbsg2.test
    years = survival_data(test.X, time=np.ceil(test.time.numpy() / 730) * 730, event=test.event.numpy())
    assert "or many rows share a time" in calibration_section(gbsg2.tree, years, None)


def test_calibration_predicts_once_at_the_horizons(gbsg2):
    """And each row once more at its own time, for D-calibration."""
    asked, tree = [], copy.copy(gbsg2.tree)
    tree.predict_survival_function = lambda X, times: (
        asked.append((len(X), list(times))) or gbsg2.tree.predict_survival_function(X, times)
    )
    section = calibration_section(tree, gbsg2.test, None)
    assert section == calibration_section(gbsg2.tree, gbsg2.test, None)
    at = (gbsg2.test.n, list(default_horizons(gbsg2.tree, gbsg2.test)))
    assert asked.count(at) == 1
    assert sum(n for n, _ in asked) == 2 * gbsg2.test.n


def test_events_in_intervals_are_not_measured(gbsg2):
    upper = np.where(gbsg2.test.event.numpy(), np.inf, gbsg2.test.time.numpy() + 50.0)
    data = gbsg2.test._derive({"upper": gbsg2.test.time.new_tensor(upper)})
    for section in (quality_section(gbsg2.tree, data, None, 20, 0), calibration_section(gbsg2.tree, data, None)):
        assert UNMEASURED in section
        assert "<table" not in section
    mean = gbsg2.tree.log_likelihood(data).mean()
    assert f"Mean log-likelihood of a row: {mean:.4g}." in quality_section(gbsg2.tree, data, None, 20, 0)
