"""Optimal trees over every cut of continuous columns, from ``fit`` to ``fit`` beside pycontree.

Run from the repository root; pycontree 1.0.8 is on PyPI, and ``--data`` is the folder ``datasets`` of its repository
(ConSol-Lab/contree: text files of a label and the features in each row). Without it the simulated sets are run alone.

    OMP_NUM_THREADS=1 python scripts/bench_continuous.py --data datasets --table scripts/tables/continuous.md
    OMP_NUM_THREADS=1 python scripts/bench_continuous.py --data datasets --sets bank rice --depths 2

Both sides get the same arrays, depth, and leaves of any size; times are the least CPU seconds of interleaved repeats,
one from depth 3 on, with compiled kernels. A line is as good as its errors: they are equal where both are proven.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import OptimalClassificationTree, OptimalFairClassificationTree, OptimalSurvivalTree
from softsurv.files import replace_file

SETS = ("bank", "raisin", "rice", "wilt", "segment", "fault", "page", "htru", "eeg")
SURVIVAL = ((1_000, 10, 2), (10_000, 20, 2), (1_000, 10, 3))
"""Rows, columns and depth of the simulated survival tables."""

GOALS: tuple[dict[str, Any], ...] = (
    {}, {"max_leaves": 3}, {"min_samples_leaf": 50}, {"objective": "f1"}, {"objective": "mcc"}, {"tolerance": 0.01},
)  # fmt: skip
"""Arguments of trees of simulated classes; with a tolerance, fair ones."""

GOAL_ROWS = (2_000, 20_000)
"""Rows of their tables."""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and its CPU seconds."""
    begin = time.process_time()
    return work(), time.process_time() - begin


def classes(name: str, folder: Path, depth: int, limit: float) -> dict[str, Any]:
    """One set of classes: our tree and that of pycontree."""
    from pycontree import ConTree

    table = np.loadtxt(folder / f"{name}.txt")
    X, y = table[:, 1:], np.unique(table[:, 0], return_inverse=True)[1]
    ours = OptimalClassificationTree(max_depth=depth, thresholds="all", min_samples_leaf=1, time_limit=limit)
    peer = ConTree(max_depth=depth, time_limit=limit)
    runs = [(timed(lambda: ours.fit(X, y))[1], timed(lambda: peer.fit(X, y))[1]) for _ in range(3 if depth < 3 else 1)]
    mine, theirs = np.min(runs, axis=0)
    return {
        "set": name,
        "rows": len(X),
        "columns": X.shape[1],
        "depth": depth,
        "ours, s": f"{mine:.3f}",
        "pycontree, s": f"{theirs:.3f}",
        "times faster": f"{theirs / mine:.2f}",
        "errors of ours": int((ours.predict(X) != y).sum()),
        "of pycontree": int((peer.predict(X) != y).sum()),
        "status": str(ours.status_),
    }


def survival(n: int, p: int, depth: int, limit: float) -> dict[str, Any]:
    """A relative-risk tree over every cut of simulated columns; the hazard depends on two of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    hazard = np.exp(0.8 * (X[:, 0] > 0.3) - 0.8 * (X[:, 1] > -0.2))
    y = (rng.random(n) < 0.7, rng.exponential(1 / hazard))
    tree = OptimalSurvivalTree(max_depth=depth, thresholds="all", min_samples_leaf=1, shrinkage=0, time_limit=limit)
    seconds = timed(lambda: tree.fit(X, y))[1]
    report = tree.report_
    return {
        "rows": n,
        "columns": p,
        "depth": depth,
        "s": f"{seconds:.1f}",
        "status": str(tree.status_),
        "gap": f"{report.gap:.2g}",
    }


def goal(n: int, how: dict[str, Any], limit: float) -> dict[str, Any]:
    """A tree of depth two over every cut of ten simulated columns, of which the class depends on four."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 10))
    score = (X[:, 0] > X[:, 1]) + (X[:, 2] + X[:, 3] > 1.0) + 0.7 * rng.normal(size=n)
    y, group = (score > 1.2).astype(int), (X[:, 2] + rng.normal(scale=0.3, size=n) > 0.5).astype(int)
    fair = "tolerance" in how
    kind = OptimalFairClassificationTree if fair else OptimalClassificationTree
    tree = kind(**({"max_depth": 2, "thresholds": "all", "min_samples_leaf": 1, "time_limit": limit} | how))
    seconds = timed(lambda: tree.fit(X, y, group=group) if fair else tree.fit(X, y))[1]
    return {
        "rows": n,
        "tree": ", ".join(f"{name}={value}" for name, value in how.items()) or "accuracy",
        "s": f"{seconds:.1f}",
        "status": str(tree.status_),
        "objective": f"{tree.objective_:.4f}",
        "bound": f"{tree.lower_bound_:.4f}",
    }


def main() -> None:
    """Run the sets and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets of classes")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--depths", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that each side has")
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    OptimalClassificationTree(max_depth=3, thresholds="all").fit(np.arange(60.0)[:, None] % 7, np.arange(60) % 2)
    found = []
    for depth in args.depths:
        for name in args.sets if args.data else ():
            found.append(classes(name, args.data, depth, args.limit))
            print(found[-1], flush=True)
    survival(200, 3, 3, 10.0)
    simulated = []
    for n, p, depth in SURVIVAL:
        if depth in args.depths:
            simulated.append(survival(n, p, depth, args.limit))
            print(simulated[-1], flush=True)
    goals = []
    for n, how in ((n, how) for n in GOAL_ROWS for how in GOALS):
        goal(200, how, 10.0)  # compiled
        goals.append(goal(n, how, args.limit))
        print(goals[-1], flush=True)
    lines = [
        "# Every cut of continuous columns",
        "",
        f"`scripts/bench_continuous.py`, one thread, {args.limit:g} s at most a fit.",
        "",
        machine_line(),
        "",
    ]
    if found:
        frame = pd.DataFrame(found)
        for depth, part in frame.groupby("depth"):
            proven = part[part["status"] == "optimal"]
            mean = np.exp(np.log(proven["times faster"].astype(float)).mean())
            lines += [f"Depth {depth}: {mean:.1f} times faster (geometric mean of the {len(proven)} proven by ours)."]
        lines += ["", as_markdown(frame), ""]
    lines += ["## Relative risk, simulated", "", as_markdown(pd.DataFrame(simulated)), ""]
    lines += ["## Classes, simulated: depth 2, ten columns", "", as_markdown(pd.DataFrame(goals)), ""]
    if args.table is not None:
        replace_file(args.table, "\n".join(lines))


if __name__ == "__main__":
    main()
