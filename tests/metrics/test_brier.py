"""Brier score and its integral: scikit-survival, slow twin, properties."""

import numpy as np
import pytest
import sksurv.metrics

from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.metrics import (
    brier_score,
    integrated_brier_score,
    ranges,
    relative_integrated_brier_score,
    survival_from_log_cumulative_hazard,
)
from softsurv.nonparametric import censoring_survival, kaplan_meier


def grid_and_curves(data, n_times=25):
    grid = np.linspace(np.quantile(data.time, 0.05), np.quantile(data.time, 0.85), n_times)
    return grid, survival_from_log_cumulative_hazard(data.log_h(grid))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_equals_scikit_survival(fold, seed, ties):
    train, test = fold(seed + 100, n=300, ties=ties), fold(seed, ties=ties)
    keep = test.time < train.time.max()
    test = type(test)(time=test.time[keep], event=test.event[keep], y=test.y[keep], log_h=test.log_h, keep=keep)
    grid, curves = grid_and_curves(test)
    curves = curves[keep]
    censoring = censoring_survival(train.time, train.event)
    arguments = (test.time, test.event, curves, grid, censoring)
    _, expected = sksurv.metrics.brier_score(train.y, test.y, curves, grid)
    np.testing.assert_allclose(brier_score(*arguments), expected, atol=1e-13)
    expected = sksurv.metrics.integrated_brier_score(train.y, test.y, curves, grid)
    assert integrated_brier_score(*arguments) == pytest.approx(expected, abs=1e-13)


def test_equals_the_formula_with_test_times_beyond_the_training_fold():
    censoring = censoring_survival([1.0, 2.0, 3.0, 4.0], [True, False, True, True])
    time, event = np.array([1.0, 3.0, 9.0, 9.5]), np.array([True, True, True, False])
    curves = np.array([[0.5, 0.1], [0.9, 0.4], [0.8, 0.7], [1.0, 0.9]])
    g = 2 / 3  # one of three at risk is censored at 2
    first = (0.5**2 / 1 + (0.1**2 + 0.2**2 + 0.0**2) / 1) / 4
    second = (0.1**2 / 1 + 0.4**2 / g + (0.3**2 + 0.1**2) / g) / 4
    found = brier_score(time, event, curves, [1.5, 3.5], censoring)
    np.testing.assert_allclose(found, [first, second], rtol=1e-13)


def test_perfect_and_useless_curves():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool)
    censoring = censoring_survival(time, event)
    grid = np.array([0.5, 1.5, 2.5, 3.5])
    truth = (time[:, None] > grid[None, :]).astype(float)
    assert integrated_brier_score(time, event, truth, grid, censoring) == 0.0
    assert integrated_brier_score(time, event, np.full((4, 4), 0.5), grid, censoring) == pytest.approx(0.25)
    assert integrated_brier_score(time, event, 1.0 - truth, grid, censoring) == 1.0


def test_log_scale_is_the_mean_over_log_time(fold):
    data = fold(2)
    grid, curves = grid_and_curves(data)
    censoring = censoring_survival(data.time, data.event)
    scores = brier_score(data.time, data.event, curves, grid, censoring)
    steps = np.diff(np.log(grid))
    expected = np.sum(steps * (scores[1:] + scores[:-1]) / 2) / steps.sum()
    found = integrated_brier_score(data.time, data.event, curves, grid, censoring, scale="log")
    assert found == pytest.approx(expected, rel=1e-12)
    assert found != pytest.approx(integrated_brier_score(data.time, data.event, curves, grid, censoring))


def test_relative_score_is_zero_for_the_reference_and_one_for_the_truth(fold):
    data = fold(4)
    grid, curves = grid_and_curves(data)
    censoring = censoring_survival(data.time, data.event)
    reference = kaplan_meier(data.time, data.event)
    common = np.broadcast_to(reference(grid), curves.shape)
    arguments = (grid, censoring, reference)
    assert relative_integrated_brier_score(data.time, data.event, common, *arguments) == 0.0
    assert 0.0 < relative_integrated_brier_score(data.time, data.event, curves, *arguments) < 1.0


def test_bad_arguments_are_refused(fold):
    data = fold(0)
    grid, curves = grid_and_curves(data)
    censoring = censoring_survival(data.time, data.event)
    fixed = (data.time, data.event)
    with pytest.raises(InvalidParameterError, match="survival must hold probabilities between 0 and 1"):
        brier_score(*fixed, curves + 0.5, grid, censoring)
    with pytest.raises(InvalidParameterError, match="one row per subject and one column per time"):
        brier_score(*fixed, curves.T, grid, censoring)
    with pytest.raises(InvalidTimesError, match="known and positive up to"):
        brier_score(*fixed, curves, grid + 1e3, censoring)
    with pytest.raises(InvalidTimesError, match="at least two values"):
        integrated_brier_score(*fixed, curves[:, :1], grid[:1], censoring)
    with pytest.raises(InvalidTimesError, match="times must be > 0 to integrate over log time, got 0"):
        integrated_brier_score(*fixed, curves[:, :2], [0.0, 1.0], censoring, scale="log")
    with pytest.raises(InvalidParameterError, match="scale must be 'time' or 'log'"):
        integrated_brier_score(*fixed, curves, grid, censoring, scale="sqrt")
    early = np.array([0.0, data.time.min() / 2])
    reference = kaplan_meier(*fixed)
    with pytest.raises(InvalidTimesError, match="Brier score of 0"):
        relative_integrated_brier_score(*fixed, curves[:, :2], early, censoring, reference)


def test_parts_of_the_grid_do_not_matter(fold, monkeypatch):
    data = fold(1)
    grid, curves = grid_and_curves(data)
    censoring = censoring_survival(data.time, data.event)
    whole = brier_score(data.time, data.event, curves, grid, censoring)
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 3 * data.time.size)
    np.testing.assert_allclose(brier_score(data.time, data.event, curves, grid, censoring), whole, rtol=1e-14)
