"""Limits of time and memory: any estimator on a table of any shape, by a clock that other programs do not move."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import bench_limits
import numpy as np
import pandas as pd
import torch

import softsurv
from softsurv.errors import SoftsurvError

LATE = 0.5
"""Seconds of CPU time beyond the limit that are promised."""

READ_A_SECOND = 2e6
"""Numbers that are read, coded and put into a first leaf in a second: a shorter limit ends with this."""

SHAPES = ((300, 20), (300, 2_000), (200, 20_000), (5_000, 200), (20_000, 20), (50_000, 50), (120_000, 5))
"""Rows and columns."""

TOLD = ("_limit must be", "coefficients for BFGS")
"""Of sentences that say which limit a table is beyond."""


@contextmanager
def own_clock() -> Iterator[None]:
    """The clock of fits is the CPU time of this process, which runs on one core meanwhile, torch in one thread."""
    cores, clock, threads = os.sched_getaffinity(0), time.monotonic, torch.get_num_threads()
    os.sched_setaffinity(0, {min(cores)})
    torch.set_num_threads(1)  # two on one core wait for each other, busily
    time.monotonic = time.process_time
    try:
        yield
    finally:
        time.monotonic = clock
        torch.set_num_threads(threads)
        os.sched_setaffinity(0, cores)


@cache
def compiled(name: str, thresholds: str) -> None:
    """Fit a few rows, so that nothing is left to compile."""
    kind, outcome, options = bench_limits.CHOICES[name]
    X, arguments = bench_limits.rows(outcome, 300, columns=5)
    getattr(softsurv, kind)(**eval(options) | eval(thresholds), time_limit=2.0).fit(X, **arguments)


def late(rng: np.random.Generator) -> str | None:
    """A fit under a limit ends in time, with a tree or with a sentence on a limit; what went wrong, or None."""
    name = str(rng.choice(list(bench_limits.CHOICES)))
    kind, outcome, options = bench_limits.CHOICES[name]
    (n, columns), limit = SHAPES[rng.integers(len(SHAPES))], float(rng.choice([0.0, 0.3, 1.5]))
    cut = kind.startswith("Optimal") and kind != "OptimalModelTree"
    thresholds = "{'thresholds': 'all'}" if cut and rng.random() < 0.3 else "{}"
    memory = {"memory_limit": float(rng.choice([1e7, 1e9]))} if kind.startswith("Optimal") else {}
    compiled(name, thresholds)
    X, arguments = bench_limits.rows(outcome, n, columns=columns)
    model = getattr(softsurv, kind)(**eval(options) | eval(thresholds), time_limit=limit, **memory)
    promised = max(limit, n * columns / READ_A_SECOND) + LATE
    beyond = seconds(model, X, arguments) - promised
    if beyond > 0:  # many rows take other kernels than few, which the first fit may have compiled
        beyond = seconds(model, X, arguments) - promised
    what = f"{name} {thresholds}, {n} rows x {columns} columns"
    return f"{what}: {beyond + LATE:.2f} s beyond reading and time_limit={limit:g}" if beyond > 0 else None


def seconds(model: Any, X: pd.DataFrame, arguments: dict[str, Any]) -> float:
    """CPU time of a fit, which may end in a sentence on a limit."""
    with own_clock():
        begin = time.process_time()
        try:
            model.fit(X, **arguments)
        except SoftsurvError as error:
            if not any(words in str(error) for words in TOLD):
                raise
        return time.process_time() - begin
