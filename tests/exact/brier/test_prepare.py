"""From a training set to the rows of the search: sorted, in units of the score, merged where that pays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.exact.brier.prepare import coarse_times, has_equal_rows, prepare_rows, row_groups
from softsurv.exact.objectives.brier import IbsScore


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0, 1, 3, 70]))
def test_equal_rows_have_equal_numbers(seed, n, p):
    x = np.random.default_rng(seed).integers(0, 2, (n, p)).astype(np.uint8)
    x[:, 3:] = x[:, :1] if p else 0
    group = row_groups(x)
    for i in range(n):
        for j in range(n):
            assert (group[i] == group[j]) == (x[i] == x[j]).all()
    assert sorted(set(group.tolist())) == list(range(group.max() + 1))


def table(n=40, seed=0, weight=None, n_times=15):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n, 3)).astype(np.uint8)
    time, event = rng.integers(2, 2 + n_times, n).astype(float), rng.random(n) < 0.6
    return x, IbsScore.from_columns(time, event, weight)


@pytest.mark.parametrize("weight", [None, np.random.default_rng(1).uniform(0.5, 2.0, 40)])
def test_the_score_of_one_curve_follows_from_the_rows(weight):
    """With S constant = s: every row pays (1 - s)^2 h, and an event s^2 v (end - y) from its time on."""
    x, score = table(weight=weight)
    rows = prepare_rows(x, score)
    for s in (0.0, 0.3, 1.0):
        by_rows = (rows.weight * rows.h).sum() * (1 - s) ** 2 + (rows.v * (rows.t[-1] - rows.y)).sum() * s**2
        assert by_rows == pytest.approx(score.loss(np.arange(40), np.full(len(rows.t), s)))
    assert rows.multiplicity.sum() == 40
    assert rows.weight.sum() == pytest.approx(score.weight.sum())


def test_rows_come_by_time_and_events_first():
    x, score = table()
    rows = prepare_rows(x, score)
    assert (np.diff(rows.time_id) >= 0).all()
    for one in np.unique(rows.time_id):
        died = rows.v[rows.time_id == one] > 0
        assert (np.diff(died.astype(int)) <= 0).all()
    counts = np.bincount(rows.time_id)
    np.testing.assert_array_equal(counts, np.unique(score.time, return_counts=True)[1])


def test_rows_that_fall_together_often_are_merged():
    x, score = table(n=600, n_times=3)
    rows = prepare_rows(x, score)
    assert len(rows.weight) < 600
    assert rows.multiplicity.sum() == rows.weight.sum() == 600
    assert not has_equal_rows(rows)
    kinds = {(*one, t, v > 0) for one, t, v in zip(rows.x.tolist(), rows.time_id, rows.v, strict=True) for one in [one]}
    assert len(kinds) == len(rows.weight)
    few = prepare_rows(*table())
    assert len(few.weight) == 40
    assert has_equal_rows(few)


def test_the_bound_of_equal_rows_is_optional_and_a_reference_stays():
    x, score = table()
    assert prepare_rows(x, score).bound.sum() > 0
    assert not prepare_rows(x, score, equivalent=False).bound.any()
    losses = np.full(40, 0.001)
    assert prepare_rows(x, score, losses, equivalent=False).bound.sum() == pytest.approx(0.04)


def test_coarse_bins_keep_rows_of_one_time_together(monkeypatch):
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_BINS", 4)
    time_id = np.repeat(np.arange(10), [1, 9, 1, 1, 1, 7, 1, 1, 1, 17])
    start = coarse_times(time_id)
    assert (np.diff(start) >= 0).all()
    assert (start <= time_id).all()
    assert set(start) <= set(time_id)
    assert 2 <= len(set(start)) <= 5
    for one in range(10):
        assert len(set(start[time_id == one])) == 1
