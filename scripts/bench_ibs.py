"""Speed, agreement and scale of the integrated-Brier-score trees, beside `osst` 0.1.8.

Run from the repository root, one thread, with the extra ``peers`` installed and the folder of the paper's binarised
data (last two columns: event, time) given by --data or by $SOFTSURV_DATA/osst:

    OMP_NUM_THREADS=1 python scripts/bench_ibs.py speed       # the 24 cases of the speed target
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py agreement   # 13 data sets, depths 2 to 5: same objective?
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py scale       # 15 binary features, up to a million rows

`osst` counts a single leaf as depth 1, so its depth_budget is our depth + 1. It runs in a process of its own for
every fit, because a second fit in one process aborts; its import is not timed. Two times of it are shown: the call
of ``fit`` (as ours: data in, tree out) and the seconds it reports for the search alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from softsurv.exact.ibs_solve import IbsSolution, solve_ibs
from softsurv.results import Status

MIN_ROWS = 7
SPEED_SETS = ("veterans", "gbsg2", "maintenance", "aids", "churn", "credit")
AGREEMENT_SETS = (
    "aids",
    "aids_death",
    "churn",
    "credit",
    "employee",
    "gbsg2",
    "maintenance",
    "veterans",
    "airfoil",
    "insurance",
    "real-estate",
    "servo",
    "sync",
)

OSST_WORKER = """
import json, sys, time
import numpy as np, pandas as pd
from osst.model.osst import OSST
job = json.loads(sys.argv[1])
table = pd.read_csv(job["file"])
table = table[[c for c in table.columns if not c.startswith("Unnamed")]]
event, y = (pd.DataFrame(table.iloc[:, k].to_numpy()) for k in (-2, -1))
model = OSST({"regularization": job["complexity"], "depth_budget": job["depth"] + 1 if job["depth"] else 0,
              "minimum_captured_points": job["min_rows"], "look_ahead": True, "model_limit": 1,
              "time_limit": job["time_limit"]})
start = time.perf_counter()
model.fit(table.iloc[:, :-2], event.astype(int), y)
wall = time.perf_counter() - start
print(json.dumps({"wall": wall, "search": model.time, "loss": model.reported_loss, "lower": model.lb,
                  "upper": model.ub, "leaves": model.leaves(), "timeout": model.timeout}))
"""


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Binary features, times and events of one of the paper's files; an unnamed index column is dropped."""
    table = pd.read_csv(folder / f"{name}.csv")
    table = table[[column for column in table.columns if not column.startswith("Unnamed")]]
    return table.iloc[:, :-2].to_numpy(), table.iloc[:, -1].to_numpy(float), table.iloc[:, -2].to_numpy(bool)


