"""Numbers of how far a tree can be trusted: own-time survival, calibration, Brier curves, fairness over rho."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore.curves import interval_censored
from softsurv.explore.style import read_data, survival_tree, takes_tables
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
            "judge a tree by tree.log_likelihood(data): without these rows events would be too rare"
        )


def one_row_each(data: SurvivalData) -> SurvivalData:
    """The data with one row for each subject; an error where covariates change, or times are intervals."""
    require_times(data)
    joined = data.joined()
    if joined.n_subjects < joined.n:
        raise InvalidSurvivalDataError(
            f"calibration and Brier score need one row for each subject, got {joined.n} rows of {joined.n_subjects} "
            "subjects; tree.evaluate(data) compares the rows at risk at each event"
        )
    return joined


def own_survival(tree: Any, data: SurvivalData) -> FloatArray:
    """S_i(t_i): each row's predicted survival probability at its own time, given that at its late entry; (N,)."""
    require_times(data)
    known = survival_tree(tree)._outcome(data)
    own = _survival_at(tree, data, known["time"])
    if known["entry"] is None:
        return own
    before = _survival_at(tree, data, known["entry"])
    return np.minimum(np.divide(own, before, out=np.zeros_like(own), where=before > 0), 1.0)


def _survival_at(tree: Any, data: SurvivalData, time: FloatArray) -> FloatArray:
    """Each row's predicted survival probability at a time (N,) of its own, (N,)."""
    order = np.argsort(time, kind="stable")  # neighbours in time share grid points
    values = np.empty(data.n)
    for start in range(0, data.n, CHUNK):
        rows = order[start : start + CHUNK]
        grid, column = np.unique(time[rows], return_inverse=True)
        block = tree.predict_survival_function(data.X.iloc[rows], times=grid)
        values[rows] = block[np.arange(rows.size), column]
    return values


def default_horizons(tree: Any, data: SurvivalData) -> FloatArray:
    """Quartiles of the observed event times, distinct, (up to 3,)."""
    require_times(data)
    known = survival_tree(tree)._outcome(data.require_events())
    return np.unique(np.quantile(known["time"][known["event"]], [0.25, 0.5, 0.75]))


def calibration_curves(
    tree: Any, data: SurvivalData, horizons: FloatArray, n_bins: int = 10
) -> tuple[list[CalibrationCurve], DCalibration]:
    """Calibration at each horizon, and the test over all of time."""
    data = one_row_each(data)
    survival = tree.predict_survival_function(data.X, times=horizons)
    return calibration_of(tree, data, horizons, survival, n_bins), d_calibration_of(tree, data)


def calibration_of(
    tree: Any,
    data: SurvivalData,
    horizons: FloatArray,  # (H,)
    survival: FloatArray,  # (N, H) predicted
    n_bins: int,
) -> list[CalibrationCurve]:
    """Calibration of predictions at each horizon, for rows that are one for each subject."""
    known = survival_tree(tree)._outcome(data)
    rows, at_risk = (known["time"], known["event"]), {"weight": subjects(data), "entry": known["entry"]}
    return [calibration_curve(*rows, survival[:, k], float(h), n_bins, **at_risk) for k, h in enumerate(horizons)]


def d_calibration_of(tree: Any, data: SurvivalData, n_bins: int = 10) -> DCalibration:
    """D-calibration of rows, one for each subject."""
    known = survival_tree(tree)._outcome(data)
    return d_calibration(known["time"], known["event"], own_survival(tree, data), n_bins, subjects(data))


def subjects(data: SurvivalData) -> FloatArray | None:
    """Weights (N,) in numbers of subjects, which intervals and tests count; None where there are none."""
    if data.weight is None:
        return None
    from softsurv.exact.objectives.relative_risk import one_subject  # numba comes with it

    weight = data.weight.numpy()
    return np.asarray(weight / one_subject(weight))


def brier_frame(trees: Mapping[str, Any], data: SurvivalData, n_times: int = 100) -> pd.DataFrame:
    """Brier score of each tree over time, with ``no features``, the Kaplan-Meier curve of the same rows.

    Weights, late entries and by default the times count as in ``evaluate``, so that the means are its ``ibs``.
    """
    data, first = one_row_each(data), next(survival_tree(tree) for tree in trees.values())
    known = first._outcome(data)
    rows, at_risk = (known["time"], known["event"]), {"weight": known["weight"], "entry": known["entry"]}
    grid = evaluation_range(*rows, first.censoring_, None, n_times).times
    curves = {name: tree.predict_survival_function(data.X, times=grid) for name, tree in trees.items()}
    curves["no features"] = np.broadcast_to(kaplan_meier(*rows, **at_risk)(grid), (data.n, grid.size))
    scores = {name: brier_score(*rows, curve, grid, first.censoring_, **at_risk) for name, curve in curves.items()}
    return pd.DataFrame(scores, index=pd.Index(grid, name="time"))


@takes_tables
def fairness_frame(trees: Any, data: Any, group: str | None = None) -> pd.DataFrame:
    """Fairness and accuracy of trees fitted with different weights of the fairness penalty.

    Parameters
    ----------
    trees : fitted tree, or mapping of rho to fitted tree
        The rho of one tree is its ``fairness``, 0 where it has none.
    data : SurvivalData with a group
    group : str, optional
        Name of the sensitive group; the last of ``data.group_names`` by default.

    Returns
    -------
    DataFrame, index ``rho``
        ``mean_gap`` and ``largest_gap`` between the mean survival curves of the group and of the others,
        ``gini`` (how mixed the groups are in the leaves, by leaf size; 1 = as even as can be) and ``harrell_c``. Rows
        count by their weights.
    """
    read = read_data(data).that_count()
    member = sensitive_rows(read, group)
    rows = []
    for rho, tree in _by_rho(trees):
        gap = curve_gap(tree.predict_survival_function(read.X), tree.unique_times_, member, read.weight)
        rows.append(
            {
                "rho": rho,
                "mean_gap": gap.mean,
                "largest_gap": gap.largest,
                "gini": leaf_gini(tree.apply(read.X), member, read.weight).weighted,
                "harrell_c": tree.score(read, None),
            }
        )
    return pd.DataFrame(rows).set_index("rho")


def _by_rho(trees: Any) -> list[tuple[float, Any]]:
    """Trees in the order of their weight of the penalty."""
    refuse_list(trees, "weight of the penalty")
    if not isinstance(trees, Mapping):
        return [(float(getattr(survival_tree(trees), "fairness", 0.0)), trees)]
    for rho in trees:
        if not isinstance(rho, numbers.Real):
            raise InvalidParameterError(f"trees must map weights of the penalty, numbers, to trees, got {rho!r}")
    return sorted(((float(rho), survival_tree(tree)) for rho, tree in trees.items()), key=lambda one: one[0])


def refuse_list(trees: Any, key: str) -> None:
    """Refuse trees without names, where several are a mapping."""
    if isinstance(trees, (list, tuple)):
        raise InvalidParameterError(
            f"trees must be a fitted tree or a mapping of {key} to fitted tree, got {type(trees).__name__}; pass a dict"
        )


def sensitive_rows(data: SurvivalData, group: str | None = None) -> np.ndarray:
    """True for rows of the sensitive group, (N,): the named one, by default the last."""
    if data.group is None:
        raise InvalidSurvivalDataError("data must hold a group for fairness; pass group= when reading it")
    names = data.group_names
    if group is not None and group not in names:
        raise InvalidParameterError(f"group must be one of {', '.join(names)}, got {group!r}")
    return data.group.numpy() == (len(names) - 1 if group is None else names.index(group))
