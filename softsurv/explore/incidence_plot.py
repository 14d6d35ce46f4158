"""What happens in every leaf, by cause: stacked probabilities, or cumulative incidences with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softsurv.aalen_johansen import AalenJohansen, aalen_johansen
from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.explore.curves import default_times
from softsurv.explore.style import (
    INK,
    literal_text,
    plain_axes,
    read_data,
    shorten,
    survival_tree,
    takes_tables,
    time_label,
)
from softsurv.explore.view import tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#3B0F70", "#8A6D00")
"""Colours of the causes in turn, which readers of every colour vision tell apart; with more causes they repeat."""

PANELS_BESIDE, PANEL = 4, (2.9, 2.6)
"""Most panels in a row, and the inches of each."""


@literal_text
@takes_tables
def plot_incidences(
    tree: Any,
    data: Any,
    *,
    stacked: bool = True,
    horizon: float | None = None,
    time_unit: str | None = None,
    level: float = 0.95,
) -> Axes:
    """Predicted probability of each cause over time, a panel for each leaf, beside what was observed.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal, of data with causes.
    data : SurvivalData, (X, y), or a table with the columns of the outcome
        Rows to draw.
    stacked : bool
        Probabilities one above the other, so that the white part is free of events; False: a line for each cause.
    horizon : float, optional
        End of the time axis; the last event time in training by default.
    time_unit : str, optional
    level : float
        Coverage of the pointwise intervals around the observed curves, drawn where ``stacked`` is False.

    Returns
    -------
    matplotlib axes
        The first panel; its ``figure`` holds all.

    Raises
    ------
    InvalidParameterError
        If the tree was fitted to one kind of event, or the data have other causes.

    Notes
    -----
    Areas and thick lines are the mean prediction of the leaf's rows. Thin steps are the Aalen-Johansen estimate of the
    same rows. Where the tree is right they agree, within the interval.

    Examples
    --------
    >>> plot_incidences(tree, test).figure.savefig("incidences.png")  # doctest: +SKIP
    """
    read, names = read_data(data), survival_tree(tree).cause_names_
    if not names:
        raise InvalidParameterError("tree must be fitted to causes, got one kind of event; take plot_leaf_curves")
    need_same_causes(tree, read)
    leaf, times = tree.apply(read.X), default_times(tree, horizon=horizon)
    axes = _panels(tree_view(tree).n_leaves)
    for number, ax in enumerate(axes):
        rows = np.flatnonzero(leaf == number)
        plain_axes(ax).set(xlim=(0.0, times[-1]), ylim=(0.0, 1.0), title=f"leaf {number}: n {rows.size}")
        if rows.size:
            predicted = tree.predict_cumulative_incidence(read.X.iloc[rows], times)
            weight = None if read.weight is None else read.weight.numpy()[rows]
            mean = np.average(predicted, axis=0, weights=weight)
            (_stacked if stacked else _lines)(ax, times, mean, _observed(read, rows), level)
    axes[0].set(ylabel="Probability")
    axes[0].figure.supxlabel(time_label(read, time_unit), fontsize=10)
    _key(axes[0], names, stacked, level)
    return axes[0]


def need_same_causes(tree: Any, data: SurvivalData) -> None:
    """Refuse data with other causes than those of a fitted survival tree.

    Raises
    ------
    InvalidParameterError
    """
    if data.cause_names != tree.cause_names_:
        raise InvalidParameterError(
            f"tree and data must have the same causes, got {list(tree.cause_names_)} and {list(data.cause_names)}; "
            "read the data with cause= if the tree was fitted to causes, otherwise with event="
        )


def _panels(n: int) -> list[Axes]:
    """Axes of a new figure, one for each leaf."""
    import matplotlib.pyplot as plt

    columns = min(n, PANELS_BESIDE)
    rows = -(-n // columns)
    size = (max(PANEL[0] * columns, 4.4), PANEL[1] * rows + 0.7)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for spare in axes.flat[n:]:
        figure.delaxes(spare)
    return list(axes.flat[:n])


def _observed(data: SurvivalData, rows: IntArray) -> AalenJohansen:
    part = data.take(rows)
    assert part.cause is not None
    known = part.outcomes()
    return aalen_johansen(known["time"], part.cause.numpy(), known["weight"], known["entry"], part.n_causes)


def _stacked(ax: Axes, times: FloatArray, predicted: FloatArray, observed: AalenJohansen, level: float) -> None:
    """Areas of the prediction, the first cause below; the observed borders as steps."""
    ax.stackplot(
        times, predicted.T, colors=[cause_color(k) for k in range(predicted.shape[1])], alpha=0.55, linewidth=0
    )
    borders = np.cumsum(observed.state_probabilities(times)[:, 1:], 1)
    for border in borders.T:
        ax.step(times, border, where="post", color=INK, linewidth=0.9)


def _lines(ax: Axes, times: FloatArray, predicted: FloatArray, observed: AalenJohansen, level: float) -> None:
    """A line for each cause, the observed steps with their interval."""
    for k, values in enumerate(predicted.T):
        lower, upper = (limit(times) for limit in observed.interval(k + 1, level))
        ax.fill_between(times, lower, upper, step="post", color=cause_color(k), alpha=0.18, linewidth=0)
        ax.step(times, observed.of_cause(k + 1)(times), where="post", color=cause_color(k), linewidth=0.9)
        ax.plot(times, values, color=cause_color(k), linewidth=2.2)


def _key(ax: Axes, names: tuple[str, ...], stacked: bool, level: float) -> None:
    """The causes by their colours, above all panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=cause_color(k), alpha=0.6, label=shorten(name, 30)) for k, name in enumerate(names)
    ]
    words = "observed" if stacked else f"observed, {level:.0%} interval"
    handles.append(Line2D([], [], color=INK, linewidth=0.9, label=words))
    figure: Any = ax.figure
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(handles), 4), frameon=False, fontsize=9)


def cause_color(cause: int) -> str:
    """Colour of a cause by its place among the names."""
    return COLORS[cause % len(COLORS)]
