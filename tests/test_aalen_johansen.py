"""Aalen-Johansen: R's survfit, the definition one time at a time, Kaplan-Meier for one cause."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv import nonparametric as nonp
from softsurv.aalen_johansen import aalen_johansen
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError

FOLDER = Path(os.environ.get("SOFTSURV_DATA", "")) / "event-history"
TIME = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3.0])
ENTRY = np.array([0, 2, 0, 1, 1, 1, 2, 0, 2, 0, 2, 4, 6, 3, 4, 1.0])
CAUSE = np.array([1, 0, 2, 1, 2, 1, 0, 2, 2, 1, 0, 1, 2, 0, 1, 2])
WEIGHT = np.array([1, 2, 1, 0.5, 1, 1, 3, 1, 1, 2, 1, 1, 0.5, 1, 1, 1])
ENTERED = ENTRY < TIME
# R 4.2, survival 3.5: survfit(Surv(entry, time, factor(cause, 0:2)) ~ 1, weights = weight, id = 1:16), pstate at 3 to 9
WITH_ENTRY_AND_WEIGHT = [
    [0.6, 0.3, 0.1],
    [0.514285714285714, 0.3, 0.185714285714286],
    [0.385714285714286, 0.3, 0.314285714285714],
    [0.308571428571429, 0.3, 0.391428571428571],
    [0.308571428571429, 0.3, 0.391428571428571],
    [0.220408163265306, 0.388163265306122, 0.391428571428571],
    [0.0, 0.564489795918367, 0.435510204081633],
]
# survfit(Surv(time, factor(cause, 0:2)) ~ 1), std.err at 3 to 9: its jackknife equals Greenwood's formula here
DEVIATION = [
    [0.100068251628922, 0.0739053017561941],
    [0.100068251628922, 0.1000682516289216],
    [0.100068251628922, 0.1280077375904375],
    [0.100068251628922, 0.1392134477173611],
    [0.100068251628922, 0.1392134477173611],
    [0.134335035316987, 0.1392134477173611],
    [0.150762283858593, 0.1507622838585926],
]


def sample(seed, n=60, n_causes=3):
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.exponential(10.0, n))
    return time, rng.integers(0, n_causes + 1, n), rng.random(n) + 0.1, np.floor(time * rng.random(n) * 0.9)


def slow(time, cause, weight, entry):
    """State probabilities and variances by the definition, one time and one pair of times at a time."""
    times, n_causes = np.unique(time), cause.max()
    d = np.array([[weight[(time == t) & (cause == k)].sum() for k in range(1, n_causes + 1)] for t in times])
    n = np.array([weight[((entry < t) | (entry == 0)) & (time >= t)].sum() for t in times])
    free, state = 1.0, np.zeros(n_causes)
    before, states = [], []
    for row, total in zip(d, n, strict=True):
        before.append(free)
        state = state + free * row / total
        free *= 1 - row.sum() / total
        states.append([free, *state])
    variance = np.zeros((times.size, n_causes))
    for j in range(times.size):
        for i in range(j + 1):
            covariance = (np.diag(d[i]) - np.outer(d[i], d[i]) / n[i]) / n[i] ** 2
            for k in range(n_causes):
                rest = states[j][k + 1] - states[i][k + 1]
                share = 1 - d[i].sum() / n[i]
                slope = before[i] * np.eye(n_causes)[k] - (rest / share if share > 1e-12 else 0.0)
                variance[j, k] += slope @ covariance @ slope
    return times, np.array(states), variance


def test_equals_r_with_entry_and_weights():
    curve = aalen_johansen(TIME[ENTERED], CAUSE[ENTERED], WEIGHT[ENTERED], ENTRY[ENTERED])
    np.testing.assert_allclose(curve.state_probabilities(np.arange(3, 10)), WITH_ENTRY_AND_WEIGHT, atol=1e-14)


def test_variance_equals_r():
    curve = aalen_johansen(TIME[ENTERED], CAUSE[ENTERED])
    rows = np.searchsorted(curve.times, np.arange(3, 10), side="right") - 1
    np.testing.assert_allclose(np.sqrt(curve.variance[rows]), DEVIATION, atol=1e-12)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the folder event-history is not in SOFTSURV_DATA")
def test_mgus2_equals_r():
    rows = pd.read_csv(FOLDER / "mgus2.csv")
    reference = pd.read_csv(FOLDER / "reference_aalen_johansen_mgus2.csv")
    for sex, wanted in reference.groupby("sex"):
        part = rows[rows["sex"] == sex.removeprefix("sex=")]
        found = aalen_johansen(part["etime"], part["cause"]).state_probabilities(wanted["time"])
        np.testing.assert_allclose(found, wanted[["none", "cause1", "cause2"]], atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_definition(seed):
    time, cause, weight, entry = sample(seed)
    curve = aalen_johansen(time, cause, weight, entry)
    times, states, variance = slow(time, cause, weight, entry)
    np.testing.assert_array_equal(curve.times, times)
    np.testing.assert_allclose(curve.state_probabilities(times), states, atol=1e-12)
    np.testing.assert_allclose(curve.variance, variance, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_cause_is_kaplan_meier(seed):
    time, cause, weight, entry = sample(seed, n_causes=1)
    curve, free = aalen_johansen(time, cause, weight, entry), nonp.kaplan_meier(time, cause == 1, weight, entry)
    np.testing.assert_allclose(curve.survival, free.values, atol=1e-14)
    np.testing.assert_allclose(curve.of_cause(1)(time), 1 - free(time), atol=1e-13)
    lower, upper = nonp.survival_interval(time, cause == 1, weight, entry, kind="plain")
    below, above = curve.interval(1, kind="plain")
    inside = (free.values > 1e-12) & (free.values < 1)
    np.testing.assert_allclose(below.values[inside], 1 - upper.values[inside], atol=1e-12)
    np.testing.assert_allclose(above.values[inside], 1 - lower.values[inside], atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 4), st.booleans())
def test_states_sum_to_one_and_incidence_rises(seed, n, n_causes, late):
    time, cause, weight, entry = sample(seed, n, n_causes)
    curve = aalen_johansen(time, cause, weight, entry if late else None, n_causes=n_causes)
    states = curve.state_probabilities(np.concatenate([[0.0], curve.times, [1e9]]))
    assert states.shape == (curve.times.size + 2, n_causes + 1)
    np.testing.assert_allclose(states.sum(1), 1.0, atol=1e-12)
    assert (np.diff(states[:, 1:], axis=0) >= 0).all()
    assert states[0].tolist() == [1.0] + [0.0] * n_causes
    for code in range(1, n_causes + 1):
        value = curve.of_cause(code).values
        for kind in ("log-log", "plain"):
            lower, upper = curve.interval(code, kind=kind)
            assert (lower.values <= value + 1e-12).all()
            assert (upper.values >= value - 1e-12).all()
            assert ((lower.values >= 0) & (upper.values <= 1)).all()


def test_rows_that_cut_a_constant_history_change_nothing():
    time, cause, weight, _ = sample(5)
    cut = time / 2
    stop, start = np.concatenate([cut, time]), np.concatenate([np.zeros(60), cut])
    whole = aalen_johansen(time, cause, weight)
    pieces = aalen_johansen(stop, np.concatenate([np.zeros(60, dtype=int), cause]), np.tile(weight, 2), start)
    np.testing.assert_allclose(pieces.state_probabilities(time), whole.state_probabilities(time), atol=1e-13)
    rows = np.searchsorted(pieces.times, whole.times)
    np.testing.assert_allclose(pieces.variance[rows], whole.variance, atol=1e-13)


@pytest.mark.parametrize("cause", [[0.5, 1, 1], [-1, 0, 1], [3, 0, 1], ["a", "b", "c"]])
def test_what_is_no_cause_is_refused(cause):
    with pytest.raises(InvalidSurvivalDataError, match="cause must hold 0 for censored and whole numbers up to 2; got"):
        aalen_johansen([1.0, 2.0, 3.0], cause, n_causes=2)


def test_what_is_no_interval_is_refused():
    curve = aalen_johansen([1.0, 2.0, 3.0], [1, 2, 0])
    with pytest.raises(InvalidParameterError, match="cause must be a code from 1 to 2, got 3"):
        curve.interval(3)
    with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, got 95"):
        curve.interval(1, level=95)
    with pytest.raises(InvalidParameterError, match="kind must be 'log-log' or 'plain', got 'log'"):
        curve.interval(1, kind="log")
