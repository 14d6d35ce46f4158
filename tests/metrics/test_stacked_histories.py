"""Concordance of subjects with several rows, of a stack of models, against that of one model at a time."""

import numpy as np
import pytest
import torch

from softsurv.errors import EvaluationWarning, NoComparablePairsError
from softsurv.metrics.histories import evaluate_histories
from softsurv.metrics.stacked_histories import StackedHistories

N, MODELS = 60, 2


def some_spells(weighted=False):
    """Two rows of each subject, one after the other but for a gap of some."""
    rng = np.random.default_rng(0)
    end = np.round(rng.exponential(size=N // 2), 1) + 0.4
    second = np.arange(N) % 2 == 1
    cut = np.round(np.repeat(end / 2, 2), 2)
    gap = np.where(second & (rng.random(N) < 0.3), 0.1, 0.0)
    fold = {
        "time": np.where(second, np.repeat(end, 2), cut),
        "event": second & (rng.random(N) < 0.7),
        "entry": np.where(second, cut + gap, 0.0),
        "upper": None,
        "weight": rng.random(N) if weighted else None,
    }
    return fold, np.arange(N) // 2


def log_hazards(times):
    level = np.round(np.random.default_rng(1).standard_normal((MODELS, N, 1)), 1)
    return torch.tensor(level) * (1.0 + times)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_that_of_one_model(weighted):
    fold, subject = some_spells(weighted)
    with pytest.warns(EvaluationWarning, match="need one row for each subject"):
        plan = StackedHistories(fold, subject, torch.zeros(()))
    found = plan.measures(log_hazards, MODELS)
    known = {name: value for name, value in fold.items() if name != "upper"}
    for m in range(MODELS):
        one = lambda t, m=m: log_hazards(torch.as_tensor(t))[m].numpy()  # noqa: E731
        with pytest.warns(EvaluationWarning):
            expected = evaluate_histories(**known, log_cumulative_hazard=one, subject=subject)
        assert float(found[0, m]) == pytest.approx(expected.pop("harrell_c"), rel=1e-12)
        assert plan.facts == expected


@pytest.mark.filterwarnings("ignore:uno_c, cd_auc, ibs")
def test_rows_without_events_are_refused():
    fold, subject = some_spells()
    with pytest.raises(NoComparablePairsError):
        StackedHistories(fold | {"event": np.zeros(N, dtype=bool)}, subject, torch.zeros(()))
