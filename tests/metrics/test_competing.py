"""Measures of one cause: riskRegression's Score, slow twins from the formulas, the measures of one kind of event."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.aalen_johansen import aalen_johansen
from softsurv.errors import InvalidParameterError, InvalidTimesError, NoComparablePairsError
from softsurv.metrics import (
    auc_incidence,
    brier_score,
    brier_score_incidence,
    calibration_curve,
    calibration_curve_incidence,
    cause_specific_concordance,
    cumulative_dynamic_auc,
    harrell_c,
    integrated_brier_score_incidence,
)
from softsurv.nonparametric import censoring_survival

TIMES = np.array([3.0, 6.0, 9.0])
CAUSE = np.array([1, 0, 2, 1, 0, 2, 1, 1, 2, 0])


def score_rows():
    """120 rows with ties, and predictions at three times, some of them equal; the same on every machine."""
    k = np.arange(120)
    time = 1.0 + (k * 37) % 23 / 2
    cause = CAUSE[(k * 7 + k // 10) % 10]
    risk = np.round(np.abs(np.sin(1.0 + 0.37 * k[:, None])) * np.array([0.4, 0.6, 0.8]), 2)
    return time, cause, risk


def write_rows(path):
    """The rows for reference_score.R."""
    time, cause, risk = score_rows()
    frame = pd.DataFrame({"time": time, "cause": cause, "f3": risk[:, 0], "f6": risk[:, 1], "f9": risk[:, 2]})
    frame.to_csv(path, index=False)


# riskRegression 2022.11.28, by reference_score.R
SCORE = {
    (1, "brier"): [0.125696730835, 0.238057849899, 0.322394623046],
    (1, "auc"): [0.431577662383, 0.436836424066, 0.474571379110],
    (2, "brier"): [0.116115895491, 0.214414939327, 0.306108946573],
    (2, "auc"): [0.526651013375, 0.509443603060, 0.499114301247],
}


def sample(seed, n=40, n_causes=2):
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.exponential(8.0, n))
    risk = np.round(rng.random(n), 1)
    entry = np.floor(time * rng.random(n) * 0.9)
    return time, rng.integers(0, n_causes + 1, n), risk, entry


def slow_concordance(time, cause, risk, code, entry, tied_event_times="ignore", tied_censoring="ignore"):
    """Wolbers' pairs, one at a time."""
    concordant = comparable = 0.0
    for i in np.flatnonzero(cause == code):
        for j in range(time.size):
            if j == i or entry[j] >= time[i] > 0:
                continue
            other = cause[j] not in (0, code)
            same = time[j] == time[i] and not other
            alike = (risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
            if other or time[j] > time[i] or (same and cause[j] == 0 and tied_censoring == "count"):
                comparable, concordant = comparable + 1, concordant + alike
            elif same and cause[j] == code and tied_event_times == "count":  # each such pair is met twice
                comparable, concordant = comparable + 0.5, concordant + 0.5 * alike
    return concordant / comparable


def slow_weight(time, cause, t, censoring):
    if time <= t:
        return 0.0 if cause == 0 else 1.0 / censoring.left_limit(time)
    return 1.0 / censoring(t)


def slow_auc(time, cause, risk, t, code, censoring):
    """The definition, pair by pair."""
    above = total = 0.0
    weight = [slow_weight(x, c, t, censoring) for x, c in zip(time, cause, strict=True)]
    for i in np.flatnonzero((cause == code) & (time <= t)):
        for j in range(time.size):
            if time[j] > t or cause[j] not in (0, code):
                total += weight[i] * weight[j]
                above += weight[i] * weight[j] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return above / total if total else np.nan


@pytest.mark.parametrize("code", [1, 2])
def test_brier_score_and_auc_equal_riskregression(code):
    time, cause, risk = score_rows()
    censoring = censoring_survival(time, cause > 0)
    brier = brier_score_incidence(time, cause, risk, TIMES, censoring, code)
    np.testing.assert_allclose(brier, SCORE[code, "brier"], atol=1e-10)
    auc, mean = auc_incidence(time, cause, risk, TIMES, censoring, code)
    np.testing.assert_allclose(auc, SCORE[code, "auc"], atol=1e-10)
    rise = np.diff(aalen_johansen(time, cause).of_cause(code)(TIMES), prepend=0.0)
    assert mean == pytest.approx(np.average(SCORE[code, "auc"], weights=rise), abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tied_event_times", ["ignore", "count"])
@pytest.mark.parametrize("tied_censoring", ["ignore", "count"])
@pytest.mark.parametrize("late", [False, True])
def test_concordance_equals_the_definition(seed, tied_event_times, tied_censoring, late):
    time, cause, risk, entry = sample(seed)
    options = {"tied_event_times": tied_event_times, "tied_censoring": tied_censoring}
    entry = entry if late else np.zeros(time.size)
    for code in (1, 2):
        expected = slow_concordance(time, cause, risk, code, entry, **options)
        given = {"entry": entry} if late else {}
        found = cause_specific_concordance(time, cause, risk, code, **options, **given)
        assert found == pytest.approx(expected, abs=1e-12)
        grid = np.unique(time)
        rising = np.outer(risk, grid)
        assert cause_specific_concordance(time, cause, rising, code, times=grid, **options, **given) == pytest.approx(
            expected, abs=1e-12
        )
        curves = cause_specific_concordance(time, cause, lambda t: np.outer(risk, t), code, **options, **given)
        assert curves == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_auc_and_brier_equal_the_definition(seed):
    time, cause, risk, _ = sample(seed, n_causes=3)
    censoring = censoring_survival(time, cause > 0)
    grid = np.quantile(np.unique(time), [0.1, 0.4, 0.8])
    for code in (1, 2, 3):
        auc, _ = auc_incidence(time, cause, risk, grid, censoring, code)
        expected = [slow_auc(time, cause, risk, t, code, censoring) for t in grid]
        np.testing.assert_allclose(auc, expected, atol=1e-12)
        brier = brier_score_incidence(time, cause, np.tile(risk[:, None], 3), grid, censoring, code)
        weight = np.array([[slow_weight(x, c, t, censoring) for t in grid] for x, c in zip(time, cause, strict=True)])
        happened = (cause[:, None] == code) & (time[:, None] <= grid)
        np.testing.assert_allclose(brier, (weight * (happened - risk[:, None]) ** 2).mean(0), atol=1e-12)
        mean = integrated_brier_score_incidence(time, cause, np.tile(risk[:, None], 3), grid, censoring, code)
        assert mean == pytest.approx(np.trapezoid(brier, grid) / (grid[-1] - grid[0]), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_cause_gives_the_measures_of_one_kind_of_event(seed):
    rng = np.random.default_rng(seed)
    time, cause, risk = rng.exponential(5.0, 80), rng.integers(0, 2, 80), rng.random(80)
    censoring, grid = censoring_survival(time, cause == 1), np.quantile(time, [0.2, 0.5, 0.8])
    incidence = risk[:, None] * np.array([0.5, 0.7, 1.0])
    assert cause_specific_concordance(time, cause, risk) == harrell_c(time, cause == 1, risk)
    np.testing.assert_allclose(
        brier_score_incidence(time, cause, incidence, grid, censoring),
        brier_score(time, cause == 1, 1 - incidence, grid, censoring),
        atol=1e-12,
    )
    auc, mean = auc_incidence(time, cause, risk, grid, censoring)
    wanted, wanted_mean = cumulative_dynamic_auc(time, cause == 1, risk, grid, censoring)
    np.testing.assert_allclose(auc, wanted, atol=1e-12)
    assert mean == pytest.approx(wanted_mean, abs=1e-12)
    curve = calibration_curve_incidence(time, cause, incidence[:, 1], grid[1])
    survival = calibration_curve(time, cause == 1, 1 - incidence[:, 1], grid[1])
    np.testing.assert_allclose(curve.predicted, 1 - survival.predicted[::-1], atol=1e-12)
    np.testing.assert_allclose(curve.observed, 1 - survival.observed[::-1], atol=1e-12)
    np.testing.assert_array_equal(curve.n, survival.n[::-1])


def test_calibration_is_aalen_johansen_of_the_groups():
    time, cause, risk, _ = sample(3, n=200)
    group = np.digitize(risk, [0.3, 0.7])
    predicted = np.array([0.1, 0.3, 0.5])[group]
    curve = calibration_curve_incidence(time, cause, predicted, 6.0, code=2)
    assert curve.n.tolist() == np.bincount(group).tolist()
    for k in range(3):
        one = aalen_johansen(time[group == k], cause[group == k])
        assert curve.observed[k] == one.of_cause(2)(6.0)
        assert [curve.lower[k], curve.upper[k]] == [side(6.0) for side in one.interval(2)]


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_measures_stay_in_range_and_a_constant_risk_is_chance(seed, n):
    time, cause, risk, _ = sample(seed, n)
    time, cause = np.append(time, [1.0, time.max() + 1.0]), np.append(cause, [1, 0])  # a case, and one free of events
    risk = np.append(risk, [0.3, 0.6])
    censoring, grid = censoring_survival(time, cause > 0), np.unique([1.0, np.median(time)])
    curves = np.tile(risk[:, None], grid.size)
    assert (brier_score_incidence(time, cause, curves, grid, censoring) >= 0).all()
    for scores, low, high in ((risk, 0.0, 1.0), (np.zeros(n + 2), 0.5, 0.5)):
        auc, mean = auc_incidence(time, cause, scores, grid, censoring)
        values = [*auc, mean, cause_specific_concordance(time, cause, scores)]
        assert min(values) >= low - 1e-12
        assert max(values) <= high + 1e-12


def test_what_cannot_be_measured_is_refused():
    time, cause, risk = score_rows()
    censoring = censoring_survival(time, cause > 0)
    with pytest.raises(InvalidParameterError, match=r"code must be a cause 1, 2, \.\.\., got 0"):
        auc_incidence(time, cause, risk, TIMES, censoring, 0)
    with pytest.raises(InvalidParameterError, match="cause must hold 0 for censored rows and codes"):
        cause_specific_concordance(time, cause - 1, risk[:, 0])
    with pytest.raises(InvalidParameterError, match="incidence must hold probabilities between 0 and 1"):
        brier_score_incidence(time, cause, risk * 5, TIMES, censoring)
    with pytest.raises(InvalidTimesError, match="is known and positive up to"):
        brier_score_incidence(time, cause, risk, [3.0, 6.0, 90.0], censoring)
    with pytest.raises(NoComparablePairsError, match="the AUC is undefined: cause 3 has no event up to 9"):
        auc_incidence(time, cause, risk, TIMES, censoring, 3)
    with pytest.raises(NoComparablePairsError, match="no pair"):
        cause_specific_concordance(time, cause, risk[:, 0], 3)
    with pytest.raises(InvalidTimesError, match="horizon must lie between 0 and the largest observed time 12, got 20"):
        calibration_curve_incidence(time, cause, risk[:, 0], 20.0)
    with pytest.raises(InvalidTimesError, match="largest observed time 12, got 'a year'"):
        calibration_curve_incidence(time, cause, risk[:, 0], "a year")
    with pytest.raises(InvalidTimesError, match="tau must be a number, in the unit of time, got 'a year'"):
        cause_specific_concordance(time, cause, risk[:, 0], tau="a year")
    with pytest.raises(InvalidTimesError, match="horizon must lie between 0 and the largest observed time 12, got -1"):
        calibration_curve_incidence(time, cause, risk[:, 0], -1.0)
