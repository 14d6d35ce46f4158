"""Real worker processes for the tests, forked from one process that has imported and loaded everything already.

Reads JSON lines: ``["start", [storage, output, trials, seconds, begun]]`` forks a worker and answers with its
number, ``["wait", number]`` answers with its exit code. Each trial sleeps for some seconds, so that it can be
killed in the middle; ``begun`` is a file that gets a line for each trial begun.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from importlib import import_module
from typing import Any

import optuna
from conftest import small_data

from softsurv import SoftSurvivalTree
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.estimators.soft.warm_up import ready
from softsurv.tune import StudyObjective, study

OF_A_DATABASE = ("alembic.command", "alembic.script", "sqlalchemy.orm", "sqlalchemy.dialects.postgresql")
"""What optuna imports when it opens a database."""

SPACE = {"leaf": "weibull", "depth": [0, 1], "solver": "lbfgs", "init": "random", "n_restarts": 1}


def work(storage: str | None, output: str | None, n_trials: int, seconds: float, begun: str) -> None:
    """One call of a study, in the forked process."""
    measured = StudyObjective.__call__

    def slow(self: StudyObjective, trial: optuna.Trial) -> Any:
        with open(begun, "a") as file:
            file.write(f"{trial.number}\n")
        time.sleep(seconds)
        return measured(self, trial)

    StudyObjective.__call__ = slow  # type: ignore[method-assign]
    data, options = small_data(), {"space": SPACE, "n_folds": 2, "measures": ("ibs",), "refit": False}
    study(data, n_trials=n_trials, storage=storage, output=output, **options)


def start(arguments: list[Any]) -> int:
    """Fork a worker."""
    number = os.fork()
    if number:
        return number
    try:
        work(*arguments)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    for module in OF_A_DATABASE:
        import_module(module)
    ready(SoftParameters(**SoftSurvivalTree(solver="lbfgs", max_terms=None).get_params(deep=False)))
    for line in sys.stdin:
        what, argument = json.loads(line)
        answer = start(argument) if what == "start" else os.waitstatus_to_exitcode(os.waitpid(argument, 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
