"""Measures of a stack of models by operators, against those of one model at a time."""

import numpy as np
import pytest
import torch

from softsurv.errors import InvalidTimesError, NoComparablePairsError
from softsurv.metrics import stacked
from softsurv.metrics.evaluate import MEASURES, evaluate_with_censoring
from softsurv.metrics.fairness import curve_gap
from softsurv.metrics.stacked import StackedFold
from softsurv.nonparametric import censoring_survival

N, MODELS = 80, 3
TOLERANCE = 1e-12


def some_fold(late, weighted, ties, seed=0):
    rng = np.random.default_rng(seed)
    time, event = rng.exponential(size=N) + 0.1, rng.random(N) < 0.7
    time = np.ceil(5 * time) / 5 if ties else time
    entry = np.where(rng.random(N) < 0.5, 0.8 * time * rng.random(N), 0.0) if late else None
    weight = rng.random(N) if weighted else None
    return {"time": time, "event": event, "entry": entry, "upper": None, "weight": weight}


def some_censoring(seed=1):
    rng = np.random.default_rng(seed)
    return censoring_survival(rng.exponential(size=200) + 0.1, rng.random(200) < 0.6)


def some_models(seed=2):
    """Levels, with equal ones among them, and shapes of log H = level + shape log t; the first ranks alike always."""
    rng = np.random.default_rng(seed)
    level, shape = np.round(rng.standard_normal((MODELS, N)), 1), rng.random((MODELS, N)) + 0.5
    shape[0] = 1.0
    return torch.tensor(level)[..., None], torch.tensor(shape)[..., None]


def log_hazards(level, shape):
    return lambda times: level + shape * times.log()


def of_model(k, level, shape):
    return lambda times: log_hazards(level, shape)(torch.as_tensor(times))[k].numpy()


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("ties", "cells"), [(False, 2**24), (True, 2**24), (True, 700)])
def test_each_measure_is_that_of_one_model(late, weighted, ties, cells, monkeypatch):
    monkeypatch.setattr(stacked, "CELLS", cells)  # 700: three times a block
    fold, censoring, models = some_fold(late, weighted, ties), some_censoring(), some_models()
    plan = StackedFold(censoring, fold, torch.zeros(()))
    found = plan.measures(log_hazards(*models), MODELS)
    assert plan.names == MEASURES
    for k in range(MODELS):
        expected = evaluate_with_censoring(censoring, **fold, log_cumulative_hazard=of_model(k, *models))
        np.testing.assert_allclose(found[:, k], [expected[name] for name in MEASURES], rtol=TOLERANCE, atol=0)
        assert plan.facts == {name: expected[name] for name in plan.facts}


def test_infinite_predictions_are_ranked():
    fold, censoring = some_fold(False, False, False), some_censoring()
    level, shape = some_models()
    level[:, :5], level[:, 5:10] = torch.inf, -torch.inf
    found = StackedFold(censoring, fold, torch.zeros(())).measures(log_hazards(level, shape), MODELS)
    expected = evaluate_with_censoring(censoring, **fold, log_cumulative_hazard=of_model(1, level, shape))
    np.testing.assert_allclose(found[:, 1], [expected[name] for name in MEASURES], rtol=TOLERANCE)


def test_a_prediction_that_is_none_makes_the_measures_of_its_model_none():
    level, shape = some_models()
    level[1, 7] = torch.nan
    plan = StackedFold(some_censoring(), some_fold(False, False, False), torch.zeros(()))
    assert plan.measures(log_hazards(level, shape), MODELS).isnan().all(0).tolist() == [False, True, False]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gap_between_groups(weighted):
    fold, censoring, models = some_fold(False, weighted, False), some_censoring(), some_models()
    group = np.arange(N) % 3 == 0
    plan = StackedFold(censoring, fold, torch.zeros(()), group)
    found = dict(zip(plan.names, plan.measures(log_hazards(*models), MODELS), strict=True))["fairness"]
    times = np.linspace(*plan.facts["range"], plan.facts["n_times"])
    for k in range(MODELS):
        curves = np.exp(-np.exp(of_model(k, *models)(times)))
        assert float(found[k]) == pytest.approx(curve_gap(curves, times, group, fold["weight"]).mean, rel=TOLERANCE)


def test_a_fold_that_cannot_be_measured_is_refused_at_once():
    fold, like = some_fold(False, False, False), torch.zeros(())
    with pytest.raises(NoComparablePairsError):
        StackedFold(some_censoring(), fold | {"event": np.zeros(N, dtype=bool)}, like)
    with pytest.raises(InvalidTimesError):
        StackedFold(some_censoring(), fold | {"time": np.repeat([1.0, 2.0], [1, N - 1])}, like)
