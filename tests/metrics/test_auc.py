"""Cumulative/dynamic AUC: scikit-survival, slow twin, properties."""

import numpy as np
import pytest
import sksurv.metrics

from softsurv.errors import InvalidParameterError, InvalidTimesError, NoComparablePairsError
from softsurv.metrics import cumulative_dynamic_auc, ranges
from softsurv.metrics.auc import LONG_RUN
from softsurv.nonparametric import censoring_survival


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_equals_scikit_survival(fold, seed, ties):
    data = fold(seed, n=200, ties=ties)
    keep = data.time < data.time.max()  # scikit-survival refuses an event where G is 0
    time, event = data.time[keep], data.event[keep]
    censoring = censoring_survival(data.time, data.event)
    grid = np.linspace(np.quantile(time[event], 0.1), np.quantile(time, 0.9), 20)
    varying = np.round(data.log_h(grid)[keep], 1)
    for risk in (varying, varying[:, 3]):
        auc, mean = cumulative_dynamic_auc(time, event, risk, grid, censoring)
        expected, expected_mean = sksurv.metrics.cumulative_dynamic_auc(data.y, data.y[keep], risk, grid)
        np.testing.assert_allclose(auc, expected, atol=1e-12)
        assert mean == pytest.approx(expected_mean, abs=1e-12)


def test_equals_the_formula_by_hand():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    censoring = censoring_survival(time, event)  # 1 before 2, then 2/3
    risk = np.array([2.0, 5.0, 1.0, 1.0])
    auc, mean = cumulative_dynamic_auc(time, event, risk, [1.0, 3.0], censoring)
    first = 2 / 3  # case 1 against 2, 3, 4: loses, wins, wins
    second = (1.0 * 1.0 + 1.5 * 0.5) / 2.5  # cases 1 and 3 against 4: wins, ties
    np.testing.assert_allclose(auc, [first, second])
    drop = np.array([1 / 4, 3 / 8])  # Kaplan-Meier 1, 3/4, 3/8
    assert mean == pytest.approx(auc @ drop / drop.sum())


def test_perfect_reversed_constant(fold):
    data = fold(3)
    censoring = censoring_survival(data.time, data.event)
    grid = np.quantile(data.time, [0.3, 0.5, 0.7])
    for risk, expected in ((-data.time, 1.0), (data.time, 0.0), (np.zeros(data.time.size), 0.5)):
        auc, mean = cumulative_dynamic_auc(data.time, data.event, risk, grid, censoring)
        np.testing.assert_allclose(auc, expected)
        assert mean == pytest.approx(expected)


def test_times_before_the_first_event_carry_no_weight(fold):
    data = fold(6)
    censoring = censoring_survival(data.time, data.event)
    grid = np.quantile(data.time, [0.3, 0.5, 0.7])
    early = np.concatenate([[data.time.min() / 2], grid])
    auc, mean = cumulative_dynamic_auc(data.time, data.event, data.risk, early, censoring)
    assert np.isnan(auc[0])
    assert mean == cumulative_dynamic_auc(data.time, data.event, data.risk, grid, censoring)[1]


def test_undefined_or_bad_input_is_an_error(fold):
    data = fold(0)
    censoring = censoring_survival(data.time, np.ones(80))
    with pytest.raises(NoComparablePairsError, match="no event up to the last time"):
        cumulative_dynamic_auc(data.time, np.zeros(80), data.risk, [5.0], censoring)
    with pytest.raises(InvalidTimesError, match="nobody is left as a control"):
        cumulative_dynamic_auc(data.time, data.event, data.risk, [data.time.max()], censoring)
    with pytest.raises(InvalidParameterError, match="risk must have one row per subject"):
        cumulative_dynamic_auc(data.time, data.event, data.risk[1:], [5.0], censoring)


@pytest.mark.parametrize("ties", [False, True])
def test_parts_of_the_grid_do_not_matter(fold, ties, monkeypatch):
    data = fold(1, ties=ties)
    grid, censoring = np.quantile(data.time, np.linspace(0.05, 0.8, 20)), censoring_survival(data.time, data.event)
    risk = np.round(data.log_h(np.unique(grid)), 1)
    whole = cumulative_dynamic_auc(data.time, data.event, risk, np.unique(grid), censoring)
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 3 * data.time.size)
    parts = cumulative_dynamic_auc(data.time, data.event, risk, np.unique(grid), censoring)
    np.testing.assert_array_equal(parts[0], whole[0])


@pytest.mark.parametrize("tied", [False, True])
def test_rows_in_few_rising_runs_give_the_same_auc(tied):
    """Runs of a leaf's rows are merged, not sorted; the order of the rows changes no number."""
    rng = np.random.default_rng(1)
    n = 400
    risk = rng.integers(0, 30, n) / 1.0 if tied else rng.normal(size=n)
    time, event, weight = rng.exponential(np.exp(-risk / 5)), rng.random(n) < 0.7, rng.uniform(0.5, 2.0, n)
    censoring, grid = censoring_survival(time, event), np.quantile(time, [0.2, 0.5, 0.7])
    runs = np.lexsort((risk, np.arange(n) % 2))
    assert (np.diff(risk[runs]) < 0).sum() == 1 < n / LONG_RUN < (np.diff(risk) < 0).sum()
    found = [
        cumulative_dynamic_auc(time[o], event[o], risk[o], grid, censoring, weight[o]) for o in (np.arange(n), runs)
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-13)
    pairs = (event & (time <= grid[1]))[:, None] & (time > grid[1])
    mass = np.where(pairs, (weight / censoring(time).clip(1e-9))[:, None] * weight, 0.0)
    won = (risk[:, None] > risk) + 0.5 * (risk[:, None] == risk)
    assert found[1][0][1] == pytest.approx((mass * won).sum() / mass.sum(), rel=1e-12)
