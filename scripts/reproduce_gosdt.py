"""Sparse classification trees beside gosdt 1.0.4: misclassified share plus a cost per leaf, depth at most four.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py --costs 0.1 0.05 0.02 --limit 20
    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py --costs 0.01 0.005 --limit 60

    python scripts/reproduce_gosdt.py --table          # what is finished, without computing

Same 0/1 columns, one thread; the ``depth_budget`` of gosdt 1.0.4 counts splits on a path, as our depth does. It
computes in single precision: objectives within 1e-5 are called equal. Where gosdt stops unfinished its bounds are
printed, where it takes more than 8 GiB or twice the limit it is stopped. Seconds are CPU seconds. A case is written
to ``--out`` as soon as it ends and skipped in a later run. The sets that scikit-learn brings are cut at their
quartiles.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results, cpu, in_child

from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search

SAME = 1e-5
KNOWN = ("anneal", "breast-wisconsin", "german-credit", "heart-cleveland", "hepatitis", "tic-tac-toe", "vote", "yeast")
"""The sets of the folder `classification`, for which the speed is summed up."""


def compare(X: np.ndarray, y: np.ndarray, depth: int, cost: float, limit: int) -> dict[str, Any]:
    """Both sides of one case."""

    def search() -> Search:
        statistics = label_costs.misclassification(y, int(y.max()) + 1)
        codes, p = X.astype(np.int32), X.shape[1]
        return Search(label_costs.TASK, codes, np.full(p, 2), np.zeros(p, bool), statistics, complexity=cost * len(y))

    def peer() -> dict[str, Any]:
        from gosdt import GOSDTClassifier

        warnings.simplefilter("ignore")
        model = GOSDTClassifier(
            regularization=cost, depth_budget=depth, time_limit=limit, allow_small_reg=True, worker_limit=1
        )
        seconds, _ = cpu(lambda: model.fit(X.astype(bool), y))
        result = model.get_result()
        return {
            "gosdt_s": seconds,
            "gosdt_lower": float(result["lower_bound"]),
            "gosdt_upper": float(result["upper_bound"]),
            "gosdt_ended": "CONVERGED" in str(result["status"]),
            "gosdt_depth": max(map(splits_deep, json.loads(result["models_string"])), default=0),
        }

    ready(search().task)
    seconds, solution = cpu(lambda: search().solve(depth, time_limit=limit))
    report = solution.report
    ours = {
        "rows": len(y),
        "columns": X.shape[1],
        "objective": report.objective / len(y),
        "lower": report.lower_bound / len(y),
        "status": str(report.status),
        "leaves": solution.tree.n_leaves,
        "seconds": seconds,
    }
    return ours | (in_child(peer, 2 * limit + 20) or {})


def splits_deep(node: dict[str, Any]) -> int:
    """Longest path of a tree of gosdt, in splits."""
    return 1 + max(splits_deep(node[side]) for side in ("true", "false")) if "feature" in node else 0


def row(name: str, cost: float, case: dict[str, Any], depth: int = 4) -> dict[str, Any]:
    """A line of the table; where gosdt's tree is deeper than it was told its objective is no measure of ours."""
    ours, ended = case["objective"], case.get("gosdt_ended", False)
    if "gosdt_s" not in case:
        theirs, verdict, ratio = "stopped from outside", "", ""
    else:
        lower, upper = case["gosdt_lower"], case["gosdt_upper"]
        agrees = abs(ours - upper) < SAME if ended else lower - SAME < ours < upper + SAME
        theirs = f"{upper:.6f}" if ended else f"{lower:.4f} to {upper:.4f}, unfinished"
        verdict = ("equal" if ended else "within") if agrees else "DIFFERS"
        if not agrees and case.get("gosdt_depth", 0) > depth:
            verdict = f"gosdt's tree has depth {case['gosdt_depth']}"
        ratio = f"{'' if ended else '> '}{case['gosdt_s'] / case['seconds']:.1f}"
    return {
        "set": name,
        "rows": case["rows"],
        "columns": case["columns"],
        "cost per leaf": cost,
        "ours": f"{ours:.6f}",
        "leaves": case["leaves"],
        "status": case["status"],
        "gosdt": theirs,
        "verdict": verdict,
        "ours (s)": f"{case['seconds']:.4f}",
        "gosdt (s)": f"{case['gosdt_s']:.3f}" if "gosdt_s" in case else "",
        "speed-up": ratio,
    }


def summary(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """For each cost: how often gosdt ended and agreed, and the speed where it did."""
    out = []
    for cost in dict.fromkeys(one["cost per leaf"] for one in rows):
        for group, known in (("classification", True), ("all others", False)):
            here = [r for r in rows if r["cost per leaf"] == cost and (r["set"] in KNOWN) == known]
            ratios = [float(r["speed-up"]) for r in here if r["verdict"] and not r["speed-up"].startswith(">")]
            if here:
                out.append(
                    {
                        "cost per leaf": cost,
                        "sets": f"{group} ({len(here)})",
                        "ours proven": sum(r["status"] == "optimal" for r in here),
                        "gosdt ended": len(ratios),
                        "different": sum(r["verdict"] == "DIFFERS" for r in here),
                        "least speed-up where it ended": min(ratios, default=""),
                        "geometric mean": round(float(np.exp(np.log(ratios).mean())), 1) if ratios else "",
                    }
                )
    return pd.DataFrame(out)


def main() -> None:
    """Compare set by set; rows are printed as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", type=float, nargs="+", default=[0.1, 0.05, 0.02, 0.01, 0.005])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=int, default=60, help="seconds of wall clock for each side")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("results/gosdt.jsonl"), help="finished cases, for resuming")
    parser.add_argument("--table", action="store_true", help="print the finished cases of --out, compute nothing")
    options = parser.parse_args()
    results = Results(options.out)
    print(machine_line(), flush=True)
    rows = []
    for key, case in results.done.items() if options.table else ():
        name, depth, cost = key.rsplit(" ", 2)
        rows.append(row(name, float(cost), case, int(depth)))
    for cost in () if options.table else options.costs:
        for name, (X, y) in (_tasks.classification_sets() | _tasks.sklearn_classes()).items():
            if not options.sets or name in options.sets:
                case = results.get(
                    f"{name} {options.depth} {cost:g}",
                    lambda X=X, y=y, cost=cost: compare(X, y, options.depth, cost, options.limit),
                )
                rows.append(row(name, cost, case, options.depth))
                print(*rows[-1].values(), sep=" | ", flush=True)
    print(f"\n{as_markdown(pd.DataFrame(rows))}\n\n{as_markdown(summary(rows))}")


if __name__ == "__main__":
    main()
