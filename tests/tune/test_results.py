"""What a study found, read from trials made by hand."""

from __future__ import annotations

import optuna
import pytest

from softsurv.errors import SoftsurvError
from softsurv.tune.results import StudyResult, best_trial, trial_table

MEASURES = ("harrell_c", "ibs")
FOLDS = [
    {"harrell_c": [0.6, 0.7], "ibs": [0.2, 0.2]},
    {"harrell_c": [0.8, 0.9], "ibs": [0.3, 0.3]},
    {"harrell_c": [0.5, 0.5], "ibs": [0.3, 0.3]},
]
"""By trial: the second is best by the first measure, the first by the second one, the last by none."""


@pytest.fixture
def found():
    study = optuna.create_study(directions=["maximize", "minimize"])
    for folds in FOLDS:
        values = [sum(folds[name]) / 2 for name in MEASURES]
        study.add_trial(optuna.trial.create_trial(values=values, user_attrs={"folds": folds}))
    return study


def test_the_best_of_the_front_is_the_best_by_the_first_measure(found):
    assert [trial.number for trial in found.best_trials] == [0, 1]
    assert best_trial(found).number == 1


def test_the_table_is_best_first_with_standard_errors(found):
    table = trial_table(found, MEASURES)
    assert table["trial"].tolist() == [1, 0, 2]
    assert table["harrell_c"].tolist() == pytest.approx([0.85, 0.65, 0.5])
    assert table["harrell_c_se"].tolist() == pytest.approx([0.05, 0.05, 0.0])


def test_the_penalty_of_fairness_is_not_its_measure():
    """Both are called fairness: the table showed the penalty, and put the largest one last."""
    study = optuna.create_study()
    span = optuna.distributions.FloatDistribution(1.0, 100.0)
    for gap, penalty in ((0.2, 1.0), (0.1, 90.0)):
        folds, params = {"fairness": [gap, gap]}, {"fairness": penalty}
        study.add_trial(
            optuna.trial.create_trial(
                value=gap, params=params, distributions={"fairness": span}, user_attrs={"folds": folds}
            )
        )
    table = trial_table(study, ("fairness",))
    assert table["fairness"].tolist() == [0.1, 0.2]
    assert table["fairness (parameter)"].tolist() == [90.0, 1.0]


def test_the_best_stands_beside_the_default(found):
    default = {"harrell_c": [0.7, 0.7], "ibs": [0.25, 0.35]}
    told = StudyResult(found, MEASURES, {}, default=default).against_default()
    assert told.loc["harrell_c", "difference"] == pytest.approx(0.15)
    assert told.loc["ibs", "se"] == pytest.approx(0.05)


def test_a_study_without_a_completed_trial_says_why():
    study = optuna.create_study()
    failed = optuna.trial.TrialState.FAIL
    study.add_trial(optuna.trial.create_trial(state=failed, user_attrs={"error": "no room"}))
    with pytest.raises(SoftsurvError, match="no room"):
        best_trial(study)
