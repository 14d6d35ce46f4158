"""Studies in one process: results, files, resumption, seeds, pruners, refusals."""

from __future__ import annotations

import json
import os
import signal
from importlib import import_module

import joblib
import numpy as np
import optuna
import pytest
import torch

from softsurv import SoftSurvivalTree, load_model, stopping
from softsurv.errors import InvalidParameterError, NumericalError, SoftsurvError
from softsurv.run_record import read_run
from softsurv.soft.cross_validation import folds_of_content
from softsurv.tune import Range, StudyObjective, study

QUICK = {"n_trials": 4, "n_folds": 2, "n_jobs": 1, "compare_default": False}


def quick(data, quick_space, **options):
    return study(data, **(QUICK | {"space": quick_space} | options))


def trials_of(result):
    return [(t.params, t.values) for t in result.study.trials]


def test_the_best_model_is_refitted_and_everything_is_written(data, quick_space, tmp_path):
    result = quick(data, quick_space, output=tmp_path)
    assert {t.state.name for t in result.study.trials} == {"COMPLETE"}
    best = max(t.values[0] for t in result.study.best_trials)
    assert result.best.values[0] == best
    expected = SoftSurvivalTree(random_state=0, **result.parameters).fit(data)
    assert result.model.report_.objective == pytest.approx(expected.report_.objective)
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(data.X) == pytest.approx(result.model.predict(data.X))
    record = read_run(tmp_path / "model", "tune")
    assert record["data"]["fingerprint"] == data.fingerprint()
    assert record["metrics"] == dict(zip(("harrell_c", "ibs"), result.best.values, strict=True))
    assert json.loads(json.dumps(record["config"]))["space"]["depth"] == {"values": [0, 1]}
    table = result.table()
    assert table["harrell_c"].is_monotonic_decreasing
    assert table.loc[0, "trial"] == result.best.number
    assert (tmp_path / "trials.csv").read_text().count("\n") == 5
    assert "4 complete" in result.summary()


def test_tables_are_read_as_in_fit(data, quick_space):
    table = data.X.assign(t=data.time.numpy(), died=data.event.numpy())
    expected = trials_of(quick(data, quick_space, refit=False))
    assert trials_of(quick(table, quick_space, refit=False, time="t", event="died")) == expected
    assert trials_of(quick((data.X, data.y), quick_space, refit=False)) == expected
    how = QUICK | {"space": quick_space, "refit": False}
    assert trials_of(study(data.X, data.y, **how)) == expected
    assert trials_of(study(table, ("died", "t"), **how)) == expected


def test_weights_have_the_name_of_fit(data, quick_space):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, data.n)
    how = QUICK | {"space": quick_space, "refit": False, "n_trials": 2}
    found = [trials_of(study(data.X, data.y, **how, **{name: weight})) for name in ("sample_weight", "weight")]
    assert found[0] == found[1]
    assert found[0] != trials_of(study(data.X, data.y, **how))
    with pytest.raises(InvalidParameterError, match="weight and sample_weight say the same, got both"):
        study(data.X, data.y, sample_weight=weight, weight=weight)


def test_the_best_is_compared_with_the_default_on_the_same_folds(data, quick_space, tmp_path):
    options = {"n_trials": 2, "compare_default": True, "output": tmp_path}
    result = quick(data, quick_space, **options)
    parts = folds_of_content(data, 2, 0)
    default = [SoftSurvivalTree().fit(data.take(a)).evaluate(data.take(b)) for a, b in parts]
    assert result.default["harrell_c"] == pytest.approx([one["harrell_c"] for one in default])
    told = result.against_default().loc["harrell_c"]
    assert told["difference"] == pytest.approx(result.best.values[0] - told["default"])
    assert "default arguments on the same folds: harrell_c" in result.summary()
    assert quick(data, quick_space, **options).default == result.default


