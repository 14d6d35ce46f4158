"""softsurv against a plain scipy SLSQP NODEC-DR, one tree at a time.

    SOFTSURV_DATA=folder python scripts/bench_soft.py --sets gbsg2 churn whas500 dialysis --starts 20 --folds 5

Both minimise one objective (log-logistic leaves, depth 2, l2 = 0.01/N on the leaf coefficients) from the same random
starts on the same training folds, one thread each, fold by fold in turn. Times are process CPU seconds, per fit.
"Time to the twin" is the least time per fit after which softsurv, had every stack been stopped there, has a mean
objective over all fits no worse than the twin's. The twin with finite differences runs on the first starts of every
fold; its time is scaled by the analytic twin's on all fits over that on the same fits. Starts are parameters drawn at
random, not fitted; whatever else a solver does is in its time.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import platform  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from datetime import date  # noqa: E402
from functools import partial  # noqa: E402
from itertools import count  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TypeVar  # noqa: E402

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import torch  # noqa: E402
from _slow_twin import Rows, nodec_dr  # noqa: E402
from torch import Tensor  # noqa: E402

from softsurv.data.datasets import load_dataset  # noqa: E402
from softsurv.data.partition import stratified_folds  # noqa: E402
from softsurv.data.preprocess import Preprocessor  # noqa: E402
from softsurv.data.survival_data import SurvivalData  # noqa: E402
from softsurv.hazards import get_family  # noqa: E402
from softsurv.soft.capacity import stack_parts  # noqa: E402
from softsurv.soft.nodec import Progress, nodec  # noqa: E402
from softsurv.soft.objective import Objective  # noqa: E402
from softsurv.soft.optimisers import minimise  # noqa: E402
from softsurv.soft.penalties import Penalties, no_penalties  # noqa: E402
from softsurv.soft.precondition import GramMetric  # noqa: E402
from softsurv.soft.problem import make_problem  # noqa: E402
from softsurv.soft.recipe import Solver, Training  # noqa: E402
from softsurv.soft.starts import initial_leaves, random_routing  # noqa: E402

Result = TypeVar("Result")

DEPTH = 2
L2 = 0.01
SETS = ("gbsg2", "churn", "whas500", "dialysis")
SOLVERS: tuple[Solver, ...] = ("lbfgs", "nodec")
HEAD = [
    "set", "solver", "fits", "objective", "CPU s a fit", "wall s a fit", "CPU s a fit to the twin's mean",
    "times faster than analytic", "than differences", "figure",
]  # fmt: skip
FIGURE = (
    "Figure: mean objective no worse than that of the twin with analytic gradients, and reached in at most 1/3 of its "
    "time and 1/20 of its time with finite differences."
)
AGREEMENT = 1e-10
"""Largest relative gap between the two programs' values of one tree: rounding over some thousand rows."""


@dataclass
class Fold:
    """One training fold and the starts that every solver gets."""

    data: SurvivalData
    objective: Objective
    rows: Rows
    routing: Tensor  # (M, B, Q)
    leaves: Tensor  # (M, L, Q + 1)


@dataclass
class Runs:
    """What one solver did: objectives and seconds of its fits, and how its stacks came down as time went by."""

    objective: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: float = 0.0
    traces: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # seconds, summed objectives, (R,)

    @property
    def mean(self) -> float:
        """Mean objective."""
        return float(np.mean(self.objective))

    @property
    def per_fit(self) -> float:
        """CPU seconds for each fit."""
        return sum(self.cpu) / len(self.objective)

    def time_to(self, target: float) -> float:
        """Least CPU seconds for each fit with a mean objective of at most ``target``; inf if it never got there."""
        fits = len(self.objective)
        for limit in np.unique(np.concatenate([times for times, _ in self.traces])):
            last = [int(np.searchsorted(times, limit, "right")) - 1 for times, _ in self.traces]
            stopped = [(times[k], sums[k]) for k, (times, sums) in zip(last, self.traces, strict=True)]
            if sum(value for _, value in stopped) <= target * fits:
                return float(sum(seconds for seconds, _ in stopped) / fits)
        return float("inf")


def make_folds(name: str, n_folds: int, n_starts: int) -> list[Fold]:
    """Training folds of a data set with their starts."""
    data, family, folds = load_dataset(name), get_family("loglogistic"), []
    parts = stratified_folds(data.event.numpy(), 5, seed=0)[:n_folds]
    for number, (train_rows, _) in enumerate(parts):
        raw = data.take(train_rows)
        part = raw.with_features(Preprocessor().fit_transform(raw.X))
        problem = make_problem(part, family, n_trees=n_starts)
        q = problem.design.shape[-1]
        free = no_penalties(n_starts, q + 1, problem.design)
        l2 = torch.full((n_starts,), L2 / part.n, dtype=torch.float64)
        penalties = Penalties(l2, free.shrinkage, free.routing_l2, free.anchor, free.l2_all)
        seeds = [1000 * number + k for k in range(n_starts)]
        x, y, event = (v.contiguous().numpy() for v in (problem.design[0], problem.features[0, 0], problem.event[0, 0]))
        folds.append(
            Fold(
                data=part,
                objective=Objective(problem, DEPTH, penalties),
                rows=Rows(x, y, event, L2 / part.n, part.n),
                routing=random_routing(part.x.numpy(), DEPTH, seeds),
                leaves=initial_leaves(torch.zeros(n_starts, 1, q + 1, dtype=torch.float64), DEPTH, seeds),
            )
        )
    return folds


