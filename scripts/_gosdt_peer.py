"""One classification problem for both sides: ours and gosdt 1.0.4, misclassified share plus a cost per leaf."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from _results import cpu, in_child

from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search

MOST_DEPTH = 10
"""Of our search, where the problem sets no limit."""


def search_of(X: np.ndarray, y: np.ndarray, cost: float) -> Search:
    """Our search, whose objective is the number of misclassified rows plus ``cost`` times the rows a leaf."""
    statistics = label_costs.misclassification(y, int(y.max()) + 1)
    codes, p = X.astype(np.int32), X.shape[1]
    return Search(label_costs.TASK, codes, np.full(p, 2), np.zeros(p, bool), statistics, complexity=cost * len(y))


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
