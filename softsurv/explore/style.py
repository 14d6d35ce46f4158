"""Looks shared by every picture: colours and line styles, axes, labels with units."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softsurv.data.kinds import as_the_tree_knows
from softsurv.data.readers import survival_data
from softsurv.data.rules import rounded_text
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, brought_by
from softsurv.estimators.shared.training_rows import told_columns

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


P = ParamSpec("P")
R = TypeVar("R")

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#3B0F70", "#8A6D00")
"""Colours that readers with any colour vision tell apart (Okabe & Ito 2008); its yellow, which vanishes on paper,
is darkened to an olive, and its black, which Kaplan-Meier curves are drawn in, is an indigo."""

DASHES = ("-", "--", "-.", ":")
SVG_DASHES = ("", "6 2.5", "7 2 1.5 2", "1.5 2")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, MUTED, PAPER, RULE_FILL = "#1a1a1a", "#5f6670", "#ffffff", "#f3f5f7"


RISK_COLORS = ("#3A8FC7", "#6F63B5", "#A83A8A", "#B8283C", "#4A0A14")
"""From the lowest risk to the highest: each darker than the one before, so that the order also holds in grey."""


class LineStyle(NamedTuple):
    """Colour and line style; the style tells lines apart in black and white too."""

    color: str
    linestyle: str
    svg_dash: str


NO_ROWS = LineStyle("#8a9099", "-", "")
"""Look of a leaf without training rows, whose risk is not known."""


def series_style(k: int) -> LineStyle:
    """Look of the k-th of several things without an order; 32 have a look of their own."""
    turn = (k + k // len(OKABE_ITO)) % len(DASHES)
    return LineStyle(OKABE_ITO[k % len(OKABE_ITO)], DASHES[turn], SVG_DASHES[turn])


def series_marker(k: int) -> str:
    """Marker of the k-th of several things; with the colour of `series_style` 64 have a look of their own."""
    return MARKERS[(k + k // len(OKABE_ITO)) % len(MARKERS)]


def risk_styles(n: int) -> list[LineStyle]:
    """Looks of n leaves from the lowest risk to the highest; no two have the same colour."""
    anchors = np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in RISK_COLORS], dtype=float)
    at = np.linspace(0.0, len(anchors) - 1.0, n) if n > 1 else np.zeros(n)
    mixed = np.column_stack([np.interp(at, np.arange(len(anchors)), channel) for channel in anchors.T])
    colors = ["#{:02X}{:02X}{:02X}".format(*color) for color in mixed.round().astype(int)]
    return [LineStyle(color, DASHES[k % len(DASHES)], SVG_DASHES[k % len(DASHES)]) for k, color in enumerate(colors)]


def new_axes(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """The given axes, or those of a new figure of that size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def picture_kinds() -> list[str]:
    """Endings of the files that a picture can be saved as, such as png."""
    with brought_by("explore"):
        from matplotlib.figure import Figure

    return sorted(Figure().canvas.get_supported_filetypes())


def read_data(data: Any) -> SurvivalData:
    """Data as :class:`SurvivalData`: as it is, a pair (X, y), or anything the readers take; no rows of weight 0."""
    read = survival_data(*data) if isinstance(data, tuple) and len(data) == 2 else survival_data(data)
    return read.that_count()


def survival_tree(tree: Any) -> Any:
    """The tree itself, if it is fitted and predicts survival: pictures and reports are of curves."""
    if not hasattr(tree, "predict_survival_function"):
        raise InvalidParameterError(
            f"tree must be a survival tree, got {type(tree).__name__}; export_text shows any tree"
        )
    check_is_fitted(tree, "tree_")
    return tree


def takes_tables(function: Callable[..., R]) -> Callable[..., R]:
    """Let a function of (tree, data, ...) take ``time=`` and ``event=`` as ``fit`` does.

    A table without them is read with the columns that the tree was fitted with.
    """
    known = signature(function)
    needed = known.parameters["data"].default is Parameter.empty

    @wraps(function)
    def reading(tree: Any, data: Any = None, *args: Any, time: Any = None, event: Any = None, **how: Any) -> R:
        """Read the table, then do as the function says."""
        if isinstance(tree, Mapping) and not tree:
            raise InvalidParameterError("trees must hold at least one fitted tree, got none")
        one = next(iter(tree.values())) if isinstance(tree, Mapping) else tree
        if hasattr(one, "export_text"):  # other models may stand beside trees
            survival_tree(one)  # before the table is asked for times
        if needed and data is None:
            raise InvalidParameterError(f"data must hold rows for {function.__name__}, got None; pass those to look at")
        with as_the_tree_knows():
            if time is not None or event is not None:
                data = survival_data(data, time=time, event=event)
            elif data is not None and not isinstance(data, SurvivalData | tuple):
                data = survival_data(data, **told_columns(one, data))
            elif isinstance(data, tuple):
                data = read_data(data)
        return function(tree, data, *args, **how)

    named = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Any) for name in ("time", "event")]
    reading.__signature__ = known.replace(parameters=[*known.parameters.values(), *named])  # type: ignore[attr-defined]
    return reading


def unit_of(data: SurvivalData | None, time_unit: str | None) -> str:
    """The unit of time: as given, or what the catalogue says of a named data set, else nothing."""
    if time_unit is not None:
        return time_unit
    from softsurv.data.datasets import DATASETS

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
    return f"{rounded_text(value)} {unit}".rstrip()


