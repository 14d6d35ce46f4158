"""Numbers of how far a tree can be trusted: own-time survival, calibration, Brier curves, fairness over rho."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore.curves import interval_censored
from softsurv.explore.style import read_data, takes_tables
from softsurv.explore.view import survival_tree
from softsurv.metrics.brier import brier_score
from softsurv.metrics.calibration import CalibrationCurve, DCalibration, calibration_curve, d_calibration
from softsurv.metrics.fairness import curve_gap, leaf_gini
from softsurv.metrics.ranges import evaluation_range
from softsurv.nonparametric import kaplan_meier

CHUNK = 200
"""Rows for which the survival at their own times is read off one block of curves."""


def require_times(data: SurvivalData) -> None:
    """Refuse interval-censored rows, which the measures would take for censored ones."""
    if interval_censored(data):
        raise InvalidSurvivalDataError(
            f"upper must be inf in every row to measure quality, got {data.summary()['interval_censored']} intervals; "
            "leave these rows out, or judge a tree by tree.log_likelihood(data)"
        )


def measured_outcome(tree: Any, data: SurvivalData) -> dict[str, Any]:
    """Time, event, entry and weight as ``tree.evaluate`` takes them, (N,) or None; times 0 are those of the tree."""
    require_times(data)
    known: dict[str, Any] = survival_tree(tree)._outcome(data)
    return {name: known[name] for name in ("time", "event", "entry", "weight")}


def own_survival(tree: Any, data: SurvivalData) -> FloatArray:
    """S_i(t_i): each row's predicted survival probability at its own observed time, (N,).

    Of a late entry given survival up to it, S_i(t_i) / S_i(entry_i).
    """
    known = measured_outcome(tree, data)
    own = _each_at(tree, data, known["time"])
    if known["entry"] is None:
        return own
    before = _each_at(tree, data, known["entry"])
    return np.divide(own, before, out=np.zeros(data.n), where=before > 0)


def _each_at(tree: Any, data: SurvivalData, time: FloatArray) -> FloatArray:
    """Predicted survival probability of each row at a time of its own, (N,)."""
    order = np.argsort(time, kind="stable")  # neighbours in time share grid points
    values = np.empty(data.n)
    for start in range(0, data.n, CHUNK):
        rows = order[start : start + CHUNK]
        grid, column = np.unique(time[rows], return_inverse=True)
        block = survival_tree(tree).predict_survival_function(data.X.iloc[rows], times=grid)
        values[rows] = block[np.arange(rows.size), column]
    return values


def default_horizons(tree: Any, data: SurvivalData) -> FloatArray:
    """Quartiles of the observed event times, distinct, (up to 3,)."""
    known = measured_outcome(tree, data.require_events())
    return np.unique(np.quantile(known["time"][known["event"]], [0.25, 0.5, 0.75]))


def calibration_curves(
    tree: Any, data: SurvivalData, horizons: FloatArray, n_bins: int = 10
) -> tuple[list[CalibrationCurve], DCalibration]:
    """Calibration at each horizon, and the test over all of time."""
    known = measured_outcome(tree, data)
    survival = survival_tree(tree).predict_survival_function(data.X, times=horizons)
    curves = [
        calibration_curve(**known, survival=survival[:, k], horizon=float(h), n_bins=n_bins)
        for k, h in enumerate(horizons)
    ]
    return curves, d_calibration_of(tree, data)


def d_calibration_of(tree: Any, data: SurvivalData, n_bins: int = 10) -> DCalibration:
    """Whether the survival probabilities of the rows at their own times are uniform."""
    known = measured_outcome(tree, data)
    return d_calibration(known["time"], known["event"], own_survival(tree, data), n_bins, known["weight"])


def brier_frame(trees: Mapping[str, Any], data: SurvivalData, n_times: int = 60) -> pd.DataFrame:
    """Brier score of each tree over time, with ``no features``, the Kaplan-Meier curve of the same rows."""
    first = next(survival_tree(tree) for tree in trees.values())
    known, censoring = measured_outcome(first, data), first.censoring_
    grid = evaluation_range(known["time"], known["event"], censoring, None, n_times).times
    how = known | {"times": grid, "censoring": censoring}
    frame = pd.DataFrame(index=pd.Index(grid, name="time"))
    for name, tree in trees.items():
        frame[name] = brier_score(survival=tree.predict_survival_function(data.X, times=grid), **how)
    common = np.broadcast_to(kaplan_meier(**known)(grid), (data.n, grid.size))
    frame["no features"] = brier_score(survival=common, **how)
    return frame


@takes_tables
def fairness_frame(trees: Mapping[float, Any], data: Any, group: str | None = None) -> pd.DataFrame:
    """Fairness and accuracy of trees fitted with different weights of the fairness penalty.

    Parameters
    ----------
    trees : mapping of rho to fitted tree
    data : SurvivalData with a group
    group : str, optional
        Name of the sensitive group; the last of ``data.group_names`` by default.

    Returns
    -------
    DataFrame, index ``rho``
        ``mean_gap`` and ``largest_gap`` between the mean survival curves of the group and of the others,
        ``gini`` (how mixed the groups are in the leaves, by leaf size; 1 = as even as can be) and ``harrell_c``.
    """
    read = read_data(data)
    member = sensitive_rows(read, group)
    rows = []
    for rho in sorted(trees):
        tree = trees[rho]
        gap = curve_gap(tree.predict_survival_function(read.X), tree.unique_times_, member)
        rows.append(
            {
                "rho": float(rho),
                "mean_gap": gap.mean,
                "largest_gap": gap.largest,
                "gini": leaf_gini(tree.apply(read.X), member).weighted,
                "harrell_c": tree.score(read, None),
            }
        )
    return pd.DataFrame(rows).set_index("rho")


def sensitive_rows(data: SurvivalData, group: str | None = None) -> np.ndarray:
    """True for rows of the sensitive group, (N,): the named one, by default the last."""
    if data.group is None:
        raise InvalidSurvivalDataError("data must hold a group for fairness; pass group= when reading it")
    names = data.group_names
    if group is not None and group not in names:
        raise InvalidParameterError(f"group must be one of {', '.join(names)}, got {group!r}")
    return data.group.numpy() == (len(names) - 1 if group is None else names.index(group))
