"""Sample weights and late entry in the measures: repeated rows, plain loops, and a population of which part is seen."""

import numpy as np
import pytest

from softsurv.metrics import (
    auc_incidence,
    brier_score,
    brier_score_incidence,
    cumulative_dynamic_auc,
    entry_distribution,
    evaluate_with_censoring,
    harrell_c,
    integrated_brier_score,
    uno_c,
)
from softsurv.nonparametric import censoring_survival

MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")


def fold(seed, n=60):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    time = np.round(rng.exponential(np.exp(-x)) + 0.05, 2)
    return x, time, rng.random(n) < 0.7


def curves(x):
    return lambda times: x[:, None] + np.log(np.asarray(times))


@pytest.mark.parametrize("late", [False, True])
def test_a_weight_of_k_is_k_equal_rows(late):
    x, time, event = fold(0)
    entry = 0.5 * time * (x > 0) if late else None
    weight = np.random.default_rng(1).integers(1, 4, len(x))
    rows = np.repeat(np.arange(len(x)), weight)
    censoring = censoring_survival(time, event, weight, entry)
    again = None if entry is None else entry[rows]
    weighted = evaluate_with_censoring(censoring, time, event, curves(x), weight=weight, entry=entry)
    repeated = evaluate_with_censoring(censoring, time[rows], event[rows], curves(x[rows]), entry=again)
    for measure in MEASURES:
        assert weighted[measure] == pytest.approx(repeated[measure], rel=1e-12), measure


@pytest.mark.parametrize("score", ["constant", "varying"])
@pytest.mark.parametrize("ties", ["ignore", "count"])
def test_weighted_concordance_is_that_of_a_plain_loop(score, ties):
    x, time, event = fold(2)
    time, entry, weight = np.round(time, 1) + 0.1, 0.3 * np.round(time, 1), np.random.default_rng(3).random(len(x))
    risk = x if score == "constant" else (lambda t: x[:, None] + 0.0 * t)
    above = below = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(x)):
            if time[j] > time[i] and entry[j] < time[i]:
                below += weight[i] * weight[j]
                above += weight[i] * weight[j] * ((x[j] < x[i]) + 0.5 * (x[j] == x[i]))
            if ties == "count" and j < i and event[j] and time[j] == time[i]:
                below += weight[i] * weight[j]
                above += 0.5 * weight[i] * weight[j]
    found = harrell_c(time, event, risk, entry=entry, weight=weight, tied_event_times=ties)
    assert found == pytest.approx(above / below, rel=1e-12)


def test_equal_weights_change_nothing():
    x, time, event = fold(4)
    censoring = censoring_survival(time, event)
    plain = evaluate_with_censoring(censoring, time, event, curves(x))
    equal = evaluate_with_censoring(censoring, time, event, curves(x), weight=np.full(60, 2.5), entry=np.zeros(60))
    assert [equal[m] for m in MEASURES] == pytest.approx([plain[m] for m in MEASURES], rel=1e-12)


def test_without_late_entry_everybody_has_entered():
    assert entry_distribution([1.0, 2.0], None)(0.0) == 1.0
    assert entry_distribution([1.0, 2.0], [0.0, 0.0]).left_limit(0.5) == 1.0


