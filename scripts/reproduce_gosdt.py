"""Sparse classification trees beside gosdt 1.0.4: misclassified share plus a cost per leaf, depth at most four.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py --costs 0.1 0.05 0.02 0.01 0.005 --limit 60

Same 0/1 columns, one thread; gosdt counts levels, so its ``depth_budget`` is one more. It computes in single precision:
objectives within 1e-5 are called equal. Where gosdt stops unfinished its bounds are printed. CPU seconds.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv.exact.compile import ready
from softsurv.exact.search import Search
from softsurv.exact.tasks import label_costs

SAME = 1e-5


def compare(name: str, X: np.ndarray, y: np.ndarray, depth: int, cost: float, limit: int) -> dict[str, Any]:
    """One row."""
    from gosdt import GOSDTClassifier

    def search() -> Search:
        statistics = label_costs.misclassification(y, int(y.max()) + 1)
        codes, p = X.astype(np.int32), X.shape[1]
        return Search(label_costs.TASK, codes, np.full(p, 2), np.zeros(p, bool), statistics, complexity=cost * len(y))

    ready(search().task)
    seconds, solution = _tasks.cpu(lambda: search().solve(depth, time_limit=limit))
    model = GOSDTClassifier(
        regularization=cost, depth_budget=depth + 1, time_limit=limit, allow_small_reg=True, worker_limit=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer_seconds, _ = _tasks.cpu(lambda: model.fit(X.astype(bool), y))
    result = model.get_result()
    lower, upper = float(result["lower_bound"]), float(result["upper_bound"])
    finished = "CONVERGED" in str(result["status"])
    ours = solution.report.objective / len(y)
    agrees = abs(ours - upper) < SAME if finished else lower - SAME < ours < upper + SAME
    return {
        "set": name,
        "cost per leaf": cost,
        "ours": f"{ours:.6f}",
        "status": str(solution.report.status),
        "gosdt": f"{upper:.6f}" if finished else f"{lower:.4f} to {upper:.4f}, unfinished",
        "verdict": "agrees" if agrees else "DIFFERS",
        "ours (s)": round(seconds, 4),
        "gosdt (s)": round(peer_seconds, 3),
        "speed-up": f"{'' if finished else '> '}{peer_seconds / seconds:.1f}",
    }


def main() -> None:
    """Compare set by set; rows are printed as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=float, nargs="+", default=[0.1, 0.05, 0.02, 0.01, 0.005])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--sets", nargs="*")
    options = parser.parse_args()
    print(machine_line())
    rows = []
    for cost in options.costs:
        for name, (X, y) in _tasks.classification_sets().items():
            if not options.sets or name in options.sets:
                rows.append(compare(name, X, y, options.depth, cost, options.limit))
                print(*rows[-1].values(), sep=" | ", flush=True)
    print(as_markdown(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
