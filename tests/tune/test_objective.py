"""The objective of a study against estimators fitted one by one, and its pruning."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from softsurv import SoftSurvivalTree, SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.metrics import curve_gap
from softsurv.soft.cross_validation import folds_of_content
from softsurv.tune import StudyObjective, soft_setting
from softsurv.tune.objective import rungs

optuna.logging.set_verbosity(optuna.logging.WARNING)


def one_by_one(model, data, n_folds, seed):
    """Slow twin: the estimator fitted and evaluated on every fold."""
    parts = folds_of_content(data, n_folds, seed)
    return [model.fit(data.take(train)).evaluate(data.take(test)) for train, test in parts]


@pytest.mark.parametrize(
    "arguments",
    [
        {"depth": 0, "l2": 1.0, "leaf": "spline_po"},
        {"depth": 1, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0, "leaf": "weibull"},
        {"depth": 2, "l2": 1.0, "shrinkage": 30.0, "routing_l2": 1.0, "leaf": "weibull", "n_restarts": 2},
    ],
)
def test_folds_as_one_stack_equal_folds_one_by_one(data, arguments):
    model = SoftSurvivalTree(max_iter=400, **arguments)
    goal = StudyObjective(data, n_folds=3)
    together = goal.cross_validate(model)
    for ours, alone in zip(together, one_by_one(model, data, 3, 0), strict=True):
        assert ours["n"] == alone["n"]
        assert ours["range"] == alone["range"]
        # both stop within the optimiser's tolerance of one optimum, not at one point
        assert ours["ibs"] == pytest.approx(alone["ibs"], abs=2e-4)
        assert ours["harrell_c"] == pytest.approx(alone["harrell_c"], abs=0.01)


def test_the_objective_is_the_mean_over_folds(data, quick_space):
    goal = StudyObjective(data, measures=("harrell_c", "ibs"), space=quick_space, n_folds=3)
    trial = optuna.create_study(directions=goal.directions, sampler=optuna.samplers.RandomSampler(0)).ask()
    values = goal(trial)
    folds = trial.user_attrs["folds"]
    assert values == pytest.approx([np.mean(folds["harrell_c"]), np.mean(folds["ibs"])])
    assert len(folds["uno_c"]) == 3


def test_settings_that_cannot_share_a_stack_run_fold_by_fold(data):
    model = SoftSurvivalTree(depth=1, l2=1.0, shrinkage=1.0, routing_l2=1.0, n_restarts=1, time_limit=60.0)
    assert soft_setting(model) is None
    results = StudyObjective(data, n_folds=2).cross_validate(model)
    assert [r["n"] for r in results] == [60, 60]


def test_fairness_is_measured_and_searched(grouped):
    data = grouped
    space = {"leaf": "weibull", "depth": 1, "solver": "lbfgs", "init": "random", "n_restarts": 1}
    goal = StudyObjective(data, measures=("harrell_c", "ibs", "fairness"), space=space, n_folds=2)
    trial = optuna.create_study(directions=goal.directions, sampler=optuna.samplers.RandomSampler(0)).ask()
    values = goal(trial)
    assert 0 <= values[2] < 1
    assert trial.params["fairness"] > 0
    model = goal.model(trial.params | {k: v for k, v in space.items() if k != "fairness"})
    train, test = (data.take(rows) for rows in folds_of_content(data, 2, 0)[0])
    fitted = model.fit(train)
    result = fitted.evaluate(test)
    times = np.linspace(*result["range"], 100)
    gap = curve_gap(fitted.predict_survival_function(test.X, times), times, test.group.numpy() == 1).mean
    assert trial.user_attrs["folds"]["fairness"][0] == pytest.approx(gap, abs=2e-3)


def test_fairness_needs_two_groups(data):
    with pytest.raises(InvalidSurvivalDataError, match="two groups"):
        StudyObjective(data, measures=("fairness",))


def test_rungs_cover_the_folds_and_double():
    for n in range(1, 12):
        parts = [list(range(n))[part] for part in rungs(n)]
        assert [k for part in parts for k in part] == list(range(n))
        assert len(parts[0]) == 1
    assert [part.stop for part in rungs(10)] == [1, 2, 4, 8, 10]


class PruneAt(optuna.pruners.BasePruner):
    """Prunes once a trial has reported so many folds."""

    def __init__(self, step):
        self.step = step

    def prune(self, study, trial):
        return trial.last_step >= self.step


def test_a_pruned_trial_trains_no_further_folds(data, quick_space):
    goal = StudyObjective(data, space=quick_space, n_folds=5)
    study = optuna.create_study(direction="maximize", pruner=PruneAt(2))
    study.optimize(goal, n_trials=1)
    (trial,) = study.trials
    assert trial.state.name == "PRUNED"
    assert len(trial.user_attrs["folds"]["harrell_c"]) == 2
    assert list(trial.intermediate_values) == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": "forest"}, "estimator must be one of"),
        ({"measures": ("accuracy",)}, "measures must be of"),
        ({"measures": ()}, "one or more"),
        ({"space": {"dept": [1, 2]}}, "'dept'"),
        ({"space": ["depth"]}, r"space must be a mapping of arguments to values, got \['depth'\]"),
        ({"n_folds": 1}, "n_folds must be an integer >= 2, got 1"),
    ],
)
def test_bad_arguments_are_refused_before_the_first_trial(data, arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        StudyObjective(data, **arguments)


def test_a_pair_of_numbers_is_no_range(data):
    with pytest.raises(InvalidParameterError, match=r"l2 in space must be .* write Range\(0\.1, 10\.0\)"):
        StudyObjective(data, space={"l2": (0.1, 10.0)})


def test_a_study_of_optimal_trees_takes_late_entry(data):
    """Of the two objectives only the relative risk knows it."""
    late = SurvivalData(data.X, data.time, data.event, entry=0.5 * data.time)
    assert StudyObjective(late, "optimal").space["objective"] == "relative_risk"
    assert StudyObjective(late, "optimal", space={"objective": "ibs"}).space["objective"] == "ibs"  # its fit says no
    assert StudyObjective(data, "optimal").space["objective"] != "relative_risk"
