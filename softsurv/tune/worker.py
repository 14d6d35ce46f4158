"""One worker of a study: it takes trials until the study has as many as were asked for."""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from softsurv.errors import NumericalError, SoftsurvError
from softsurv.estimators.soft.devices import device_of_worker
from softsurv.soft.parallel import one_core_each
from softsurv.tune.batch import Batches
from softsurv.tune.liveness import Beats, process_mark
from softsurv.tune.objective import StudyObjective
from softsurv.tune.samplers import make_pruner, make_sampler
from softsurv.tune.spaces import as_spec, is_open, lasting
from softsurv.tune.storage import (
    beats_folder,
    fail_dead_trials,
    fail_own_trials,
    has_unmarked_trials,
    is_lost,
    open_storage,
    public,
)

logger = logging.getLogger(__name__)

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Waits between attempts to reach a database that went away."""

MARK_SECONDS = 0.5
"""How often a worker that is done checks whether some trial still lacks its mark."""


@dataclass(frozen=True)
class StudyPlan:
    """Everything that a worker needs; it is sent to worker processes."""

    objective: StudyObjective
    n_trials: int
    storage: Any
    output: Path | None
    name: str
    seed: int
    sampler: str | BaseSampler
    pruner: str | BasePruner
    callbacks: tuple[Callable[[optuna.Study, FrozenTrial], None], ...]
    time_limit: float | None
    batch: int = 1
    parent: int | None = None  # number of the process whose worker this is

    def open(self, storage: BaseStorage) -> optuna.Study:
        """The study in its storage, with this plan's sampler and pruner.

        Raises
        ------
        SoftsurvError
            If the storage takes no study.
        """
        goal = self.objective
        try:
            with quiet_optuna():
                return optuna.create_study(
                    storage=storage,
                    study_name=self.name,
                    directions=goal.directions,
                    sampler=make_sampler(self.sampler, self.seed),
                    pruner=make_pruner(self.pruner, goal.n_folds, len(goal.measures)),
                    load_if_exists=True,
                )
        except optuna.exceptions.StorageInternalError as error:
            reason = str(error.__cause__ or error).strip().splitlines()[0]
            raise SoftsurvError(
                f"storage {public(str(self.storage))!r} takes no study ({reason}); check that it may be written and "
                "that its tables are those of optuna"
            ) from error

    def of_worker(self, number: int) -> StudyPlan:
        """The plan of one of several workers, with a device of its own where there are several."""
        goal = copy(self.objective)
        goal.device = device_of_worker(goal.device, number)
        return replace(self, objective=goal, parent=os.getpid())

    def identity(self) -> dict[str, Any]:
        """Values that must be equal for results to belong to one study."""
        goal = self.objective
        return {
            "estimator": goal.estimator,
            "measures": list(goal.measures),
            "interest": goal.interest,
            "n_folds": goal.n_folds,
            "seed": self.seed,
            "data": goal.data.fingerprint(),
        } | {f"{name} in space": spec for name, spec in lasting(goal.space).items()}

    def config(self) -> dict[str, Any]:
        """The plan as plain values, for the record of the run."""
        goal = self.objective
        space = {name: vars(as_spec(spec)) if is_open(spec) else spec for name, spec in goal.space.items()}
        return {
            "estimator": goal.estimator,
            "n_trials": self.n_trials,
            "storage": None if isinstance(self.storage, BaseStorage) or self.storage is None else str(self.storage),
            "name": self.name,
            "measures": list(goal.measures),
            "interest": goal.interest,
            "space": json.loads(json.dumps(space, default=str)),
            "n_folds": goal.n_folds,
            "sampler": str(self.sampler),
            "pruner": self.pruner if isinstance(self.pruner, str) else type(self.pruner).__name__,
            "time_limit": self.time_limit,
            "batch": self.batch,
        }


def work(plan: StudyPlan, study: optuna.Study | None = None, progress: bool = False) -> None:
    """Run trials until the study has ``plan.n_trials``, the time is up, or a callback stops it."""
    if study is None:
        study = plan.open(open_storage(plan.storage, plan.output))
    folder = beats_folder(plan.storage, plan.output)
    failed = fail_dead_trials(study, folder)
    if failed:
        logger.warning("trials %s were left by a worker that ended; they are marked as failed", failed)
    bar = _bar(plan, study) if progress else None
    has_parent = os.getppid() == plan.parent  # threads, and processes of other machines, have it not

    def enough(study: optuna.Study, trial: FrozenTrial) -> None:
        """Log a trial that ended. Stop if the study has all its trials, or if who asked for them was killed."""
        if trial.state == TrialState.FAIL:
            logger.warning("trial %d failed: %s", trial.number, trial.user_attrs.get("error", "unknown"))
        logger.info("trial %d %s: %s", trial.number, trial.state.name.lower(), trial.values)
        if bar is not None:
            _show(bar, study)
        if count_taken(study) >= plan.n_trials or (has_parent and os.getppid() != plan.parent):
            study.stop()

    with Beats(folder) as beats, one_core_each(), quiet_optuna():
        try:
            _outlast(study, plan, process_mark(beats.name), [*plan.callbacks, enough])
        finally:
            if bar is not None:
                bar.close()


def _outlast(study: optuna.Study, plan: StudyPlan, mark: dict[str, Any], callbacks: list[Any]) -> None:
    """Run trials; if the database goes away, wait for it and go on.

    A trial that was made when the database went away may belong to no worker, and the worker of another trial may have
    been killed. Other trials replace them before this returns.

    Raises
    ------
    SoftsurvError
        If the database stays away.
    """
    began, waits, folder = time.monotonic(), iter(RETRY_SECONDS), beats_folder(plan.storage, plan.output)

    def wants_more(study: optuna.Study) -> bool:
        return count_taken(study) < plan.n_trials

    while True:
        limit = None if plan.time_limit is None else max(plan.time_limit - (time.monotonic() - began), 0.0)
        try:
            fail_own_trials(study, mark)
            if wants_more(study):
                goal = Batches(plan.objective, mark, plan.batch, wants_more, callbacks)
                study.optimize(goal, timeout=limit, callbacks=callbacks, catch=(NumericalError,))
            if wants_more(study) or limit == 0.0:
                return  # the study wants more trials: the time was up, or a callback stopped it
            if fail_dead_trials(study, folder):
                continue
            if not has_unmarked_trials(study):
                return
            time.sleep(MARK_SECONDS)
        except Exception as error:
            if (hidden := _unwritten(error)) is not None:
                raise hidden from None
            if not is_lost(error):
                raise
            wait = next(waits, None)
            if wait is None:
                reason = str(error).strip().splitlines()[0]
                raise SoftsurvError(
                    f"the study's database stays away ({reason}); what is done is kept: run the same command again"
                ) from error
            logger.warning("the study's database went away; trying again in %g s", wait)
            time.sleep(wait)


def _unwritten(error: Exception) -> OSError | None:
    """Why a journal could not be written, such as a full disk: optuna hides that behind an assertion of its own."""
    hidden = error.__context__ if isinstance(error, AssertionError) else None
    return hidden if isinstance(hidden, OSError) else None


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """While open, optuna logs no messages on trials, such as tracebacks: this package logs a line for each."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.ERROR))
    try:
        with warnings.catch_warnings():  # optuna 4.0 warns that its heartbeats are experimental
            warnings.filterwarnings("ignore", "fail_stale_trials", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def count_done(study: optuna.Study) -> int:
    """Trials that need not be run again: completed, pruned, or failed by an error of their own."""
    return sum(_is_done(t) for t in study.get_trials(deepcopy=False))


def count_taken(study: optuna.Study) -> int:
    """Trials that are done or running."""
    return sum(_is_done(t) or t.state == TrialState.RUNNING for t in study.get_trials(deepcopy=False))


def _is_done(trial: FrozenTrial) -> bool:
    if trial.state == TrialState.FAIL:
        return "error" in trial.user_attrs
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED)


def _bar(plan: StudyPlan, study: optuna.Study) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=plan.n_trials, initial=count_done(study), desc=plan.name, unit=" trials")


def _show(bar: Any, study: optuna.Study) -> None:
    """Trials of all workers, and the best value of each measure."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    bar.n = min(count_done(study), bar.total)
    if done:
        best = [
            (min if side.name == "MINIMIZE" else max)(t.values[k] for t in done)
            for k, side in enumerate(study.directions)
        ]
        bar.set_postfix_str("best " + ", ".join(f"{value:.4f}" for value in best), refresh=False)
    bar.refresh()