def test_the_entry_distribution_is_its_product_backwards():
    time, entry = np.array([3.0, 4.0, 5.0, 6.0]), np.array([0.0, 1.0, 2.0, 2.0])
    found = entry_distribution(time, entry)
    # at 2 two of four at risk enter; at 1 one of the two that are there
    np.testing.assert_allclose(found([0.5, 1.0, 1.5, 2.0, 9.0]), [0.25, 0.5, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(found.left_limit([1.0, 2.0]), [0.25, 0.5])


def test_an_entry_with_nobody_else_at_risk_is_left_out():
    time, entry = np.array([1.0, 4.0, 5.0, 6.0]), np.array([0.0, 2.0, 3.0, 3.0])
    # at 3 two of three enter; at 2 the one at risk enters itself
    np.testing.assert_allclose(entry_distribution(time, entry)([0.5, 2.0, 3.0]), [1 / 3, 1 / 3, 1.0])


def test_who_is_censored_at_entry_was_not_at_risk_then():
    """As where an event lies in an interval that begins at entry."""
    time, entry = np.array([3.0, 4.0, 5.0, 6.0]), np.array([0.0, 1.0, 2.0, 2.0])
    found = entry_distribution(np.append(time, [2.0, 2.0]), np.append(entry, [2.0, 2.0]))
    times = [0.5, 1.0, 1.5, 2.0, 9.0]
    np.testing.assert_allclose(found(times), entry_distribution(time, entry)(times))


def population(n=40_000, seed=0):
    """Times, entries and censorings of a population, and who of it is seen."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    time = rng.weibull(1.5, n) * np.exp(-0.7 * x)
    entry = np.where(rng.random(n) < 0.3, 0.0, rng.uniform(0, 1.2, n))
    censored = rng.exponential(3.0, n)
    seen = entry < np.minimum(time, censored)
    return x, time, entry, censored, seen


def test_weights_give_back_what_the_whole_population_would():
    """Seen are those who enter before their end; unweighted, the late and healthy are seen too often."""
    x, time, entry, censored, seen = population()
    end, event = np.minimum(time, censored), time <= censored
    grid = np.linspace(0.1, 1.5, 15)
    wrong = 0.6 * x  # a model whose curves are off, so that the Brier score has a bias to show
    survival = np.exp(-np.exp(wrong)[:, None] * grid)
    nobody = censoring_survival(time, np.ones(len(x), dtype=bool))
    truth = {
        "uno_c": uno_c(time, np.ones(len(x)), x, nobody, tau=1.5),
        "cd_auc": cumulative_dynamic_auc(time, np.ones(len(x)), x, grid, nobody)[1],
        "ibs": integrated_brier_score(time, np.ones(len(x)), survival, grid, nobody),
    }
    rows = (end[seen], event[seen])
    late = entry[seen]
    censoring = censoring_survival(*rows, entry=late)
    found = {
        "uno_c": uno_c(*rows, x[seen], censoring, tau=1.5, entry=late),
        "cd_auc": cumulative_dynamic_auc(*rows, x[seen], grid, censoring, entry=late)[1],
        "ibs": integrated_brier_score(*rows, survival[seen], grid, censoring, entry=late),
    }
    naive = {
        "uno_c": uno_c(*rows, x[seen], censoring, tau=1.5),
        "cd_auc": cumulative_dynamic_auc(*rows, x[seen], grid, censoring)[1],
        "ibs": integrated_brier_score(*rows, survival[seen], grid, censoring),
    }
    for measure, value in truth.items():
        assert found[measure] == pytest.approx(value, abs=0.008), measure
        assert abs(found[measure] - value) < 0.5 * abs(naive[measure] - value), measure


def test_the_brier_score_at_each_time_is_that_of_the_population():
    x, time, entry, censored, seen = population(seed=1)
    grid = np.array([0.2, 0.6, 1.2])
    survival = np.exp(-np.exp(0.6 * x)[:, None] * grid)
    nobody = censoring_survival(time, np.ones(len(x), dtype=bool))
    rows = np.minimum(time, censored)[seen], (time <= censored)[seen]
    censoring = censoring_survival(*rows, entry=entry[seen])
    np.testing.assert_allclose(
        brier_score(*rows, survival[seen], grid, censoring, entry=entry[seen]),
        brier_score(time, np.ones(len(x)), survival, grid, nobody),
        atol=0.01,
    )


def test_causes_are_measured_with_the_same_weights():
    """One cause alone: the measures by cause are those of events, but for where G is read at ties."""
    x, time, event = fold(5, 200)
    time = time + 1e-4 * np.arange(200)  # no ties
    weight, entry = np.random.default_rng(6).random(200), 0.4 * time * (x > 0)
    censoring, grid = censoring_survival(time, event, weight, entry), np.linspace(0.2, 1.5, 8)
    survival = np.exp(-np.exp(x)[:, None] * grid)
    at = {"weight": weight, "entry": entry}
    np.testing.assert_allclose(
        brier_score_incidence(time, event.astype(int), 1 - survival, grid, censoring, 1, **at),
        brier_score(time, event, survival, grid, censoring, **at),
        rtol=1e-10,
    )
    np.testing.assert_allclose(
        auc_incidence(time, event.astype(int), x, grid, censoring, 1, **at)[0],
        cumulative_dynamic_auc(time, event, x, grid, censoring, **at)[0],
        rtol=1e-10,
    )