def test_no_further_fold_of_the_default_is_begun_when_the_time_is_up(data, quick_space, tmp_path, monkeypatch):
    """It took minutes beyond a limit of seconds."""
    options, now, parts = {"n_trials": 1, "compare_default": True, "output": tmp_path}, [0.0], []
    quick(data, quick_space, **(options | {"compare_default": False}))
    whole = StudyObjective.cross_validate

    def slow(goal, model, part=slice(None)):
        parts.append(part)
        now[0] += 60.0
        return whole(goal, model, part)

    monkeypatch.setattr(StudyObjective, "cross_validate", slow)
    with monkeypatch.context() as patch:
        patch.setattr(stopping.time, "monotonic", lambda: now[0])
        late = quick(data, quick_space, **options, time_limit=50.0)
        assert (late.default, late.default_is_due, parts) == (None, True, [slice(0, 1)])
        assert "not measured, the time was up; the same call with more time" in late.summary()
        enough = quick(data, quick_space, **options, time_limit=130.0)
    assert not enough.default_is_due
    parts = folds_of_content(data, 2, 0)
    default = [SoftSurvivalTree().fit(data.take(a)).evaluate(data.take(b)) for a, b in parts]
    assert enough.default["harrell_c"] == pytest.approx([one["harrell_c"] for one in default])


def test_a_study_without_time_says_what_to_give(data, quick_space):
    with pytest.raises(SoftsurvError, match=r"no completed trial \(none was begun\); allow more trials or time"):
        quick(data, quick_space, time_limit=0.0)


