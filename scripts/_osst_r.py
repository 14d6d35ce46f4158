"""CTree and RPART of the OSST experiments: R's own trees at the paper's settings, with Kaplan-Meier leaves."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _osst_models import MIN_ROWS, Data, ratio_of_leaves
from _r_trees import above_zero, missing_r, run_r

SCRIPT = Path(__file__).with_name("osst_peers.R")

RPART_COSTS = (0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0005, 0.00025, 0.0001, 0.00005, 0.00001)
"""RPART's twelve regularization coefficients (Appendix E), `cp` in R."""

METHODS = ("CTree", "RPART")


def why_not() -> str | None:
    """Why these trees cannot be had here, in a sentence; None where they can."""
    found = [missing_r(method) for method in ("ctree", "rpart")]
    return next((why for why in found if why), None)


def jobs(depths: range, least_rows: int) -> pd.DataFrame:
    """The paper's settings: CTree by depth, RPART by depth and coefficient."""
    settings = [("CTree", depth, np.nan) for depth in depths]
    settings += [("RPART", depth, cp) for depth in depths for cp in RPART_COSTS]
    return pd.DataFrame(settings, columns=["method", "depth", "cp"]).assign(rows=least_rows)


def grown(train: Data, test: Data, asked: pd.DataFrame) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """What R tells of each tree asked for, and the leaves of training and test rows, (N, trees) each."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        names = [f"f{k}" for k in range(train[0].shape[1])]
        frame = pd.DataFrame(train[0], columns=names)
        frame.insert(0, "time", above_zero(train[1]))
        frame.insert(1, "event", train[2].astype(int))
        frame.to_csv(at / "train.csv", index=False)
        pd.DataFrame(test[0], columns=names).to_csv(at / "test.csv", index=False)
        asked.to_csv(at / "jobs.csv", index=False)
        run_r(SCRIPT, folder)
        leaves = [pd.read_csv(at / f"leaf_{part}.csv").to_numpy() for part in ("train", "test")]
        return pd.read_csv(at / "facts.csv"), leaves


def r_trees(train: Data, test: Data, depths: range, least_rows: int = MIN_ROWS) -> dict[str, Any]:
    """Every tree's method, depth limit, cp, leaves, CPU seconds, and IBS ratios on training and test rows."""
    asked = jobs(depths, least_rows)
    facts, leaves = grown(train, test, asked)
    known: dict[bytes, tuple[float, float]] = {}
    ratios = []
    for on_train, on_test in zip(*(part.T for part in leaves), strict=True):
        key = on_train.tobytes()
        if key not in known:
            known[key] = (
                ratio_of_leaves(train, train, on_train, on_train),
                ratio_of_leaves(train, test, on_train, on_test),
            )
        ratios.append(known[key])
    table = pd.concat([asked, facts], axis=1)
    table[["train", "test"]] = ratios
    return {"trees": table.astype(object).where(table.notna(), None).to_dict("records")}


def at_most(trees: list[dict[str, Any]], method: str, leaves: float) -> dict[str, Any]:
    """The tree of a method, "" for any, with the best training ratio among those of at most so many leaves."""
    fitting = [one for one in trees if one["leaves"] <= leaves and (not method or one["method"] == method)]
    return max(fitting, key=lambda one: one["train"], default={"leaves": 1, "train": 0.0, "test": 0.0})
