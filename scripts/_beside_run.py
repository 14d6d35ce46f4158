"""Runs cases of `bench_beside.py` with the package and the scripts of one checkout, one case for each line it reads.

    python scripts/_beside_run.py CHECKOUT

Uses names only that both versions of the scripts have, so it can run an old commit beside a new one.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Run = Callable[[], tuple[float, float]]
"""One run of a case: CPU seconds, and the objective that it reached."""

SHORT = 0.1
"""Seconds that a case is repeated for within one turn, so that the least of short runs means something."""

LIMIT = 120.0


def clocked(work: Callable[[], Any], value: Callable[[Any], float]) -> Run:
    """A run of work whose result has an objective."""

    def run() -> tuple[float, float]:
        start = time.process_time()
        result = work()
        return time.process_time() - start, float(value(result))

    return run


def exact(name: str, depth: str) -> Run:
    """Relative-risk trees, as in `bench_exact.py`."""
    from _exact_data import coded

    data = coded(name)
    return clocked(lambda: data.search().solve(int(depth)), lambda solution: solution.report.objective)


def ibs(name: str, depth: str, complexity: str) -> Run:
    """Trees of least integrated Brier score, as in `bench_ibs.py`."""
    import _tasks
    from _osst_models import load
    from bench_ibs import run_ours

    data = load(_tasks.folder() / "osst", name)

    def run() -> tuple[float, float]:
        solution, seconds = run_ours(data, int(depth), float(complexity))
        return seconds, solution.report.objective

    return run


def task(kind: str, name: str, depth: str) -> Run:
    """Trees of the other objectives, as in `bench_tasks.py` and the table of paper `streed`."""
    import _tasks

    case = case_of(kind, name, int(depth))
    if kind == "matthews":
        X, y = _tasks.classification_sets()[name]
        columns = X.astype(bool)
        search = lambda: _tasks.best_measure("mcc", y, columns, int(depth), LIMIT)  # noqa: E731
        return clocked(search, lambda best: best.bound)

    def run() -> tuple[float, float]:
        solved = case.ours(LIMIT)
        return solved.seconds, solved.objective

    return run


def case_of(kind: str, name: str, depth: int) -> Any:
    """The case of `_tasks.py`."""
    import _tasks

    sets = _tasks.classification_sets()
    if kind == "accuracy":
        return _tasks.accuracy(name, *sets[name], depth)
    if kind == "cost-sensitive":
        return _tasks.cost_sensitive(*name.split(":")[:1], 1, name.split(":")[1], depth)
    if kind == "policy":
        return _tasks.policy(name, depth)
    if kind in ("f1", "matthews"):
        return _tasks.f1_score(name, *sets[name], depth)
    return _tasks.fair(name, *sets[name], kind, depth)


def soft(name: str, solver: str) -> Run:
    """Five starts on one fold, as in `bench_soft.py`."""
    import bench_soft
    import torch

    torch.set_num_threads(1)
    fold = bench_soft.make_folds(name, 1, 5)[0]
    settings = getattr(bench_soft, "Training", None) or bench_soft.TrainSettings

    def run() -> tuple[float, float]:
        runs = bench_soft.Runs()
        bench_soft.run_softsurv(fold, runs, settings(solver=solver))
        return sum(runs.cpu), runs.mean

    return run


def fit(kind: str, name: str, depth: str) -> Run:
    """From ``fit`` to ``fit`` on 0/1 columns."""
    import _tasks
    from _osst_models import load

    import softsurv

    limits = {"max_depth": int(depth), "min_samples_leaf": 1}
    if kind == "relative_risk":
        X, y, event = load(_tasks.folder() / "osst", name)
        limits |= {} if "shrinkage" not in argument_names(softsurv.OptimalSurvivalTree) else {"shrinkage": 0.0}
        make = lambda: softsurv.OptimalSurvivalTree(**limits).fit(X, outcome(y, event))  # noqa: E731
    else:
        X, label = _tasks.classification_sets()[name]
        make = lambda: softsurv.OptimalClassificationTree(kind, **limits).fit(X, label)  # noqa: E731
    return clocked(make, lambda tree: tree.report_.objective)


def outcome(time_: np.ndarray, event: np.ndarray) -> np.ndarray:
    """A structured outcome."""
    return np.array(list(zip(event, time_, strict=True)), dtype=[("event", bool), ("time", float)])


def argument_names(estimator: Any) -> set[str]:
    """Arguments that an estimator takes."""
    return set(estimator().get_params())


KINDS = {one.__name__: one for one in (exact, ibs, task, soft, fit)}


@cache
def run_of(case: str) -> Run:
    """The run of a case, ready: its data read, its kernels compiled."""
    kind, *rest = case.split()
    run = KINDS[kind](*rest)
    run()
    return run


def turn(case: str) -> dict[str, float]:
    """Least CPU seconds of the runs of one turn, and the objective."""
    run, runs, spent = run_of(case), [], 0.0
    while not runs or spent < SHORT:
        runs.append(run())
        spent += max(runs[-1][0], 1e-4)
    return {"seconds": min(seconds for seconds, _ in runs), "objective": runs[-1][1]}


def main() -> None:
    """Answer each line of standard input by one line of JSON."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = turn(line.strip())
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    checkout = sys.argv[1]
    sys.path[:1] = [checkout, f"{checkout}/scripts"]
    main()
