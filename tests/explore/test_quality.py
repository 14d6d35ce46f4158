"""Own-time survival, calibration and Brier curves against slow twins."""

import numpy as np
import pytest
import torch

from softsurv import OptimalSurvivalTree, survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore.quality import brier_frame, calibration_curves, default_horizons, own_survival, sensitive_rows
from softsurv.metrics import brier_score, d_calibration, relative_integrated_brier_score
from softsurv.metrics.brier import mean_of_known
from softsurv.nonparametric import kaplan_meier


def test_own_survival_matches_a_row_by_row_loop(gbsg2):
    data = gbsg2.test
    own = own_survival(gbsg2.tree, data)
    for k in range(0, data.n, 50):
        single = gbsg2.tree.predict_survival_function(data.X.iloc[[k]], times=[float(data.time[k])])
        assert own[k] == pytest.approx(single[0, 0], rel=1e-12)
    _, test = calibration_curves(gbsg2.tree, data, np.array([500.0]))
    assert test.statistic == pytest.approx(d_calibration(data.time.numpy(), data.event.numpy(), own).statistic)


def test_brier_curve_averages_to_the_integrated_score(gbsg2):
    frame = brier_frame({"tree": gbsg2.tree}, gbsg2.test)
    times = frame.index.to_numpy()
    mean = np.trapezoid(frame["tree"], times) / (times[-1] - times[0])
    assert mean == pytest.approx(gbsg2.tree.evaluate(gbsg2.test)["ibs"])
    common = np.trapezoid(frame["no features"], times) / (times[-1] - times[0])
    time, event = gbsg2.test.time.numpy(), gbsg2.test.event.numpy()
    survival = gbsg2.tree.predict_survival_function(gbsg2.test.X, times=times)
    share = relative_integrated_brier_score(
        time, event, survival, times, gbsg2.tree.censoring_, kaplan_meier(time, event)
    )
    assert 1 - mean / common == pytest.approx(share)


@pytest.fixture(scope="module")
def late():
    """Weighted rows with late entry, and a tree of them."""
    rng = np.random.default_rng(0)
    time = rng.exponential(5.0, 300).round(1) + 0.1
    entry, weight = np.where(rng.random(300) < 0.5, 0.5 * time, 0.0), rng.integers(1, 4, 300).astype(float)
    X = {"x": rng.integers(0, 2, 300), "z": np.arange(300.0)}
    data = survival_data(X, (rng.random(300) < 0.7, time), entry=entry, weight=weight)
    return data, OptimalSurvivalTree(max_depth=1, min_samples_leaf=50).fit(data)


def test_weights_and_late_entries_count_in_the_brier_curve(late):
    data, tree = late
    frame, result = brier_frame({"tree": tree}, data, n_times=100), tree.evaluate(data)
    assert mean_of_known(frame.index.to_numpy(), frame["tree"].to_numpy()) == pytest.approx(result["ibs"])
    known = data.outcomes()
    common = np.broadcast_to(
        kaplan_meier(known["time"], known["event"], known["weight"], known["entry"])(frame.index), (300, 100)
    )
    at_risk = {"weight": known["weight"], "entry": known["entry"]}
    expected = brier_score(known["time"], known["event"], common, frame.index, tree.censoring_, **at_risk)
    np.testing.assert_allclose(frame["no features"], expected)


def test_calibration_knows_who_was_at_risk(late):
    data, tree = late
    one_leaf = tree.apply(data.X) == 0
    (curve,), test = calibration_curves(tree, data, np.array([3.0]), 5)
    rows = data.take(one_leaf)
    known = {name: rows.outcomes()[name] for name in ("time", "event", "weight", "entry")}
    place = np.argmin(np.abs(curve.predicted - tree.predict_survival_function(rows.X[:1], [3.0])[0, 0]))
    assert curve.observed[place] == pytest.approx(float(kaplan_meier(**known)(3.0)))
    own, time, entry = own_survival(tree, data), data.time.numpy(), data.entry.numpy()
    for k in range(0, 300, 60):
        at_end, at_entry = tree.predict_survival_function(data.X.iloc[[k]], [time[k], entry[k]])[0]
        assert own[k] == pytest.approx(at_end / at_entry)
    expected = d_calibration(time, data.event.numpy(), own, weight=data.weight.numpy())
    assert test.statistic == pytest.approx(expected.statistic)


