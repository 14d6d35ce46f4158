"""Measures by cause and of subjects with several rows: their parts, and what cannot be measured."""

import numpy as np
import pytest

from softsurv.errors import EvaluationWarning, NoComparablePairsError
from softsurv.metrics import auc_incidence, cause_specific_concordance, harrell_c, integrated_brier_score_incidence
from softsurv.metrics.histories import ends_at_risk, evaluate_causes, evaluate_histories
from softsurv.nonparametric import censoring_survival

GRID = np.array([1.0, 2.0, 4.0])


class Fold:
    """Eighty rows of two causes with ties, late entries and weights; x is the risk of cause 1."""

    def __init__(self):
        rng = np.random.default_rng(2)
        self.x = np.round(rng.random(80), 1)
        self.time = np.ceil(rng.exponential(12.0, 80)) / 4
        self.cause = np.where(rng.random(80) < 0.3, 0, np.where(rng.random(80) < self.x, 1, 2))
        self.entry = np.where(rng.random(80) < 0.3, self.time / 2, 0.0)
        self.weight = rng.integers(1, 4, 80).astype(float)
        self.censoring = censoring_survival(self.time, self.cause > 0)

    def incidence(self, times, code):
        share = self.x if code == 1 else 1 - self.x
        return 0.2 * np.outer(share, np.sqrt(times))

    def log_hazard(self, times):
        return np.add.outer(self.x, np.log(times))


@pytest.fixture(scope="module")
def fold():
    return Fold()


def test_each_cause_has_the_measures_of_its_name(fold):
    ties = {"tied_event_times": "count", "tied_censoring": "count"}
    extra = {"entry": fold.entry}
    found = evaluate_causes(
        fold.censoring, fold.time, fold.cause, fold.incidence, ("relapse", "death"), GRID, scale="log", **extra, **ties
    )
    assert list(found) == ["relapse", "death"]
    for code, own in enumerate(found.values(), start=1):
        fixed = fold.time, fold.cause, fold.incidence(GRID, code), GRID, fold.censoring, code
        assert own["events"] == (fold.cause == code).sum()
        assert own["auc"] == auc_incidence(*fixed, **extra)[1]
        assert own["ibs"] == integrated_brier_score_incidence(*fixed, "log", **extra)
        risk = lambda t, code=code: fold.incidence(t, code)  # noqa: E731
        expected = cause_specific_concordance(fold.time, fold.cause, risk, code, **extra, **ties)
        assert own["concordance"] == expected


def test_a_weight_is_a_number_of_copies(fold):
    again = np.repeat(np.arange(80), fold.weight.astype(int))
    weighted, repeated = (
        evaluate_causes(
            fold.censoring,
            fold.time[rows],
            fold.cause[rows],
            lambda t, code, rows=rows: fold.incidence(t, code)[rows],
            ("relapse", "death"),
            GRID,
            weight=weight,
        )
        for rows, weight in ((np.arange(80), fold.weight), (again, None))
    )
    for name, own in weighted.items():
        assert own["events"] == (fold.cause == 1 + (name == "death")).sum()
        for measure in ("concordance", "auc", "ibs"):
            assert own[measure] == pytest.approx(repeated[name][measure], abs=1e-12)


def test_a_cause_after_the_grid_has_no_auc_and_one_without_events_no_concordance(fold):
    grid = np.array([0.1, 0.2])  # before the first event
    late, none = evaluate_causes(
        fold.censoring, fold.time, np.minimum(fold.cause, 1), fold.incidence, ("all", "none"), grid
    ).values()
    assert late["auc"] is None
    assert late["concordance"] > 0
    assert (none["auc"], none["concordance"], none["events"]) == (None, None, 0)


def test_subjects_of_one_row_have_the_concordance_of_rows(fold):
    extra = {"entry": fold.entry, "weight": fold.weight}
    with pytest.warns(EvaluationWarning, match="need one row for each subject"):
        found = evaluate_histories(fold.time, fold.cause > 0, fold.log_hazard, np.arange(80), **extra)
    assert found["harrell_c"] == harrell_c(fold.time, fold.cause > 0, fold.log_hazard, **extra)
    assert [found[name] for name in ("uno_c", "cd_auc", "ibs")] == [None] * 3
    assert (found["n"], found["subjects"], found["events"]) == (80, 80, (fold.cause > 0).sum())
    ends = fold.time[fold.cause > 0]
    assert found["range"] == (ends.min(), ends.max())
    assert "causes" not in found


def test_causes_of_histories_are_told_by_name(fold):
    given = {"cause": fold.cause, "incidence": fold.incidence, "names": ("relapse", "none", "of these")}
    with pytest.warns(EvaluationWarning):
        found = evaluate_histories(
            fold.time, fold.cause > 0, fold.log_hazard, np.arange(80), **(given | {"cause": np.minimum(fold.cause, 1)})
        )["causes"]
    one = np.minimum(fold.cause, 1)
    expected = cause_specific_concordance(fold.time, one, lambda t: fold.incidence(t, 1), 1)
    assert found["relapse"] == {"concordance": expected, "auc": None, "ibs": None, "events": (one == 1).sum()}
    assert found["none"] == {"concordance": None, "auc": None, "ibs": None, "events": 0}


def test_one_subject_has_nobody_to_be_compared_with():
    with pytest.raises(NoComparablePairsError), pytest.warns(EvaluationWarning):
        evaluate_histories([1.0, 2.0], [False, True], lambda t: np.zeros((2, t.size)), ["a", "a"], entry=[0.0, 1.0])


def test_a_row_that_goes_on_is_still_at_risk_at_its_end():
    time, event = np.array([2.0, 5.0, 2.0, 5.0, 7.0]), [False, False, True, False, False]
    subject, entry = ["b", "b", "a", "a", "c"], [0.0, 2.0, 0.0, 2.0, 0.0]
    ends = ends_at_risk(time, event, subject, entry)
    assert ends.tolist() == [np.nextafter(2.0, 3.0), 5.0, 2.0, 5.0, 7.0]  # the event of "a" happened at 2
    gap = ends_at_risk(np.array([2.0, 5.0]), [False, False], ["b", "b"], [0.0, 3.0])
    assert gap.tolist() == [2.0, 5.0]
    order = [1, 3, 4, 2, 0]
    shuffled = ends_at_risk(
        time[order], np.array(event)[order], np.array(subject)[order], np.array(entry)[order]
    )  # the order of rows does not matter
    assert shuffled.tolist() == ends[order].tolist()
    assert time[0] == 2.0
    assert ends_at_risk(time[:1], [False], ["b"], None).tolist() == [2.0]
