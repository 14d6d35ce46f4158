"""Curves that subjects share give the counts of curves that each has for itself."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.pair_counts import assert_counted_alike, fold

from softsurv.errors import InvalidParameterError
from softsurv.metrics import ranges
from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.histories import evaluate_causes
from softsurv.metrics.shared_curves import SharedCurves, SharedIncidences
from softsurv.nonparametric import censoring_survival


def _curves(times):
    """Five curves that cross, two of them the same and one nobody's; all are 0 before time 3."""
    slopes = np.array([1.0, 0.5, 1.0, 2.0, 3.0])[:, None]
    with np.errstate(divide="ignore"):
        return np.log(np.where(times < 3, 0.0, 0.1 * times**slopes))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("tied", ["ignore", "count"])
def test_shared_curves_are_counted_as_those_of_each_subject(late, weighed, tied, monkeypatch):
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 35)  # seven times at once
    for seed in range(3):
        member, times = np.random.default_rng(seed).integers(0, 4, 160), np.array([1.0, 5.0])
        shared = SharedCurves(member, _curves, 5)
        assert_counted_alike(shared, late, weighed, tied, seed)
        assert np.array_equal(shared(times), _curves(times)[member])
        assert np.array_equal(shared.take(member > 1)(times), _curves(times)[member[member > 1]])


def test_a_grid_of_times_holds_for_shared_curves_too():
    time, event, _, _ = fold(0)
    member = np.arange(len(time)) % 4
    grid = np.array([1.0, 10.0, 20.0])
    got = count_pairs(time, event, SharedCurves(member, _curves, 5), grid)
    expected = count_pairs(time, event, lambda times: _curves(times)[member], grid)
    assert np.array_equal(got.lower_risk, expected.lower_risk)


def test_curves_of_other_subjects_are_refused():
    time, event, _, _ = fold(0)
    with pytest.raises(InvalidParameterError, match=r"one curve for each of the 160 subjects, got \(3,\)"):
        count_pairs(time, event, SharedCurves(np.array([0, 1, 2]), _curves, 5))


@pytest.mark.parametrize("late", [False, True])
def test_shared_incidences_give_the_measures_of_each_subjects_own(late):
    time, event, entry, weight = fold(1)
    rng = np.random.default_rng(1)
    cause, member = np.where(event, rng.integers(1, 3, len(time)), 0), rng.integers(0, 4, len(time))

    def curves(times):
        return np.stack([1 - np.exp(-np.exp(_curves(times) - 3)), 0.4 - 0.3 * np.exp(-np.exp(_curves(times) - 4))], 2)

    shared = SharedIncidences(member, curves, 5)
    how = {"entry": entry if late else None, "weight": weight}
    censoring = censoring_survival(time, event)
    grid = np.linspace(2, 35, 10)
    got = evaluate_causes(censoring, time, cause, shared, ("a", "b"), grid, **how)
    expected = evaluate_causes(
        censoring, time, cause, lambda t, k: curves(t)[member][..., k - 1], ("a", "b"), grid, **how
    )
    for name in ("a", "b"):
        assert got[name] == pytest.approx(expected[name], rel=1e-12)
    assert got["a"]["concordance"] != got["b"]["concordance"]
    assert np.array_equal(shared(grid, 2), curves(grid)[member][..., 1])
