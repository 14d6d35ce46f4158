"""Studies whose workers ask for several trials at once: the same trials, measures and files as one by one."""

from __future__ import annotations

import contextlib

import optuna
import pytest

from softsurv.errors import InvalidParameterError, NumericalError
from softsurv.tune import StudyObjective, study
from softsurv.tune.batch import Batches

QUICK = {"n_trials": 6, "n_folds": 2, "n_jobs": 1, "refit": False, "sampler": "random"}
SPACE = {"leaf": "weibull", "depth": [0, 1], "solver": ["lbfgs", "nodec"], "init": "random", "n_restarts": [1, 2]}


def run(data, **options):
    return study(data, **(QUICK | {"space": SPACE} | options))


def by_number(result):
    return sorted(result.study.trials, key=lambda t: t.number)


def test_a_batch_gives_the_trials_of_one_by_one(data):
    alone, together = (by_number(run(data, batch=size)) for size in (1, 4))
    for a, b in zip(alone, together, strict=True):
        assert a.params == b.params
        assert b.values == pytest.approx(a.values, abs=2e-3)
        assert set(a.user_attrs["folds"]) == set(b.user_attrs["folds"])
    assert max(t.user_attrs["folds"]["together"] for t in together) > 2 * 2  # more than a trial's folds and starts
    assert all(t.user_attrs["folds"]["seconds"] > 0 for t in together)


def test_the_table_says_how_many_trees_trained_together(data):
    result = run(data, batch=6, n_trials=2, space=SPACE | {"depth": 1, "solver": "lbfgs", "n_restarts": 1})
    assert result.table()["together"].tolist() == [4, 4]  # two trials on two folds


def test_trees_of_rules_run_one_by_one(data):
    space = {"leaf": "weibull", "depth": 1, "max_terms": 1, "n_knots": 2}
    result = run(data, batch=2, n_trials=2, space=space)
    assert result.table()["together"].tolist() == [1, 1]


@pytest.mark.parametrize("batch", [1, 3])
def test_no_more_trials_than_asked_for(data, batch, tmp_path):
    seen = []
    result = run(data, batch=batch, n_trials=5, output=tmp_path, callbacks=[lambda s, t: seen.append(t.number)])
    assert sorted(seen) == [t.number for t in by_number(result)] == [0, 1, 2, 3, 4]
    first = [t.params for t in by_number(result)]
    again = run(data, batch=batch, n_trials=7, output=tmp_path)
    assert [t.params for t in by_number(again)][:5] == first
    assert len(again.study.trials) == 7
    assert all("worker" in t.user_attrs for t in again.study.trials)


def test_a_callback_stops_a_study_after_its_batch(data):
    result = run(data, batch=2, callbacks=[lambda study_, trial: study_.stop()])
    assert [t.state.name for t in result.study.trials] == ["COMPLETE", "COMPLETE"]


def test_a_failed_fit_is_the_failure_of_its_trial_alone(data, monkeypatch):
    whole = StudyObjective.model

    def model(self, parameters):
        made = whole(self, parameters)
        made.random_state = len(seeds)
        seeds.append(parameters)
        return made

    from softsurv.tune import objective

    seeds, fit = [], objective.cross_validate_many

    def fails(folds, recipes, machine):
        if any(recipe.seed == bad for recipe in recipes):
            raise NumericalError("left the finite numbers")
        return fit(folds, recipes, machine)

    goal = StudyObjective(data, space=SPACE | {"depth": 1}, n_folds=2)
    monkeypatch.setattr(StudyObjective, "model", model)
    monkeypatch.setattr(objective, "cross_validate_many", fails)
    study_ = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    bad, asked = 1, []
    goal_of_batches = Batches(goal, {"pid": 1}, 3, lambda s: len(s.trials) < 3, [lambda s, t: asked.append(t.number)])
    study_.optimize(goal_of_batches, n_trials=1, catch=(NumericalError,))
    assert [t.state.name for t in study_.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert "finite numbers" in study_.trials[1].user_attrs["error"]
    assert asked == [1, 2]


def test_an_interrupted_batch_leaves_trials_to_be_made_up_for(data, monkeypatch):
    def interrupted(self, trials):
        raise KeyboardInterrupt

    study_ = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.RandomSampler(0))
    goal = StudyObjective(data, measures=("harrell_c", "ibs"), space=SPACE, n_folds=2)
    monkeypatch.setattr(StudyObjective, "measure", interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        study_.optimize(Batches(goal, {"pid": 1}, 3, lambda s: len(s.trials) < 3, []), n_trials=1)
    assert [t.state.name for t in study_.trials] == ["FAIL"] * 3
    assert not any("error" in t.user_attrs for t in study_.trials)


def test_pruners_look_at_each_trial_of_a_batch(data):
    space = {"leaf": "weibull", "depth": 0, "l2": [1e-2, 1e4]}  # so strong a penalty leaves no ranking
    result = run(data, space=space, measures=("uno_c",), pruner="median", n_trials=16, n_folds=4, batch=4)
    pruned = [t for t in result.study.trials if t.state.name == "PRUNED"]
    assert pruned
    assert all(len(t.user_attrs["folds"]["uno_c"]) < 4 for t in pruned)


@pytest.mark.parametrize("batch", [0, -1, 1.5, True])
def test_a_batch_is_a_number_of_trials(data, batch):
    with pytest.raises(InvalidParameterError, match="batch must be an integer >= 1"):
        run(data, batch=batch)
