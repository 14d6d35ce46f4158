"""F1, demographic parity and equality of opportunity beside pystreed 1.4.0: same optimum, and time.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA at the folder with the sets:

    OMP_NUM_THREADS=1 python scripts/bench_pareto.py f1 2 3 4          # depths
    OMP_NUM_THREADS=1 python scripts/bench_pareto.py fair 2 3
    OMP_NUM_THREADS=1 python scripts/bench_pareto.py measures 2 3      # Matthews correlation and AUC: no peer

Both sides get the same 0/1 columns. Times are the least CPU seconds of interleaved repeats in one process, single
thread, with our kernels loaded; ours include packing the rows. "agree" compares the F1, or the errors, of both trees,
recomputed from their predictions, under the same tolerance of 0.01. A fit of pystreed that is cut off at its limit
(``--limit``, seconds) shows the time it took and no agreement. The sensitive group is not among the columns of ours,
as pystreed leaves it out of the splits as well.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv.exact.auc import AucSearch
from softsurv.exact.clock import Clock
from softsurv.exact.pareto.dual import constrained_optimum
from softsurv.exact.pareto.fairness import KINDS, difference, fair_search
from softsurv.exact.pareto.measures import Candidate, SearchOracle, f1, maximise
from softsurv.exact.pareto.search import ParetoSearch
from softsurv.exact.pareto.task import linear_task
from softsurv.exact.pareto.tree import SplitTree

DATA = Path(os.environ.get("SOFTSURV_DATA", "../shared/data"))
TOLERANCE = 0.01
PEER_TASKS = dict(zip(KINDS, ("group-fairness", "equality-of-opportunity"), strict=True))
PARAMS = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])


def least(works: list[Callable[[], Any]], repeats: int) -> list[tuple[float, Any]]:
    """Least CPU seconds of each piece of work over interleaved repeats, with its last result."""
    times: list[list[float]] = [[] for _ in works]
    results: list[Any] = [None] * len(works)
    for _ in range(repeats):
        for k, work in enumerate(works):
            begin = time.process_time()
            results[k] = work()
            times[k].append(time.process_time() - begin)
    return [(min(taken), result) for taken, result in zip(times, results, strict=True)]


def sets(folder: str) -> list[tuple[str, np.ndarray]]:
    """Name and table of every set of a folder."""
    return [(path.stem, np.loadtxt(path, dtype=int)) for path in sorted((DATA / folder).glob("*.csv"))]


def error_search(label: np.ndarray, columns: np.ndarray, depth: int) -> ParetoSearch:
    """The search over false negatives and false positives."""
    statistics = (np.arange(2) == label[:, None]).astype(float)
    return ParetoSearch(linear_task(2, 2, 2, (False, False)), columns, statistics, PARAMS, depth)


def best_measure(name: str, label: np.ndarray, columns: np.ndarray, depth: int) -> Any:
    """Our best tree by a measure of the two error counts."""
    negatives, positives = np.bincount(label).astype(float)
    ends = (
        Candidate(np.array([0.0, negatives]), SplitTree(label=1)),
        Candidate(np.array([positives, 0.0]), SplitTree(label=0)),
    )
    oracle = SearchOracle(error_search(label, columns, depth), Clock(1e9))
    return maximise(name, oracle, positives, negatives, ends)


def bench_f1(depth: int, repeats: int, limit: float) -> list[dict[str, Any]]:
    """F1 on the classification sets."""
    from pystreed import STreeDClassifier

    rows = []
    for name, table in sets("classification"):
        label, columns = table[:, 0], table[:, 1:].astype(bool)

        def peer(table: np.ndarray = table, label: np.ndarray = label) -> Any:
            model = STreeDClassifier("f1-score", max_depth=depth, max_num_nodes=2**depth - 1, time_limit=limit)
            return model.fit(table[:, 1:], label)

        def ours(label: np.ndarray = label, columns: np.ndarray = columns) -> Any:
            return best_measure("f1", label, columns, depth)

        (fast, best), (slow, model) = least([ours, peer], repeats)
        predicted = model.predict(table[:, 1:])
        errors = np.array([((label == 1) & (predicted == 0)).sum(), ((label == 0) & (predicted == 1)).sum()], float)
        theirs = f1(errors, float(label.sum()), float((1 - label).sum()))
        rows.append(row(name, depth, fast, slow, f"{best.value:.6f}", f"{theirs:.6f}", slow < limit))
    return rows


def bench_fair(depth: int, repeats: int, limit: float) -> list[dict[str, Any]]:
    """Both constraints on the fairness sets."""
    from pystreed import STreeDGroupFairnessClassifier

    rows = []
    for name, table in sets("fairness"):
        label, group, columns = table[:, 0], table[:, 1], table[:, 2:].astype(bool)
        for kind in KINDS:

            def peer(table: np.ndarray = table, label: np.ndarray = label, kind: Any = kind) -> Any:
                model = STreeDGroupFairnessClassifier(
                    PEER_TASKS[kind], max_depth=depth, max_num_nodes=2**depth - 1, discrimination_limit=TOLERANCE,
                    time_limit=limit,
                )  # fmt: skip
                return model.fit(table[:, 1:], label).predict(table[:, 1:])

            def ours(
                label: np.ndarray = label, group: np.ndarray = group, columns: np.ndarray = columns, kind: Any = kind
            ) -> Any:
                return constrained_optimum(
                    fair_search(columns, label, group, kind, TOLERANCE, depth), Clock(1e9), unit=1.0
                )

            (fast, state), (slow, predicted) = least([ours, peer], repeats)
            own = state.tree.label_of(columns)
            assert difference(own, label, group, kind) <= TOLERANCE + 1e-9
            theirs = int((predicted != label).sum())
            rows.append(
                row(f"{name}, {kind}", depth, fast, slow, str(int((own != label).sum())), str(theirs), slow < limit)
            )
    return rows


def bench_measures(depth: int, repeats: int, limit: float) -> list[dict[str, Any]]:
    """Matthews correlation and AUC, which no peer offers."""
    rows = []
    for name, table in sets("classification"):
        label, columns = table[:, 0], table[:, 1:].astype(bool)
        (seconds, best), (auc_seconds, auc) = least(
            [
                lambda label=label, columns=columns: best_measure("mcc", label, columns, depth),
                lambda label=label, columns=columns: AucSearch(error_search(label, columns, depth)).solve(Clock(limit)),
            ],
            repeats,
        )
        rows.append(
            {
                "set": name, "depth": depth, "MCC": f"{best.value:.6f}", "MCC (s)": f"{seconds:.4f}",
                "1 - AUC": f"{auc.loss:.6f}", "bound": f"{auc.bound:.6f}", "AUC (s)": f"{auc_seconds:.3f}",
                "AUC status": str(auc.status),
            }
        )  # fmt: skip
    return rows


def row(name: str, depth: int, fast: float, slow: float, ours: str, theirs: str, finished: bool) -> dict[str, Any]:
    """One line of a comparison."""
    return {
        "set": name,
        "depth": depth,
        "ours (s)": f"{fast:.4f}",
        "pystreed (s)": f"{slow:.4f}",
        "speed-up": round(slow / fast, 1),
        "ours": ours,
        "pystreed": theirs,
        "agree": ours == theirs if finished else "cut off",
    }


def warm_up() -> None:
    """Load the kernels before a clock starts."""
    rng = np.random.default_rng(0)
    columns, label, group = rng.random((60, 6)) < 0.5, np.arange(60) % 2, np.arange(60) // 2 % 2
    best_measure("f1", label, columns, 3)
    constrained_optimum(fair_search(columns, label, group, KINDS[0], 0.1, 3), Clock(1e9), unit=1.0)
    AucSearch(error_search(label, columns, 2)).solve(Clock(1e9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["f1", "fair", "measures"])
    parser.add_argument("depths", type=int, nargs="+")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one fit")
    given = parser.parse_args()
    work = {"f1": bench_f1, "fair": bench_fair, "measures": bench_measures}[given.what]
    print(machine_line())
    warm_up()
    table = pd.DataFrame([one for depth in given.depths for one in work(depth, given.repeats, given.limit)])
    print(as_markdown(table))
    if "speed-up" in table:
        for depth, part in table.groupby("depth"):
            print(f"depth {depth}: geometric mean {np.exp(np.log(part['speed-up']).mean()):.2f} times as fast")


if __name__ == "__main__":
    main()
