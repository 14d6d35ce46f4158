"""Studies: many trials of an estimator, shared by any number of workers, resumable, with the best model refitted."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import optuna
from joblib.externals.loky.process_executor import TerminatedWorkerError
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from softsurv.cores import n_threads
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, SoftsurvError
from softsurv.estimators.column_names import reader_columns
from softsurv.estimators.shared.checks import jobs, number
from softsurv.files import replace_file
from softsurv.run_record import write_run
from softsurv.stopping import StopSignal, many_fits
from softsurv.tune.objective import StudyObjective
from softsurv.tune.results import StudyResult, best_trial
from softsurv.tune.samplers import make_pruner, make_sampler
from softsurv.tune.spaces import Space, is_open
from softsurv.tune.storage import beats_folder, fail_dead_trials, open_storage
from softsurv.tune.worker import StudyPlan, count_done, work

logger = logging.getLogger(__name__)

Callback = Callable[[optuna.Study, FrozenTrial], None]


def study(
    data: Any,
    y: Any = None,
    *,
    estimator: str = "soft",
    n_trials: int = 100,
    output: str | os.PathLike[str] | None = None,
    storage: str | os.PathLike[str] | BaseStorage | None = None,
    name: str = "softsurv",
    measures: Sequence[str] = ("harrell_c", "ibs"),
    space: Space | None = None,
    n_folds: int = 5,
    seed: int = 0,
    sampler: str | BaseSampler = "tpe",
    pruner: str | BasePruner = "none",
    n_jobs: int | None = None,
    batch: int = 1,
    callbacks: Sequence[Callback] = (),
    time_limit: float | None = None,
    device: str = "auto",
    interest: int | str | None = None,
    progress: bool | None = None,
    refit: bool = True,
    compare_default: bool = True,
    record: Mapping[str, Any] | None = None,
    **columns: Any,
) -> StudyResult:
    """Search an estimator's parameters by cross-validation.

    A second call with the same storage goes on where the study stopped; of its space only the ends of ranges may be
    others then. Any number of processes and hosts may work on it at once; together they run ``n_trials``. A trial whose
    process was killed is marked as failed and replaced by another one; a finished trial is never run again.

    Parameters
    ----------
    data, y, **columns
        Rows and outcome as in ``fit``: `SurvivalData`, a table with ``y`` or with ``time=`` and ``event=``, or a pair
        (X, y).
    estimator : {"soft", "optimal"}
    n_trials : int
        Trials of the study in all, including those of earlier calls and other workers. Workers that begin their last
        trial at the same instant may exceed it by one each.
    output : path-like, optional
        Folder for the journal, the table of trials, the best model and the record of the run.
    storage : str, path or optuna storage, optional
        The path of a journal file, whose folder is made, or a URL such as ``sqlite:///study.db`` or
        ``postgresql+psycopg://user@host/base``. By default the journal in ``output``, else memory.
    name : str
        Name of the study in its storage.
    measures : sequence of str
        "harrell_c", "uno_c", "cd_auc", "ibs", "fairness"; the first one decides among the best.
    space : mapping, optional
        See :class:`softsurv.tune.StudyObjective`.
    n_folds : int
        Folds of each trial, which keep the share of events and subjects whole.
    seed : int
        Seed of the folds, the sampler and the fits.
    sampler : {"tpe", "random"} or optuna sampler
    pruner : {"none", "median", "hyperband"} or optuna pruner
        Needs a single measure; it judges the mean over 1, 2, 4, ... folds.
    n_jobs : int, optional
        Worker processes on this machine; by default as `joblib.parallel_config` says, otherwise one.
    batch : int
        Trials that a worker asks for at once. Those that are dense soft trees (``max_terms=None``) of one leaf family,
        depth and solver train as one stack; the others run one by one, as the column ``together`` of the table of
        trials says. When a sampler proposes a trial, the others of the batch are still running and have no values; TPE
        of optuna 5 takes them for bad trials.
    callbacks : sequence of callable
        Called with study and trial after each trial, in the worker that ran it.
    time_limit : float, optional
        Seconds after which no further trial or batch is begun, nor a further fold of the default arguments. What is
        running then and the last fit come to their end: a trial that was cut short would be measured as if it were
        whole. Where fits are long, limit each of them too: ``space={"time_limit": 5.0}``.
    device : str
        "auto", "cpu", "cuda" or one such as "cuda:1". If there are several CUDA devices, the workers of ``n_jobs`` take
        them in turn.
    interest : int or str, optional
        The cause whose measures count: see :class:`softsurv.tune.StudyObjective`.
    progress : bool, optional
        Show a progress line with the time left; by default on a terminal.
    refit : bool
        Fit the best arguments on all rows, once no trial is running.
    compare_default : bool
        If the best is refitted, also measure the estimator with its default arguments on the same folds. Where the time
        was up, the same call with more time does.
    record : mapping, optional
        Further entries for the record of the run beside the model, such as the columns of the outcome.

    Returns
    -------
    StudyResult

    Raises
    ------
    InvalidParameterError
        If an argument is not what it must be, or the storage holds a study of that name on other data, measures,
        folds, or other fixed values or choices in its space.
    SoftsurvError
        If no trial was completed, the storage cannot be reached, or a worker process was killed.
    """
    rows = _read(data, y, columns)
    how = {"n_folds": n_folds, "seed": seed, "device": device, "interest": interest}
    goal = StudyObjective(rows, estimator, measures=measures, space=space, **how)  # type: ignore[arg-type]
    for what, value in (("n_trials", n_trials), ("batch", batch)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidParameterError(f"{what} must be an integer >= 1, got {value!r}")
    jobs(n_jobs)
    if not isinstance(callbacks, Iterable) or not all(callable(one) for one in callbacks):
        raise InvalidParameterError(f"callbacks must be a list of functions, got {callbacks!r}")
    if time_limit is not None:
        number("time_limit", time_limit, 0, "seconds")
    folder = None if output is None else Path(output)
    make_pruner(pruner, n_folds, len(goal.measures))
    make_sampler(sampler, seed)
    plan = StudyPlan(goal, n_trials, storage, folder, name, seed, sampler, pruner, tuple(callbacks), time_limit, batch)
    study_ = _open(plan)
    clock = StopSignal(time_limit)
    _run(plan, study_, n_jobs, sys.stderr.isatty() if progress is None else progress)
    return _finish(plan, study_, refit, compare_default, record or {}, clock)


def _read(data: Any, y: Any, columns: Mapping[str, Any]) -> SurvivalData:
    """Rows and outcome, however they are given."""
    if isinstance(y, str):
        raise InvalidParameterError(f"y must be the outcome, got {y!r}; name the estimator: estimator={y!r}")
    columns = reader_columns(study, columns)
    if not isinstance(data, tuple):
        return survival_data(data, y, **columns)
    if len(data) != 2 or y is not None:
        given = f"{len(data)} parts" if y is None else "y too"
        raise InvalidParameterError(
            f"data must be a pair (X, y) with the outcome in it, got {given}; drop what is more"
        )
    return survival_data(*data, **columns)


def _open(plan: StudyPlan) -> optuna.Study:
    """The study of this plan, made if need be, refused if it is another one of the same name."""
    study_ = plan.open(open_storage(plan.storage, plan.output))
    wanted = plan.identity()
    trials = study_.get_trials(deepcopy=False)  # before the mark: another worker marks the study before its first trial
    begun = [one for one in trials if one.state != TrialState.WAITING]
    known = study_.user_attrs.get("softsurv")
    if known is None:
        directions = [one.name.lower() for one in study_.directions]
        if begun or directions != list(plan.objective.directions):
            raise InvalidParameterError(
                f"the study {plan.name!r} in this storage is of another program, with {len(begun)} trials, directions "
                f"{directions}; choose another name or storage to begin a new one"
            )
        study_.set_user_attr("softsurv", wanted)
        return study_
    for key in {**wanted, **known}:
        if known.get(key) != wanted.get(key):
            raise InvalidParameterError(
                f"the study {plan.name!r} in this storage has {key} {known.get(key)!r}, got {wanted.get(key)!r}; "
                "choose another name or output to begin a new one"
            )
    return study_


def _run(plan: StudyPlan, study_: optuna.Study, n_jobs: int | None, progress: bool) -> None:
    """The plan's trials, in this process or in several."""
    n_workers = n_threads(n_jobs)
    remaining = plan.n_trials - count_done(study_)
    if remaining <= 0:
        logger.info("the study %r has its %d trials already", plan.name, plan.n_trials)
        return
    if n_workers == 1:
        work(plan, study_, progress)
        return
    if (plan.storage is None and plan.output is None) or isinstance(plan.storage, BaseStorage):
        raise InvalidParameterError(
            f"n_jobs must be 1 where the study is kept in memory or in an open storage, got {n_workers}; "
            "give output=, or the storage as a path or URL"
        )
    try:
        workers = (joblib.delayed(work)(plan.of_worker(k), None, progress and k == 0) for k in range(n_workers))
        joblib.Parallel(n_jobs=n_jobs)(workers)
    except TerminatedWorkerError as error:
        raise SoftsurvError(
            "a worker process was ended from outside, for want of memory perhaps; what is done is kept: run the same "
            "command again, with fewer jobs where memory is short"
        ) from error


