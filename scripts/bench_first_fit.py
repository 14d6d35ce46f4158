"""The first fit of each kind of tree on a machine: what its compilation takes, and what a later process waits.

    python scripts/bench_first_fit.py
    python scripts/bench_first_fit.py --only "relative risk"

writes scripts/tables/first_fit.md. Every row is a fit of 200 rows and three features in a process of its own, first
with an empty kernel cache, then with the one it left: wall-clock seconds of the call of ``fit``, which imports numba
too, and the CPU seconds of its process and of the second one that compiles beside it. The fits themselves take
milliseconds, but the soft tree's, which chooses among its settings in between.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from _machine import as_markdown, machine_line

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "scripts" / "tables" / "first_fit.md"
DEEP = "max_depth=4"

FITS = {
    "relative risk": "OptimalSurvivalTree({}).fit(X, y)",
    "relative risk, tuned": "OptimalSurvivalTree(tune='cv', {}).fit(X, y)",
    "relative risk, every cut": "OptimalSurvivalTree(thresholds='all', max_depth=2).fit(X, y)",
    "integrated Brier score": "OptimalSurvivalTree('ibs', {}).fit(X, y)",
    "competing risks": "OptimalSurvivalTree({}).fit(X, time=times, cause=causes)",
    "models in the leaves": "OptimalModelTree({}).fit(X, y)",
    "fair survival": "OptimalFairSurvivalTree(1.0, {}).fit(X, y, group=group)",
    "survival policy": "OptimalSurvivalPolicyTree(1.0, {}).fit(X, y, treatment=group)",
    "accuracy": "OptimalClassificationTree({}).fit(X, label)",
    "F1": "OptimalClassificationTree('f1', {}).fit(X, label)",
    "AUC": "OptimalClassificationTree('auc', {}).fit(X > 0, label)",
    "fair classes": "OptimalFairClassificationTree({}).fit(X, label, group=group)",
    "costs of tests": "OptimalCostSensitiveTree({}).fit(X, label)",
    "regression": "OptimalRegressionTree({}).fit(X, y[1])",
    "policy": "OptimalPolicyTree('ips', {}).fit(X, y[1], treatment=group, propensity=half)",
    "policy within a capacity": (
        "OptimalCapacityPolicyTree({{1: 0.3}}, 'ips', {}).fit(X, y[1], treatment=group, propensity=half)"
    ),
    "soft tree": "SoftSurvivalTree().fit(X, y)",
}
"""Kinds of tree, by name; the braces take a depth other than the default."""

CODE = """
import sys, time, warnings, os
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
from softsurv import *
import softsurv
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
y = rng.random(200) < 0.5, rng.exponential(size=200)
times, causes = y[1], rng.integers(0, 3, size=200)
label, group = rng.integers(0, 2, size=200), rng.integers(0, 2, size=200)
half = np.full(200, 0.5)
def now():
    t = os.times()
    return time.perf_counter(), t.user + t.system + t.children_user + t.children_system
softsurv.{name}
begin = now()
{call}
print(*(f"{{after - before:.2f}}" for before, after in zip(begin, now())))
"""


def timed(call: str, cache: str) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a fit in a process of its own."""
    env = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    code = CODE.format(name=call.split("(")[0], call=call)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{call} failed: {done.stderr[-2000:]}")
    wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


def row(what: str, depth: str, call: str) -> dict[str, str | float]:
    """First and second fit."""
    with tempfile.TemporaryDirectory() as cache:
        (first, cpu), (later, _) = timed(call, cache), timed(call, cache)
    found = {"tree": what, "depth": depth, "first fit (s)": first, "CPU (s)": cpu, "later process (s)": later}
    print(found, flush=True)
    return found


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="some of the kinds; writes no table")
    args = parser.parse_args()
    rows = []
    for what, call in FITS.items():
        if args.only and what not in args.only:
            continue
        rows.append(row(what, "default", call.format("").replace(", )", ")")))
        if "{}" in call:
            rows.append(row(what, "4", call.format(DEEP)))
    if args.only:
        return
    title = f"# {__doc__.splitlines()[0]}"
    lines = [title, "", "Made by `scripts/bench_first_fit.py`.", "", machine_line(), ""]
    OUT.write_text("\n".join([*lines, as_markdown(pd.DataFrame(rows)), ""]))


if __name__ == "__main__":
    main()
