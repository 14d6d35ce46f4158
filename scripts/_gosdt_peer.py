"""One classification problem for both sides: ours and gosdt 1.0.4, misclassified share plus a cost per leaf."""

from __future__ import annotations

import json
import warnings
from typing import Any

import _tasks
import numpy as np
from _results import cpu, in_child

from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search

MOST_DEPTH = 10
"""Of our search, where the problem sets no limit."""

SAME = 1e-5
"""gosdt computes in single precision."""


def search_of(X: np.ndarray, y: np.ndarray, cost: float) -> Search:
    """Our search, whose objective is the number of misclassified rows plus ``cost`` times the rows a leaf."""
    statistics = label_costs.misclassification(y, int(y.max()) + 1)
    return Search(label_costs.TASK, *_tasks.coded(X), statistics, complexity=cost * len(y))


def compare(
    X: np.ndarray, y: np.ndarray, depth: int | None, cost: float, limit: int, with_peer: bool = True
) -> dict[str, Any]:
    """Both sides of one case; without a depth gosdt has no limit and ours `MOST_DEPTH`."""

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

    ready(label_costs.TASK)
    seconds, solution = cpu(lambda: search_of(X, y, cost).solve(depth or MOST_DEPTH, time_limit=limit))
    report = solution.report
    ours = {
        "rows": len(y),
        "columns": X.shape[1],
        "objective": report.objective / len(y),
        "lower": report.lower_bound / len(y),
        "status": str(report.status),
        "leaves": solution.tree.n_leaves,
        "seconds": seconds,
        "peer_asked": with_peer,
    }
    return ours | ((in_child(peer, 2 * limit + 20) or {}) if with_peer else {})


def splits_deep(node: dict[str, Any]) -> int:
    """Longest path of a tree of gosdt, in splits."""
    return 1 + max(splits_deep(node[side]) for side in ("true", "false")) if "feature" in node else 0


def found_by_peer(case: dict[str, Any]) -> str:
    """The objective of gosdt, or its bounds."""
    if "gosdt_s" not in case:
        return "stopped from outside"
    lower, upper = case["gosdt_lower"], case["gosdt_upper"]
    return f"{upper:.6f}" if case["gosdt_ended"] else f"{lower:.4f} to {upper:.4f}, unfinished"


def agreement(case: dict[str, Any]) -> str:
    """Whether the objectives of both are the same, or as their bounds allow."""
    ours, lower, upper = case["objective"], case["gosdt_lower"], case["gosdt_upper"]
    both = case["status"] == "optimal" and case["gosdt_ended"]
    if both:
        return "equal" if abs(ours - upper) < SAME else "DIFFERS"
    apart = case["lower"] > upper + SAME or lower > ours + SAME
    return "DIFFERS" if apart else "within"