def chance(p_value: float) -> str:
    """A test's p-value in words; one below 0.001 says no more than that."""
    return f"p = {p_value:.3g}" if p_value >= 0.001 else "p < 0.001"


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


def key_columns(n: int, height: float) -> int:
    """Columns of a key of n entries beside axes in a figure of so many inches."""
    return -(-n // max(int((height - 0.4) / 0.165), 1))


def with_room_for_key(n: int, width: float = 6.4, height: float = 4.2) -> tuple[float, float]:
    """Width and height in inches of a figure whose key of n entries takes more than one column."""
    return width + 1.5 * (key_columns(n, height) - 1), height


def key_beside(ax: Axes, most_inside: int, title: str = "") -> None:
    """A legend within the axes while it has few entries, otherwise beside them, where it hides no curve."""
    handles, _ = ax.get_legend_handles_labels()
    figure: Any = ax.figure
    look: dict[str, Any] = {"fontsize": 8, "handlelength": 3, "frameon": True, "framealpha": 0.9, "edgecolor": "none"}
    look |= {"title": title, "title_fontsize": 8} if title else {}
    if len(handles) > most_inside and figure.get_layout_engine() is not None:  # a layout makes room for it
        look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        look["ncols"] = key_columns(len(handles), figure.get_figheight())
    ax.legend(**look)


def key_below(ax: Axes) -> None:
    """A legend in two columns below the axes where a layout makes room for it, otherwise within them."""
    figure: Any = ax.figure
    look: dict[str, Any] = {"fontsize": 8, "frameon": True, "framealpha": 0.9, "edgecolor": "none"}
    if figure.get_layout_engine() is not None:
        look |= {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "ncols": 2, "borderaxespad": 0.0}
    ax.legend(**look)


NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that a picture in SVG cannot hold."""


def in_xml(text: str) -> str:
    """The text with a mark in the place of each character that XML cannot hold."""
    return NOT_IN_XML.sub("\ufffd", text)


FROM_RIGHT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
"""Letters that are written from the right, as a range of a pattern."""

END_FROM_RIGHT = re.compile(rf"([{FROM_RIGHT}])(?=\s*(?:[^{FROM_RIGHT}\s\u200e]|$))")


TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that nobody sees and that turn round what follows: ``age > 3`` would be read as ``age3 <``."""


def in_order(text: str) -> str:
    """The text in which nothing turns the rule behind a name round in a browser.

    A mark stands behind words that are written from the right, and in the place of characters that turn the order.
    """
    return END_FROM_RIGHT.sub("\\1\u200e", TURNING.sub("\ufffd", text))


def in_picture(text: str) -> str:
    """The text as a picture can show it: a line that begins with such a word would be set from the right as a whole."""
    lines = in_order(in_xml(text)).split("\n")
    return "\n".join(re.sub(rf"^(?=.*[{FROM_RIGHT}])(?!\u200e)", "\u200e", line) for line in lines)


def escaped(text: str) -> str:
    """Text as HTML shows it letter by letter, from the left."""
    return html.escape(in_order(in_xml(text)))


def without_formulas(drawn: Artist) -> None:
    """Have the texts of axes or of a figure mean what they say: "$" begins no formula."""
    from matplotlib.text import Text

    for text in drawn.findobj(Text):
        text.set_parse_math(False)


def with_readable_texts(drawn: Any) -> None:
    """Mark control characters, which a picture in SVG cannot hold, and words from the right in texts of a figure."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedLocator

    for ax in drawn.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):  # ticks with names
                names = [label.get_text() for label in axis.get_ticklabels()]
                if any(name != in_picture(name) for name in names):
                    axis.set_ticklabels([in_picture(name) for name in names])
    for text in drawn.findobj(Text):
        text.set_text(in_picture(text.get_text()))


def literal_text(plot: Callable[P, Axes]) -> Callable[P, Axes]:
    """Have a picture show the names of the data as they are. Other axes of a figure keep their formulas."""

    @wraps(plot)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Axes:
        """Draw with formulas switched off."""
        with brought_by("explore"):
            from matplotlib import rcParams

        before = rcParams["text.parse_math"]
        rcParams["text.parse_math"] = False  # no rc_context: it takes back what a first figure sets in a notebook
        try:
            ax = plot(*args, **kwargs)
        finally:
            rcParams["text.parse_math"] = before
        without_formulas(ax)
        with_readable_texts(ax.figure)
        return ax

    return drawn


def shorten(name: str, limit: int) -> str:
    """A long name with its middle left out: both ends of ``product_travel=Yes`` say something."""
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"


def shorten_all(names: Iterable[object], limit: int) -> list[str]:
    """Long names as `shorten` has them; those that would look the same are told from their first difference on."""
    whole = [str(name) for name in names]
    told = {name: shorten(name, limit) for name in whole}
    for label in set(told.values()):
        alike = [name for name, other in told.items() if other == label]
        if len(alike) > 1:
            told |= _apart(alike, limit)
    return [told[name] for name in whole]


def _apart(names: list[str], limit: int) -> dict[str, str]:
    """Different labels of different names; the names themselves where no short ones are found."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = "".join(letters[0] for letters in alike)
    head = shorten(common, limit // 2)
    room = limit - len(head)
    tails = {name: name[len(common) :] for name in names}
    told = {name: head + (tail if len(tail) <= room else f"{tail[: room - 1]}…") for name, tail in tails.items()}
    return told if len(set(told.values())) == len(names) else {name: name for name in names}
