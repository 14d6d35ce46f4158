"""Numbers behind the pictures: curves by leaf, a tidy table of the leaves, predictions as frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.estimators.column_names import time_names
from softsurv.estimators.shared.checks import whole
from softsurv.explore.style import NO_ROWS, LineStyle, read_data, risk_styles, survival_tree, takes_tables
from softsurv.explore.view import TreeView, tree_view
from softsurv.metrics.ranges import thinned
from softsurv.nonparametric import StepFunction, restricted_mean, survival_interval
from softsurv.trees.leaf_curve import survival_curve
from softsurv.trees.leaf_table import LeafTable, leaf_table_of

KINDS = {
    "survival": "predict_survival_function",
    "cumulative_hazard": "predict_cumulative_hazard_function",
    "hazard": "predict_hazard_function",
}


MAX_STEPS = 400
"""Most corners of a drawn step curve: more than a picture has pixels to show only make its file larger."""


@dataclass(frozen=True)
class RowCurves:
    """Curves of the rows of a leaf, or of several under one number.

    Attributes
    ----------
    leaf : int
    rows : ndarray (n,)
        Positions in the data.
    values : ndarray (m, T)
        Curve of each drawn row, by rising risk; at most ``max_curves``.
    middle, lower, upper, mean : ndarray (T,)
        Median, 5th and 95th centile of the curves, and their mean with sample weights; nan without rows.
    """

    leaf: int
    rows: IntArray
    values: FloatArray
    middle: FloatArray
    lower: FloatArray
    upper: FloatArray
    mean: FloatArray


def default_times(tree: Any, n_times: int = 120, horizon: float | None = None, positive: bool = False) -> FloatArray:
    """Grid (T,) up to the horizon, by default the last event time in training; without 0 where positive.

    Smooth curves get an even grid, or where positive one that is denser near 0. Curves of steps get both sides of
    their steps, so that a line through the grid is upright there.
    """
    last: Any = survival_tree(tree).unique_times_[-1] if horizon is None else horizon
    try:
        end = float(last)
    except (TypeError, ValueError):
        end = np.nan
    if not 0 < end < np.inf:
        raise InvalidTimesError(f"horizon must be a finite time > 0, got {horizon!r}")
    if not tree_view(tree).soft:
        inside = thinned(tree.unique_times_[tree.unique_times_ <= end], MAX_STEPS // 2)
        grid = np.unique(np.concatenate([[0.0], np.nextafter(inside, 0.0), inside, [end]]))
        return grid[1:] if positive else grid
    # a hazard may be steep near time 0: quadratic spacing shows it
    return end * np.linspace(0.0, 1.0, n_times)[1:] ** 2 if positive else np.linspace(0.0, end, n_times)


def leaf_looks(tree: Any) -> dict[int, LineStyle]:
    """Look of each leaf, from the lowest risk to the highest: the same leaf looks the same in every picture.

    The risk is judged by the restricted mean of the training rows' curve. Leaves without training rows come last.
    """
    table, end = survival_tree(tree).leaf_table_, float(tree.unique_times_[-1])
    lived = {k: restricted_mean(table.curves[k], end) for k in tree_view(tree).leaves if table.n[k]}
    ordered = sorted(lived, key=lambda k: (-lived[k], k))
    empty = {k: NO_ROWS for k in tree_view(tree).leaves if k not in lived}
    return dict(zip(ordered, risk_styles(len(ordered)), strict=True)) | empty


def curves_by_leaf(
    tree: Any,
    data: SurvivalData,
    times: FloatArray,
    kind: str = "survival",
    max_curves: int = 300,
    together: Mapping[int, Sequence[int]] | None = None,
) -> list[RowCurves]:
    """Curves of the rows in each leaf, every leaf in turn, also those without rows.

    Parameters
    ----------
    tree : fitted tree
    data : SurvivalData
    times : ndarray (T,)
    kind : {"survival", "cumulative_hazard", "hazard"}
    max_curves : int
        Rows of a leaf beyond this number are thinned evenly by risk, so that the spread is kept.
    together : mapping, optional
        Leaves whose rows are taken together under a number; each leaf by itself by default.
    """
    leaf, risk = tree.apply(data.X), tree.predict(data.X)
    weight = None if data.weight is None else data.weight.numpy()
    predict = getattr(tree, KINDS[kind])
    found = []
    for number, leaves in ({k: (k,) for k in tree_view(tree).leaves} if together is None else together).items():
        rows = np.flatnonzero(np.isin(leaf, leaves))
        chosen = rows[np.argsort(risk[rows], kind="stable")]
        if chosen.size > max_curves:
            chosen = chosen[np.linspace(0, chosen.size - 1, max_curves).round().astype(int)]
        if rows.size == 0:
            nothing = np.full(times.size, np.nan)
            found.append(RowCurves(number, rows, np.empty((0, times.size)), nothing, nothing, nothing, nothing))
            continue
        values = np.asarray(predict(data.X.iloc[chosen], times=times))
        with np.errstate(invalid="ignore"):  # infinite hazards, where nobody survives, have no difference
            spread = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        lower, middle, upper = np.where(np.isnan(spread), np.inf, spread)
        mean = np.average(values, axis=0, weights=None if weight is None else weight[chosen])
        found.append(RowCurves(number, rows, values, middle, lower, upper, mean))
    return found


def leaf_kaplan_meier(data: SurvivalData, rows: IntArray) -> StepFunction:
    """Kaplan-Meier curve of some rows, with their weights and late entries; with intervals `survival_curve`'s."""
    return survival_curve(**data.take(rows).outcomes())


