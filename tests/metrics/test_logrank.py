"""The log-rank test and numbers at risk: lifelines, scikit-survival, and the definitions one time at a time."""

import lifelines.statistics
import numpy as np
import pytest
from scipy.stats import chi2
from sksurv.compare import compare_survival
from sksurv.util import Surv

from softsurv.metrics.logrank import logrank_test, numbers_at_risk


def sample(seed, n=90, groups=3):
    rng = np.random.default_rng(seed)
    group = rng.choice(list("xyz")[:groups], n)
    time = np.ceil(rng.exponential(6.0 + 4.0 * (group == "x"), n))
    return time, rng.random(n) > 0.3, group, rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("groups", [2, 3])
def test_equals_lifelines_and_scikit_survival(seed, groups):
    time, event, group, _ = sample(seed, groups=groups)
    found = logrank_test(time, event, group)
    theirs = lifelines.statistics.multivariate_logrank_test(time, group, event)
    assert found.statistic == pytest.approx(theirs.test_statistic, rel=1e-9)
    assert found.p_value == pytest.approx(theirs.p_value, rel=1e-9)
    assert found.degrees_of_freedom == groups - 1
    statistic, p_value = compare_survival(Surv.from_arrays(event, time), group)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p_value), rel=1e-9)


def slow(time, event, group, weight, entry):
    """The definition, one time at a time, the last group left out."""
    names = sorted(set(group))[:-1]
    distance, covariance = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for t in sorted(set(time[event])):
        here = (entry < t) & (t <= time)
        n, d = weight[here].sum(), weight[(time == t) & event].sum()
        share = np.array([weight[here & (group == g)].sum() for g in names]) / n
        distance += [weight[(time == t) & event & (group == g)].sum() for g in names] - d * share
        if n > 1:
            covariance += d * (n - d) / (n - 1) * (np.diag(share) - np.outer(share, share))
    statistic = distance @ np.linalg.solve(covariance, distance)
    return statistic, chi2.sf(statistic, len(names))


@pytest.mark.parametrize("seed", range(4))
def test_late_entry_and_weights_follow_the_definition(seed):
    time, event, group, rng = sample(seed)
    entry, weight = np.floor(time * rng.random(time.size)), rng.integers(1, 4, time.size).astype(float)
    found = logrank_test(time, event, group, weight, entry)
    begin = np.where(entry == 0, -np.inf, entry)
    assert (found.statistic, found.p_value) == pytest.approx(slow(time, event, group, weight, begin), rel=1e-9)


def repairs():
    """Events that recur: rows (begin, end] of 12 machines with ties, the group of some changes; a weight a machine."""
    rng, rows = np.random.default_rng(5), []
    for machine in range(12):
        ends = np.unique(rng.integers(1, 15, rng.integers(1, 6)))
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            rows.append((machine, begin, end, rng.random() < 0.7, (machine + (machine < 4 and begin > 3)) % 3))
    machine, begin, end, event, group = np.array(rows).T
    return machine, begin.astype(float), end.astype(float), event == 1, group


def test_events_that_recur_are_tested_by_the_robust_score_of_r():
    """R 4.2, survival 3.5: the rows of `repairs` as d, then
    coxph(Surv(begin, end, event) ~ factor(group), d, cluster = machine, ties = "breslow")$rscore,
    and with weights = 1 + machine %% 3 / 2."""
    machine, begin, end, event, group = repairs()
    found = logrank_test(end, event, group, entry=begin, subject=machine)
    assert (found.statistic, found.degrees_of_freedom) == (pytest.approx(1.25766279025984, rel=1e-9), 2)
    assert found.p_value == pytest.approx(chi2.sf(1.25766279025984, 2), rel=1e-9)
    weighed = logrank_test(end, event, group, 1 + machine % 3 / 2, begin, machine)
    assert weighed.statistic == pytest.approx(1.57232762548312, rel=1e-9)


def test_a_group_without_others_beside_has_no_robust_variance():
    time, event = np.array([1.0, 2.0, 5.0, 6.0]), np.ones(4, dtype=bool)
    found = logrank_test(time, event, [0, 0, 1, 1], entry=[0.0, 0.0, 4.0, 4.0], subject=[7, 7, 8, 8])
    assert found == pytest.approx((0.0, 0, 1.0), abs=1e-12)


def test_a_weight_is_a_number_of_copies():
    time, event, group, rng = sample(7)
    times = rng.integers(1, 4, time.size)
    repeated = logrank_test(np.repeat(time, times), np.repeat(event, times), np.repeat(group, times))
    assert logrank_test(time, event, group, times) == pytest.approx(repeated, rel=1e-9)


def test_one_group_has_nothing_to_differ_from():
    time, event, _, _ = sample(0)
    assert logrank_test(time, event, np.zeros(time.size)) == pytest.approx((0.0, 0, 1.0), abs=1e-12)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, time.size)
    assert logrank_test(time, event, np.zeros(time.size), weight) == (0.0, 0, 1.0)


def test_a_group_that_is_never_at_risk_beside_another_is_not_counted():
    time, event = np.array([1.0, 2.0, 5.0, 6.0]), np.ones(4, dtype=bool)
    found = logrank_test(time, event, [0, 0, 1, 1], entry=[0.0, 0.0, 4.0, 4.0])
    assert found == pytest.approx((0.0, 0, 1.0), abs=1e-12)


@pytest.mark.parametrize("late", [False, True])
def test_numbers_at_risk_follow_the_definition(late):
    time, _, _, rng = sample(3)
    entry, weight = np.floor(time * rng.random(time.size)), rng.random(time.size)
    begin = np.where(entry == 0, -np.inf, entry) if late else np.full(time.size, -np.inf)
    at = np.array([0.0, 1.0, 4.0, 4.5, 100.0])
    expected = [weight[(begin < t) & (t <= time)].sum() for t in at]
    np.testing.assert_allclose(numbers_at_risk(at, time, weight, entry if late else None), expected, atol=1e-12)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("groups", [2, 3])
def test_many_rows_keep_their_degrees_of_freedom(groups, weighed):
    """Rounding of a sum over thousands of times made up a degree of freedom, which changed the p-value."""
    rng = np.random.default_rng(0)
    time, event, group = rng.exponential(size=5000), rng.random(5000) < 0.6, rng.integers(groups, size=5000)
    found = logrank_test(time, event, group, rng.uniform(0.1, 2.0, 5000) if weighed else None)
    assert found.degrees_of_freedom == groups - 1
    if not weighed:
        theirs = lifelines.statistics.multivariate_logrank_test(time, group, event)
        assert (found.statistic, found.p_value) == pytest.approx((theirs.test_statistic, theirs.p_value), rel=1e-6)


def test_a_small_group_counts_beside_a_large_one():
    rng = np.random.default_rng(1)
    time, event = rng.exponential(size=20_000), rng.random(20_000) < 0.6
    group = np.where(np.arange(20_000) == np.argsort(time)[5000], 2, rng.integers(2, size=20_000))
    found = logrank_test(time, event, group)
    theirs = lifelines.statistics.multivariate_logrank_test(time, group, event)
    assert found.degrees_of_freedom == 2
    assert (found.statistic, found.p_value) == pytest.approx((theirs.test_statistic, theirs.p_value), rel=1e-6)


@pytest.mark.parametrize("late", [False, True])
def test_nobody_is_at_risk_after_the_last_time(late):
    weight, time = np.full(10, 0.1), np.arange(1.0, 11.0)
    assert numbers_at_risk([10.5, 99.0], time, weight, time - 1 if late else None).tolist() == [0.0, 0.0]
