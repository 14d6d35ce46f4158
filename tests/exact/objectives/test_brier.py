"""The integrated-Brier-score objective against its definition, written as a plain loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, KM_ROWS
from softsurv.exact.brier.prepare import prepare_rows
from softsurv.exact.objectives.brier import IbsScore


def columns(seed, n, n_times, censoring=0.4, weighted=False):
    rng = np.random.default_rng(seed)
    time = rng.integers(0, n_times, n).astype(float)
    weight = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    return time, rng.random(n) > censoring, weight


def product_limit(time, event, weight, at):
    """Survival at a time: the product over observed times up to it of 1 - deaths / at risk."""
    value = 1.0
    for s in np.unique(time):
        if s <= at:
            value *= 1.0 - weight[(time == s) & event].sum() / weight[time >= s].sum()
    return value


def defined_loss(time, event, weight, leaf, length):
    """Eq. 1 and 2, term by term, with Kaplan-Meier leaves."""
    times = np.unique(time)
    total = 0.0
    for start, end in itertools.pairwise(times):
        g_here = product_limit(time, ~event, weight, start)
        for i in range(len(time)):
            mates = leaf == leaf[i]
            s = product_limit(time[mates], event[mates], weight[mates], start)
            if time[i] > start:
                total += weight[i] * (end - start) * (1.0 - s) ** 2 / g_here
            elif event[i]:
                total += weight[i] * (end - start) * s**2 / product_limit(time, ~event, weight, time[i])
    return total / weight.sum() / length


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_score_is_the_definition(seed, weighted):
    time, event, weight = columns(seed, 25, 7, weighted=weighted)
    leaf = np.random.default_rng(seed).integers(0, 3, 25)
    score = IbsScore.from_columns(time, event, weight)
    ours = sum(score.leaf_loss(np.flatnonzero(leaf == k)) for k in np.unique(leaf))
    expected = defined_loss(time, event, weight, leaf, time.max() - time.min())
    assert ours == pytest.approx(expected, rel=1e-12)


def test_time_range_is_a_factor():
    time, event, _ = columns(1, 30, 9)
    time += 2.0
    rows = np.arange(30)
    observed = IbsScore.from_columns(time, event).leaf_loss(rows)
    origin = IbsScore.from_columns(time, event, time_range="origin").leaf_loss(rows)
    assert origin == pytest.approx(observed * (time.max() - time.min()) / time.max())


def test_row_losses_add_up():
    time, event, weight = columns(2, 30, 9, weighted=True)
    score = IbsScore.from_columns(time, event, weight)
    rows = np.arange(30)
    curve = score.curve(rows)
    assert score.row_losses(np.tile(curve, (30, 1))).sum() == pytest.approx(score.leaf_loss(rows))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 12))
def test_minimiser_beats_every_curve(seed, n, n_times):
    time, event, weight = columns(seed, n, n_times, weighted=True)
    score = IbsScore.from_columns(time, event, weight)
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero((rng.random(n) < 0.7) | (np.arange(n) == 0))
    least = score.leaf_loss(rows, "ipcw")
    monotone = score.loss(rows, score.curve(rows, "ipcw", monotone=True))
    noise = rng.normal(0, 0.1, np.unique(time).size)
    falling = np.minimum.accumulate(score.curve(rows, "ipcw") + noise)
    assert least <= monotone + 1e-12
    assert monotone <= score.loss(rows, falling) + 1e-9
    assert least <= score.leaf_loss(rows) + 1e-12
    assert (np.diff(score.curve(rows, "ipcw", monotone=True)) <= 1e-12).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 12))
def test_minimiser_is_superadditive(seed, n, n_times):
    time, event, weight = columns(seed, n, n_times, weighted=True)
    score = IbsScore.from_columns(time, event, weight)
    half = np.random.default_rng(seed).random(n) < 0.5
    half[:2] = True, False
    parts = score.leaf_loss(np.flatnonzero(half), "ipcw") + score.leaf_loss(np.flatnonzero(~half), "ipcw")
    assert parts <= score.leaf_loss(np.arange(n), "ipcw") + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 40), st.booleans())
def test_equivalent_points_are_a_bound(seed, n, n_times, weighted):
    time, event, weight = columns(seed, n, n_times, weighted=weighted)
    x = np.random.default_rng(seed).integers(0, 2, (n, 2)).astype(np.uint8)
    score = IbsScore.from_columns(time, event, weight)
    rows = prepare_rows(x, score)
    cells = x[:, 0] * 2 + x[:, 1]
    least = sum(score.leaf_loss(np.flatnonzero(cells == k), "ipcw") for k in np.unique(cells))
    assert rows.bound.sum() == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize(
    ("time", "event", "weight", "match"),
    [
        ([1.0, -1.0], [True, False], None, "time must be >= 0"),
        ([1.0, 2.0], [True, False], [1.0, 0.0], "weight must be > 0"),
        ([1.0, np.nan], [True, False], None, "finite"),
    ],
)
def test_wrong_columns(time, event, weight, match):
    with pytest.raises(InvalidSurvivalDataError, match=match):
        IbsScore.from_columns(time, event, weight)


def test_wrong_time_range():
    with pytest.raises(InvalidParameterError, match="time_range"):
        IbsScore.from_columns([1.0, 2.0], [True, False], time_range="all")


def test_modes_are_distinct():
    assert len({KM_ROWS, KM_BINS, IPCW}) == 3