def run_osst(folder: Path, name: str, depth: int, complexity: float, time_limit: float) -> dict | None:
    """One fit of the reference in a process of its own; None if it ran out of time or failed."""
    job = {
        "file": str(folder / f"{name}.csv"),
        "depth": depth,
        "complexity": complexity,
        "min_rows": MIN_ROWS,
        "time_limit": int(time_limit),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", OSST_WORKER, json.dumps(job)],
            capture_output=True,
            text=True,
            timeout=time_limit + 60,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return None if answer["timeout"] else answer


def run_ours(data: tuple, depth: int | None, complexity: float, **options) -> tuple[IbsSolution, float]:
    """One fit of ours and its wall-clock seconds."""
    x, y, event = data
    start = time.perf_counter()
    solution = solve_ibs(x, y, event, complexity=complexity, max_depth=depth, min_samples_leaf=MIN_ROWS, **options)
    return solution, time.perf_counter() - start


def warm_up() -> None:
    """Load the compiled kernels, so that no timing holds their compilation."""
    rng = np.random.default_rng(0)
    x, y, event = rng.integers(0, 2, (200, 6)), rng.integers(1, 9, 200).astype(float), rng.random(200) < 0.7
    for leaf in ("km", "ipcw"):
        solve_ibs(x, y, event, max_depth=3, complexity=0.001, leaf=leaf)
    solve_ibs(x, rng.random(200), event, max_depth=3, complexity=0.001)


def speed(folder: Path, repeats: int) -> None:
    """The speed target: depths 3 and 4, complexity 0.01 and 0.0025; the least of some runs, interleaved."""
    print("data set      depth  lambda   ours s  osst fit s  osst search s  fit x  search x  objective  difference")
    ratios, search_ratios, slower = [], [], []
    for name in SPEED_SETS:
        data = load(folder, name)
        for depth in (3, 4):
            for complexity in (0.01, 0.0025):
                ours, theirs, search = [], [], []
                for _ in range(repeats):
                    answer = run_osst(folder, name, depth, complexity, 600)
                    if answer is None:
                        continue
                    theirs.append(answer["wall"])
                    search.append(answer["search"])
                    for _ in range(3):
                        solution, seconds = run_ours(data, depth, complexity)
                        ours.append(seconds)
                if not theirs:
                    print(f"{name:12s} {depth:6d} {complexity:7g} the reference failed")
                    continue
                a, b, c = min(ours), min(theirs), min(search)
                ratios.append(b / a)
                search_ratios.append(max(c, 0.0005) / a)
                slower.append(a - b)
                print(
                    f"{name:12s} {depth:6d} {complexity:7g} {a:8.4f} {b:11.4f} {c:14.4f} {b / a:6.1f} "
                    f"{c / a:9.1f} {solution.report.objective:10.7f} "
                    f"{solution.report.objective - answer['upper']:+.1e}",
                    flush=True,
                )
    print(f"geometric mean speed-up: {geometric_mean(ratios):.1f} on fit, {geometric_mean(search_ratios):.1f} ", end="")
    print(f"on its search alone; worst case slower by {1e3 * max(slower):.1f} ms (negative: faster everywhere)")


def agreement(folder: Path, names: list[str], time_limit: float, complexities: list[float], depths: list[int]) -> None:
    """Objectives of both, where the reference ends in time."""
    print("data set      depth   lambda  status      ours        osst       difference  leaves  ours s  osst s")
    worst, cases, unfinished = 0.0, 0, 0
    for name in names:
        data = load(folder, name)
        for depth in depths:
            for complexity in complexities:
                answer = run_osst(folder, name, depth, complexity, time_limit)
                solution, seconds = run_ours(data, depth, complexity, time_limit=time_limit)
                report = solution.report
                row = f"{name:12s} {depth:6d} {complexity:8g}  {report.status.value:10s} {report.objective:.8f}"
                if answer is None:
                    unfinished += 1
                    print(f"{row}  (did not end) {report.details['n_leaves']:21d} {seconds:7.2f}", flush=True)
                    continue
                difference = report.objective - answer["upper"]
                if report.status is Status.OPTIMAL:
                    cases, worst = cases + 1, max(worst, abs(difference))
                print(
                    f"{row}  {answer['upper']:.8f}  {difference:+.1e}  {report.details['n_leaves']:8d} "
                    f"{seconds:7.2f} {answer['wall']:7.2f}",
                    flush=True,
                )
    print(f"{cases} cases ended in both, largest difference {worst:.1e}; the reference did not end in {unfinished}")


def synthetic_rows(n: int, n_times: int | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The shape of the paper's household data: 5 variables in 4 categories, 15 columns, 20 % censored at random."""
    rng = np.random.default_rng(seed)
    level = np.stack([rng.choice(4, n, p=rng.dirichlet(np.full(4, 4.0))) for _ in range(5)], axis=1)
    x = (level[:, :, None] == np.arange(1, 4)).reshape(n, 15).astype(np.uint8)
    risk = x @ rng.normal(0.0, 1.2, 15) + 2.0 * (x[:, 0] & x[:, 4]) - 1.5 * (x[:, 8] & (1 - x[:, 12]))
    y = rng.weibull(1.5, n) * np.exp(-risk / 1.5)
    y = (1.0 + np.argsort(np.argsort(y))) / n  # ranks: the score has something to explain over the whole range
    if n_times is not None:
        y = np.ceil(y * n_times)
    event = rng.random(n) > 0.2
    censored = y * rng.random(n)
    return x, np.where(event, y, np.ceil(censored) if n_times else censored), event


def scale(sizes: list[int]) -> None:
    """Seconds and peak memory against rows, for few, many and all-distinct times; depth 5, complexity 0.01."""
    print("rows       distinct times  status     seconds  CPU s  objective  leaves  peak GiB (the process so far)")
    for n, n_times in cases_of(sizes):
        x, y, event = synthetic_rows(n, n_times)
        before = time.process_time()
        solution, seconds = run_ours((x, y, event), 5, 0.01)
        cpu = time.process_time() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{n:10d} {np.unique(y).size:14d}  {solution.report.status.value:8s} {seconds:9.2f} "
            f"{cpu:6.2f} {solution.report.objective:10.6f} {solution.report.details['n_leaves']:7d} {peak:8.2f}",
            flush=True,
        )


def cases_of(sizes: list[int]) -> Iterator[tuple[int, int | None]]:
    """Rows and number of times."""
    for n in sizes:
        for n_times in (50, 4000, None):
            yield n, n_times


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "agreement", "scale"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SOFTSURV_DATA", "data")) / "osst")
    parser.add_argument("--repeats", type=int, default=2, help="runs of the reference per case")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per fit in 'agreement'")
    parser.add_argument("--complexity", type=float, nargs="+", default=[0.1, 0.01, 0.001])
    parser.add_argument("--sets", nargs="+", default=list(AGREEMENT_SETS), help="data sets of 'agreement'")
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    warm_up()
    if options.what == "speed":
        speed(options.data, options.repeats)
    elif options.what == "agreement":
        agreement(options.data, options.sets, options.time_limit, options.complexity, options.depths)
    else:
        scale(options.rows)


if __name__ == "__main__":
    main()
