"""What is asked of an H200, measured where there is a CUDA device: many fits, the paper's grid, many rows, one value.

Each figure is by wall clock, data read and encoded before, libraries loaded by a smaller run. The grid is run by a
process for each family, which share the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
import reproduce_sst
import torch
from _gpu_fits import NONE, Bench, wait

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.soft.many import fit_many
from softsurv.soft.paper import RESTARTS
from softsurv.soft.parallel import Machine, one_core_each
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import TrainingRows

FAMILIES = ("exponential", "weibull", "loglogistic", "spline_po", "spline_ph")


@dataclass(frozen=True)
class Sizes:
    """How much of each is run."""

    fits: int = 10_000
    sets: int = 15
    folds: int = 5
    families: tuple[str, ...] = FAMILIES
    rows: int = 5_000_000
    columns: int = 30

    @property
    def grid(self) -> int:
        """Fits of the paper's grid."""
        return self.sets * self.folds * len(self.families) * 2 * RESTARTS


QUICK = Sizes(fits=40, sets=1, folds=1, families=FAMILIES[:1], rows=20_000)


def encoded(name: str, fold: int | None = None) -> SurvivalData:
    """A data set, or its training rows of a split of four to one, with numeric features."""
    data = load_dataset(name) if fold is None else load_dataset(name).split(seed=fold)[0]
    return data.with_features(Preprocessor().fit(data.X).transform(data.X))


def fits_a_second(device: torch.device, sizes: Sizes) -> float:
    """Fits of GBSG2 at depth 2, log-logistic, all at once."""
    bench = Bench(encoded("gbsg2"), "loglogistic", 2, sizes.fits, device)
    with one_core_each() as cores:
        workers = cores if device.type == "cpu" else 1
        bench.run(workers)
        return sizes.fits / bench.run(workers)[0]


def paper_recipes(families: tuple[str, ...]) -> list[Recipe]:
    """NODEC-DR as in the paper, of each family at both depths."""
    return [reproduce_sst.paper_recipe(family, depth) for family in families for depth in (1, 2)]


class Grid:
    """The part of the paper's grid that is of some families, in a process of its own; its data are encoded before."""

    def __init__(self, device: torch.device, sizes: Sizes, families: tuple[str, ...]) -> None:
        names = list(reproduce_sst.SETS)[: sizes.sets]
        self.sets = [[TrainingRows(encoded(name, fold)) for fold in range(sizes.folds)] for name in names]
        self.recipes, self.device = paper_recipes(families), device
        self.fit(self.sets[:1])  # loads libraries

    def fit(self, sets: list[list[TrainingRows]]) -> None:
        """NODEC-DR as in the paper; a set's folds are one stack."""
        with one_core_each() as cores:
            machine = Machine(self.device, workers=cores if self.device.type == "cpu" else 1)
            for folds in sets:
                fit_many(folds, self.recipes, machine)
            wait(self.device)


_GRIDS: list[Grid] = []
"""The one of this process."""


def _ready(*given: Any) -> None:
    _GRIDS.append(Grid(*given))


def _run() -> None:
    _GRIDS[0].fit(_GRIDS[0].sets)


def seconds_of_the_grid(device: torch.device, sizes: Sizes) -> float:
    """Data sets x folds x 20 starts x families x 2 depths, each family in a process of its own, beside the others.

    Where rounds are recorded a host is busier than its device: it needs a core for each process.
    """
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"), _ready, (device, sizes, (family,))))
            for family in sizes.families
        ]
        for one in [pool.submit(int) for pool in pools]:
            one.result()  # all are ready
        began = time.perf_counter()
        for one in [pool.submit(_run) for pool in pools]:
            one.result()
        return time.perf_counter() - began


def many_rows(rows: int, columns: int) -> SurvivalData:
    """Weibull times through a split."""
    rng = np.random.default_rng(0)
    x = rng.random((rows, columns), dtype=np.float64)
    spent = np.exp(-2 * x[:, 0] * (x[:, 1] > 0.5)) * rng.weibull(1.3, rows) + 1e-4
    ends = rng.exponential(2.0, rows)
    return SurvivalData(pd.DataFrame(x), np.minimum(spent, ends), spent <= ends)


def seconds_of_many_rows(device: torch.device, sizes: Sizes) -> float:
    """One dense tree of depth 2 on rows in memory, from one random start."""
    given = {"max_terms": None, "leaf": "weibull", "depth": 2, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0}
    tree = SoftSurvivalTree(init="random", n_restarts=1, device=str(device), **given)
    tree.fit(many_rows(min(20_000, sizes.rows), sizes.columns))
    data = many_rows(sizes.rows, sizes.columns)
    wait(device)
    began = time.perf_counter()
    tree.fit(data)
    wait(device)
    return time.perf_counter() - began


def difference_from_the_cpu(device: torch.device, sizes: Sizes) -> float:
    """Largest relative difference of the objective in float64, of the same trees on GBSG2."""
    values = []
    for where in (torch.device("cpu"), device):
        bench = Bench(encoded("gbsg2"), "loglogistic", 2, min(sizes.fits, 100), where)
        if not values:
            leaves = bench.leaves
        values.append(bench.objective.value(bench.routing, leaves.to(where)).cpu())
    return float(((values[1] - values[0]) / values[0]).abs().max())


GOALS: dict[str, tuple[str, Callable[[torch.device, Sizes], float]]] = {
    "GBSG2 at depth 2, {0.fits:,} at once, fits a second": ("at least 10,000", fits_a_second),
    "the paper's grid, {0.grid:,} fits, s": ("at most 180", seconds_of_the_grid),
    "{0.rows:,} rows x {0.columns} in memory, s": ("at most 5", seconds_of_many_rows),
    "objective in float64, difference from the CPU": ("at most 1e-8", difference_from_the_cpu),
}


def goals(quick: bool, cpu_trees: int) -> Iterator[dict[str, str]]:
    """Rows of the table as they are measured; of the CPU the fits alone, of so many trees."""
    sizes = QUICK if quick else Sizes()
    for name, (asked, measured) in GOALS.items():
        found = f"{measured(torch.device('cuda'), sizes):.3g}" if torch.cuda.is_available() else NONE
        cpu = NONE
        if measured is fits_a_second:
            cpu = f"{measured(torch.device('cpu'), Sizes(fits=min(sizes.fits, cpu_trees))):.3g}"
        yield {"what": name.format(sizes), "asked of an H200": asked, "GPU": found, "CPU": cpu}
