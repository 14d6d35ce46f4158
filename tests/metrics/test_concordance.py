"""Concordance: slow twin from the formula, scikit-survival and lifelines, properties."""

import tracemalloc

import lifelines.utils
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv.metrics import concordance_index_censored, concordance_index_ipcw

from softsurv.errors import (
    InvalidParameterError,
    InvalidSurvivalDataError,
    InvalidTimesError,
    NoComparablePairsError,
)
from softsurv.metrics import count_pairs, harrell_c, ranges, uno_c
from softsurv.nonparametric import censoring_survival


def slow_concordance(time, event, log_h, weight, tied_event_times="ignore", tied_censoring="ignore", entry=None):
    """The printed formula, pair by pair."""
    concordant = comparable = 0.0
    for i in np.flatnonzero(event):
        risk = log_h(time[i : i + 1])[:, 0]
        for j in range(time.size):
            if entry is not None and entry[j] >= time[i]:
                continue
            same = j != i and time[j] == time[i]
            if time[i] < time[j] or (same and not event[j] and tied_censoring == "count"):
                comparable += weight[i]
                concordant += weight[i] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
            elif same and event[j] and tied_event_times == "count":  # each such pair is met twice
                comparable += weight[i] / 2
                concordant += weight[i] / 2 * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return concordant / comparable


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("tied_event_times", ["ignore", "count"])
@pytest.mark.parametrize("tied_censoring", ["ignore", "count"])
def test_equals_the_formula(fold, seed, ties, tied_event_times, tied_censoring):
    data = fold(seed, ties=ties)
    options = {"tied_event_times": tied_event_times, "tied_censoring": tied_censoring}
    expected = slow_concordance(data.time, data.event, data.log_h, np.ones(data.time.size), **options)
    assert harrell_c(data.time, data.event, data.log_h, **options) == pytest.approx(expected, abs=1e-12)
    censoring = censoring_survival(data.time, data.event)
    tau = np.quantile(data.time, 0.9)
    weight = np.where(data.time < tau, np.maximum(censoring(data.time), 1e-9) ** -2.0, 0.0)
    expected = slow_concordance(data.time, data.event, data.log_h, weight, **options)
    found = uno_c(data.time, data.event, data.log_h, censoring, tau=tau, **options)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("tied", ["ignore", "count"])
def test_late_entry_compares_only_subjects_under_observation_together(fold, seed, ties, tied, monkeypatch):
    data = fold(seed, ties=ties)
    rng = np.random.default_rng(seed)
    entry = (
        np.floor(rng.uniform(0, 1, data.time.size) * data.time)
        if ties
        else rng.uniform(0, 0.99, data.time.size) * data.time
    )
    entry[::5] = 0.0
    ones, options = np.ones(data.time.size), {"tied_event_times": tied, "tied_censoring": tied}
    expected = slow_concordance(data.time, data.event, data.log_h, ones, **options, entry=entry)
    assert expected != slow_concordance(data.time, data.event, data.log_h, ones, **options)
    assert harrell_c(data.time, data.event, data.log_h, **options, entry=entry) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 7 * data.time.size)
    assert harrell_c(data.time, data.event, data.log_h, **options, entry=entry) == pytest.approx(expected, abs=1e-12)
    risk = np.round(data.risk, 1)
    constant = slow_concordance(data.time, data.event, lambda times: risk[:, None], ones, **options, entry=entry)
    assert harrell_c(data.time, data.event, risk, **options, entry=entry) == pytest.approx(constant, abs=1e-12)
    none = harrell_c(data.time, data.event, risk, **options, entry=np.zeros(data.time.size))
    assert none == harrell_c(data.time, data.event, risk, **options)


