"""Measures by cause of a stack of models by operators, against those of one model at a time."""

import numpy as np
import pytest
import torch

from softsurv.errors import NoComparablePairsError
from softsurv.metrics.histories import ends_at_risk, evaluate_causes, evaluate_histories
from softsurv.metrics.stacked_causes import StackedCauses
from softsurv.nonparametric import censoring_survival

N, MODELS, NAMES = 70, 3, ("relapse", "death")
TOLERANCE = 1e-12
LIKE = torch.zeros(())


def some_fold(late, weighted, seed=0):
    rng = np.random.default_rng(seed)
    time = np.ceil(6 * rng.exponential(size=N)) / 6 + 0.1
    codes = np.where(rng.random(N) < 0.3, 0, rng.integers(1, 3, N))
    entry = np.where(rng.random(N) < 0.4, 0.6 * time, 0.0) if late else None
    return time, codes, {"entry": entry, "weight": rng.random(N) if weighted else None}


def some_censoring(seed=1):
    rng = np.random.default_rng(seed)
    return censoring_survival(rng.exponential(size=300) + 0.1, rng.random(300) < 0.6)


def some_incidences():
    """Incidences (K, M, N, T) at times, with ties between rows; one model ranks all alike."""
    share = np.round(np.random.default_rng(2).uniform(0.1, 0.9, (MODELS, N)), 1)
    share[0] = 0.5
    both = torch.tensor(np.stack([share, 1 - share]))[..., None]
    return lambda times: 0.9 * both * -torch.expm1(-times * (0.5 + both))


def blocks(times, incidences, width):
    times = torch.as_tensor(times)
    for first in range(0, len(times), width):
        part = slice(first, min(first + width, len(times)))
        yield part, incidences(times[part])


def of_model(m, incidences):
    return lambda times, code: incidences(torch.as_tensor(times))[code - 1, m].numpy()


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, own in expected.items():
        assert found[name].keys() == own.keys()
        for what, value in own.items():
            assert found[name][what] == (value if value is None else pytest.approx(value, rel=TOLERANCE)), (name, what)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [10**6, 7])
def test_each_measure_is_that_of_one_model(late, weighted, width):
    time, codes, at_risk = some_fold(late, weighted)
    grid, censoring, incidences = np.linspace(0.3, 1.5, 20), some_censoring(), some_incidences()
    plan = StackedCauses(time, codes, NAMES, LIKE, **at_risk, censoring=censoring, grid=grid)
    assert set(plan.names) == {(name, what) for name in NAMES for what in ("concordance", "auc", "ibs")}
    found = plan.measures(blocks(plan.times, incidences, width), MODELS)
    for m in range(MODELS):
        expected = evaluate_causes(censoring, time, codes, of_model(m, incidences), NAMES, grid, **at_risk)
        assert_same(plan.by_cause(found[:, m].tolist()), expected)


def test_what_a_fold_cannot_measure_is_none():
    """One cause without any event, one whose only event comes after the grid and is nobody's pair."""
    time, codes, _ = some_fold(False, False)
    codes = np.where(codes == 1, 0, codes)
    codes[np.argmax(time)], names = 3, (*NAMES, "other")
    codes[(time == time.max()) & (codes == 2)] = 0
    grid, censoring, incidences = np.linspace(0.3, 1.5, 20), some_censoring(), some_incidences()
    three = lambda times: torch.cat([incidences(times), incidences(times)[:1]])  # noqa: E731
    plan = StackedCauses(time, codes, names, LIKE, censoring=censoring, grid=grid)
    expected = evaluate_causes(censoring, time, codes, of_model(1, three), names, grid)
    assert expected["relapse"]["concordance"] is None
    assert expected["other"]["auc"] is None
    found = plan.measures(blocks(plan.times, three, 9), MODELS)
    assert_same(plan.by_cause(found[:, 1].tolist()), expected)


@pytest.mark.filterwarnings("ignore:uno_c, cd_auc, ibs")
def test_of_several_rows_of_a_subject_there_are_concordances_alone():
    rng, incidences = np.random.default_rng(3), some_incidences()
    subject, end = np.arange(N) // 2, np.round(rng.exponential(size=N // 2), 1) + 0.3
    entry, time = np.where(np.arange(N) % 2, np.repeat(end, 2) / 2, 0.0), np.repeat(end, 2)
    time[::2] /= 2
    codes = np.where(np.arange(N) % 2, rng.integers(0, 3, N), 0)
    expected = evaluate_histories(
        time, codes > 0, lambda t: np.zeros((N, len(t))), subject, entry=entry,
        cause=codes, incidence=of_model(2, incidences), names=NAMES,
    )["causes"]  # fmt: skip
    plan = StackedCauses(ends_at_risk(time, codes > 0, subject, entry), codes, NAMES, LIKE, entry=entry)
    found = plan.measures(blocks(plan.times, incidences, 11), MODELS)
    assert_same(plan.by_cause(found[:, 2].tolist()), expected)
    assert 0 < found[0, 2] < 1


def test_a_fold_without_events_has_no_measures():
    time, codes, _ = some_fold(False, False)
    plan = StackedCauses(time, np.zeros_like(codes), NAMES, LIKE)
    assert plan.times.size == len(plan.names) == 0
    assert plan.measures([], MODELS).shape == (0, MODELS)
    assert plan.by_cause([])["death"] == {"concordance": None, "auc": None, "ibs": None, "events": 0}


def test_a_prediction_that_is_none_makes_the_measures_of_its_model_none():
    time, codes, _ = some_fold(False, False)
    plan = StackedCauses(time, codes, NAMES, LIKE, censoring=some_censoring(), grid=np.linspace(0.3, 1.5, 20))

    def incidences(times):
        found = some_incidences()(times).clone()
        found[:, 1, 7] = torch.nan
        return found

    found = plan.measures(blocks(plan.times, incidences, 13), MODELS)
    assert found.isnan().all(0).tolist() == [False, True, False]


def test_a_cause_without_a_control_is_refused_as_for_one_model():
    time, codes = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 0, 0])
    entry, grid = np.array([0.0, 1.5, 1.5, 1.5]), np.array([1.0, 1.2])
    how = {"entry": entry, "censoring": some_censoring(), "grid": grid}
    with pytest.raises(NoComparablePairsError) as one:
        evaluate_causes(how["censoring"], time, codes, lambda t, code: np.zeros((4, len(t))), ("a",), grid, entry=entry)
    with pytest.raises(NoComparablePairsError) as many:
        StackedCauses(time, codes, ("a",), LIKE, **how)
    assert str(many.value) == str(one.value)