@many_fits()
def _finish(
    plan: StudyPlan,
    study_: optuna.Study,
    refit: bool,
    compare_default: bool,
    record: Mapping[str, Any],
    clock: StopSignal,
) -> StudyResult:
    """Choose, refit, compare with the default and write."""
    goal = plan.objective
    fail_dead_trials(study_, beats_folder(plan.storage, plan.output))
    best = best_trial(study_)
    parameters = {k: v for k, v in goal.space.items() if not is_open(v)} | best.params
    running = study_.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    model = None
    if refit and running:
        logger.warning("trials %s are still running elsewhere; their worker will refit", [t.number for t in running])
    elif refit:
        model = goal.model(parameters).fit(goal.data)
    compared = model is not None and compare_default
    default = _of_default(goal, study_, clock) if compared else None
    result = StudyResult(study_, goal.measures, parameters, model, default, compared and default is None)
    if plan.output is not None:
        _write(plan, result, record)
    return result


def _of_default(goal: StudyObjective, study_: optuna.Study, clock: StopSignal) -> dict[str, list[float | None]] | None:
    """Measures of the default arguments in each fold, kept with the study; None where the time was up before."""
    known: dict[str, list[float | None]] | None = study_.user_attrs.get("default")
    if known is None:
        folds: list[dict[str, Any]] = []
        for part in [slice(None)] if clock.deadline is None else [slice(k, k + 1) for k in range(goal.n_folds)]:
            if clock.exhausted:
                return None
            folds += goal.cross_validate(goal.model({}), part)
        known = {name: [fold.get(name) for fold in folds] for name in goal.measures}
        study_.set_user_attr("default", known)
    return known


def _write(plan: StudyPlan, result: StudyResult, record: Mapping[str, Any]) -> None:
    """The table of trials, the best model and the record of the run, beside the journal."""
    assert plan.output is not None
    goal = plan.objective
    plan.output.mkdir(parents=True, exist_ok=True)
    replace_file(plan.output / "trials.csv", result.table().to_csv(index=False))
    if result.model is None:
        return
    model = plan.output / "model"
    result.model.save(model)
    metrics = dict(zip(goal.measures, result.best.values, strict=True))
    write_run(
        model,
        "tune",
        plan.config() | {"parameters": result.parameters} | dict(record),
        data=goal.data,
        seed=plan.seed,
        metrics=metrics,
    )
