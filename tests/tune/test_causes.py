"""Studies of competing causes: whose measures count, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import optuna
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.soft.one_pass import operators_alone
from softsurv.tune import StudyObjective, study

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = {"max_depth": [1, 2], "min_samples_leaf": 5, "max_leaves": 4, "complexity": 0.0}


@pytest.fixture(scope="module")
def data() -> SurvivalData:
    """The seal fails by x1, the motor, which is far more frequent, by x2."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)).round(1)
    seal, motor = rng.exponential(4 * np.exp(-2 * (x[:, 0] > 0))), rng.exponential(np.exp(-2 * (x[:, 1] > 0)))
    end = rng.uniform(0.2, 4, 300)
    time = np.minimum(np.minimum(seal, motor), end) + 1e-3
    cause = np.select([end <= np.minimum(seal, motor), seal < motor], ["", "seal"], "motor")
    return survival_data({f"x{k}": x[:, k - 1] for k in (1, 2, 3)}, time=time, cause=cause)


def by_hand(goal, model, fold):
    train, test = (goal.data.take(rows) for rows in goal._rows[fold])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train).evaluate(test)["causes"]


def test_the_measures_are_those_of_the_cause_of_interest(data):
    names = ("harrell_c", "cd_auc", "ibs")
    goals = [StudyObjective(data, "optimal", measures=names, n_folds=3, interest=one) for one in ("seal", 2, None)]
    model = OptimalSurvivalTree(max_depth=2, min_samples_leaf=5)
    seal, code, both = (goal.cross_validate(model)[0] for goal in goals)
    known = by_hand(goals[0], model, 0)
    own = {"harrell_c": "concordance", "cd_auc": "auc", "ibs": "ibs"}
    for name in names:
        assert seal[name] == code[name] == known["seal"][own[name]]
        assert both[name] == pytest.approx(np.mean([known[cause][own[name]] for cause in known]))
    assert known["seal"]["concordance"] != known["motor"]["concordance"]


def test_a_study_for_a_rare_cause_tries_trees_of_it_alone(data):
    how = {"n_folds": 3, "n_trials": 6, "space": SPACE, "measures": ("ibs",), "compare_default": False}
    found = study(data, estimator="optimal", interest="seal", **how)
    assert {trial.params["cause_weights"] for trial in found.study.trials} == {None, "seal"}
    assert "x1" in found.model.export_text()


def test_a_fold_without_the_cause_is_left_out(data):
    rare = np.where(data.cause == 1, 2, 0)  # the seals alone
    at = np.flatnonzero(data.cause.numpy() == 2)[:1]
    rare[at] = 1
    table = survival_data(data.X, time=data.time, cause=rare, cause_names=["motor", "seal"])
    goal = StudyObjective(table, "optimal", measures="harrell_c", space=SPACE, n_folds=3, interest="motor")
    folds = goal.cross_validate(OptimalSurvivalTree(max_depth=1, min_samples_leaf=5))
    known = [fold["harrell_c"] for fold in folds if fold["harrell_c"] is not None]
    assert 1 <= len(known) < 3
    trial = optuna.create_study(directions=goal.directions, pruner=optuna.pruners.NopPruner()).ask()
    assert goal(trial) == pytest.approx(np.mean([v for v in trial.user_attrs["folds"]["harrell_c"] if v is not None]))


def test_what_cannot_be_measured_is_refused(data):
    with pytest.raises(InvalidParameterError, match="measures by cause are harrell_c, cd_auc and ibs, got 'uno_c'"):
        StudyObjective(data, measures=("uno_c",))
    with pytest.raises(InvalidSurvivalDataError, match="cause must be a code from 1 to 2 or one of the names"):
        StudyObjective(data, interest="pipe")
    with pytest.raises(InvalidParameterError, match="interest names one of several causes, got 'seal'"):
        StudyObjective(data.of_cause("seal"), interest="seal")


def test_a_study_of_another_cause_is_another_study(data, tmp_path):
    how = {"n_folds": 2, "n_trials": 1, "space": SPACE, "output": tmp_path, "refit": False}
    study(data, estimator="optimal", interest="seal", **how)
    with pytest.raises(InvalidParameterError, match="has interest 'seal', got 'motor'"):
        study(data, estimator="optimal", interest="motor", **how)


@pytest.mark.parametrize("interest", [None, "seal"])
def test_a_device_measures_causes_as_the_host_does(data, interest):
    """By operators, of two trials as one stack: trained to the end, trees are those of a CPU up to rounding."""
    names = ("harrell_c", "cd_auc", "ibs")
    dense = {"max_terms": None, "leaf": "weibull", "depth": 1, "l2": 1.0, "routing_l2": 1.0, "init": "random"}
    models = [SoftSurvivalTree(**dense, shrinkage=s, n_restarts=1, max_iter=8, device="cpu") for s in (3.0, 30.0)]
    goals = [StudyObjective(data, measures=names, n_folds=3, interest=interest, device="cpu") for _ in range(2)]
    expected = goals[0].cross_validate_many(models)
    with operators_alone():
        found = goals[1].cross_validate_many(models)
        (first,) = goals[1].cross_validate_many(models[:1], slice(1, 2))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.together == theirs.together
        for one, other in zip(ours.folds, theirs.folds, strict=True):
            assert one.keys() == other.keys()
            assert one["uno_c"] is None
            assert [one[name] for name in names] == pytest.approx([other[name] for name in names], rel=1e-6)
    assert [first.folds[0][name] for name in names] == pytest.approx([found[0].folds[1][name] for name in names])
