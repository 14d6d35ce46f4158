"""Seconds against rows on the household data of the OSST paper (Appendix I, Figures 4 and 32).

Our copy of the repository of its authors lacks `household.csv`, which is too large for it. Where the file is in the
folder of the data, its rows are taken. Where it is not, rows of its shape are drawn, those of `bench_ibs.py scale`:
five features of four categories each, so 15 columns, and 4,000 distinct times. The table names the rows that it used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _osst_models import MIN_ROWS, Data, load
from _osst_r import METHODS, grown, why_not
from _results import Results, in_child
from bench_ibs import synthetic_rows
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.brier.warm_up import ready, ready_coarse

SIZES = (100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 2_049_280)
CENSORED = (0.2, 0.5, 0.8)
DEPTH = 5
OUR_COST, RPART_COST = 0.01, 0.05


@lru_cache(maxsize=1)
def all_rows(folder: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """Which rows these are, their columns and times."""
    if (folder / "household.csv").exists():
        x, y, _ = load(folder, "household")
        return "the paper's", x, y
    x, y, _ = synthetic_rows(SIZES[-1], 4000)
    return "drawn", x, y


def sample(folder: Path, n: int, censored: float) -> Data:
    """So many rows, a share of them censored at random."""
    _, x, y = all_rows(folder)
    rng = np.random.default_rng([n, int(100 * censored)])
    rows = rng.choice(len(y), min(n, len(y)), replace=False)
    return x[rows], y[rows], rng.random(len(rows)) >= censored


def of_ours(data: Data, limit: float) -> dict[str, Any]:
    """Seconds, status and leaves of our tree."""
    ready()
    ready_coarse()
    begin = time.process_time()
    solution = solve_ibs(*data, complexity=OUR_COST, max_depth=DEPTH, min_samples_leaf=MIN_ROWS, time_limit=limit)
    seconds = time.process_time() - begin
    return {"seconds": seconds, "end": solution.report.status.value, "leaves": len(solution.survival)}


def of_sksurv(data: Data, limit: float) -> dict[str, Any]:
    """Seconds and leaves of scikit-survival's tree, unless it was stopped."""

    def fit() -> dict[str, Any]:
        begin = time.process_time()
        tree = SurvivalTree(max_depth=DEPTH, max_leaf_nodes=2**DEPTH, random_state=2023)
        tree.fit(data[0], Surv.from_arrays(data[2], data[1]))
        return {"seconds": time.process_time() - begin, "end": "", "leaves": int((tree.tree_.feature < 0).sum())}

    return in_child(fit, 2 * limit) or {"seconds": np.inf, "end": "stopped"}


def of_r(method: str, data: Data) -> dict[str, Any]:
    """Seconds and leaves of a tree of R, without reading the rows."""
    asked = pd.DataFrame([{"method": method, "depth": DEPTH, "cp": RPART_COST, "rows": MIN_ROWS}])
    few: Data = (data[0][:1], data[1][:1], data[2][:1])
    facts, _ = grown(data, few, asked)
    return {"seconds": float(facts["seconds"][0]), "end": "", "leaves": int(facts["leaves"][0])}


def household(options: Any, results: Results) -> list[dict]:
    """Appendix I, Figures 4 and 32: seconds by rows and share censored; one that took longer is asked no more."""
    which = all_rows(options.data)[0]
    limit, table = options.time_limit, []
    for censored in CENSORED:
        late: set[str] = set()
        for n in SIZES:
            data = sample(options.data, n, censored)
            works: dict[str, Callable[[Data], dict[str, Any]]] = {"ours": lambda data: of_ours(data, limit)}
            works["scikit-survival"] = lambda data: of_sksurv(data, limit)
            if not why_not():
                works |= {method: lambda data, method=method: of_r(method, data) for method in METHODS}
            row: dict[str, Any] = {"rows of": which, "rows": n, "distinct times": np.unique(data[1]).size}
            row["censored (%)"] = f"{100 * censored:g}"
            for method, work in works.items():
                if method in late:
                    row[f"{method} (s)"] = "not asked"
                    continue
                key = f"household {which} {n} {censored:g} {method} {limit:g}"
                case = results.get(key, lambda work=work, data=data: work(data))
                if case["seconds"] > limit or case["end"] not in ("", "optimal"):
                    late.add(method)
                shown = f"{case['seconds']:.3f}" if np.isfinite(case["seconds"]) else f"over {2 * limit:g}"
                row[f"{method} (s)"] = shown + (f", {case['end']}" if case["end"] not in ("", "optimal") else "")
                row[f"{method}: leaves"] = case.get("leaves", "")
            table.append(row)
    return table
