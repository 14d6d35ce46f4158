"""What the default optimal tree takes on large tables, whose trees go on below three levels and choose their curves.

Run from the repository root:

    OMP_NUM_THREADS=1 python scripts/bench_large_default.py --table scripts/tables/large_default.md
    OMP_NUM_THREADS=1 python scripts/bench_large_default.py --rows 20000 --columns 10 --categories 0

Features are normal; categories have six levels. Event times depend on five features, partly by steps and products, and
on two categories, whose first level halves the risk. Each fit runs in a process of its own with compiled kernels and
without a time limit. Memory is what the resident memory of the process grows by at most, beside a ``memory_limit`` of
1 GB. Then the same fit with time limits of a quarter, a half and nine tenths of what it took: by how much the last of
them is passed the most, and what the fits say of themselves.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import write_page

CASES = ((20_000, 10, 0), (100_000, 10, 0), (100_000, 20, 5), (1_000_000, 10, 0))
"""Rows, columns, and how many of these are categories."""

SHARES = (0.25, 0.5, 0.9)
"""Time limits, as shares of what the whole fit took."""

SMALL = 20_000
"""Rows of a fit beforehand, with which kernels are compiled or read from disk."""


def simulated(n: int, columns: int, categories: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Features and the outcome."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns - categories))
    log_risk = 0.6 * (x[:, 0] > 0.3) + 0.5 * (x[:, 1] * x[:, 2] > 0) + 0.4 * x[:, 3] * (x[:, 0] < 0)
    log_risk += 0.3 * np.sin(2 * x[:, 4])
    table = pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])
    for j in range(categories):
        level = rng.integers(0, 6, n)
        log_risk -= np.log(2) * ((level == 0) & (j < 2))
        table[f"c{j}"] = pd.Categorical(level.astype(str))
    event_time, censoring = 10 * rng.weibull(1.2, n) / np.exp(log_risk), rng.exponential(12, n)
    return table, (event_time <= censoring, np.minimum(event_time, censoring))


def measure(n: int, columns: int, categories: int, out: Any) -> None:
    """A whole fit in this process, and those that are cut off."""
    from softsurv import OptimalSurvivalTree

    warnings.simplefilter("ignore")
    X, y = simulated(n, columns, categories)
    OptimalSurvivalTree().fit(X.iloc[:SMALL], (y[0][:SMALL], y[1][:SMALL]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    model = OptimalSurvivalTree(time_limit=None, memory_limit=1e9).fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    over, said = [], []
    for share in SHARES:
        begin = time.perf_counter()
        cut = OptimalSurvivalTree(time_limit=share * wall).fit(X, y)
        over.append(time.perf_counter() - begin - share * wall)
        said.append(f"{cut.status_}/{cut.report_.details['selection']}, {cut.tree_.n_leaves}")
    out.send((wall, cpu, grown, str(model.status_), model.tree_.n_leaves, model.leaf_, max(over), "; ".join(said)))


def case(n: int, columns: int, categories: int) -> dict[str, Any]:
    """A row of the table."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(n, columns, categories, there))
    process.start()
    there.close()
    wall, cpu, grown, status, leaves, curve, over, said = here.recv()
    process.join()
    return {
        "rows": n,
        "columns": columns,
        "categories": categories,
        "fit (s)": f"{wall:.1f}",
        "fit (s, CPU)": f"{cpu:.1f}",
        "memory (GB)": f"{grown / 1e9:.2f}",
        "status": status,
        "leaves": leaves,
        "curves": curve,
        "over the limit (s)": f"{max(over, 0.0):.2f}",
        "status/choice, leaves at 25, 50, 90 % of the time": said,
    }


def main() -> None:
    """Time every case and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="one case instead of all; with --columns and --categories")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--categories", type=int, default=0)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    lines = []
    for sizes in CASES if options.rows is None else [(options.rows, options.columns, options.categories)]:
        lines.append(case(*sizes))
        print(lines[-1], flush=True)
    if options.table is not None:
        note = "Memory beside a limit of 1 GB; time limits are to hold within 0.3 s."
        write_page(options.table, "bench_large_default.py", "The default optimal tree on large tables", note, lines)


if __name__ == "__main__":
    main()
