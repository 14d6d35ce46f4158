"""F1, demographic parity and equality of opportunity beside pystreed 1.4.0: same optimum, and time.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA at the folder with the sets:

    OMP_NUM_THREADS=1 python scripts/bench_pareto.py f1 2 3 4          # depths
    OMP_NUM_THREADS=1 python scripts/bench_pareto.py fair 2 3
    OMP_NUM_THREADS=1 python scripts/bench_pareto.py measures 2 3      # Matthews correlation and AUC: no peer

Both sides get the same 0/1 columns. Times are the least CPU seconds of interleaved repeats, single thread, with our
kernels loaded; ours include packing the rows. The verdict compares the F1, or the errors, of both trees, recomputed
from their predictions, under the same tolerance of 0.01. A fit of pystreed that is cut off at its limit (``--limit``,
seconds) is unproven. The sensitive group is not among the columns of ours, as pystreed leaves it out of the splits as
well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import cpu

from softsurv.exact.whole_trees.auc import AucSearch
from softsurv.stopping import StopSignal


def cases(what: str, depth: int) -> Iterator[_tasks.Case]:
    """F1 on the sets of `classification`, the constraints on those of `fairness`."""
    sets = _tasks.classification_sets()
    if what == "f1":
        known = {file.stem for file in (_tasks.folder() / "classification").glob("*.csv")}
        yield from (_tasks.f1_score(name, *sets[name], depth) for name in sorted(known))
    else:
        fair = {name: data for name, data in sets.items() if name.endswith("-binarized")}
        yield from (_tasks.fair(name, *data, kind, depth) for name, data in fair.items() for kind in _tasks.FAIRNESS)


def timed(case: _tasks.Case, repeats: int, limit: float) -> dict[str, Any]:
    """Both sides with the least time of each over interleaved repeats."""
    runs = [_tasks.compare(case, limit) for _ in range(repeats)]
    sides = [side for side in ("seconds", "peer_seconds") if all(side in run for run in runs)]
    return runs[0] | {side: min(run[side] for run in runs) for side in sides}


def bench_measures(depth: int, limit: float) -> list[dict[str, Any]]:
    """Matthews correlation and AUC, which no peer offers."""
    rows = []
    for name, (X, label) in _tasks.two_class_sets().items():
        columns = X.astype(bool)
        AucSearch(_tasks.error_search(label, columns[:, :1], 1)).solve(StopSignal(limit))  # loads the kernels
        seconds, best = cpu(lambda c=columns, y=label: _tasks.best_measure("mcc", y, c, depth, limit))
        auc_seconds, auc = cpu(
            lambda c=columns, y=label: AucSearch(_tasks.error_search(y, c, depth)).solve(StopSignal(limit))
        )
        rows.append(
            {
                "set": name, "depth": depth, "MCC": f"{best.value:.6f}", "MCC (s)": f"{seconds:.4f}",
                "1 - AUC": f"{auc.loss:.6f}", "bound": f"{auc.bound:.6f}", "AUC (s)": f"{auc_seconds:.3f}",
                "AUC status": str(auc.status),
            }
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["f1", "fair", "measures"])
    parser.add_argument("depths", type=int, nargs="+")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one fit")
    given = parser.parse_args()
    print(machine_line())
    if given.what == "measures":
        print(as_markdown(pd.DataFrame([one for depth in given.depths for one in bench_measures(depth, given.limit)])))
        return
    for depth in given.depths:
        raw = [timed(case, given.repeats, given.limit) for case in cases(given.what, depth)]
        print(as_markdown(pd.DataFrame([_tasks.row(one) for one in raw])))
        ratios = [one["peer_seconds"] / one["seconds"] for one in raw if one.get("peer_proven") and one["proven"]]
        if ratios:
            mean = np.exp(np.log(ratios).mean())
            print(f"depth {depth}: geometric mean {mean:.2f} times as fast where both ended ({len(ratios)})\n")


if __name__ == "__main__":
    main()
