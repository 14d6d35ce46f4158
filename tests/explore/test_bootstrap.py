"""Intervals of measures: samples of counts against tables with repeated rows and subjects."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.explore.bootstrap import bootstrap_quality
from softsurv.metrics import integrated_brier_score
from softsurv.metrics.auc import cumulative_dynamic_auc
from softsurv.metrics.concordance import count_pairs
from softsurv.nonparametric import kaplan_meier


def test_point_values_are_those_of_evaluate(gbsg2):
    found = bootstrap_quality(gbsg2.tree, gbsg2.test, n_boot=20)
    expected = gbsg2.tree.evaluate(gbsg2.test)
    for name, value in found["value"].items():
        assert value == pytest.approx(expected[name], rel=1e-6)
    assert found["value"].between(found["lower"], found["upper"]).all()


def test_rows_of_weight_0_do_not_widen_the_times(gbsg2):
    """As in ``evaluate``: the Brier score went on to the times of rows that do not count."""
    weight = (gbsg2.test.time < gbsg2.test.time.median()).double()
    data = replace(gbsg2.test, weight=weight)
    frame, found = bootstrap_quality(gbsg2.tree, data, 20), gbsg2.tree.evaluate(data)
    assert frame["value"].to_dict() == pytest.approx({name: found[name] for name in frame.index}, abs=1e-6)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_the_unit_of_the_weights_tells_nothing(gbsg2, unit):
    """Single precision does not hold such numbers: every measure was nan."""
    weight = 1.0 + (gbsg2.test.time < gbsg2.test.time.median()).double()
    frames = [bootstrap_quality(gbsg2.tree, replace(gbsg2.test, weight=weight * by), 20) for by in (1.0, unit)]
    pd.testing.assert_frame_equal(*frames, rtol=1e-5)


def test_samples_are_those_of_repeated_rows(gbsg2):
    """Measures of a sample of counts equal those of the table with its rows repeated."""
    n_boot, seed = 20, 3
    part = gbsg2.test.take(np.arange(60))
    found = bootstrap_quality(gbsg2.tree, part, n_boot, seed, level=0.9)
    drawn = np.random.default_rng(seed).multinomial(part.n, np.full(part.n, 1 / part.n), size=n_boot)
    grid = np.linspace(*gbsg2.tree.evaluate(part)["range"], 100)
    values = np.array([measures(gbsg2.tree, part, counts, grid) for counts in drawn])
    np.testing.assert_allclose(found[["lower", "upper"]], np.quantile(values, [0.05, 0.95], axis=0).T, rtol=1e-5)


def measures(tree, data, counts, grid):
    sample = data.take(np.repeat(np.arange(data.n), counts))
    time, event = sample.time.numpy(), sample.event.numpy()

    def log_hazard(times):
        with np.errstate(divide="ignore"):
            return np.log(tree.predict_cumulative_hazard_function(sample.X, times=times))

    pairs = count_pairs(time, event, log_hazard)
    inside = grid[grid < time.max()]  # the AUC needs a control after each time
    auc, _ = cumulative_dynamic_auc(time, event, log_hazard(inside), inside, tree.censoring_)
    drop = -np.diff(kaplan_meier(time, event)(inside), prepend=1.0)
    seen = drop > 0
    survival = tree.predict_survival_function(sample.X, times=grid)
    return [
        pairs.concordance(),
        pairs.concordance(pairs.uno_weight(tree.censoring_, tau=np.nextafter(grid[-1], np.inf))),
        auc[seen] @ drop[seen] / drop[seen].sum(),
        integrated_brier_score(time, event, survival, grid, tree.censoring_),
    ]


def rows_at_risk(n=60, seed=0, several=True):
    """Subjects of two rows, whose x changes at the second; or of one row each, entering late."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).round(2)
    end, middle = rng.exponential(np.exp(-x[:, 1])) + 0.6, np.full(n, 0.5)
    event, weight = rng.random(n) < 0.7, rng.uniform(0.5, 2, n)
    if not several:
        return survival_data(pd.DataFrame({"x": x[:, 1]}), time=end, event=event, entry=middle / 2, weight=weight)
    parts = [
        pd.DataFrame({"x": x[:, 0], "id": range(n), "start": 0.0, "stop": middle, "event": False, "w": weight}),
        pd.DataFrame({"x": x[:, 1], "id": range(n), "start": middle, "stop": end, "event": event, "w": weight}),
    ]
    columns = {"start": "start", "stop": "stop", "event": "event", "id": "id", "weight": "w"}
    return survival_data(pd.concat(parts, ignore_index=True), **columns)


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
@pytest.mark.parametrize("several", [True, False])
def test_samples_are_those_of_repeated_subjects(several):
    """Subjects are drawn with all their rows; a copy of a subject is a subject of its own, with the same weight."""
    n_boot, seed, data = 20, 3, rows_at_risk(several=several)
    tree = OptimalSurvivalTree(max_depth=1, min_samples_leaf=5).fit(data)
    found = bootstrap_quality(tree, data, n_boot, seed, level=0.9)
    expected = tree.evaluate(data)
    assert list(found.index) == (["harrell_c"] if several else ["harrell_c", "uno_c", "cd_auc", "ibs"])
    for name, value in found["value"].items():
        assert value == pytest.approx(expected[name], rel=1e-6)
    n = data.n_subjects
    subject = data.subject.numpy() if several else np.arange(n)
    values = []
    for counts in np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_boot):
        rows = np.repeat(np.arange(data.n), counts[subject])
        copy = np.concatenate([np.arange(count) for count in counts[subject]])
        known = {"time": data.time, "event": data.event, "start": data.entry, "w": data.weight}
        table = data.X.iloc[rows].assign(**{name: column.numpy()[rows] for name, column in known.items()})
        how = {"time": "time", "entry": "start"}
        if several:
            table, how = table.assign(id=subject[rows] * 100 + copy), {"start": "start", "stop": "time", "id": "id"}
        sample = survival_data(table, event="event", weight="w", **how)
        values.append(tree.evaluate(sample)["harrell_c"])
    sure = found.loc["harrell_c", ["lower", "upper"]].astype(float)
    np.testing.assert_allclose(sure, np.quantile(values, [0.05, 0.95]), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
@pytest.mark.parametrize("tree", [OptimalSurvivalTree(max_depth=1), SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0)])
def test_late_rows_are_no_table_of_rows_and_events(tree, monkeypatch):
    """The curves of 100,000 rows at all their events would take 48 GB."""
    data = rows_at_risk(300, several=False)
    fitted = tree.fit(data)
    asked, curves = [], type(fitted)._log_cumulative_hazard

    def note(self, prepared, times):
        asked.append(len(times))
        return curves(self, prepared, times)

    expected = bootstrap_quality(fitted, data, n_boot=20)["value"]
    monkeypatch.setattr(type(fitted), "_log_cumulative_hazard", note)
    assert bootstrap_quality(fitted, data, n_boot=20)["value"].equals(expected)
    assert max(asked, default=0) <= 100 < data.event.sum()