def test_without_subjects_under_observation_together_there_is_no_pair():
    time, event = [1.0, 2.0, 3.0], np.ones(3, dtype=bool)
    with pytest.raises(NoComparablePairsError):
        harrell_c(time, event, [3.0, 2.0, 1.0], entry=[0.0, 1.0, 2.0])
    with pytest.raises(InvalidSurvivalDataError, match="entry must be < time"):
        harrell_c(time, event, [3.0, 2.0, 1.0], entry=[0.0, 2.0, 2.0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_constant_risk_equals_scikit_survival_and_lifelines(fold, seed, ties):
    data = fold(seed, n=150, ties=ties)
    risk = np.round(data.risk, 1)  # ties in risk
    found = harrell_c(data.time, data.event, risk, tied_censoring="count")
    assert found == pytest.approx(concordance_index_censored(data.event, data.time, risk)[0], abs=1e-12)
    assert found == pytest.approx(lifelines.utils.concordance_index(data.time, -risk, data.event), abs=1e-12)
    tau = np.quantile(data.time, 0.8)
    censoring = censoring_survival(data.time, data.event)
    found = uno_c(data.time, data.event, risk, censoring, tau=tau, tied_censoring="count")
    assert found == pytest.approx(concordance_index_ipcw(data.y, data.y, risk, tau=tau)[0], abs=1e-12)


def test_proportional_curves_rank_as_their_score(fold):
    data = fold(1, ties=True)
    risk = np.round(data.risk, 1)

    def log_h(times):
        return risk[:, None] + np.log(times)[None, :]

    assert harrell_c(data.time, data.event, log_h) == harrell_c(data.time, data.event, risk)


def test_chunks_do_not_matter(fold, monkeypatch):
    data = fold(2, n=200)
    whole = harrell_c(data.time, data.event, data.log_h)
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 7 * data.time.size)
    widths = []

    def watched(times):
        widths.append(times.size)
        return data.log_h(times)

    assert harrell_c(data.time, data.event, watched) == whole
    assert max(widths) == 7
    assert sum(widths) == np.unique(data.time[data.event]).size


def test_grid_ranks_each_event_at_the_last_time_before_it(fold):
    data = fold(3)
    grid = np.linspace(0.0, data.time.max(), 12)

    def held(times):
        return data.log_h(grid[np.searchsorted(grid, times, side="right") - 1])

    expected = harrell_c(data.time, data.event, held)
    assert harrell_c(data.time, data.event, data.log_h(grid), times=grid) == expected
    assert harrell_c(data.time, data.event, data.log_h, times=grid) == expected


def test_order_survives_where_survival_has_saturated():
    time = np.arange(1.0, 9.0)
    event = np.ones(8, dtype=bool)
    log_h = np.linspace(800.0, -800.0, 8)
    assert harrell_c(time, event, lambda times: np.repeat(log_h[:, None], times.size, axis=1)) == 1.0
    assert harrell_c(time, event, log_h) == 1.0


def test_memory_layout_does_not_matter(fold):
    data = fold(4)
    grid = np.linspace(0.0, data.time.max(), 9)
    values = data.log_h(grid)
    expected = harrell_c(data.time, data.event, values, times=grid)
    assert harrell_c(data.time, data.event, np.asfortranarray(values), times=grid) == expected
    assert harrell_c(data.time, data.event, lambda times: np.asfortranarray(data.log_h(times)), times=grid) == expected
    wide = np.broadcast_to(data.risk[:, None], values.shape)
    assert harrell_c(data.time, data.event, wide, times=grid) == harrell_c(data.time, data.event, data.risk)


def test_no_array_of_all_pairs(fold):
    n = 6000
    data = fold(0, n=n)
    harrell_c(data.time[:50], data.event[:50], lambda times: data.log_h(times)[:50])  # compile first
    tracemalloc.start()
    try:
        harrell_c(data.time, data.event, data.log_h)
        harrell_c(data.time, data.event, data.risk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 3  # 288 MB for float64


def test_infinite_log_hazards_are_ranked():
    time, event = np.array([1.0, 2.0, 3.0]), np.ones(3, dtype=bool)
    assert harrell_c(time, event, [np.inf, 0.0, -np.inf]) == 1.0
    assert harrell_c(time, event, lambda times: np.full((3, times.size), -np.inf)) == 0.5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(-3, 3)), min_size=2, max_size=15),
    st.sampled_from(["ignore", "count"]),
    st.sampled_from(["ignore", "count"]),
)
def test_perfect_reversed_constant_and_monotone(rows, tied_event_times, tied_censoring):
    time, event, risk = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    event = event.astype(bool)
    options = {"tied_event_times": tied_event_times, "tied_censoring": tied_censoring}
    try:
        found = harrell_c(time, event, risk, **options)
    except NoComparablePairsError:
        assert not any(event[i] and time[i] < time[j] for i in range(time.size) for j in range(time.size))
        return
    assert 0.0 <= found <= 1.0
    assert found + harrell_c(time, event, -risk, **options) == pytest.approx(1.0)
    assert harrell_c(time, event, np.zeros(time.size), **options) == 0.5

    def transformed(times):
        scale = 1.0 + times[None, :]
        return np.exp(risk[:, None] / 10.0) * scale - times[None, :] ** 2

    assert harrell_c(time, event, transformed, **options) == pytest.approx(found)
    if options == {"tied_event_times": "ignore", "tied_censoring": "ignore"}:
        assert harrell_c(time, event, -time) == 1.0
        assert harrell_c(time, event, time) == 0.0