def leaf_interval(data: SurvivalData, rows: IntArray) -> tuple[StepFunction, StepFunction] | None:
    """Pointwise 95 % interval of :func:`leaf_kaplan_meier`; None without a simple variance, as of recurrent events."""
    part = data.take(rows)
    if data.recurrent or interval_censored(part):
        return None
    known = part.outcomes()
    known.pop("upper")
    return survival_interval(**known)


def curve_name(data: SurvivalData) -> str:
    """What to call :func:`leaf_kaplan_meier` of some data."""
    if not interval_censored(data):
        return "Kaplan-Meier"
    late = data.entry is not None and bool((data.entry > 0).any())
    return "Kaplan-Meier (mid-interval)" if late else "Turnbull"


def interval_censored(data: SurvivalData) -> bool:
    """Whether some event is only known to lie in an interval."""
    return bool((data.failed & ~data.event.numpy()).any())


def steps(curve: StepFunction, end: float) -> tuple[FloatArray, FloatArray]:
    """Corners of a step curve from time 0 to where its data end, for drawing with steps-post; at most MAX_STEPS."""
    last = min(end, float(curve.times[-1])) if curve.times.size else end
    inside = (curve.times > 0) & (curve.times < last)
    at = np.concatenate([[0.0], thinned(curve.times[inside], MAX_STEPS), [last]])
    return at, curve(at)


@takes_tables
def leaf_summary(tree: Any, data: Any = None, horizon: float | None = None, n_features: int = 3) -> pd.DataFrame:
    """One tidy row per leaf.

    Parameters
    ----------
    tree : fitted tree
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``, optional
        Rows to describe; the training rows by default, as the tree remembers them.
    horizon : float, optional
        End of the restricted mean, in the unit of time; the last event time in training by default.
    n_features : int
        How many features to name: those on the path to the leaf with the strongest say.

    Returns
    -------
    DataFrame, index ``leaf``
        ``n`` and ``events``, counted in rows, those of weight 0 left out; with weights, late entries and intervals
        (see `LeafTable`) ``median`` with its 95 % interval ``median_lower`` and ``median_upper``,
        ``restricted_mean`` up to ``horizon``, ``rule`` (the path in words) and ``top_features``.
        Leaves without rows hold 0 and nan. Of an optimal tree without ``data`` median and mean are those of the curve
        that the leaf predicts; where its median is not that of the leaf's rows, it has no interval. A weight counts as
        a number of equal rows in every interval. Where events recur, median and mean are those of the time to a first
        event, were events to come at random at the leaf's rate, and there is no interval.

    Examples
    --------
    >>> leaf_summary(tree, test)[["n", "events", "median"]]     # doctest: +SKIP
    """
    whole("n_features", n_features, 0)
    table, view = table_of(tree, data), tree_view(tree)
    end = float(default_times(tree, horizon=horizon)[-1])
    rows = []
    for leaf in view.leaves:
        mean = restricted_mean(table.curves[leaf], end) if table.n[leaf] else float("nan")
        rows.append(
            {
                "leaf": leaf,
                "n": int(table.n[leaf]),
                "events": int(table.events[leaf]),
                "median": float(table.median[leaf]),
                "median_lower": float(table.median_lower[leaf]),
                "median_upper": float(table.median_upper[leaf]),
                "restricted_mean": mean,
                "horizon": end,
                "rule": view.path_words(leaf),
                "top_features": ", ".join(view.top_features(leaf, n_features)),
            }
        )
    return pd.DataFrame(rows).set_index("leaf")


