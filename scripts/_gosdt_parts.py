"""The GOSDT paper's experiments on its own sets: time to optimality, scalability, drawn trees (sections I.7 to I.9)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from _gosdt_paper import OPTIMALITY, PRINTED_TREES, SCALABILITY, SETS, load
from _gosdt_peer import MOST_DEPTH, agreement, compare, found_by_peer, search_of
from _results import Results, cpu
from sklearn.model_selection import KFold

OPTIMALITY_COST = 0.005
SCALABILITY_COST = 1 / 32
"""Section I.7; the captions of Figures 14 to 17 say 0.3125."""

STRIKES = 3
"""A side that reached the limit so often is not asked again (section I.7)."""

STEPS = {
    "bar-7": ((2, 4, 6, 8, 10, 12, 14), (50, 100, 200, 500, 1000, 1913)),
    "COMPAS-2016": ((5, 10, 20, 40, 60, 85), (50, 100, 200, 500, 1000, 2000, 5020)),
    "COMPAS": ((5, 10, 20, 40, 80, 160, 320, 647), (50, 100, 200, 500, 1000, 2000, 5000, 12381)),
    "FICO": ((5, 10, 20, 40, 80, 160, 320, 640, 1407), (50, 100, 200, 500, 1000)),
}
"""Numbers of 0/1 columns, with all rows, and of rows, with all columns."""


def any_depth(case: dict[str, Any], cost: float) -> str:
    """Whether no tree of any depth is better: one that is deeper has so many leaves that they cost more."""
    return "yes" if case["status"] == "optimal" and case["objective"] <= (MOST_DEPTH + 2) * cost else ""


def line(case: dict[str, Any], cost: float) -> dict[str, Any]:
    """What the tables of both experiments share."""
    peer = found_by_peer(case) if case["peer_asked"] else "not asked"
    verdict = agreement(case) if "gosdt_s" in case else ""
    gap = case["objective"] - case["lower"]
    row = {"ours": f"{case['objective']:.6f}", "leaves": case["leaves"], "status": case["status"]}
    row |= {
        "gap": f"{gap:.4f}" if gap > 1e-9 else "0",
        "of any depth": any_depth(case, cost),
        "gosdt 1.0.4": peer,
        "verdict": verdict,
    }
    row["ours (s)"] = f"{case['seconds']:.4f}"
    return row | {"gosdt (s)": f"{case['gosdt_s']:.3f}" if "gosdt_s" in case else ""}


def optimality(results: Results, limit: int) -> pd.DataFrame:
    """Section I.8, Figure 18: the best objective and the proof, at a cost of 0.005 a leaf."""
    lines = []
    for name in OPTIMALITY:
        X, y = load(name)
        case = results.get(
            f"optimality {name}",
            lambda X=X, y=y: compare(X, y, None, OPTIMALITY_COST, limit) | first_best(X, y, OPTIMALITY_COST, limit),
        )
        row = {"set": name, "rows": case["rows"], "columns": case["columns"]}
        row |= {"rows, columns printed": f"{SETS[name][1]}, {SETS[name][2]}"} | line(case, OPTIMALITY_COST)
        lines.append(row | {"ours, best tree after (s)": f"{case['best_s']:.4f}"})
    return pd.DataFrame(lines)


def first_best(X: np.ndarray, y: np.ndarray, cost: float, limit: float) -> dict[str, Any]:
    """CPU seconds after which the objective was what it was at the end."""
    seen: list[tuple[float, float]] = []
    begin = time.process_time()
    search_of(X, y, cost).solve(
        MOST_DEPTH, time_limit=limit, progress=lambda _, __, best: seen.append((best, time.process_time() - begin))
    )
    final = min((best for best, _ in seen), default=0.0)
    return {"best_s": next((at for best, at in seen if best <= final + 1e-9), time.process_time() - begin)}


def scalability(results: Results, limit: int) -> pd.DataFrame:
    """Section I.7, Figures 14 and 15: seconds by columns and by rows, at a cost of 1/32 a leaf."""
    lines = []
    for name in SCALABILITY:
        X, y = load(name)
        rng = np.random.default_rng(0)
        row_order, column_order = rng.permutation(len(y)), rng.permutation(X.shape[1])
        for kind, sizes in zip(("columns", "rows"), STEPS[name], strict=True):
            slow = {"ours": 0, "gosdt": 0}
            for size in sizes:
                if min(slow.values()) >= STRIKES:
                    break
                here = (
                    (X[:, column_order[:size]], y) if kind == "columns" else (X[row_order[:size]], y[row_order[:size]])
                )
                asked = slow["gosdt"] < STRIKES
                case = results.get(
                    f"scalability {name} {kind} {size}",
                    lambda here=here, asked=asked: compare(*here, None, SCALABILITY_COST, limit, with_peer=asked),
                )
                slow["ours"] += case["status"] != "optimal"
                slow["gosdt"] += not case.get("gosdt_ended", False)
                row = {"set": name, "varied": kind, "rows": case["rows"], "columns": case["columns"]}
                row |= line(case, SCALABILITY_COST)
                lines.append(row)
    return pd.DataFrame(lines)


def trees(results: Results, limit: int) -> pd.DataFrame:
    """Section I.9, Figures 19 to 21: accuracies of drawn trees, and ours of as many leaves at most in five folds."""
    lines = []
    for (name, leaves), printed in PRINTED_TREES.items():
        X, y = load(name)
        folds = [
            results.get(
                f"trees {name} {leaves} {k}",
                lambda X=X, y=y, leaves=leaves, rows=rows: fold_case(
                    X, y, min(MOST_DEPTH, leaves - 1), leaves, rows, limit
                ),
            )
            for k, rows in enumerate(KFold(5, shuffle=True, random_state=0).split(X))
        ]
        row: dict[str, Any] = {"set": name, "leaves": leaves}
        for method in ("BinOCT", "DL8.5", "GOSDT"):
            row[f"{method}, printed (%)"] = "{} / {}".format(*printed[method]) if method in printed else ""
        for part in ("train", "test"):
            values = 100 * np.array([fold[part] for fold in folds])
            row[f"ours, {part} (%)"] = f"{np.median(values):.1f} ({values.min():.1f} to {values.max():.1f})"
        row["proven"] = sum(fold["proven"] for fold in folds)
        lines.append(row | {"ours (s)": f"{np.mean([fold['seconds'] for fold in folds]):.2f}"})
    return pd.DataFrame(lines)


def fold_case(
    X: np.ndarray, y: np.ndarray, depth: int, leaves: int | None, rows: Any, limit: float, cost: float = 0.0
) -> dict[str, Any]:
    """The tree of least mistakes plus ``cost`` per leaf on the training rows, with at most so many leaves."""
    inside, outside = rows
    seconds, solution = cpu(
        lambda: search_of(X[inside], y[inside], cost).solve(depth, leaves, time_limit=limit), repeats=1
    )
    nominal = np.zeros(X.shape[1], bool)

    def right(part: np.ndarray) -> float:
        tree = solution.tree
        node = tree.node_of(X[part].astype(np.int32), nominal)
        label = np.argmin(tree.sums[tree.leaves, :2], axis=1)
        return float((label[np.searchsorted(tree.leaves, node)] == y[part]).mean())

    proven = str(solution.report.status) == "optimal"
    found = {"train": right(inside), "test": right(outside), "leaves": solution.tree.n_leaves}
    return found | {"proven": proven, "seconds": seconds}
