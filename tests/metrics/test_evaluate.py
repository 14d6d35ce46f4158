"""The evaluation of one fold: its parts, its range, fold safety."""

import json

import numpy as np
import pandas as pd
import pytest
from sksurv.metrics import cumulative_dynamic_auc, integrated_brier_score

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import EvaluationWarning, NoComparablePairsError
from softsurv.metrics import evaluate, evaluate_with_censoring, harrell_c, support_end, uno_c
from softsurv.metrics.evaluate import training_censoring
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.nonparametric import censoring_survival


def test_parts_equal_scikit_survival_on_the_reported_range(fold):
    train, test = fold(10, n=400), fold(11, n=100)
    result = evaluate(train.time, train.event, test.time, test.event, test.log_h)
    grid = np.linspace(*result["range"], result["n_times"])
    inside = test.time < train.time.max()
    assert inside.all()  # else scikit-survival would refuse this fold
    log_h = test.log_h(grid)
    expected = integrated_brier_score(train.y, test.y, survival_from_log_cumulative_hazard(log_h), grid)
    assert result["ibs"] == pytest.approx(expected, abs=1e-12)
    start = np.flatnonzero(grid >= test.time[test.event].min())[0]  # scikit-survival is NaN before any event
    _, expected = cumulative_dynamic_auc(train.y, test.y, log_h[:, start:], grid[start:])
    assert result["cd_auc"] == pytest.approx(expected, abs=1e-12)
    assert result["harrell_c"] == harrell_c(test.time, test.event, test.log_h)
    censoring = censoring_survival(train.time, train.event)
    assert result["uno_c"] == uno_c(test.time, test.event, test.log_h, censoring)
    assert (result["n"], result["events"]) == (100, int(test.event.sum()))
    assert result["range"] == (test.time.min(), np.sort(test.time)[-2])
    assert (result["n_beyond"], result["events_beyond"]) == (1, int(test.event[np.argmax(test.time)]))
    json.dumps(result)


def test_test_times_beyond_the_training_fold_are_reported(fold):
    train, test = fold(12, n=200), fold(13, n=100)
    short = train.time < np.quantile(test.time, 0.7)
    result = evaluate(train.time[short], train.event[short], test.time, test.event, test.log_h)
    censoring = censoring_survival(train.time[short], train.event[short])
    assert result["range"][1] == test.time[test.time <= support_end(censoring)].max()
    assert result["n_beyond"] == int((test.time > result["range"][1]).sum()) >= 30
    assert result["events_beyond"] == int(test.event[test.time > result["range"][1]].sum())
    assert result["harrell_c"] == harrell_c(test.time, test.event, test.log_h)
    tau = np.nextafter(result["range"][1], np.inf)
    assert result["uno_c"] == uno_c(test.time, test.event, test.log_h, censoring, tau=tau)


def test_unattainable_times_warn_and_are_reported(fold):
    train, test = fold(14, n=200), fold(15, n=100)
    wanted = np.linspace(test.time.min(), 2 * test.time.max(), 50)
    with pytest.warns(EvaluationWarning, match=r"of 50 times lie outside"):
        result = evaluate(train.time, train.event, test.time, test.event, test.log_h, times=wanted)
    attainable = wanted[wanted < test.time.max()]
    attainable = attainable[attainable <= support_end(censoring_survival(train.time, train.event))]
    assert result["range"] == (attainable[0], attainable[-1])
    assert result["n_times"] == attainable.size
    again = evaluate(train.time, train.event, test.time, test.event, test.log_h, times=attainable)
    assert again == result


def test_the_training_fold_alone_gives_the_censoring_curve(fold):
    train, other, test = fold(16, n=200), fold(17, n=200), fold(18)
    options = {"times": np.quantile(test.time, [0.1, 0.3, 0.5])}
    first = evaluate(train.time, train.event, test.time, test.event, test.log_h, **options)
    second = evaluate(other.time, other.event, test.time, test.event, test.log_h, **options)
    assert first["harrell_c"] == second["harrell_c"]
    for measure in ("uno_c", "cd_auc", "ibs"):
        assert first[measure] != second[measure]


def test_a_kept_censoring_curve_serves_without_the_training_fold(fold):
    train, test = fold(20, n=200), fold(21)
    weight = np.arange(1.0, 201.0)
    censoring = censoring_survival(train.time, train.event, weight)
    expected = evaluate(train.time, train.event, test.time, test.event, test.log_h, train_weight=weight, n_times=30)
    found = evaluate_with_censoring(censoring, test.time, test.event, test.log_h, n_times=30)
    assert found == expected
    assert found["n_times"] == 30


def test_saturated_predictions_are_evaluated(fold):
    data = fold(19)
    result = evaluate(data.time, data.event, data.time, data.event, lambda times: 800.0 * data.log_h(times))
    assert result["ibs"] > 0.0
    plain = evaluate(data.time, data.event, data.time, data.event, data.log_h)
    for measure in ("harrell_c", "uno_c", "cd_auc"):
        assert result[measure] == plain[measure]


def test_what_the_measures_leave_out_is_said(fold):
    data = fold(22, n=200)
    common = censoring_survival(data.time, data.event), data.time, data.event, data.log_h
    plain = evaluate_with_censoring(*common)
    for silent in ({"entry": np.zeros(200)}, {"weight": np.full(200, 2.0)}, {"upper": np.full(200, np.inf)}):
        assert evaluate_with_censoring(*common, **silent) == plain
    upper = np.where(data.event, data.time, data.time + 1.0)
    with pytest.warns(EvaluationWarning, match=r"lie in an interval \(upper\) counts in the measures as censored"):
        assert evaluate_with_censoring(*common, upper=upper) == plain


def test_an_event_in_an_interval_is_no_censoring():
    """Visits at 1, 2, ...; whoever is censored misses all later visits, so G is one at the visits made by all."""
    X = pd.DataFrame({"x": np.zeros(6)})
    time, event = [1.0, 1.0, 2.0, 2.0, 3.0, 4.0], [False, False, False, False, True, False]
    upper = [2.0, 2.0, np.inf, 3.0, np.inf, np.inf]
    curve = training_censoring(SurvivalData(X, time, event, upper=upper))
    # at 2 two of six leave by the event found there and one of the four others is censored
    np.testing.assert_allclose(curve([1.0, 1.9, 2.0, 3.0, 4.0]), [1.0, 1.0, 0.75, 0.75, 0.0])
    assert censoring_survival(time, event)(1.0) < 1.0
    late = SurvivalData(X, time, event, entry=[0.0, 0.0, 0.0, 0.0, 2.5, 0.0], weight=[1.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    expected = censoring_survival(time, event, late.weight.numpy(), late.entry.numpy())
    np.testing.assert_array_equal(training_censoring(late).values, expected.values)


@pytest.mark.parametrize(("time", "event"), [([1.0, 2.0, 3.0], [0, 0, 0]), ([2.0, 2.0, 2.0], [1, 1, 1])])
def test_undefined_measures_are_an_error(fold, time, event):
    train = fold(0)
    with pytest.raises(NoComparablePairsError):
        evaluate(train.time, train.event, time, event, lambda times: np.zeros((3, times.size)))


def test_events_in_intervals_alone_leave_nothing_to_measure():
    time, upper = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, np.inf])
    with pytest.raises(NoComparablePairsError, match=r"judge a soft tree by tree\.log_likelihood"):
        evaluate(time, time > 0, time, time < 0, lambda at: np.zeros((3, len(at))), upper=upper)