def test_same_seed_same_interval(gbsg2):
    one, other = (bootstrap_quality(gbsg2.tree, gbsg2.test, 20, seed=5) for _ in range(2))
    assert one.equals(other)
    with pytest.raises(InvalidParameterError, match="n_boot must be an integer >= 20, got 3"):
        bootstrap_quality(gbsg2.tree, gbsg2.test, 3)


@pytest.mark.filterwarnings("ignore:time is 0 in")
def test_events_at_time_zero_count_as_in_evaluate():
    """A smooth curve has no event at 0: both take such times at the floor that the tree was fitted with."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=160)})
    time = rng.exponential(np.exp(-X["x"].to_numpy())).round(1)
    data = survival_data(X, time=time, event=rng.random(160) < 0.8)
    assert (data.event.numpy() & (time == 0)).any()
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(data)
    found, expected = bootstrap_quality(tree, data, n_boot=20)["value"], tree.evaluate(data)
    for name, value in found.items():
        assert value == pytest.approx(expected[name], rel=1e-6), name


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"n_boot": "a"}, "n_boot must be an integer >= 20, got 'a'"),
        ({"level": 2}, r"level must be a number in \(0, 1\), got 2"),
        ({"level": "a"}, r"level must be a number in \(0, 1\), got 'a'"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
    ],
)
def test_arguments_of_other_kinds_are_told(given, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        bootstrap_quality(None, None, **given)
