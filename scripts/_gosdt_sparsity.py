"""Accuracy against sparsity (section I.6 of the GOSDT paper, Figures 4, 5, 12 and 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from _gosdt_paper import load
from _gosdt_parts import fold_case
from _gosdt_peer import MOST_DEPTH, agreement, compare
from _machine import table_of
from _results import Results
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

SETS = ("car evaluation", "COMPAS-binary", "tic-tac-toe", "monk 1", "monk 2", "monk 3")

COSTS = (
    0.2, 0.1, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.009, 0.008, 0.007, 0.006, 0.005, 0.004, 0.003,
    0.002, 0.001, 0.0009, 0.0008, 0.0007, 0.0006, 0.0005, 0.0004, 0.0003, 0.0002, 0.0001,
)  # fmt: skip
"""The paper's 29 regularization coefficients of OSDT and GOSDT."""

DEPTHS = range(1, 7)
"""Of CART, and of BinOCT and DL8.5, which look for the fewest mistakes of a depth."""

STRIKES = 2
"""gosdt is asked no more for a set after it reached its limit so often; costs fall from one to the next."""

Case = dict[str, Any]


def sparsity(results: Results, limit: int) -> pd.DataFrame:
    """Leaves and accuracies in five folds: ours by cost, the fewest mistakes by depth, and CART by depth."""
    lines: list[Case] = []
    for name in SETS:
        X, y = load(name)
        folds = list(enumerate(KFold(5, shuffle=True, random_state=0).split(X)))

        def every(key: str, work: Any, folds: Any = folds) -> list[Case]:
            return [results.get(f"sparsity {key} {k}", lambda rows=rows: work(rows)) for k, rows in folds]

        of_gosdt = beside_gosdt(results, name, X, y, limit)
        for cost in COSTS:
            cases = every(
                f"{name} {cost:g} {limit}",
                lambda rows, X=X, y=y, cost=cost: fold_case(X, y, MOST_DEPTH, None, rows, limit, cost),
            )
            add(lines, summary(name, "ours", f"{cost:g}", cases) | {"gosdt 1.0.4, first fold": of_gosdt[cost]})
        for depth in DEPTHS:
            cases = every(
                f"{name} depth {depth} {limit}",
                lambda rows, X=X, y=y, depth=depth: fold_case(X, y, depth, None, rows, limit),
            )
            add(lines, summary(name, "fewest mistakes", f"depth {depth}", cases))
            cases = every(f"{name} CART {depth}", lambda rows, X=X, y=y, depth=depth: cart_case(X, y, depth, rows))
            add(lines, summary(name, "CART", f"depth {depth}", cases))
    return table_of(lines)


def summary(name: str, method: str, setting: str, cases: list[Case]) -> Case:
    """Medians and quartiles over the folds that ended with a proof, as the paper has them."""
    kept = [case for case in cases if case["proven"]]
    line: Case = {"set": name, "method": method, "setting": setting, "ended": f"{len(kept)} of {len(cases)}"}
    if not kept:
        return line
    line["leaves"] = f"{np.median([case['leaves'] for case in kept]):g}"
    for part in ("train", "test"):
        low, middle, high = np.percentile([100 * case[part] for case in kept], (25, 50, 75))
        line[f"{part} (%)"] = f"{middle:.1f} ({low:.1f} to {high:.1f})"
    return line


def add(lines: list[Case], line: Case) -> None:
    """Append a line; where only the cost differs from the last one, name its cost there."""
    if lines and {**lines[-1], "setting": ""} == {**line, "setting": ""}:
        first = lines[-1]["setting"].split(" to ")[0]
        lines[-1]["setting"] = f"{first} to {line['setting']}"
    else:
        lines.append(line)


def cart_case(X: np.ndarray, y: np.ndarray, depth: int, rows: Any) -> Case:
    """scikit-learn's tree of a depth, with as many leaves as the depth allows at most."""
    inside, outside = rows
    tree = DecisionTreeClassifier(max_depth=depth, max_leaf_nodes=2**depth, random_state=0).fit(X[inside], y[inside])
    train, test = (float(tree.score(X[part], y[part])) for part in (inside, outside))
    return {"train": train, "test": test, "leaves": int(tree.get_n_leaves()), "proven": True}


def beside_gosdt(results: Results, name: str, X: np.ndarray, y: np.ndarray, limit: int) -> dict[float, str]:
    """For each cost whether gosdt finds the same objective on the training rows of the first fold."""
    inside, _ = next(KFold(5, shuffle=True, random_state=0).split(X))
    found, late = {}, 0
    for cost in COSTS:
        if late >= STRIKES:
            found[cost] = "not asked"
            continue
        case = results.get(
            f"sparsity {name} gosdt {cost:g} {limit}",
            lambda cost=cost: compare(X[inside], y[inside], None, cost, limit),
        )
        ended = case.get("gosdt_ended", False)
        late += not ended
        found[cost] = agreement(case) if ended else "unfinished"
    return found
