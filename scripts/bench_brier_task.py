"""The integrated Brier score as a task of the main engine, beside the search that softsurv has for it.

    SOFTSURV_DATA=folder OMP_NUM_THREADS=1 python scripts/bench_brier_task.py --out scripts/tables/brier_task.md

A leaf's score is a function of two sums for each distinct time: events, and rows that leave. So the score is a task
(`softsurv.exact.task`) of 2 T statistics, and any base case of the main engine could serve it. The times are put on
grids of T quantiles here, for both searches alike: they minimise the same number. CPU seconds, the least of some runs.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _osst_models import MIN_ROWS, load
from _tasks import folder
from numba import njit

from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.brier.warm_up import ready as ready_ibs
from softsurv.exact.compile import ready
from softsurv.exact.objectives.brier import IbsScore
from softsurv.exact.search import Search
from softsurv.exact.task import Task

SETS = ("veterans", "gbsg2")
GRIDS = (4, 8, 16, 32, 0)
"""Numbers of distinct times; 0 for all of them."""

LIMIT = 60.0


def on_grid(times: np.ndarray, n: int) -> np.ndarray:
    """Each time moved up to one of n quantiles."""
    if n == 0:
        return times
    grid = np.unique(np.quantile(times, np.linspace(1 / n, 1, n), method="higher"))
    return grid[np.searchsorted(grid, times)]


def brier_task(score: IbsScore) -> tuple[Task, np.ndarray]:
    """The score of Kaplan-Meier leaves as a task, with the statistics (N, 2 T): events and rows at each time."""
    grid = score.grid()
    g, dt, steps = np.where(grid.g > 0, grid.g, np.inf), grid.dt, len(grid.times)
    at = np.searchsorted(grid.times, score.time)
    rows = np.zeros((len(at), 2 * steps))
    rows[np.arange(len(at)), at] = score.event
    rows[np.arange(len(at)), steps + at] = 1.0

    @njit
    def leaf_costs(sums, n, out):
        for i in range(n):
            alive = 0.0
            for t in range(steps):
                alive += sums[steps + t, i]
            survival, died, cost = 1.0, 0.0, 0.0
            for t in range(steps):
                if alive > 0.0:
                    survival *= 1.0 - sums[t, i] / alive
                alive -= sums[steps + t, i]
                died += sums[t, i] / g[t]
                cost += dt[t] * (alive / g[t] * (1.0 - survival) ** 2 + died * survival**2)
            out[i] = cost

    return Task(f"brier_{steps}", 2 * steps, leaf_costs, superadditive=False), rows


def least(work, repeats: int):
    """Least CPU seconds, and the result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
        if best > 1.0:
            break
    return best, result


def compare(name: str, depth: int, n: int, repeats: int) -> dict[str, str]:
    """Both searches on one set, with times on a grid."""
    x, y, event = load(folder() / "osst", name)
    times = on_grid(y, n)
    task, statistics = brier_task(IbsScore.from_columns(times, event))
    ready(task)
    codes = x.astype(np.int32), np.full(x.shape[1], 2), np.zeros(x.shape[1], bool)

    def by_task():
        return Search(task, *codes, statistics, min_leaf=MIN_ROWS).solve(depth, time_limit=LIMIT).report

    def by_search():
        return solve_ibs(
            x, times, event, complexity=0.0, max_depth=depth, min_samples_leaf=MIN_ROWS, time_limit=LIMIT
        ).report

    (ours, own), (other, main) = least(by_search, repeats), least(by_task, repeats)
    return {
        "set": name,
        "rows": str(len(x)),
        "columns": str(x.shape[1]),
        "depth": str(depth),
        "times": str(statistics.shape[1] // 2),
        "its own search (s)": f"{ours:.4f}",
        "task of the main engine (s)": f"{other:.4f}" + ("" if main.status == "optimal" else f" ({main.status})"),
        "times slower": f"{other / ours:.1f}",
        "objective": f"{own.objective:.6f}",
        "difference": f"{main.objective - own.objective:+.1e}",
    }


def main() -> None:
    """Measure every case, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    ready_ibs()
    rows = []
    for name, n, depth in product(SETS, GRIDS, (2, 3)):
        rows.append(compare(name, depth, n, options.repeats))
        print(rows[-1], flush=True)
    title = "# The integrated Brier score as a task of the main engine"
    text = "\n".join([title, "", machine_line(), "", as_markdown(pd.DataFrame(rows)), ""])
    if options.out:
        options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
