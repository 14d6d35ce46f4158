"""Concordances of many models by operators against the counted pairs of each."""

import numpy as np
import pytest
import torch

from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.stacked_pairs import StackedPairs, nan_of
from softsurv.nonparametric import checked_columns

N, MODELS = 60, 3


def some_rows(late, seed=0):
    rng = np.random.default_rng(seed)
    time = np.ceil(6 * rng.exponential(size=N)) / 6 + 0.1
    entry = np.where(rng.random(N) < 0.5, 0.7 * time, 0.0) if late else None
    return time, rng.random(N) < 0.7, rng.random(N), entry


def risks(times):
    """Risks (M, N, T) with ties, whose order changes over time."""
    rng = np.random.default_rng(1)
    level, slope = np.round(rng.standard_normal((2, MODELS, N, 1)), 1)
    return torch.tensor(level) + torch.tensor(np.round(slope)) * times


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("cells", [10**6, 5 * N * MODELS])
@pytest.mark.parametrize("more_times", [False, True])
def test_they_are_those_of_the_counted_pairs(late, cells, more_times):
    time, event, weight, entry = some_rows(late)
    pairs = count_pairs(time, event, np.zeros(N), entry=entry, weight=weight)
    times = np.unique(np.append(pairs.time, [0.05, 0.5, 99.0] if more_times else []))
    of_events = np.ones(pairs.time.size), 1.0 / (1.0 + pairs.time)
    entries = checked_columns(time, event, weight, entry)[3]
    stacked = StackedPairs.of(pairs, time, entries, weight, times, torch.device("cpu"), of_events)
    found = stacked.concordances(torch.as_tensor(times), risks, MODELS, cells)
    assert found.shape == (2, MODELS)
    for m in range(MODELS):
        own = count_pairs(time, event, lambda t, m=m: risks(torch.as_tensor(t))[m].numpy(), entry=entry, weight=weight)
        np.testing.assert_allclose(found[:, m], [own.concordance(w) for w in of_events], rtol=1e-12)


def test_a_prediction_that_is_none_is_told_of_its_model():
    predicted = torch.zeros(2, 3, 4)
    predicted[1, 2, 0] = torch.nan
    assert nan_of(predicted).isnan().tolist() == [False, True]
