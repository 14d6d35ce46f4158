"""What the exact benchmarks share: data as codes, and pystreed as the peer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softsurv import load_dataset
from softsurv.data.binarize import Binarizer
from softsurv.exact.bounds import Bounds
from softsurv.exact.objectives import relative_risk
from softsurv.exact.search import Search
from softsurv.exact.task import Task
from softsurv.nonparametric import nelson_aalen


@dataclass(frozen=True)
class Coded:
    """A survival data set as codes, with the statistics of the relative-risk task."""

    name: str
    codes: np.ndarray
    n_codes: np.ndarray
    nominal: np.ndarray
    binary: np.ndarray
    time: np.ndarray
    event: np.ndarray
    statistics: np.ndarray
    offset: np.ndarray

    def search(self, task: Task = relative_risk.TASK, bounds: Bounds | None = None, **limits: Any) -> Search:
        """A fresh search."""
        return Search(
            task, self.codes, self.n_codes, self.nominal, self.statistics, self.offset, bounds=bounds, **limits
        )


def coded(name: str, thresholds: Any = 10, max_levels: int | None = 10, min_share: float = 0.01) -> Coded:
    """A SurvSet data set, coded as paper `surtree` does: ten quantiles, ten levels, nothing under one per cent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load_dataset(f"survset:{name}")
        binarizer = Binarizer(thresholds, max_levels, min_share)
        return coded_rows(name, data.X, data.event.numpy(), data.time.numpy(), binarizer)


def coded_rows(name: str, X: pd.DataFrame, event: np.ndarray, time: np.ndarray, binarizer: Binarizer) -> Coded:
    """Rows of a survival data set as codes of a binarizer that is fitted here."""
    codes = binarizer.fit(X).codes(X)
    hazard = relative_risk.baseline_hazard(nelson_aalen(time, event)(time), len(time))
    return Coded(
        name,
        codes,
        binarizer.n_codes,
        binarizer.nominal,
        binarizer.binary_of(codes),
        time,
        event,
        relative_risk.statistics(event, hazard),
        np.where(event, -np.log(hazard), 0.0),
    )


def fit_pystreed(data: Coded, depth: int, time_limit: float = 600.0, **options: Any) -> Any:
    """Fit pystreed's survival tree; it takes events as numbers in one place and as booleans in another."""
    import pystreed.survival_analysis as peer
    import sksurv.tree._criterion as criterion

    peer.check_array_survival = lambda X, y: (y["event"].astype(int), y["time"])
    peer.get_unique_times = lambda time, event: criterion.get_unique_times(time, event.astype(bool))
    y = np.array(list(zip(data.event, data.time, strict=True)), dtype=[("event", bool), ("time", float)])
    return peer.STreeDSurvivalAnalysis(max_depth=depth, time_limit=time_limit, **options).fit(data.binary, y)


def pystreed_leaves(data: Coded, model: Any) -> np.ndarray:
    """Leaf of every row in pystreed's tree, (N,)."""
    leaf = np.zeros(len(data.binary), int)

    def descend(node: Any, rows: np.ndarray, number: int) -> int:
        if node.is_leaf_node():
            leaf[rows] = number
            return number + 1
        holds = data.binary[rows, node.feature].astype(bool)
        number = descend(node.left_child, rows[~holds], number)
        return descend(node.right_child, rows[holds], number)

    descend(model.tree_, np.arange(len(leaf)), 0)
    return leaf


def objective_of(data: Coded, leaf: np.ndarray) -> float:
    """Deviance (eq. 20) of a partition of the rows."""
    sums = np.stack([data.statistics[leaf == k].sum(axis=0) for k in np.unique(leaf)])
    return float(relative_risk.TASK.costs(sums).sum() + data.offset.sum())
