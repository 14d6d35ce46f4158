"""Trials in batches: a worker asks for several at once, and those that can train as one stack do.

`optuna.Study.optimize` asks for the first trial of a batch. This module asks for the others and reports their results.
Callbacks, stopping and heartbeats of the study stay with optuna, as without batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.storages._heartbeat import get_heartbeat_thread
from optuna.trial import FrozenTrial, TrialState

from softsurv.tune.objective import Outcome, StudyObjective
from softsurv.tune.storage import is_lost

Ask = Callable[[optuna.Study], bool]
"""Whether the study wants another trial."""


class Batches:
    """The objective of a study for `optuna.Study.optimize`, which measures a batch whenever it is called.

    Parameters
    ----------
    objective : StudyObjective
    mark : dict
        The mark of the process, written on every trial.
    size : int
        Most trials of a batch.
    wants_more : callable
        Whether the study wants another trial beside those that it has.
    callbacks : sequence of callable
        Called here for all trials of a batch but the first, for which optuna calls them.
    """

    def __init__(
        self,
        objective: StudyObjective,
        mark: dict[str, Any],
        size: int,
        wants_more: Ask,
        callbacks: Sequence[Callable[[optuna.Study, FrozenTrial], None]],
    ) -> None:
        self.objective, self.mark, self.size = objective, mark, size
        self.wants_more, self.callbacks = wants_more, callbacks

    def __call__(self, trial: optuna.Trial) -> Any:
        """The values of the first trial; the other trials of the batch are reported to optuna before."""
        trial.set_user_attr("worker", self.mark)
        study, others = trial.study, list[optuna.Trial]()
        try:
            if self.size == 1:
                return self.objective(trial)
            self.objective.propose(trial)
            while len(others) + 1 < self.size and self.wants_more(study):
                others.append(study.ask())
                others[-1].set_user_attr("worker", self.mark)
                self.objective.propose(others[-1])
            with _beating(study, others):
                outcomes = self.objective.measure([trial, *others])
        except BaseException as error:
            if not is_lost(error):
                _fail(study, others)  # other trials will replace them
            _note(trial, error)
            raise
        for other, outcome in zip(others, outcomes[1:], strict=True):
            _tell(study, other, outcome)
            for callback in self.callbacks:
                callback(study, study.get_trials(deepcopy=False)[other.number])
        return _returned(trial, outcomes[0])


def _tell(study: optuna.Study, trial: optuna.Trial, outcome: Outcome) -> None:
    """Report the end of a trial that `optuna.Study.optimize` did not start."""
    if not isinstance(outcome, Exception):
        study.tell(trial, outcome)
    elif isinstance(outcome, optuna.TrialPruned):
        study.tell(trial, state=TrialState.PRUNED)
    else:
        _note(trial, outcome)
        study.tell(trial, state=TrialState.FAIL)


def _returned(trial: optuna.Trial, outcome: Outcome) -> Any:
    """The outcome of the first trial as optuna expects it of an objective: values are returned, errors raised."""
    if not isinstance(outcome, Exception):
        return outcome if len(outcome) > 1 else outcome[0]
    _note(trial, outcome)
    raise outcome


def _note(trial: optuna.Trial, error: BaseException) -> None:
    """Write the error on its trial, unless pruning or the database caused it. The trial is then not run again."""
    own = isinstance(error, Exception) and not isinstance(error, optuna.TrialPruned)
    if own and not is_lost(error):
        trial.set_user_attr("error", f"{type(error).__name__}: {error}")


def _fail(study: optuna.Study, trials: Sequence[optuna.Trial]) -> None:
    """Mark trials that will not be measured as failed, as far as the storage can be reached."""
    for trial in trials:
        with contextlib.suppress(Exception):  # the error that led here is the one to raise
            study.tell(trial, state=TrialState.FAIL)


@contextmanager
def _beating(study: optuna.Study, trials: Sequence[optuna.Trial]) -> Iterator[None]:
    """While open, send heartbeats for these trials to a database; optuna sends them for the first trial only."""
    with contextlib.ExitStack() as threads:
        for trial in trials:
            thread = get_heartbeat_thread(trial._trial_id, study._storage)
            thread.start()
            threads.callback(thread.join)
        yield
