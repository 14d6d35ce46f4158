"""Sparse classification trees beside gosdt 1.0.4: misclassified share plus a cost per leaf, depth at most four.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py --costs 0.1 0.05 0.02 --limit 20
    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py --costs 0.01 0.005 --limit 60

    python scripts/reproduce_gosdt.py --table          # what is finished, without computing

    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py optimality --limit 20     # Figure 18, the paper's own sets
    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py scalability --limit 5     # Figures 14 and 15
    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py trees --limit 20          # Figures 19 to 21
    OMP_NUM_THREADS=1 python scripts/reproduce_gosdt.py sparsity --limit 2        # Figures 4, 5, 12 and 13

Same 0/1 columns, one thread; the ``depth_budget`` of gosdt 1.0.4 counts splits on a path, as our depth does. It
computes in single precision: objectives within 1e-5 are called equal. Where gosdt stops unfinished its bounds are
printed, where it takes more than 8 GiB or twice the limit it is stopped. Seconds are CPU seconds. A case is written
to ``--out`` as soon as it ends and skipped in a later run. The sets that scikit-learn brings are cut at their
quartiles. The sets of the paper are those that `_gosdt_paper.py` names.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import _gosdt_parts
import _gosdt_sparsity
import _tasks
import numpy as np
import pandas as pd
from _gosdt_peer import agreement, compare, found_by_peer
from _machine import as_markdown, machine_line
from _results import Results

PAPER = {
    "optimality": _gosdt_parts.optimality,
    "scalability": _gosdt_parts.scalability,
    "trees": _gosdt_parts.trees,
    "sparsity": _gosdt_sparsity.sparsity,
}
"""The paper's own experiments."""

KNOWN = ("anneal", "breast-wisconsin", "german-credit", "heart-cleveland", "hepatitis", "tic-tac-toe", "vote", "yeast")
"""The sets of the folder `classification`, for which the speed is summed up."""


def row(name: str, cost: float, case: dict[str, Any], depth: int = 4) -> dict[str, Any]:
    """A line of the table; where gosdt's tree is deeper than it was told its objective is no measure of ours."""
    verdict = ratio = ""
    if "gosdt_s" in case:
        verdict = agreement(case)
        if verdict == "DIFFERS" and case.get("gosdt_depth", 0) > depth:
            verdict = f"gosdt's tree has depth {case['gosdt_depth']}"
        ratio = f"{'' if case['gosdt_ended'] else '> '}{case['gosdt_s'] / case['seconds']:.1f}"
    return {
        "set": name,
        "rows": case["rows"],
        "columns": case["columns"],
        "cost per leaf": cost,
        "ours": f"{case['objective']:.6f}",
        "leaves": case["leaves"],
        "status": case["status"],
        "gosdt": found_by_peer(case),
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
    parser.add_argument("part", nargs="?", default="beside", choices=["beside", *PAPER])
    parser.add_argument("--costs", type=float, nargs="+", default=[0.1, 0.05, 0.02, 0.01, 0.005])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--limit", type=int, default=60, help="seconds of wall clock for each side")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("results/gosdt.jsonl"), help="finished cases, for resuming")
    parser.add_argument("--table", action="store_true", help="print the finished cases of --out, compute nothing")
    options = parser.parse_args()
    results = Results(options.out)
    print(machine_line(), flush=True)
    if options.part != "beside":
        print(f"\n{as_markdown(PAPER[options.part](results, options.limit))}")
        return
    rows = []
    for key, case in results.done.items() if options.table else ():
        if key.split(" ")[0] in PAPER:
            continue
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
