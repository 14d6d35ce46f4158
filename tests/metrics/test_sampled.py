"""Measures of samples of counts against those of each sample alone."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.metrics import sampled
from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.sampled import sampled_auc, sampled_concordances
from softsurv.metrics.shared_curves import SharedCurves
from softsurv.metrics.shifted_curves import ShiftedCurves

N, R = 80, 40  # more samples than are counted at once


def _rises(times):
    return np.log(times / 20) * np.array([[1.0], [2.0], [3.0]])  # curves that cross at 20


def _curves(kind, rng):
    member, offset = rng.integers(0, 3, N), rng.integers(-2, 3, N) / 2.0
    if kind == "shared":
        return SharedCurves(member, _rises, 3)
    shifted = ShiftedCurves(member, _rises, 3, offset, lambda times: offset[:, None] + _rises(times)[member])
    return shifted if kind == "shifted" else shifted.log_cumulative_hazard


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kind", ["shared", "shifted", "of each"])
def test_concordances_are_those_of_each_sample(kind, late, monkeypatch):
    monkeypatch.setattr(sampled, "CHUNK_ELEMENTS", 5 * N)
    if kind != "of each":  # 201 samples of 100,000 rows took two minutes so
        monkeypatch.setattr(sampled, "_compare", None)
    rng = np.random.default_rng(0)
    time, event = rng.integers(1, 40, N).astype(float), rng.random(N) < 0.6
    entry = np.where(rng.random(N) < 0.5, 0.0, time * rng.random(N)) if late else None
    counts = (rng.integers(0, 3, (R, N)) * rng.integers(1, 4, N)).astype(np.float32)
    risk = _curves(kind, rng)
    found = sampled_concordances(time, event, risk, counts, lambda at: [np.ones(at.size), 1 / at], entry)
    for values, count in zip(found.T, counts.astype(float), strict=True):
        pairs = count_pairs(time, event, risk, entry=entry, weight=count)
        assert values == pytest.approx([pairs.concordance(), pairs.concordance(1 / pairs.time)], rel=1e-6)


def test_a_sample_without_pairs_has_no_concordance():
    counts = np.array([[1, 1], [0, 2]], dtype=np.float32)
    shared = SharedCurves(np.array([0, 1]), lambda times: np.ones((2, len(times))), 2)
    found = sampled_concordances(np.array([1.0, 2.0]), np.array([True, False]), shared, counts, lambda at: [np.ones(1)])
    np.testing.assert_array_equal(found, [[0.5, np.nan]])


def test_infinite_risks_tie():
    risk, counts = np.array([np.inf, np.inf, -np.inf, -np.inf]), np.ones((4, 1), np.float32)
    won, pairs = sampled_auc(np.array([1.0, 0.0, 2.0, 0.0]), np.array([False, True, False, True]), risk, counts)
    assert (won.tolist(), pairs.tolist()) == ([2.5], [6.0])
