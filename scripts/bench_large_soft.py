"""What the default soft tree takes on large tables, and what it loses where its settings are compared on a sample.

Run from the repository root:

    OMP_NUM_THREADS=1 python scripts/bench_large_soft.py --table scripts/tables/large_soft.md
    OMP_NUM_THREADS=1 python scripts/bench_large_soft.py --rows 20000 --choice-rows 5000
    OMP_NUM_THREADS=1 python scripts/bench_large_soft.py --levels --table scripts/tables/levels.md

The tables are those of `bench_large_default.py`, with ten normal features. ``compared on``: ``choice_rows``, of which
"auto" takes 20,000 here; "all" are all rows. With ``--levels`` there is a category beside them, whose levels have
effects on the log hazard with a standard deviation of .3. Each fit runs in a process of its own with compiled kernels.
Memory is what the resident memory of the process grows by at most during the fit. Measures are those of 20,000 other
rows. What a fit goes beyond a time limit is measured by `bench_limits.py`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _machine import write_page
from bench_large_default import simulated

COLUMNS, HELD_OUT, SMALL = 10, 20_000, 300

CASES: tuple[tuple[int, int | None], ...] = (
    (20_000, None),
    (20_000, 10_000),
    (20_000, 5_000),
    (50_000, None),
    (50_000, 20_000),
    (50_000, 10_000),
    (200_000, 20_000),
    (1_000_000, 20_000),
)
"""Rows, and on how many of them settings are compared."""

LEVELS = ((10_000, 100), (10_000, 500), (50_000, 200), (50_000, 1_000))
"""Rows, and levels of a category beside the numbers."""


def table_of(n: int, levels: int, seed: int = 0) -> tuple[Any, Any]:
    """Features and the outcome, with a category of so many levels."""
    X, (event, time_) = simulated(n, COLUMNS, 0, seed)
    if levels == 0:
        return X, (event, time_)
    level = np.random.default_rng(seed).integers(0, levels, n)
    effect = np.random.default_rng(levels).normal(0.0, 0.3, levels)
    return X.assign(place=np.char.add("place ", level.astype(str))), (event, time_ * np.exp(-effect[level]))


def measure(n: int, choice_rows: int | str | None, levels: int, out: Any) -> None:
    """A fit in this process, and its measures."""
    from softsurv import SoftSurvivalTree

    warnings.simplefilter("ignore")
    X, y = table_of(n, levels)
    for options in ({"depth": 1}, {"depth": 1, "max_terms": None, "l2": 0.1, "shrinkage": 1.0, "routing_l2": 1.0}):
        SoftSurvivalTree(**options).fit(X.iloc[:SMALL], (y[0][:SMALL], y[1][:SMALL]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu = time.process_time()
    model = SoftSurvivalTree(choice_rows=choice_rows).fit(X, y)
    cpu = time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    measures = model.evaluate(*table_of(HELD_OUT, levels, seed=1))
    tree = model.candidate_
    out.send((cpu, grown, tree.leaves, tree.family, measures["harrell_c"], measures["ibs"]))


def case(n: int, choice_rows: int | str | None, levels: int = 0) -> dict[str, Any]:
    """A row of the table."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(n, choice_rows, levels, there))
    process.start()
    there.close()
    cpu, grown, leaves, family, concordance, brier = here.recv()
    process.join()
    compared = choice_rows if isinstance(choice_rows, str) else min(choice_rows or n, n)
    return {
        "rows": n,
        **({"levels": levels} if levels else {"compared on": "all" if compared == n else compared}),
        "fit (s, CPU)": f"{cpu:.0f}",
        "memory (GB)": f"{grown / 1e9:.2f}",
        "leaves": leaves,
        "family": family,
        "harrell_c": f"{concordance:.4f}",
        "ibs": f"{brier:.4f}",
    }


def main() -> None:
    """Time every case and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="one case instead of all; with --choice-rows, all rows by default")
    parser.add_argument("--choice-rows", type=int)
    parser.add_argument("--levels", action="store_true", help="tables with a category of many levels")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    lines = []
    note, title = "Ten normal features; other work shared the two cores.", "The default soft tree on large tables"
    cases: Sequence[tuple[Any, ...]] = CASES if options.rows is None else [(options.rows, options.choice_rows)]
    if options.levels:
        cases = [(n, "auto", levels) for n, levels in LEVELS]
        note, title = f"A category beside t{note[1:]}", f"{title} with a category of many levels"
    for sizes in cases:
        lines.append(case(*sizes))
        print(lines[-1], flush=True)
        if options.table is not None:
            write_page(options.table, "bench_large_soft.py", title, note, lines)


if __name__ == "__main__":
    main()
