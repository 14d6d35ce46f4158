"""How far estimators go beyond their limits of time and memory, each in a process of its own.

    .venv/bin/python scripts/bench_limits.py --table scripts/tables/limits.md

50,000 rows x 50 columns. Kernels are compiled before the clock starts: a fit on a few rows comes first. Where
``memory_limit`` is less than the rows need, a warning says how much that is; a second fit gets just that, a third one
more. A fit's memory is what the resident memory of its process grows by at most. With ``--cpu`` the clock of a fit is
the CPU time of its process on one core: the limit then means the same whatever else runs on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import machine_line

from softsurv.errors import LimitWarning
from softsurv.files import replace_file

ROWS, COLUMNS = 50_000, 50
SECONDS = 5.0
"""The limit asked for."""

MEMORY, LEAST_MEMORY = 4e8, 1e6
"""Bytes: the limit asked for, and the least that there is."""

FEW_ROWS, FEW_COLUMNS = 400, 40
"""Of 0/1 columns without any effect, whose searches fill their caches."""

CHOICES: dict[str, tuple[str, str, str]] = {
    "soft": ("SoftSurvivalTree", "survival", "{}"),
    "soft, depth 2": ("SoftSurvivalTree", "survival", "{'depth': 2, 'leaf': 'weibull'}"),
    "soft, dense": ("SoftSurvivalTree", "survival", "{'max_terms': None}"),
    "soft, dense, depth 3": (
        "SoftSurvivalTree",
        "survival",
        "{'depth': 3, 'max_terms': None, 'l2': 1.0, 'shrinkage': 1.0, 'routing_l2': 1.0}",
    ),
    "soft, k-means": (
        "SoftSurvivalTree",
        "survival",
        "{'depth': 2, 'init': 'kmeans', 'l2': 1.0, 'shrinkage': 1.0, 'routing_l2': 1.0}",
    ),
    "soft, NODEC-DR": ("SoftSurvivalTree", "survival", "{'depth': 2, 'preset': 'paper'}"),
    "optimal": ("OptimalSurvivalTree", "survival", "{}"),
    "optimal, depth 5": ("OptimalSurvivalTree", "survival", "{'max_depth': 5, 'thresholds': 50}"),
    "regressions": ("OptimalModelTree", "survival", "{}"),
    "regressions, depth 3": ("OptimalModelTree", "survival", "{'max_depth': 3, 'slopes': 'own'}"),
    "Brier": ("OptimalSurvivalTree", "survival", "{'max_depth': 5, 'objective': 'ibs'}"),
    "accuracy": ("OptimalClassificationTree", "classes", "{'max_depth': 5}"),
    "F1": ("OptimalClassificationTree", "classes", "{'max_depth': 4, 'objective': 'f1'}"),
    "AUC": ("OptimalClassificationTree", "classes", "{'max_depth': 4, 'objective': 'auc'}"),
    "costs": ("OptimalCostSensitiveTree", "costs", "{'max_depth': 5}"),
    "policy": ("OptimalPolicyTree", "policy", "{'max_depth': 5}"),
    "regression": ("OptimalRegressionTree", "numbers", "{'max_depth': 5}"),
    "fair classes": ("OptimalFairClassificationTree", "fair classes", "{'tolerance': 0.01, 'max_depth': 4}"),
    "fair survival": (
        "OptimalFairSurvivalTree",
        "fair survival",
        "{'horizon': 1.0, 'tolerance': 0.01}",
    ),
    "capacity": ("OptimalCapacityPolicyTree", "policy", "{'max_depth': 4, 'capacity': {1: 0.3}}"),
    "survival policy": ("OptimalSurvivalPolicyTree", "survival policy", "{'horizon': 1.0, 'max_depth': 5}"),
}
"""Estimator, kind of outcome, and arguments of each case."""

EVERY_CUT = {"max_depth": 2, "thresholds": "all"}
CHOICES |= {
    name: (kind, outcome, repr(EVERY_CUT | more))
    for name, kind, outcome, more in (
        ("optimal, every cut", "OptimalSurvivalTree", "survival", {}),
        ("accuracy, every cut", "OptimalClassificationTree", "classes", {}),
        ("accuracy, every cut, leaves of 50", "OptimalClassificationTree", "classes", {"min_samples_leaf": 50}),
        ("three classes, every cut", "OptimalClassificationTree", "three classes", {}),
        ("F1, every cut", "OptimalClassificationTree", "classes", {"objective": "f1"}),
        ("AUC, every cut", "OptimalClassificationTree", "classes", {"objective": "auc"}),
        ("regression, every cut", "OptimalRegressionTree", "numbers", {}),
        ("fair survival, every cut", "OptimalFairSurvivalTree", "fair survival", {"horizon": 1.0, "tolerance": 0.01}),
    )
}


FULL: dict[str, tuple[str, str, str]] = {
    "accuracy, full cache": ("OptimalClassificationTree", "classes", "{'max_depth': 8}"),
    "AUC, full cache": ("OptimalClassificationTree", "classes", "{'max_depth': 6, 'objective': 'auc'}"),
    "optimal, full cache": ("OptimalSurvivalTree", "survival", "{'max_depth': 8, 'min_samples_leaf': 1}"),
}
"""Cases on few rows with many subproblems."""

CPU_CLOCK = "The clock of a fit is the CPU time of its process on one core: other programs ran on the machine."

FULL_SECONDS, FULL_MEMORY = 12.0, 3e7
"""Their limits."""


def fit(name: str, n: int, **limits: Any) -> dict[str, Any]:
    """Seconds and status of a fit on n rows, how many bytes it added at most, and how many it says the rows need."""
    import softsurv

    kind, outcome, options = (CHOICES | FULL)[name]
    model = getattr(softsurv, kind)(**eval(options), **limits)
    X, arguments = rows(outcome, n, full=name in FULL)
    before, began = peak(reset=True), time.monotonic()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, **arguments)
    needed = [re.search(r"less than the (\S+)", str(one.message)) for one in said if one.category is LimitWarning]
    return {
        "seconds": time.monotonic() - began,
        "status": str(model.report_.status),
        "memory": peak() - before,
        "needed": max((float(one[1]) for one in needed if one), default=0.0),
    }


def rows(outcome: str, n: int, full: bool = False, columns: int = COLUMNS) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Features and the arguments of ``fit``."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n, columns)), columns=[f"x{k:02d}" for k in range(columns)])
    if full:
        X = pd.DataFrame(rng.integers(0, 2, (n, FEW_COLUMNS)).astype(float)).add_prefix("x0")
    risk = (X["x00"] * (X["x01"] > 0) + X["x02"]).to_numpy()
    time_, event = rng.exponential(np.exp(-risk)) + 1e-3, rng.random(n) < 0.6
    two = rng.integers(0, 2, n)
    survival, classes = {"y": (event, time_)}, {"y": (risk + rng.standard_normal(n) > 0).astype(int)}
    return X, {
        "survival": survival,
        "classes": classes,
        "three classes": {"y": np.digitize(risk + rng.standard_normal(n), [-0.5, 0.5])},
        "costs": classes | {"costs": rng.random((n, 2))},
        "policy": {"scores": np.column_stack([risk, rng.standard_normal(n)])},
        "numbers": {"y": risk + rng.standard_normal(n)},
        "fair classes": classes | {"group": two},
        "fair survival": survival | {"group": two},
        "survival policy": survival | {"treatment": two},
    }[outcome]


def peak(*, reset: bool = False) -> float:
    """Most bytes this process has held, since the last reset."""
    if reset:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return 1024.0 * float(lines["VmRSS" if reset else "VmHWM"].split()[0])


def measured(name: str, cpu: bool, **limits: float) -> dict[str, Any]:
    """Seconds, status and memory of one case in a new process."""
    command = [sys.executable, __file__, *(["--cpu"] if cpu else []), "--case", name, json.dumps(limits)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=1800)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def case(name: str, limits: str, cpu: bool) -> None:
    """Compile, then fit under the limits."""
    given = json.loads(limits)
    if cpu:
        import torch

        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        torch.set_num_threads(1)  # two on one core wait for each other, busily
        time.monotonic = time.process_time
    fit(name, 600 if name in CHOICES else FEW_ROWS, **given | {"time_limit": 1.0})
    print(json.dumps(fit(name, ROWS if name in CHOICES else FEW_ROWS, **given)))


def line(name: str, cpu: bool) -> str:
    """One row of the table."""
    if name in FULL:
        done = measured(name, cpu, time_limit=FULL_SECONDS, memory_limit=FULL_MEMORY)
        return f"| {name} | {done['seconds'] - FULL_SECONDS:+.2f} | {done['status']} | | {share(done, FULL_MEMORY)} | |"
    if name.startswith("soft"):
        timed = measured(name, cpu, time_limit=SECONDS)
        return f"| {name} | {timed['seconds'] - SECONDS:+.2f} | {timed['status']} | | | |"
    needed = 1.01 * measured(name, cpu, time_limit=SECONDS, memory_limit=LEAST_MEMORY)["needed"]
    just = measured(name, cpu, time_limit=SECONDS, memory_limit=needed)
    more = measured(name, cpu, time_limit=SECONDS, memory_limit=MEMORY)
    beyond = max(just["seconds"], more["seconds"]) - SECONDS
    shares = f"{share(just, needed)} | {share(more, MEMORY)}"
    return f"| {name} | {beyond:+.2f} | {more['status']} | {needed / 1e6:.0f} | {shares} |"


def share(done: dict[str, Any], limit: float) -> str:
    """Memory as a share of its limit; a fit that a warning came with is marked."""
    return f"{done['memory'] / limit:.2f}" + (" (told)" if done["needed"] else "")


def main() -> None:
    """Measure all cases, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*CHOICES, *FULL])
    parser.add_argument("--table", type=Path, help="file for the table")
    parser.add_argument("--cpu", action="store_true", help="the clock is the CPU time of one core")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        case(*args.case, args.cpu)
        return
    head = [
        "# Limits",
        "",
        f"Made by `scripts/bench_limits.py{' --cpu' if args.cpu else ''}`. {machine_line()}.",
        *([CPU_CLOCK] if args.cpu else []),
        f"{ROWS:,} rows x {COLUMNS} columns, `time_limit={SECONDS:g}`. Seconds beyond the limit (below 0: proven",
        "sooner); what the rows need by the warning, in MB; resident memory that the fit added, as a share of",
        f"`memory_limit`, where that is what the rows need, and where it is {MEMORY / 1e6:.0f} MB.",
        f"Full caches: {FEW_ROWS} rows x {FEW_COLUMNS} columns of noise, {FULL_SECONDS:g} s,",
        f"{FULL_MEMORY / 1e6:.0f} MB.",
        "",
        "| estimator | seconds beyond | status | rows need, MB | share of this limit | share of the larger |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    lines = []
    for name in args.names:
        lines.append(line(name, args.cpu))
        print(lines[-1], flush=True)
    if args.table is not None:
        replace_file(args.table, "\n".join([*head, *lines, ""]))


if __name__ == "__main__":
    main()