def test_subjects_of_several_rows_have_no_calibration_and_no_brier_curve(late):
    _, tree = late
    X = {"x": [0, 1, 1], "z": [1.0, 2.0, 3.0]}
    rows = survival_data(X, start=[0, 2, 0], stop=[2.0, 5.0, 4.0], event=[0, 1, 1], id=[1, 1, 2])
    for ask in (lambda: brier_frame({"tree": tree}, rows), lambda: calibration_curves(tree, rows, np.array([3.0]))):
        with pytest.raises(InvalidSurvivalDataError, match="one row for each subject, got 3 rows of 2 subjects"):
            ask()


def test_the_sensitive_group_is_found_by_name(mixed, gbsg2):
    member = sensitive_rows(mixed.data, "f")
    assert member.sum() + sensitive_rows(mixed.data, "m").sum() == mixed.data.n
    with pytest.raises(InvalidParameterError, match="group must be one of f, m, got 'x'"):
        sensitive_rows(mixed.data, "x")
    with pytest.raises(InvalidSurvivalDataError, match="data must hold a group"):
        sensitive_rows(gbsg2.test)


@pytest.fixture(scope="module")
def at_once(gbsg2):
    """Held-out rows, every tenth of which has its event at time 0."""
    data = gbsg2.test
    first = torch.arange(data.n) % 10 == 0
    return data._derive({"time": torch.where(first, 0.0, data.time), "event": first | data.event})


def test_events_at_time_zero_count_as_in_evaluate(gbsg2, at_once):
    tree, floor = gbsg2.tree, gbsg2.tree.time_floor_
    lifted = at_once._derive({"time": torch.where(at_once.time > 0, at_once.time, floor)})
    assert default_horizons(tree, at_once).min() >= floor
    np.testing.assert_array_equal(own_survival(tree, at_once), own_survival(tree, lifted))
    for frame in (brier_frame({"tree": tree}, at_once, n_times=100), brier_frame({"tree": tree}, lifted, n_times=100)):
        times = frame.index.to_numpy()
        mean = np.trapezoid(frame["tree"], times) / (times[-1] - times[0])
        assert mean == pytest.approx(tree.evaluate(at_once)["ibs"])
    (found, test), (expected, same) = (
        calibration_curves(tree, rows, np.array([floor, 500.0])) for rows in (at_once, lifted)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.observed, other.observed)
    assert test.statistic == same.statistic


def test_weights_count_as_repeated_rows(gbsg2):
    tree, data = gbsg2.tree, gbsg2.test
    times = torch.arange(data.n) % 3 + 1
    weighted, repeated = data._derive({"weight": times.double()}), data.take(np.repeat(np.arange(data.n), times))
    one, other = (brier_frame({"tree": tree}, rows) for rows in (weighted, repeated))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    (found, test), (expected, same) = (
        calibration_curves(tree, rows, np.array([900.0]), 1) for rows in (weighted, repeated)
    )
    for name in ("predicted", "observed", "lower", "upper"):
        np.testing.assert_allclose(getattr(found[0], name), getattr(expected[0], name), rtol=1e-9)
    np.testing.assert_allclose(test.shares, same.shares)
    doubled = calibration_curves(tree, data._derive({"weight": 2.0 * times.double()}), np.array([900.0]), 1)[1]
    assert doubled.p_value == pytest.approx(test.p_value)


def test_late_entries_are_compared_from_their_entry_on(gbsg2):
    tree, data = gbsg2.tree, gbsg2.test
    late = data._derive({"entry": torch.where(torch.arange(data.n) % 2 == 0, 0.5 * data.time, 0.0)})
    own = own_survival(tree, late)
    for k in range(0, data.n, 50):
        at = [float(late.time[k])]
        single = tree.predict_conditional_survival(data.X.iloc[[k]], after=float(late.entry[k]), times=at)
        assert own[k] == pytest.approx(single[0, 0], rel=1e-9)
    curve = calibration_curves(tree, late, np.array([900.0]), 1)[0][0]
    observed = kaplan_meier(data.time.numpy(), data.event.numpy(), entry=late.entry.numpy())
    assert curve.observed[0] == pytest.approx(float(observed(900.0)))
    frame = brier_frame({"tree": tree}, late, n_times=100)
    known = frame[frame["tree"].notna()]
    mean = np.trapezoid(known["tree"], known.index) / (known.index[-1] - known.index[0])
    assert mean == pytest.approx(tree.evaluate(late)["ibs"])
