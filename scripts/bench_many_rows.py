"""Optimal trees of many rows, from ``fit`` to ``fit``: 1,000,000 rows with 20 features of ten cuts.

Run from the repository root:

    OMP_NUM_THREADS=1 python scripts/bench_many_rows.py --table scripts/tables/many_rows.md
    OMP_NUM_THREADS=1 python scripts/bench_many_rows.py --rows 100000 --depths 3 --tasks accuracy

Features are normal; classes and event times depend on five of them, partly by products, with much noise, so that bounds
exclude little. Each fit runs in a process of its own with compiled kernels: wall-clock and CPU seconds of ``fit``, what
of it the search took, and the largest resident memory. Beside it the same fit without joint sums
(`softsurv/exact/joint`), which compares trees by the recursion: with the time limit of ``--limit`` seconds.
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
from _machine import write_page

FEATURES = 20
SMALL = 20_000
"""Rows of a fit beforehand, with which kernels are compiled or read from disk."""


def simulated(task: str, n: int) -> tuple[np.ndarray, Any]:
    """Features (N, P) and the outcome."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, FEATURES))
    risk = x[:, 0] * x[:, 1] + x[:, 2] - (x[:, 3] > 0.5) * x[:, 4]
    if task == "accuracy":
        return x, (rng.random(n) < 1 / (1 + np.exp(-2 * risk))).astype(int)
    event_time, censoring = rng.exponential(np.exp(-0.5 * risk)), rng.exponential(2.0, n)
    return x, (event_time <= censoring, np.minimum(event_time, censoring))


def measure(task: str, n: int, depth: int, joint: bool, limit: float, jobs: int, out: Any) -> None:
    """One fit in this process."""
    from softsurv import OptimalClassificationTree, OptimalSurvivalTree
    from softsurv.exact import prepare
    from softsurv.exact.joint import scratch
    from softsurv.exact.search import Search

    seconds, solve = [0.0], Search.solve

    def timed(search: Search, *args: Any, **how: Any) -> Any:
        begin = time.process_time()
        try:
            return solve(search, *args, **how)
        finally:
            seconds[0] += time.process_time() - begin

    Search.solve = timed  # type: ignore[method-assign]
    if not joint:
        prepare.joint_pays = lambda problem, rows: False
    kind = OptimalClassificationTree if task == "accuracy" else OptimalSurvivalTree
    model = kind(max_depth=depth, time_limit=limit, n_jobs=jobs, memory_limit=4e9)
    usual, scratch.CELL_WORK = scratch.CELL_WORK, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*simulated(task, SMALL))
        scratch.CELL_WORK, seconds[0] = usual, 0.0
        X, y = simulated(task, n)
        cpu, wall = time.process_time(), time.perf_counter()
        model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    report = model.report_
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    out.send((wall, cpu, seconds[0], peak, str(report.status), report.objective, report.lower_bound))


def case(task: str, n: int, depth: int, joint: bool, limit: float, jobs: int) -> dict[str, Any]:
    """A row of the table."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(task, n, depth, joint, limit, jobs, there))
    process.start()
    there.close()
    wall, cpu, search, peak, status, objective, bound = here.recv()
    process.join()
    return {
        "task": task,
        "rows": n,
        "depth": depth,
        "threads": jobs,
        "joint sums": "yes" if joint else "no",
        "fit (s)": f"{wall:.1f}",
        "fit (s, CPU)": f"{cpu:.1f}",
        "search (s, CPU)": f"{search:.1f}",
        "peak (GB)": f"{peak / 1e9:.1f}",
        "status": status,
        "objective": f"{objective:.6g}",
        "bound": f"{bound:.6g}",
    }


def main() -> None:
    """Time every case and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--tasks", nargs="+", choices=["accuracy", "risk"], default=["accuracy", "risk"])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a fit without joint sums (default: 60)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--with-only", action="store_true", help="leave out the fits without joint sums")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    lines = []
    for task in options.tasks:
        for n in options.rows:
            for depth in options.depths:
                for joint in (True,) if options.with_only else (True, False):
                    limit = 600.0 if joint else options.limit
                    lines.append(case(task, n, depth, joint, limit, options.jobs))
                    print(lines[-1], flush=True)
    if options.table is not None:
        note = "Goals from `fit` to `fit`: depth 3 within 8 s for accuracy and 30 s for relative risk."
        write_page(options.table, "bench_many_rows.py", "Optimal trees of many rows", note, lines)


if __name__ == "__main__":
    main()