def test_a_progress_line_is_shown_on_a_terminal(data, quick_space, monkeypatch, capsys):
    quick(data, quick_space, n_trials=1, refit=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    quick(data, quick_space, n_trials=1, refit=False)
    assert "1/1" in capsys.readouterr().err


def test_the_same_call_resumes_and_repeats_nothing(data, quick_space, tmp_path):
    first = trials_of(quick(data, quick_space, output=tmp_path, n_trials=3, refit=False))
    journal = (tmp_path / "study.journal").read_bytes()
    again = quick(data, quick_space, output=tmp_path, n_trials=3, refit=False)
    assert trials_of(again) == first
    assert (tmp_path / "study.journal").read_bytes().startswith(journal)
    more = quick(data, quick_space, output=tmp_path, n_trials=5, refit=False)
    assert trials_of(more)[:3] == first
    assert len(more.study.trials) == 5


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_resumed_study_equals_one_without_a_stop(data, quick_space, tmp_path, sampler):
    whole = quick(data, quick_space, n_trials=12, sampler=sampler, refit=False)
    quick(data, quick_space, n_trials=11, sampler=sampler, output=tmp_path, refit=False)
    resumed = quick(data, quick_space, n_trials=12, sampler=sampler, output=tmp_path, refit=False)
    assert [t.params for t in resumed.study.trials] == [t.params for t in whole.study.trials]


def test_seeds_matter(data, quick_space):
    a, b = (quick(data, quick_space, seed=seed, refit=False) for seed in (0, 1))
    assert [t.params for t in a.study.trials] != [t.params for t in b.study.trials]


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_pruners_stop_bad_trials(data, pruner):
    space = {"leaf": "weibull", "depth": 0, "l2": [1e-2, 1e4]}  # so strong a penalty leaves no ranking
    result = quick(data, space, measures=("uno_c",), pruner=pruner, n_trials=16, n_folds=4, refit=False)
    pruned = [t for t in result.study.trials if t.state.name == "PRUNED"]
    assert pruned
    assert all(len(t.user_attrs["folds"]["uno_c"]) < 4 for t in pruned)
    assert result.best.state.name == "COMPLETE"


def test_callbacks_may_stop_a_study(data, quick_space):
    seen = []

    def stop(study_, trial):
        seen.append(trial.number)
        study_.stop()

    result = quick(data, quick_space, callbacks=[stop], refit=False)
    assert seen == [0]
    assert len(result.study.trials) == 1


def test_several_measures_give_a_pareto_front(data, quick_space):
    result = quick(data, quick_space, n_trials=8, refit=False)
    front = [t.values for t in result.study.best_trials]
    assert all(not (a[0] > b[0] and a[1] < b[1]) for a in front for b in front)


def test_a_numerical_failure_is_one_failed_trial(data, quick_space, monkeypatch):
    measured = StudyObjective.__call__

    def fails_once(self, trial):
        if trial.number == 1:
            raise NumericalError("left the finite numbers")
        return measured(self, trial)

    monkeypatch.setattr(StudyObjective, "__call__", fails_once)
    result = quick(data, quick_space, refit=False)
    assert [t.state.name for t in result.study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert "finite numbers" in result.table().set_index("trial").loc[1, "error"]


def test_no_completed_trial_is_an_error_that_says_why(data, quick_space, monkeypatch):
    def fails(self, trial):
        raise NumericalError("left the finite numbers")

    monkeypatch.setattr(StudyObjective, "__call__", fails)
    with pytest.raises(SoftsurvError, match=r"no completed trial .*finite numbers"):
        quick(data, quick_space, n_trials=2)


def test_a_progress_line(data, quick_space, capsys):
    quick(data, quick_space, progress=True, refit=False)
    err = capsys.readouterr().err
    assert "4/4" in err
    assert "best" in err


def test_an_optimal_tree_is_searched_too(data):
    pytest.importorskip("softsurv.estimators.optimal.tree")
    space = {"objective": "relative_risk", "max_depth": [1, 2], "thresholds": 5, "max_leaves": None}
    result = quick(data, {**space, "min_samples_leaf": 5, "complexity": 0.0}, estimator="optimal", n_trials=2)
    assert 0.4 < result.best.values[0] <= 1
    assert result.model.predict(data.X).shape == (data.n,)


def test_a_study_measures_what_it_refits(data):
    space = {"depth": 0, "l1": 0.5, "leaf": "weibull", "l2": 1.0, "max_terms": None}
    result = quick(data, space, n_trials=1, refit=False)
    folds = StudyObjective(data, n_folds=2).cross_validate(SoftSurvivalTree(random_state=0, **result.parameters))
    assert result.best.user_attrs["folds"]["harrell_c"] == pytest.approx([fold["harrell_c"] for fold in folds])
    assert result.best.values[1] == pytest.approx(sum(fold["ibs"] for fold in folds) / 2)


def test_rules_are_searched_where_fairness_is_measured(grouped):
    space = {"max_terms": 2, "depth": 1, "leaf": "weibull"}
    result = quick(grouped, space, n_trials=1, measures=("harrell_c", "fairness"), refit=False)
    assert result.parameters["max_terms"] == 2
    assert "init" not in result.parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"time_limit": "x"}, "time_limit must be a finite number of seconds >= 0, got 'x'"),
        ({"n_trials": 0}, "n_trials must be"),
        ({"pruner": "median"}, "one measure"),
        ({"pruner": "best"}, "pruner must be"),
        ({"sampler": "cma"}, "sampler must be"),
        ({"n_jobs": 2}, "n_jobs must be 1"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
        ({"callbacks": 3}, "callbacks must be a list of functions, got 3"),
        ({"callbacks": [3]}, r"callbacks must be a list of functions, got \[3\]"),
        ({"storage": "study.sqlite3"}, "sqlite:///study.sqlite3"),
    ],
)
def test_bad_options(data, quick_space, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        quick(data, quick_space, **options)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, "optimal"), "y must be the outcome, got 'optimal'; name the estimator: estimator='optimal'"),
        (((0, 1), 2), r"data must be a pair \(X, y\) with the outcome in it, got y too"),
        (((0, 1, 2),), "got 3 parts"),
    ],
)
def test_an_outcome_in_a_wrong_place_is_told(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        study(*given)


def test_another_study_of_the_same_name_is_refused(data, quick_space, tmp_path):
    quick(data, quick_space, output=tmp_path, n_trials=1, refit=False)
    with pytest.raises(InvalidParameterError, match=r"n_folds 2, got 3.*another name"):
        quick(data, quick_space, output=tmp_path, n_trials=1, n_folds=3)
    with pytest.raises(InvalidParameterError, match="data '"):
        quick(data.take(range(100)), quick_space, output=tmp_path, n_trials=1)


@pytest.mark.parametrize("n_trials", [0, 2])
def test_a_study_of_another_program_is_refused(data, quick_space, n_trials):
    """Its best trial was refitted with arguments that no tree has, or values of other directions were told."""
    storage = optuna.storages.InMemoryStorage()
    other = optuna.create_study(study_name="softsurv", storage=storage, direction="minimize")
    other.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=n_trials)
    message = rf"'softsurv' in this storage is of another program, with {n_trials} trials, directions \['minimize'\]"
    with pytest.raises(InvalidParameterError, match=message):
        quick(data, quick_space, storage=storage)
    assert other.user_attrs == {}
    assert len(other.trials) == n_trials
    assert len(quick(data, quick_space, storage=storage, name="mine", n_trials=1, refit=False).study.trials) == 1