def clocked(runs: Runs, work: Callable[[], Result]) -> Result:
    """Run and note the time that it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    runs.cpu.append(time.process_time() - cpu)
    runs.wall += time.perf_counter() - wall
    return result


def run_twin(fold: Fold, runs: Runs, analytic: bool, n_starts: int) -> None:
    """The twin from the first starts of a fold, each result checked against softsurv's objective."""
    for k in range(n_starts):
        fit = partial(nodec_dr, fold.routing[k].numpy(), fold.leaves[k].numpy(), fold.rows, analytic)
        routing, leaves, value = clocked(runs, fit)
        one = fold.objective.take(torch.tensor([k]))
        ours = float(one.value(torch.as_tensor(routing)[None], torch.as_tensor(leaves)[None]))
        if abs(ours - value) > AGREEMENT * abs(value):
            raise SystemExit(f"the twin and softsurv disagree on one tree's objective: {value!r} and {ours!r}")
        runs.objective.append(value)


def train(
    objective: Objective, routing: torch.Tensor, leaves: torch.Tensor, settings: Training, note: Progress
) -> torch.Tensor:
    """Objectives (M,) of the trees that the solver makes of these starts."""
    if settings.solver == "nodec":
        return nodec(objective, routing, leaves, settings.nodec, progress=note).objective
    metric, rounds = GramMetric(objective.problem, routing.shape[1], leaves.shape[1]), count(1)
    look = lambda loss: note(next(rounds), loss)  # noqa: E731
    return minimise(objective, (routing, leaves), settings.joint, metric, on_round=look).loss


def run_softsurv(fold: Fold, runs: Runs, settings: Training) -> None:
    """softsurv on the starts of a fold, in stacks of its own choice, with the course of every stack."""
    for part in stack_parts(fold.objective.problem, 2**DEPTH, n_jobs=len(fold.routing)):
        trees = torch.arange(len(fold.routing))[part]
        start = (fold.objective.take(trees), fold.routing[part], fold.leaves[part])
        course = Course(float(start[0].value(*start[1:]).sum()))
        found = clocked(runs, partial(train, *start, settings, course.note))
        course.note(-1, found)
        runs.objective += found.tolist()
        runs.traces.append((np.array(course.seconds), np.array(course.sums)))


class Course:
    """CPU seconds since the start, and a stack's summed objective at each."""

    def __init__(self, first: float) -> None:
        self.begin = time.process_time()
        self.seconds, self.sums = [0.0], [first]

    def note(self, _: int, value: Tensor) -> None:
        """Add the present."""
        self.seconds.append(time.process_time() - self.begin)
        self.sums.append(float(value.sum()))


def bench(name: str, n_folds: int, n_starts: int, n_differences: int) -> dict[str, Runs]:
    """Every solver on every fold of one set, in turn; finite differences from the first starts of each."""
    runs = {key: Runs() for key in (*SOLVERS, "analytic", "same fits", "differences")}
    for fold in make_folds(name, n_folds, n_starts):
        for solver in SOLVERS:
            run_softsurv(fold, runs[solver], Training(solver=solver))
        run_twin(fold, runs["analytic"], True, n_starts)
        run_twin(fold, runs["differences"], False, n_differences)
        same = runs["same fits"]
        same.cpu += runs["analytic"].cpu[-n_starts:][:n_differences]
        same.objective += runs["analytic"].objective[-n_starts:][:n_differences]
    return runs


def rows_of(name: str, runs: dict[str, Runs]) -> list[list[str]]:
    """The table's rows for one set: the twin's, and softsurv's with both solvers."""
    twin, slow, same = runs["analytic"], runs["differences"], runs["same fits"]
    slow_per_fit = twin.per_fit * slow.per_fit / same.per_fit
    table = [row_of(name, "twin, analytic", twin), row_of(name, "twin, differences", slow)]
    table[1][-1] = f"{slow_per_fit:.4f} a fit, scaled to all fits"
    for solver in SOLVERS:
        ours = runs[solver]
        reached = ours.time_to(twin.mean)
        analytic, differences = twin.per_fit / reached, slow_per_fit / reached
        passed = ours.mean <= twin.mean and analytic >= 3 and differences >= 20
        row = row_of(name, f"softsurv, {solver}", ours)
        row[-4:] = [f"{reached:.4f}", f"{analytic:.1f}", f"{differences:.0f}", "reached" if passed else "missed"]
        table.append(row)
    return table


def row_of(name: str, solver: str, runs: Runs) -> list[str]:
    """What every solver's row says."""
    fits = len(runs.objective)
    return [name, solver, f"{fits}", f"{runs.mean:.4f}", f"{runs.per_fit:.4f}", f"{runs.wall / fits:.4f}", *[""] * 4]


def machine() -> str:
    """Processor, cores, versions and date."""
    model, info = platform.processor(), Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, scipy {scipy.__version__}"
    return f"{model}, {os.cpu_count()} cores, one thread used; {versions}; {date.today().isoformat()}"


def markdown(table: list[list[str]]) -> str:
    """The report."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEAD, ["---"] * len(HEAD), *table)]
    return "\n".join(["# Soft trees against a plain NODEC-DR", "", machine(), "", *lines, "", FIGURE, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--starts", type=int, default=20, help="random starts of every fold")
    parser.add_argument("--folds", type=int, default=5, help="how many of the 5 folds to run")
    parser.add_argument("--differences", type=int, default=1, help="starts of every fold for finite differences")
    parser.add_argument("--quick", action="store_true", help="two folds of five starts")
    parser.add_argument("--out", type=Path, default=Path("results/bench_soft.md"))
    options = parser.parse_args()
    if options.quick:
        options.folds, options.starts = 2, 5
    torch.set_num_threads(1)
    table: list[list[str]] = []
    for name in options.sets:
        table += rows_of(name, bench(name, options.folds, options.starts, options.differences))
        print(f"{name} done", flush=True)
    report = markdown(table)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report)
    print(report)


if __name__ == "__main__":
    main()
