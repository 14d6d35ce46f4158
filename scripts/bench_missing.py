"""Missing values filled, and routed: held-out measures of optimal trees on the same folds.

    python scripts/bench_missing.py

writes scripts/tables/missing.md. The sets are those of SurvSet in which at least one per cent of the values are
missing. Survival: `OptimalSurvivalTree`, tuned and with ``max_depth=3``. Classes: `OptimalClassificationTree`
(depth 3, 1 % of the rows per leaf at least) of an event by the median time, rows censored before it left out; score:
the share that is classified right. Finished cases stand in scripts/results/missing.jsonl.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results

from softsurv import OptimalClassificationTree, OptimalSurvivalTree, SurvivalData, load_dataset

SETS = (
    "stagec", "uis", "heartvalve", "flchain", "rhc", "vlbw", "cancer", "smarto", "support2", "mgus", "acath",
    "hepatoCellular",
)  # fmt: skip
WAYS = ("impute", "route")
KINDS = ("tuned", "depth 3", "classes")
N_FOLDS = 5
HERE = Path(__file__).parent
OUT = HERE / "tables" / "missing.md"


def survival_fold(data: SurvivalData, train: np.ndarray, test: np.ndarray, **how: Any) -> dict[str, Any]:
    """Measures of one survival tree."""
    part, rest = data.take(train), data.take(test)
    began = time.process_time()
    tree = OptimalSurvivalTree(random_state=0, **how).fit(part)
    spent = time.process_time() - began
    found = tree.evaluate(rest)
    c, ibs = (np.nan if found[name] is None else float(found[name]) for name in ("harrell_c", "ibs"))
    return {"c": c, "ibs": ibs, "leaves": tree.tree_.n_leaves, "cpu": spent}


def class_fold(data: SurvivalData, train: np.ndarray, test: np.ndarray, **how: Any) -> dict[str, Any]:
    """Accuracy of one classification tree."""
    times, happened = data.time.numpy(), data.event.numpy()
    median = float(np.median(times))
    known = happened | (times > median)
    train, test = train[known[train]], test[known[test]]
    label = times <= median
    began = time.process_time()
    tree = OptimalClassificationTree(max_depth=3, min_samples_leaf=max(1, len(train) // 100), **how)
    tree.fit(data.X.iloc[train], label[train])
    spent = time.process_time() - began
    right = float((tree.predict(data.X.iloc[test]) == label[test]).mean())
    return {"accuracy": right, "leaves": tree.tree_.n_leaves, "cpu": spent}


def case(data: SurvivalData, kind: str, way: str) -> dict[str, Any]:
    """Means over the folds."""
    folds = []
    for train, test in data.folds(N_FOLDS, 0):
        if kind == "classes":
            folds.append(class_fold(data, train, test, missing=way))
        else:
            limit = {} if kind == "tuned" else {"max_depth": 3}
            folds.append(survival_fold(data, train, test, missing=way, **limit))
    return pd.DataFrame(folds).mean().to_dict()


def main() -> None:
    """Measure and write the table."""
    warnings.simplefilter("ignore")
    results, rows = Results(HERE / "results" / "missing.jsonl"), []
    for name in SETS:
        data = load_dataset(f"survset:{name}")
        gone = data.X.isna().to_numpy()
        for kind in KINDS:
            found = {
                way: results.get(f"{name} {kind} {way}", lambda data=data, kind=kind, way=way: case(data, kind, way))
                for way in WAYS
            }
            shown = {"set": name, "rows": data.n, "missing": f"{gone.mean():.1%}", "kind": kind}
            for measure in ("c", "ibs", "accuracy", "leaves", "cpu"):
                digits = 3 if measure in ("c", "ibs", "accuracy") else 1
                texts = [f"{found[way][measure]:.{digits}f}" if measure in found[way] else "" for way in WAYS]
                shown[measure] = " / ".join(texts) if any(texts) else ""
            rows.append(shown | {f"{m} {w}": found[w].get(m) for m in ("c", "ibs", "accuracy") for w in WAYS})
            print(*shown.values(), flush=True)
    table = pd.DataFrame(rows)
    means = table.groupby("kind")[[f"{m} {w}" for m in ("c", "ibs", "accuracy") for w in WAYS]].mean().loc[list(KINDS)]
    lines = [
        "# Missing values filled, and routed",
        "",
        f'Made by `scripts/bench_missing.py`: {N_FOLDS} folds; in each cell `missing="impute"` / `"route"`; '
        "concordance (Harrell), integrated Brier score, share classified right, leaves, CPU seconds of a fit.",
        "",
        machine_line(),
        "",
        "## Means over the sets",
        "",
        as_markdown(means.map(lambda v: "" if pd.isna(v) else f"{v:.4f}").reset_index()),
        "",
        "## Each set",
        "",
        as_markdown(table[["set", "rows", "missing", "kind", "c", "ibs", "accuracy", "leaves", "cpu"]]),
        "",
    ]
    OUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
