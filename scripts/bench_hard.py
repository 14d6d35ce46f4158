"""Hard regimes of exact trees beside pystreed 1.4.0: deep trees of small sets, and hundreds of 0/1 columns.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/bench_hard.py --table scripts/tables/hard.md
    OMP_NUM_THREADS=1 python scripts/bench_hard.py --part wide --limit 40

``deep``: survival trees from ``fit`` to ``fit``, as in `bench_optimal_fit.py`. ``columns``: the same at depth three,
with hundreds of 0/1 columns. ``wide``: scikit-learn's breast cancer and wine at ten quantiles of each feature, classes,
a price of .005 a leaf; what is proven after ``--limit`` seconds. ``leaves``: trees of depth five with a large least
number of rows in a leaf, 600 simulated rows of 15 numbers at ten quantiles.
pystreed takes the price for a branch, one less than leaves; .005 is added to what it reports.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _exact_data import coded
from _machine import as_markdown, machine_line
from bench_optimal_fit import SearchTime, frame_of, shown, survival_case
from sklearn.datasets import load_breast_cancer, load_wine

from softsurv import OptimalClassificationTree, OptimalSurvivalTree
from softsurv.data.binarize import Binarizer

DEEP = (
    *(("pbc", 6), ("pbc", 7), ("e1684", 7), ("heart", 7), ("ova", 7)),
    *(("veteran", 6), ("TRACE", 6), ("nwtco", 6), ("colon", 6)),
)
COLUMNS = ("rhc", "wpbc", "nki70", "dataOvarian1")
WIDE = {"breast cancer": load_breast_cancer, "wine": load_wine}
PER_LEAF = 0.005


def wide_case(name: str, depth: int, limit: float) -> list[dict[str, Any]]:
    """What both sides know of one set at the end."""
    from pystreed import STreeDClassifier

    X, y = WIDE[name](return_X_y=True)
    table = pd.DataFrame(X)
    table.columns = [f"x{k}" for k in range(X.shape[1])]
    binarizer = Binarizer(10).fit(table)
    binary = binarizer.binary_of(binarizer.codes(table))
    ours = OptimalClassificationTree(max_depth=depth, complexity=PER_LEAF, time_limit=limit)
    begin = time.process_time()
    report = ours.fit(frame_of(binary), y).report_
    middle = time.process_time()
    peer = STreeDClassifier("cost-complex-accuracy", max_depth=depth, cost_complexity=PER_LEAF, time_limit=limit)
    peer.fit(binary, y)
    end = time.process_time()
    wrong = float(np.mean(peer.predict(binary) != y)) + PER_LEAF * peer.get_n_leaves()
    common = {"set": name, "rows": len(y), "columns": binary.shape[1], "depth": depth}
    return [
        common
        | {
            "method": "softsurv",
            "CPU s": f"{middle - begin:.1f}",
            "objective": f"{report.objective:.5f}",
            "bound": f"{report.lower_bound:.5f}",
            "status": str(report.status),
        },
        common
        | {
            "method": "pystreed",
            "CPU s": f"{end - middle:.1f}",
            "objective": f"{wrong:.5f}",
            "bound": "",
            "status": "optimal" if peer.fit_result.is_optimal() else "time_limit",
        },
    ]


def leaves_cases(limit: float) -> list[dict[str, Any]]:
    """Classes on both sides, and survival on ours."""
    from pystreed import STreeDClassifier

    rng = np.random.default_rng(0)
    values = rng.normal(size=(600, 15))
    risk = values[:, 0] + (values[:, 1] > 0) * values[:, 2]
    time_, last, label = rng.exponential(np.exp(-risk)), rng.exponential(1.5, 600), (risk > 0.3).astype(int)
    table = pd.DataFrame(values, columns=[f"x{k}" for k in range(15)])
    binarizer = Binarizer(10).fit(table)
    X = frame_of(binarizer.binary_of(binarizer.codes(table)))
    lines = []
    for least in (30, 75, 150):
        how = {"max_depth": 5, "min_samples_leaf": least, "time_limit": limit}
        peer = STreeDClassifier("accuracy", max_depth=5, min_leaf_node_size=least, time_limit=limit)
        fits: dict[str, Any] = {
            "classes, softsurv": lambda how=how: OptimalClassificationTree(**how).fit(X, label),
            "classes, pystreed": lambda peer=peer: peer.fit(X.to_numpy(), label),
            "survival, softsurv": lambda how=how: OptimalSurvivalTree(**how, tune=None).fit(
                X, (time_ <= last, np.minimum(time_, last))
            ),
        }
        for name, fit in fits.items():
            begin = time.process_time()
            tree = fit()
            seconds = time.process_time() - begin
            ours = hasattr(tree, "report_")
            proven = tree.report_.status == "optimal" if ours else tree.fit_result.is_optimal()
            objective = tree.report_.objective if ours else float(np.mean(tree.predict(X.to_numpy()) != label))
            lines.append(
                {
                    "least rows": least,
                    "trees": name,
                    "CPU s": f"{seconds:.3f}",
                    "objective": f"{objective:.5g}",
                    "proven": proven,
                }
            )
    return lines


def main() -> None:
    """Time every case and show the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["deep", "columns", "wide", "leaves", "all"], default="all")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 5], help="of the wide sets")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds for a wide set (default: 40)")
    parser.add_argument("--table", type=Path, help="where to write the tables too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    clock, parts = SearchTime(), []
    if args.part in ("deep", "all"):
        runs = [survival_case(coded(name), depth, args.repeats, clock) for name, depth in DEEP]
        parts.append("## Deep trees of small sets, relative risk\n\n" + shown(runs))
    if args.part in ("columns", "all"):
        runs = [survival_case(coded(name), 3, args.repeats, clock) for name in COLUMNS]
        parts.append("## Hundreds of columns, relative risk\n\n" + shown(runs))
    if args.part in ("wide", "all"):
        wide_case("wine", 4, 1.0)  # kernels are compiled and loaded
        lines = [line for name in WIDE for depth in args.depths for line in wide_case(name, depth, args.limit)]
        parts.append("## Hundreds of columns, accuracy with .005 a leaf\n\n" + as_markdown(pd.DataFrame(lines)))
    if args.part in ("leaves", "all"):
        leaves_cases(1.0)  # kernels are compiled and loaded
        lines = leaves_cases(args.limit)
        parts.append("## Large leaves, depth five\n\n" + as_markdown(pd.DataFrame(lines)))
    lines = __doc__.splitlines()
    text = "\n\n".join([f"# {lines[0]}", "\n".join(lines[7:]).strip(), machine_line(), *parts]) + "\n"
    print(text)
    if args.table:
        args.table.write_text(text)


if __name__ == "__main__":
    main()
