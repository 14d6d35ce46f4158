"""How far estimators go beyond their limits of time and memory, each in a process of its own.

Kernels are compiled before the clock starts: a fit on a few rows comes first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

ROWS, COLUMNS = 50_000, 50
SECONDS = 5.0
"""The limit asked for."""

SLACK = 0.5
"""What a fit may take beyond it, in seconds of an idle machine."""

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


def fit(name: str, n: int, **limits: Any) -> tuple[Any, float, float]:
    """The fitted estimator on n rows, its seconds, and how much memory its fit added at most, in bytes."""
    import softsurv

    kind, outcome, options = CHOICES[name]
    model = getattr(softsurv, kind)(**eval(options), **limits)
    X, arguments = rows(outcome, n)
    before, began = peak(reset=True), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, **arguments)
    return model, time.monotonic() - began, peak() - before


def rows(outcome: str, n: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Features and the arguments of ``fit``."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n, COLUMNS)), columns=[f"x{k:02d}" for k in range(COLUMNS)])
    risk = (X["x00"] * (X["x01"] > 0) + X["x02"]).to_numpy()
    time_, event = rng.exponential(np.exp(-risk)) + 1e-3, rng.random(n) < 0.6
    two = rng.integers(0, 2, n)
    survival, classes = {"y": (event, time_)}, {"y": (risk + rng.standard_normal(n) > 0).astype(int)}
    return X, {
        "survival": survival,
        "classes": classes,
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


def measured(name: str) -> dict[str, float | str]:
    """Seconds beyond the limit, and status, of one case in a new process."""
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=600)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(name: str) -> None:
    """One case: compile, then fit under the limit."""
    fit(name, 600, time_limit=1.0)
    model, seconds, memory = fit(name, ROWS, time_limit=SECONDS)
    print(json.dumps({"beyond": seconds - SECONDS, "status": str(model.report_.status), "memory": memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
