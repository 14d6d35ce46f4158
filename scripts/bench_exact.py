"""Speed of the exact relative-risk trees beside pystreed 1.4.0, and what each part of the search is worth.

Run from the repository root, with the extra ``peers`` installed:

    OMP_NUM_THREADS=1 python scripts/bench_exact.py speed      # depth 4 and 5 beside pystreed, single thread
    OMP_NUM_THREADS=1 python scripts/bench_exact.py all        # GBSG2 with every threshold
    OMP_NUM_THREADS=1 python scripts/bench_exact.py large      # hdfail, 52,422 rows
    OMP_NUM_THREADS=1 python scripts/bench_exact.py jobs       # two threads
    OMP_NUM_THREADS=1 python scripts/bench_exact.py ablation   # each switch off

Both sides get the same columns and start from them: ours from codes (merging equal rows included), pystreed from its
0/1 matrix. Times are the least of interleaved repeats, CPU seconds of the process for single-thread runs (wall-clock
seconds beside), so that other work on the machine counts little. pystreed's tree is re-scored by our cost (eq. 20).
"leaves without events" counts where the two may differ by rule: pystreed charges such a leaf 1/2 in places
(theta = 1/(2 HS) put into eq. 9), we charge 0 everywhere.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from _exact_data import Coded, coded, fit_pystreed, objective_of, pystreed_leaves
from _machine import as_markdown, machine_line

from softsurv.exact.bounds import Bounds
from softsurv.exact.compile import ready
from softsurv.exact.objectives import relative_risk

SPEED = [(name, 4) for name in ("veteran", "whas500", "GBSG2", "uis", "Aids2", "UnempDur", "Framingham")] + [
    (name, 5) for name in ("veteran", "Aids2", "GBSG2", "UnempDur")
]
SWITCHES = tuple(field.name for field in fields(Bounds))


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall-clock seconds, result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def least(works: list[Callable[[], Any]], repeats: int) -> list[tuple[float, float, Any]]:
    """Least CPU and wall time of each piece of work, over interleaved repeats, with the last result."""
    runs = [[timed(work) for work in works] for _ in range(repeats)]
    return [(min(r[k][0] for r in runs), min(r[k][1] for r in runs), runs[-1][k][2]) for k in range(len(works))]


def compare(data: Coded, depth: int, repeats: int) -> dict[str, Any]:
    """One row of the comparison."""
    ours, peer = least([lambda: data.search().solve(depth), lambda: fit_pystreed(data, depth)], repeats)
    leaf = pystreed_leaves(data, peer[2])
    rescored = objective_of(data, leaf)
    eventless = sum(data.statistics[leaf == k, 0].sum() == 0 for k in np.unique(leaf))
    return {
        "set": data.name,
        "rows": len(data.codes),
        "columns": data.binary.shape[1],
        "depth": depth,
        "ours (s)": f"{ours[0]:.4f}",
        "pystreed (s)": f"{peer[0]:.4f}",
        "speed-up": round(peer[0] / ours[0], 1),
        "ours, wall": f"{ours[1]:.4f}",
        "pystreed, wall": f"{peer[1]:.4f}",
        "objective": f"{ours[2].report.objective:.6f}",
        "pystreed's tree": f"{rescored:.6f}",
        "leaves without events": int(eventless),
        "ours <= pystreed": ours[2].report.objective <= rescored + 1e-6,
    }


def show(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    print(as_markdown(frame), flush=True)
    return frame


def geometric_mean(values: Any) -> float:
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float)))))


def speed(repeats: int) -> None:
    rows = []
    for name, depth in SPEED:
        rows.append(compare(coded(name), depth, repeats if depth == 4 else max(2, repeats // 2)))
        print(f"{name} {depth}: x{rows[-1]['speed-up']}", file=sys.stderr)
    frame = show(rows)
    slower = (frame["ours (s)"].astype(float) - frame["pystreed (s)"].astype(float)).max()
    print(
        f"\ngeometric mean of the speed-up: {geometric_mean(frame['speed-up']):.2f}; worst case {slower * 1e3:+.1f} ms"
    )


def all_thresholds(repeats: int) -> None:
    data = coded("GBSG2", "all", None, 0.0)
    show([compare(data, depth, repeats if depth == 2 else 2) for depth in (2, 3)])


def large() -> None:
    data = coded("hdfail")
    (ours,) = least([lambda: data.search().solve(3)], 3)
    everything = coded("hdfail", "all", None, 0.0)
    (exact,) = least([lambda: everything.search().solve(3, time_limit=60.0)], 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for label, run, source in (("ten quantiles", ours, data), ("all thresholds", exact, everything)):
        report = run[2].report
        print(
            f"hdfail, depth 3, {label} ({source.binary.shape[1]} columns, {report.details['distinct_rows']} distinct "
            f"rows): {report.status}, objective {report.objective:.4f}, {run[1]:.3f} s"
        )
    print(f"peak memory of the process {peak:.2f} GiB")


def jobs(repeats: int) -> None:
    """Depth 5 with one and two threads; the CPU seconds show what the second thread does twice."""
    rows = []
    for name in ("GBSG2", "UnempDur"):
        data = coded(name)
        one, two = least([lambda n=n, data=data: data.search().solve(5, n_jobs=n) for n in (1, 2)], repeats)
        same = all(
            np.array_equal(getattr(one[2].tree, k), getattr(two[2].tree, k)) for k in ("feature", "code", "left")
        )
        rows.append(
            {
                "set": name,
                "one thread (s, wall)": f"{one[1]:.3f}",
                "two threads": f"{two[1]:.3f}",
                "speed-up": round(one[1] / two[1], 2),
                "one thread (s, CPU)": f"{one[0]:.3f}",
                "two threads, CPU": f"{two[0]:.3f}",
                "base cases": " / ".join(str(run[2].report.details["base_cases"]) for run in (one, two)),
                "same objective": abs(one[2].report.objective - two[2].report.objective) < 1e-9,
                "same tree": same,
            }
        )
    show(rows)


def ablation() -> None:
    rows = []
    cases = [("whas500", 10, 3, 0.0), ("GBSG2", 10, 4, 0.0), ("Aids2", 10, 5, 8.0), ("GBSG2", "all", 3, 0.0)]
    for name, thresholds, depth, complexity in cases:
        data = coded(name, thresholds, 10 if thresholds == 10 else None, 0.01 if thresholds == 10 else 0.0)
        settings = {"everything on": Bounds()} | {f"no {s}": Bounds(**{s: False}) for s in SWITCHES}
        for label, bounds in settings.items():
            search = data.search(bounds=bounds, complexity=complexity)
            ready(search.task)
            cpu, _, solution = timed(lambda s=search, d=depth: s.solve(d, time_limit=60.0))
            rows.append(
                {
                    "set": f"{name}, {thresholds} thresholds, depth {depth}, cost per leaf {complexity:g}",
                    "switch": label,
                    "CPU (s)": f"{cpu:.3f}",
                    "base cases": solution.report.details["base_cases"],
                    "status": str(solution.report.status),
                    "objective": f"{solution.report.objective:.6f}",
                }
            )
    show(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["speed", "all", "large", "jobs", "ablation"])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(machine_line() + "\n", flush=True)
    ready(relative_risk.TASK)
    if args.part == "speed":
        speed(args.repeats)
    elif args.part == "all":
        all_thresholds(args.repeats)
    elif args.part == "jobs":
        jobs(args.repeats)
    else:
        {"large": large, "ablation": ablation}[args.part]()


if __name__ == "__main__":
    main()
