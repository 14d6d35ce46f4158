"""Looks shared by every picture: colours and line styles of the leaves, axes, labels with units."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import NDArray

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P = ParamSpec("P")

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that a picture in SVG cannot hold."""

FloatArray = NDArray[np.float64]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#3B0F70", "#8A6D00")
"""Colours that readers with any colour vision tell apart (Okabe & Ito 2008); its yellow, which vanishes on paper,
is darkened to an olive, and its black, which Kaplan-Meier curves are drawn in, is an indigo."""

DASHES = ("-", "--", "-.", ":")
SVG_DASHES = ("", "6 2.5", "7 2 1.5 2", "1.5 2")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, MUTED, PAPER, RULE_FILL = "#1a1a1a", "#5f6670", "#ffffff", "#f3f5f7"


class LeafStyle(NamedTuple):
    """Colour and line style of a leaf; a style names its leaf in black and white too."""

    color: str
    linestyle: str
    svg_dash: str


def leaf_style(leaf: int) -> LeafStyle:
    """The same leaf looks the same in every picture; 32 leaves have a look of their own."""
    turn = (leaf + leaf // len(OKABE_ITO)) % len(DASHES)
    return LeafStyle(OKABE_ITO[leaf % len(OKABE_ITO)], DASHES[turn], SVG_DASHES[turn])


def in_xml(text: str) -> str:
    """The text with a mark in the place of each character that XML cannot hold."""
    return NOT_IN_XML.sub("\ufffd", text)


def literal_text(plot: Callable[P, Axes]) -> Callable[P, Axes]:
    """Have a picture show the names of the data as they are: "$" begins no formula, control characters are marked."""

    @wraps(plot)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Axes:
        from matplotlib import rc_context
        from matplotlib.text import Text
        from matplotlib.ticker import FixedLocator

        with rc_context({"text.parse_math": False}):
            ax = plot(*args, **kwargs)
        for one in ax.figure.axes:
            for axis in (one.xaxis, one.yaxis):
                if isinstance(axis.get_major_locator(), FixedLocator):  # ticks with names
                    names = [label.get_text() for label in axis.get_ticklabels()]
                    if any(map(NOT_IN_XML.search, names)):
                        axis.set_ticklabels([in_xml(name) for name in names])
        for text in ax.figure.findobj(Text):
            text.set_parse_math(False)
            text.set_text(in_xml(text.get_text()))
        return ax

    return drawn


def new_axes(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """The given axes, or those of a new figure of that size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def read_data(data: Any) -> SurvivalData:
    """Data as :class:`SurvivalData`: as it is, a pair (X, y), or anything the readers take; no rows of weight 0."""
    read = survival_data(*data) if isinstance(data, tuple) and len(data) == 2 else survival_data(data)
    return read if read.weight is None or bool((read.weight > 0).all()) else read.take(read.weight > 0)


def unit_of(data: SurvivalData | None, time_unit: str | None) -> str:
    """The unit of time: as given, or what the catalogue says of a named data set, else nothing."""
    if time_unit is not None:
        return time_unit
    from softsurv.data.catalogue import DATASETS

    info = DATASETS.get(data.name) if data is not None and data.name is not None else None
    return "" if info is None else info.unit


def time_label(data: SurvivalData | None, time_unit: str | None, quantity: str = "Time") -> str:
    """Axis label with its unit."""
    unit = unit_of(data, time_unit)
    return f"{quantity} ({unit})" if unit else quantity


def with_unit(value: float, unit: str) -> str:
    """A time in words."""
    if np.isnan(value):
        return "unknown"
    if not np.isfinite(value):
        return "not reached"
    return f"{value:.4g} {unit}".rstrip()


def survival_axes(ax: Axes, xlabel: str, ylabel: str = "Survival probability") -> Axes:
    """Axes of survival curves: both from 0, light grid, no box."""
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0.0, 1.02))
    ax.set_xlim(left=0.0)
    return plain_axes(ax)


def plain_axes(ax: Axes) -> Axes:
    """No box, a light grid behind the curves."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#e3e6ea", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def key_beside(ax: Axes, most_inside: int) -> None:
    """A legend within the axes while it has few entries, otherwise beside them, where it hides no curve."""
    handles, _ = ax.get_legend_handles_labels()
    figure: Any = ax.figure
    look: dict[str, Any] = {"fontsize": 8, "handlelength": 3, "frameon": True, "framealpha": 0.9, "edgecolor": "none"}
    if len(handles) > most_inside and figure.get_layout_engine() is not None:  # a layout makes room for it
        look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    ax.legend(**look)


def shorten(name: str, limit: int) -> str:
    """A long name with its middle left out: both ends of ``product_travel=Yes`` say something."""
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"
