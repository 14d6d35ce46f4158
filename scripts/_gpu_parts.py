"""What a study is made of, timed on a device: NODEC, folds as one stack, starts, measures, streaming, the whole.

And what the device allows: operators over its launch rate, bytes moved over its bandwidth, of a round of L-BFGS.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _gpu_fits import wait
from numpy.typing import NDArray
from torch.nn.functional import pad

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the counter of operators
from oracles.operators import Operators

import softsurv
from softsurv import SoftSurvivalTree, SurvivalData
from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.numerics import with_intercept
from softsurv.soft.cross_validation import fit_folds, make_folds, measure_fold, measure_on_device
from softsurv.soft.held_out import HeldOut, TrainingTimes, measure_stacks
from softsurv.soft.many import fit_many
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import ALONE, LbfgsSettings, minimise
from softsurv.soft.parallel import Machine, one_core_each
from softsurv.soft.penalties import no_penalties
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.replay import SWITCH
from softsurv.soft.stacked_starts import propose
from softsurv.soft.starts import TrainingRows
from softsurv.soft.streaming.axis import make_axis
from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkStore, gather_outcomes
from softsurv.soft.watch import LOOK_EVERY, never_waiting
from softsurv.tune import Range, study

FAMILY = get_family("loglogistic")
CANDIDATE = Candidate("loglogistic", 2, 1.0, 3.0, 1.0)
TRIALS, N_FOLDS = 8, 5
ROUNDS = (4, 24)
"""Two runs, so that what is done once does not count."""

GRAPH_ROUNDS = (24, 64)
"""The same with graphs: both runs come to the replays, after the rounds that are taken one by one."""

Part = Callable[[], int]
"""Does the work and returns how many units of it."""


def nodec(data: SurvivalData, device: torch.device) -> Part:
    """20 starts of NODEC-DR."""
    settings = {"depth": 2, "max_terms": None, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0, "leaf": "loglogistic"}
    model = SoftSurvivalTree(solver="nodec", n_restarts=20, init="random", device=str(device), **settings)

    def run() -> int:
        model.fit(data)
        return 20

    return run


def folds(data: SurvivalData, device: torch.device) -> Part:
    """Folds and starts of one setting as one stack."""
    made, recipe = make_folds(data, N_FOLDS), Recipe(FAMILY, CANDIDATE, ("random",) * 5)

    def run() -> int:
        with one_core_each() as workers:
            return 5 * len(fit_folds(made, recipe, Machine(device, workers=workers if device.type == "cpu" else 1)))

    return run


def clusters(data: SurvivalData, device: torch.device) -> Part:
    """k-means starts of every fold, on the device where there is one, by scikit-learn on a CPU."""
    return _starts(data, device, ("kmeans",) * 5)


def logrank(data: SurvivalData, device: torch.device) -> Part:
    """A log-rank start of every fold, likewise, on a CPU by scikit-survival."""
    return _starts(data, device, ("logrank",))


def _starts(data: SurvivalData, device: torch.device, kinds: tuple[str, ...]) -> Part:
    folds = make_folds(data, N_FOLDS)
    recipe, longest = Recipe(FAMILY, CANDIDATE, kinds), max(fold.train.n for fold in folds)
    designs = (pad(with_intercept(fold.train.x), (0, 0, 0, longest - fold.train.n)) for fold in folds)
    design = torch.stack(list(designs)).to(device)

    def run() -> int:
        rows = [TrainingRows(fold.train) for fold in folds]  # that know no starts yet
        if device.type == "cpu":
            return sum(len(r.start_routing(kinds, CANDIDATE.depth, range(len(kinds)))) for r in rows)
        return propose(rows, [recipe], design).shape[:2].numel()

    return run


def measures(data: SurvivalData, device: torch.device) -> Part:
    """Concordance, AUC and Brier score of the held-out rows of each fold, of eight settings."""
    made, recipe = make_folds(data, N_FOLDS), Recipe(FAMILY, CANDIDATE, ("random",))
    recipes = [replace(recipe, candidate=replace(CANDIDATE, ridge=ridge)) for ridge in np.logspace(-1, 1, TRIALS)]
    machine = Machine(device)
    fitted = fit_many([fold.rows for fold in made], recipes, machine)

    def run() -> int:
        if device.type == "cpu":
            found = [[measure_fold(fold, one.tree) for fold, one in zip(made, of, strict=True)] for of in fitted]
        else:
            found = measure_on_device([fold.on_device(machine.like) for fold in made], fitted)
        return sum(map(len, found))

    return run


def measures_by_cause(data: SurvivalData, device: torch.device) -> Part:
    """The same of one split's held-out rows, every third event of another cause."""
    cause = np.where(data.event.numpy(), 1 + (np.arange(data.n) % 3 == 0), 0)
    train, test = survival_data(data.X, time=data.time.numpy(), cause=cause).split(0.4, seed=0)
    dense = {"max_terms": None, "leaf": "loglogistic", "depth": 2, "shrinkage": 3.0, "routing_l2": 1.0, "max_iter": 30}
    settings = [dense | {"l2": ridge, "init": "random", "device": str(device)} for ridge in np.logspace(-1, 1, TRIALS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = [of_rows[0] for of_rows in softsurv.fit_many(train, settings=settings).estimators]
    first = trees[0]
    known = TrainingTimes(first.censoring_, first.time_floor_, first.horizon_)
    rows = HeldOut(test, first._prepare(test.X).x, known, first.tree_.leaves)

    def run() -> int:
        if device.type == "cpu":
            return len([tree.evaluate(test) for tree in trees])
        return len(measure_stacks([rows], [[tree._trees] for tree in trees]))

    return run


def streaming(data: SurvivalData, device: torch.device) -> Part:
    """Rows in a pass over the chunks of a table, of which a tenth lies in a file."""
    n, chunk = 400_000, 50_000
    rng = np.random.default_rng(0)
    x: NDArray[np.float64] = rng.random((n, data.x.shape[1]))
    spent, event = rng.exponential(np.exp(-x[:, 0])) + 1e-3, rng.random(n) < 0.7
    store = ChunkStore(int(0.9 * x.nbytes))
    for first in range(0, n, chunk):
        rows = slice(first, first + chunk)
        store.append(x[rows], spent[rows], event[rows], None)
    axis = make_axis(FAMILY, *gather_outcomes(store, Ranks()))
    like = torch.zeros(1, 4, x.shape[1] + 1 + FAMILY.n_shape, dtype=torch.float64, device=device)
    with one_core_each() as workers:
        chunks = PlacedChunks(store, axis, like)
        free = no_penalties(1, like.shape[-1], like)
        objective = StreamedObjective(chunks, 2, free, Ranks(), workers if device.type == "cpu" else 1)
    routing = like.new_zeros(1, 3, x.shape[1] + 1)

    def run() -> int:
        objective.value_and_gradient(routing, like)
        return n

    return run


def whole_study(data: SurvivalData, device: torch.device) -> Part:
    """Trials of a study in one batch: search, folds, starts, fits and measures."""
    space = {
        "max_terms": None,
        "depth": 2,
        "leaf": "loglogistic",
        "l2": Range(0.1, 10.0),
        "shrinkage": Range(0.1, 30.0),
    }

    def run() -> int:
        study(
            data, n_trials=TRIALS, n_folds=N_FOLDS, batch=TRIALS, space=space, device=str(device), sampler="random",
            refit=False, compare_default=False, progress=False,
        )  # fmt: skip
        return TRIALS

    return run


PARTS: dict[str, Callable[[SurvivalData, torch.device], Part]] = {
    "NODEC, fits": nodec,
    "folds x starts as one stack, fits": folds,
    "k-means starts": clusters,
    "log-rank starts": logrank,
    "measures, trees": measures,
    "measures by cause, trees": measures_by_cause,
    "streaming, rows of a pass": streaming,
    "study in one batch, trials": whole_study,
}


def rate(part: Part, device: torch.device, repeats: int) -> float:
    """Units a second, the best of some runs after one to warm up."""
    part()
    best = 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        units = part()
        wait(device)
        best = max(best, units / (time.perf_counter() - began))
    return best


def launches_a_second(device: torch.device) -> float:
    """How many small operators a device takes in a second."""
    one, count = torch.ones(8, device=device), 5000
    for _ in range(100):
        one.add_(1.0)
    wait(device)
    began = time.perf_counter()
    for _ in range(count):
        one.add_(1.0)
    wait(device)
    return count / (time.perf_counter() - began)


def bytes_a_second(device: torch.device) -> float:
    """How fast a device reads and writes its memory."""
    table = torch.ones(30_000_000, dtype=torch.float64, device=device)
    best = 0.0
    for _ in range(5):
        wait(device)
        began = time.perf_counter()
        table.add_(1.0)
        wait(device)
        best = max(best, 2 * table.nbytes / (time.perf_counter() - began))
    return best


@contextmanager
def graphs(on: bool) -> Iterator[None]:
    """While open, rounds on a device are recorded as graphs, or are not."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "1" if on else "0"
    try:
        yield
    finally:
        os.environ.pop(SWITCH) if before is None else os.environ.update({SWITCH: before})


class RoundsLeft:
    """Ends a minimisation after some rounds, in the place of a time limit: no tree stops before, so none leaves."""

    exhausted = False

    def __init__(self, rounds: int, at_once: int) -> None:
        self.left, self.alone, self.at_once = rounds, ALONE, at_once

    def end_unless(self, pace: float) -> bool:
        """Whether there are rounds left after those that were just taken."""
        self.left, self.alone = self.left - (1 if self.alone > 0 else self.at_once), self.alone - 1
        return self.left > 0


def share_of_the_limit(
    objective: Any, start: tuple[torch.Tensor, torch.Tensor], metric: Any, graph: bool = False
) -> dict[str, float]:
    """Of a round of L-BFGS by operators: their number, bytes moved, seconds, and the share of what is possible.

    A round is an evaluation of all trees, also where steps are halved. With ``graph`` four rounds are one launch of a
    CUDA graph; the operators are those that it holds, and the limit is the bytes alone.
    """
    device, found = start[0].device, []
    endless = LbfgsSettings(max_iterations=10_000, ftol=0.0, gtol=0.0)
    for rounds in GRAPH_ROUNDS if graph else ROUNDS:

        def run(at_once: int, rounds: int = rounds) -> None:
            with operators_alone(), never_waiting():
                minimise(objective, start, endless, metric, RoundsLeft(rounds, at_once))  # type: ignore[arg-type]
            wait(device)

        with graphs(False), Operators(large=1) as counted:
            run(1)
        at_once = LOOK_EVERY if graph else 1
        with graphs(graph):
            run(at_once)  # libraries are loaded, graphs take their memory
            began = time.perf_counter()
            run(at_once)
        found.append((time.perf_counter() - began, counted.total, 8 * counted.moved, rounds))
    *apart, rounds = (long - short for short, long in zip(*found, strict=True))
    seconds, operators, moved = (one / rounds for one in apart)
    launched = 0.0 if graph else operators / launches_a_second(device)
    least = max(launched, moved / bytes_a_second(device))
    return {"operators": operators, "bytes": moved, "seconds": seconds, "share": least / seconds}
