"""Counts of pairs by curves in common, beside those of a curve that each subject has for itself."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.metrics.concordance import count_pairs

FIELDS = ("rows", "time", "comparable", "lower_risk", "equal_risk", "tied_events")


def fold(seed, n=160):
    """Tied times, events, entries of which half are 0, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 40, n).astype(float)
    entry = np.where(rng.random(n) < 0.5, 0.0, time * rng.random(n))
    return time, rng.random(n) < 0.6, entry, rng.integers(0, 4, n).astype(float)


def assert_counted_alike(common, late, weighed, tied, seed, grid=None):
    """Curves in common are counted as the same curves given as a function, some pairs of them equal."""
    time, event, entry, weight = fold(seed)
    how = {"tied_censoring": tied, "entry": entry if late else None, "weight": weight if weighed else None}
    got = count_pairs(time, event, common, grid, **how)
    expected = count_pairs(time, event, lambda times: common(times), grid, **how)
    for name in FIELDS:
        one, other = getattr(got, name), getattr(expected, name)
        assert one.dtype == other.dtype
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)
    assert 0 < got.equal_risk.sum() < got.comparable.sum()