def distinguishing(
    view: TreeView,
    encoded: FloatArray,  # (n, P)
    rows: IntArray,
) -> pd.DataFrame:
    """What sets some rows apart from the others, strongest first.

    ``encoded`` are the features of all rows, as `TreeView.encode` gives them: once for all leaves.

    Returns
    -------
    DataFrame, index encoded feature
        ``here`` and ``elsewhere``, means in the data's own units (shares of a level), and ``difference`` of the
        means in standard deviations of all rows, all of known values. Empty where there are no other rows.
    """
    inside = np.zeros(len(encoded), dtype=bool)
    inside[rows] = True
    columns = ["here", "elsewhere", "difference"]
    if inside.all() or not inside.any() or not view.columns:
        return pd.DataFrame(columns=columns, dtype=float)
    here, elsewhere = _known_mean(encoded[inside]), _known_mean(encoded[~inside])
    away = encoded - _known_mean(encoded)
    spread = np.sqrt(_known_mean(np.square(away, out=away)))
    difference = np.divide(here - elsewhere, spread, out=np.zeros_like(spread), where=spread > 0)
    difference[np.isnan(difference)] = 0.0  # no value is known on one side
    units = [
        [column.to_units(value) for column, value in zip(view.columns, values, strict=True)]
        for values in (here, elsewhere)
    ]
    frame = pd.DataFrame(
        {"here": units[0], "elsewhere": units[1], "difference": difference},
        index=pd.Index([column.name for column in view.columns], name="feature"),
    )
    never = [column.kind == "missing" and not wide for column, wide in zip(view.columns, spread, strict=True)]
    frame, difference = frame[np.logical_not(never)], difference[np.logical_not(never)]
    return frame.iloc[np.argsort(-np.abs(difference), kind="stable")]


def _known_mean(encoded: FloatArray) -> FloatArray:
    """Mean of the known values of each column (n, P); nan where none is known."""
    known = ~np.isnan(encoded)
    n = np.count_nonzero(known, axis=0)
    return np.divide(encoded.sum(0, where=known), n, out=np.full(n.shape, np.nan), where=n > 0)


def table_of(tree: Any, data: Any) -> LeafTable:
    """Numbers of some rows in each leaf; of the training rows without data."""
    known: LeafTable = survival_tree(tree).leaf_table_
    if data is None:
        return known
    read = read_data(data)
    return leaf_table_of(read, tree.apply(read.X), len(known.n))


def survival_frame(tree: Any, X: Any, times: ArrayLike, *, after: ArrayLike | None = None) -> pd.DataFrame:
    """Survival probabilities as a table: one row per subject, one column per time.

    Parameters
    ----------
    tree : fitted tree
    X : table of n rows
    times : array_like (T,)
        In the unit of the training times.
    after : float or array_like (n,), optional
        Survival given survival up to this time, the same for all rows or the age of each.
    """
    grid, tree = _numbers("times", times), survival_tree(tree)
    if after is None:
        values = tree.predict_survival_function(X, times=grid)
    else:
        values = tree.predict_conditional_survival(X, after, times=grid)
    return pd.DataFrame(values, index=_index_of(X), columns=pd.Index(grid, name="time"))


def prediction_frame(
    tree: Any, X: Any, times: ArrayLike = (), horizon: float | None = None, quantiles: ArrayLike = ()
) -> pd.DataFrame:
    """What people ask of a prediction, one row per subject.

    Parameters
    ----------
    tree : fitted tree
    X : table of n rows
    times : array_like (T,)
        Adds a column ``S(t)`` for each.
    horizon : float, optional
        End of the restricted mean; the last event time in training by default.
    quantiles : array_like
        Adds a column ``q(p)`` for each: the time by which a share ``p`` has had the event.

    Returns
    -------
    DataFrame
        ``leaf``, ``risk``, ``first_quartile`` (a quarter has had the event), ``median``, ``expectation``.
    """
    grid, shares = _numbers("times", times), _numbers("quantiles", quantiles)
    end = float(default_times(tree, horizon=horizon)[-1])
    frame = pd.DataFrame(
        {
            "leaf": tree.apply(X),
            "risk": tree.predict(X),
            "first_quartile": tree.predict_quantile(X, 0.25),
            "median": tree.predict_median(X),
            "expectation": tree.predict_expectation(X, end),
        },
        index=_index_of(X),
    )
    for share, name in zip(shares, time_names(shares), strict=True):
        frame[f"q({name})"] = tree.predict_quantile(X, share)
    if grid.size:
        survival = tree.predict_survival_function(X, times=grid)
        for k, name in enumerate(time_names(grid)):
            frame[f"S({name})"] = survival[:, k]
    return frame


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    """An argument's numbers, (T,)."""
    try:
        return np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise InvalidParameterError(f"{name} must be numbers, got {values!r}") from None


def _index_of(X: Any) -> pd.Index | None:
    frame = X.X if isinstance(X, SurvivalData) else X
    return frame.index if isinstance(frame, pd.DataFrame) else None
