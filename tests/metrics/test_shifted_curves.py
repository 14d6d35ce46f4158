"""Curves that differ by an offset give the counts of curves that each subject has for itself."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.pair_counts import FIELDS, assert_counted_alike, fold

from softsurv.errors import InvalidParameterError
from softsurv.metrics import concordance, ranges
from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.shifted_curves import ShiftedCurves


def _shifted(seed, n=160):
    """Three curves that cross, one of them nobody's, all -inf before time 3; few offsets, so that rows tie."""
    rng = np.random.default_rng(seed)

    def curves(times):
        slopes = np.array([[1.0], [2.0], [3.0]])
        with np.errstate(divide="ignore"):
            return slopes * np.log(np.where(times < 3, 0.0, times / 20))

    member, offset = rng.integers(0, 2, n), rng.integers(-3, 4, n) / 2.0
    return ShiftedCurves(member, curves, 3, offset, lambda times: offset[:, None] + curves(times)[member])


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("tied", ["ignore", "count"])
def test_shifted_curves_are_counted_as_those_of_each_subject(late, weighed, tied, monkeypatch):
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 35)  # some times at once
    for seed in range(3):
        for grid in (None, [1.0, 10.0, 20.0]):
            assert_counted_alike(_shifted(seed), late, weighed, tied, seed, grid)


@pytest.mark.parametrize("how", [{}, {"weight": True}, {"entry": True}, {"weight": True, "entry": True}])
def test_scores_and_shifted_curves_are_not_compared_pair_by_pair(how, monkeypatch):
    """The comparison of all subjects with all events took 15 s for 100,000 weighted rows."""
    time, event, entry, weight = fold(0)
    given = {name: {"weight": weight, "entry": entry}[name] for name in how}
    scores = np.random.default_rng(0).integers(0, 9, len(time)).astype(float)
    slow = count_pairs(time, event, lambda times: np.repeat(scores[:, None], len(times), 1), **given)
    monkeypatch.setattr(concordance, "_count_varying", None)
    got = count_pairs(time, event, scores, **given)
    for name in FIELDS:
        assert getattr(got, name) == pytest.approx(getattr(slow, name), rel=1e-12, abs=1e-12)
    assert count_pairs(time, event, _shifted(0), **given).lower_risk.sum() > 0


def test_some_of_the_subjects_keep_their_curves():
    shifted, some, times = _shifted(0), np.arange(160) % 3 == 0, np.array([1.0, 5.0, 30.0])
    assert np.array_equal(shifted.take(some)(times), shifted(times)[some])
    assert np.array_equal(shifted.take(some).offset, shifted.offset[some])


def test_a_fold_without_events_has_no_pairs():
    time, event, _, _ = fold(0)
    assert count_pairs(time, np.zeros_like(event), _shifted(0)).rows.size == 0


def test_curves_of_other_subjects_and_unknown_offsets_are_refused():
    time, event, _, _ = fold(0)
    with pytest.raises(InvalidParameterError, match=r"member must have one entry for each subject, \(160,\)"):
        count_pairs(time, event, _shifted(0, n=3))
    shifted = _shifted(0)
    shifted.offset[5] = np.nan
    with pytest.raises(InvalidParameterError, match="offset must not be NaN"):
        count_pairs(time, event, shifted)