def test_counts_add_up(fold):
    data = fold(5, ties=True)
    pairs = count_pairs(data.time, data.event, data.log_h)
    later = [(data.time > t).sum() for t in pairs.time]
    np.testing.assert_array_equal(pairs.comparable, later)
    assert (pairs.lower_risk + pairs.equal_risk <= pairs.comparable).all()
    np.testing.assert_array_equal(data.time[pairs.rows], pairs.time)


@pytest.mark.parametrize(
    ("time", "event"), [([1.0, 2.0], [0, 0]), ([1.0, 1.0], [1, 1]), ([1.0], [1]), ([1.0, 2.0], [0, 1])]
)
def test_no_pairs_is_an_error(time, event):
    with pytest.raises(NoComparablePairsError, match="no pair of subjects can be ordered"):
        harrell_c(time, event, np.zeros(len(time)))
    with pytest.raises(NoComparablePairsError):
        harrell_c(time, event, lambda times: np.zeros((len(time), times.size)))


def test_bad_arguments_are_refused(fold):
    data = fold(0)
    time, event = data.time, data.event
    with pytest.raises(InvalidParameterError, match="risk must not be NaN, got 80 NaN"):
        harrell_c(time, event, np.full(80, np.nan))
    with pytest.raises(InvalidParameterError, match="risk must be a function of times"):
        harrell_c(time, event, np.zeros(79))
    with pytest.raises(InvalidParameterError, match="needs times"):
        harrell_c(time, event, np.zeros((80, 3)))
    with pytest.raises(InvalidParameterError, match=r"shape \(80, 2\); got \(80, 3\)"):
        harrell_c(time, event, np.zeros((80, 3)), times=[0.0, 1.0])
    with pytest.raises(InvalidTimesError, match="must begin at or before the first event"):
        harrell_c(time, event, data.log_h, times=[50.0, 60.0])
    with pytest.raises(InvalidTimesError, match="strictly increasing"):
        harrell_c(time, event, data.log_h, times=[0.0, 0.0])
    with pytest.raises(InvalidParameterError, match="tied_event_times must be 'ignore' or 'count'"):
        harrell_c(time, event, data.risk, tied_event_times="both")
    with pytest.raises(InvalidSurvivalDataError, match="event must have the shape of time"):
        harrell_c(time, event[1:], data.risk)


def test_uno_refuses_events_beyond_the_training_follow_up():
    censoring = censoring_survival([1.0, 2.0, 3.0], [True, False, True])
    time, event = [1.0, 4.0, 5.0], [True, True, False]
    with pytest.raises(InvalidTimesError, match="known and positive up to 3, got 4"):
        uno_c(time, event, [3.0, 2.0, 1.0], censoring)
    assert uno_c(time, event, [3.0, 2.0, 1.0], censoring, tau=3.5) == 1.0


@pytest.mark.parametrize("tau", ["a year", np.nan, [1.0, 2.0]])
def test_a_tau_that_is_no_number_is_refused(tau):
    rows = [1.0, 2.0, 3.0], [True, True, False], [3.0, 2.0, 1.0]
    for measure in (harrell_c, lambda *data, tau: uno_c(*data, censoring_survival(*data[:2]), tau=tau)):
        with pytest.raises(InvalidTimesError, match="tau must be a number, in the unit of time, got"):
            measure(*rows, tau=tau)
