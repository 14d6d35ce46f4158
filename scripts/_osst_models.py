"""The trees and models of the OSST experiments, with their IBS ratios on training and test rows."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from softsurv.exact.brier.solve import assign_leaves, solve_ibs
from softsurv.exact.objectives.brier import IbsScore

MIN_ROWS = 7

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Binary features (N, P), times (N,), events (N,)."""


def load(folder: Path, name: str) -> Data:
    """One of the paper's files."""
    table = pd.read_csv(folder / f"{name}.csv")
    table = table[[column for column in table.columns if not column.startswith("Unnamed")]]
    return table.iloc[:, :-2].to_numpy(np.uint8), table.iloc[:, -1].to_numpy(float), table.iloc[:, -2].to_numpy(bool)


def rows(data: Data, index: np.ndarray) -> Data:
    return data[0][index], data[1][index], data[2][index]


def test_score(train: Data, test: Data) -> IbsScore:
    """The score of test rows with G of the training rows."""
    censoring = IbsScore.from_columns(train[1], train[2]).censoring
    return IbsScore(test[1], test[2], np.ones(test[1].size), censoring_curve=censoring)


def ratio(train: Data, test: Data, survival: np.ndarray) -> float:
    """IBS ratio of curves (N, T) at the distinct times of the test rows, against training's Kaplan-Meier curve."""
    score = test_score(train, test)
    one = IbsScore.from_columns(train[1], train[2])
    at = np.searchsorted(one.grid().times, score.grid().times, side="right")
    curve = np.concatenate([[1.0], one.curve(np.arange(train[1].size))])[at]
    base = score.row_losses(np.tile(curve, (test[1].size, 1))).sum()
    return float(1.0 - score.row_losses(survival).sum() / base)


def ratio_of_leaves(train: Data, test: Data, leaf_train: np.ndarray, leaf_test: np.ndarray, leaf: str = "km") -> float:
    """IBS ratio of a tree from its leaves, with curves of the training rows."""
    score, times = IbsScore.from_columns(train[1], train[2]), np.unique(test[1])
    at = np.searchsorted(score.grid().times, times, side="right")
    curves = {
        k: np.concatenate([[1.0], score.curve(np.flatnonzero(leaf_train == k), leaf, monotone=True)])[at]
        for k in np.unique(leaf_train)
    }
    return ratio(train, test, np.array([curves[k] for k in leaf_test]))


def our_tree(
    train: Data,
    test: Data,
    depth: int | None,
    complexity: float,
    limit: float,
    leaf: str = "km",
    least_rows: int = MIN_ROWS,
) -> dict:
    """An optimal tree: leaves, status, seconds, ratios."""
    start = time.process_time()
    solution = solve_ibs(
        *train, complexity=complexity, max_depth=depth, min_samples_leaf=least_rows, time_limit=limit, leaf=leaf
    )
    seconds = time.process_time() - start
    leaf_test = assign_leaves(solution.plan, test[0])
    return {
        "leaves": len(solution.survival),
        "status": solution.report.status.value,
        "seconds": seconds,
        "gap": float(solution.report.gap),
        "objective": float(solution.report.objective),
        "train": ratio_of_leaves(train, train, solution.leaf_of_row, solution.leaf_of_row, leaf),
        "test": ratio_of_leaves(train, test, solution.leaf_of_row, leaf_test, leaf),
    }


def sksurv_tree(train: Data, test: Data, depth: int, leaves: int) -> dict:
    """scikit-survival's tree: log-rank splits."""
    tree = SurvivalTree(max_depth=depth, max_leaf_nodes=leaves, min_samples_leaf=MIN_ROWS, random_state=2023)
    start = time.process_time()
    tree.fit(train[0], Surv.from_arrays(train[2], train[1]))
    seconds = time.process_time() - start
    leaf_train, leaf_test = (tree.tree_.apply(part[0].astype(np.float32)) for part in (train, test))
    return {
        "leaves": int(np.unique(leaf_train).size),
        "seconds": seconds,
        "train": ratio_of_leaves(train, train, leaf_train, leaf_train),
        "test": ratio_of_leaves(train, test, leaf_train, leaf_test),
    }


def peer(kind: str, train: Data, test: Data, setting) -> dict:
    """Cox, forest or boosting of scikit-survival: ratios."""
    if kind == "cox":
        model = CoxPHSurvivalAnalysis(alpha=setting)
    elif kind == "forest":
        features, trees, depth = setting
        model = RandomSurvivalForest(trees, max_depth=depth, max_features=features, random_state=2023)
    else:
        features, trees, depth = setting
        model = GradientBoostingSurvivalAnalysis(
            n_estimators=trees, max_depth=depth, max_features=features, random_state=2023
        )
    start = time.process_time()
    model.fit(train[0].astype(float), Surv.from_arrays(train[2], train[1]))
    seconds = time.process_time() - start
    on_train, on_test = (ratio(train, part, curves(model, part)) for part in (train, test))
    return {"seconds": seconds, "train": on_train, "test": on_test}


def curves(model, data: Data) -> np.ndarray:
    """Survival probabilities (N, T) of a scikit-survival model at the distinct times of some rows."""
    times = np.unique(data[1])
    functions = model.predict_survival_function(data[0].astype(float))
    low, high = functions[0].domain
    inside = np.clip(times, low, high)
    out = np.array([f(inside) for f in functions])
    out[:, times < functions[0].x[0]] = 1.0
    return np.clip(out, 0.0, 1.0)
