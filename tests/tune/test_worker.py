"""One worker of a study: the plan as values, which trials count, and when it stops. Losses are in test_lost_workers."""

from __future__ import annotations

import errno
import json
import os
import warnings
from dataclasses import replace
from types import SimpleNamespace

import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from softsurv.tune.worker import StudyPlan, count_done, count_taken, quiet_optuna, work


class Goal(SimpleNamespace):
    """As much of a study's objective as a worker calls: one number, whose trial is worth its square."""

    def __call__(self, trial):
        return trial.suggest_float("x", -1, 1) ** 2


def plan_of(**changes):
    goal = Goal(
        estimator="soft", measures=("ibs",), directions=["minimize"], interest=None, n_folds=2, device="cpu",
        data=SimpleNamespace(fingerprint=lambda: "abc"), space={"depth": 1, "l2": [0.1, 1.0]},
    )  # fmt: skip
    plain = {
        "objective": goal, "n_trials": 4, "storage": None, "output": None, "name": "s", "seed": 3, "sampler": "random",
        "pruner": "none", "callbacks": (), "time_limit": None,
    }  # fmt: skip
    return StudyPlan(**(plain | changes))


def test_a_worker_runs_until_the_study_has_its_trials():
    plan = plan_of()
    study = plan.open(InMemoryStorage())
    work(plan, study)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 4
    assert all("worker" in t.user_attrs for t in study.trials)
    work(plan, study)
    assert len(study.trials) == 4  # nothing left to do
    work(replace(plan, n_trials=6), study)
    assert len(study.trials) == 6


def test_no_time_is_no_trial_and_a_callback_stops():
    plan = plan_of(time_limit=0.0)
    study = plan.open(InMemoryStorage())
    work(plan, study)
    assert len(study.trials) <= 1
    stopping = plan_of(callbacks=(lambda study, trial: study.stop(),))
    study = stopping.open(InMemoryStorage())
    work(stopping, study)
    assert len(study.trials) == 1


def test_a_result_that_the_disk_does_not_take_is_told_as_such(monkeypatch):
    def full(self, trial_id, state, values=None):
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = plan_of()
    study = plan.open(InMemoryStorage())
    monkeypatch.setattr(InMemoryStorage, "set_trial_state_values", full)
    with pytest.raises(OSError, match="No space left"):
        work(plan, study)


def test_a_worker_takes_no_further_trial_where_its_parent_was_killed(monkeypatch):
    """Workers went on to the last trial of the study; a parent that never was one is not missed."""
    alive, plan = os.getppid(), plan_of(n_trials=4)

    def end_parent(study, trial):
        monkeypatch.setattr(os, "getppid", lambda: 1 if trial.number >= 1 else alive)

    for parent, n_run in ((alive, 2), (None, 4), (os.getpid(), 4)):
        monkeypatch.setattr(os, "getppid", lambda: alive)
        of_parent = replace(plan, parent=parent, callbacks=(end_parent,))
        study = of_parent.open(InMemoryStorage())
        work(of_parent, study)
        assert len(study.trials) == n_run


def test_a_progress_line_tells_the_best_value_of_each_measure(capsys):
    plan = plan_of()
    study = plan.open(InMemoryStorage())
    work(plan, study, progress=True)
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert f"best {study.best_value:.4f}" in shown


def test_trials_that_failed_by_themselves_are_done_and_lost_ones_are_not():
    study = optuna.create_study()
    own, lost, running, pruned = (study.ask() for _ in range(4))
    own.set_user_attr("error", "singular")
    for trial in (own, lost):
        study.tell(trial, state=TrialState.FAIL)
    study.tell(pruned, state=TrialState.PRUNED)
    study.tell(study.ask(), 1.0)
    assert count_done(study) == 3
    assert count_taken(study) == 4
    assert running.number == 2


def test_the_identity_of_a_study_is_what_its_numbers_depend_on():
    plan = plan_of()
    same = plan_of(n_trials=99, time_limit=3.0, sampler="tpe", name="other")
    assert plan.identity() == same.identity()
    changed = [plan_of(seed=4), *(
        plan_of(objective=Goal(**(vars(plan.objective) | changes)))
        for changes in (
            {"n_folds": 3}, {"measures": ("uno_c",)}, {"interest": "death"}, {"estimator": "optimal"},
            {"data": SimpleNamespace(fingerprint=lambda: "abd")},
        )
    )]  # fmt: skip
    identities = [json.dumps(one.identity(), sort_keys=True) for one in [plan, *changed]]
    assert len(set(identities)) == 7


def test_the_record_of_a_plan_is_json():
    plan = plan_of(
        storage=InMemoryStorage(), sampler=optuna.samplers.RandomSampler(0), pruner=optuna.pruners.NopPruner()
    )
    config = json.loads(json.dumps(plan.config()))
    assert config["storage"] is None
    assert config["pruner"] == "NopPruner"
    assert config["space"]["depth"] == 1
    assert "l2" in config["space"]
    assert plan_of(storage="sqlite:///a.db").config()["storage"] == "sqlite:///a.db"


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_plan_of_one_of_several_workers_leaves_the_first_alone(device):
    plan = plan_of()
    plan.objective.device = device
    other = plan.of_worker(1)
    assert (plan.parent, other.parent) == (None, os.getpid())
    assert other.objective is not plan.objective
    assert (plan.objective.device, other.objective.device) == (device, device)  # a named device is kept
    assert other.n_trials == plan.n_trials


def test_optuna_is_quiet_and_has_its_voice_back():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        with quiet_optuna():
            assert optuna.logging.get_verbosity() == optuna.logging.ERROR
            warnings.warn("fail_stale_trials is experimental", optuna.exceptions.ExperimentalWarning, stacklevel=1)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