def test_a_storage_that_takes_no_study_is_one_sentence(data, quick_space, tmp_path):
    optuna.create_study(storage=f"sqlite:///{tmp_path}/kept.db")
    url = f"sqlite:///file:{tmp_path}/kept.db?mode=ro&uri=true"
    with pytest.raises(SoftsurvError, match=r"takes no study \(.*readonly database\); check that it may be written"):
        quick(data, quick_space, storage=url)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"leaf": "lognormal"}, "leaf in space 'weibull', got 'lognormal'"),  # trials do not hold it: the refit took it
        ({"leaf": ["weibull", "lognormal"]}, "leaf in space 'weibull', got {'one of'"),
        ({"l2": [0.1, 1.0]}, r"l2 in space {'from a range of': 'float', 'log': True}, got {'one of': \[0.1, 1.0\]}"),
        ({"depth": [0, 1, 2]}, r"depth in space {'one of': \[0, 1\]}, got"),
        ({"dtype": "float32"}, "dtype in space None, got 'float32'"),
    ],
)
def test_another_space_is_refused_but_for_the_ends_of_ranges(data, tmp_path, changed, message):
    space = {"leaf": "weibull", "depth": [0, 1], "l2": Range(0.1, 10.0, log=True)}
    quick(data, space, output=tmp_path, n_trials=1, refit=False)
    with pytest.raises(InvalidParameterError, match=message):
        quick(data, space | changed, output=tmp_path, n_trials=1)
    wider = quick(data, space | {"l2": Range(0.01, 100.0, log=True)}, output=tmp_path, n_trials=2, refit=False)
    assert len(wider.study.trials) == 2


def test_optuna_keeps_its_verbosity(data, quick_space):
    before = optuna.logging.get_verbosity()
    quick(data, quick_space, n_trials=1, refit=False)
    assert optuna.logging.get_verbosity() == before


def test_workers_are_as_many_as_parallel_config_says(data, quick_space, tmp_path):
    options = {"n_trials": 6, "sampler": "random", "refit": False, "n_jobs": None}
    with joblib.parallel_config("threading", n_jobs=2):
        result = quick(data, quick_space, output=tmp_path, **options)
    alone = quick(data, quick_space, **options)
    assert trials_of(result)[:6] == trials_of(alone)  # parameters follow from seed and number, whoever runs a trial
    assert 6 <= len(result.study.trials) <= 7


def test_workers_take_one_device_each(data, quick_space, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    taken = []
    monkeypatch.setattr(
        import_module("softsurv.tune.study"), "work", lambda plan, *_: taken.append(plan.objective.device)
    )
    with joblib.parallel_config("threading"):
        for device in ("auto", "cpu", "cuda:1"):
            with pytest.raises(SoftsurvError):  # nobody ran a trial
                quick(data, quick_space, output=tmp_path / device, n_trials=8, n_jobs=4, device=device)
    assert sorted(taken[:4]) == ["cuda:0", "cuda:0", "cuda:1", "cuda:2"]
    assert taken[4:] == ["cpu"] * 4 + ["cuda:1"] * 4


@pytest.mark.slow
def test_the_loss_of_a_worker_process_is_one_sentence(data, quick_space, tmp_path):
    options = {"output": tmp_path, "refit": False}
    with pytest.raises(SoftsurvError, match="run the same command again"):
        quick(data, quick_space, n_trials=20, n_jobs=2, callbacks=[end_this_process], **options)
    more = quick(data, quick_space, n_trials=6, **options)
    states = [t.state.name for t in more.study.trials]
    assert states.count("COMPLETE") == 6
    assert "RUNNING" not in states


def end_this_process(study_, trial):
    """A callback that ends its worker."""
    os.kill(os.getpid(), signal.SIGKILL)
