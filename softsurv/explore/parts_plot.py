"""A large tree on paper: a picture for each of its parts."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, brought_by
from softsurv.explore.curves import RowCurves, curves_by_leaf, default_times, leaf_looks
from softsurv.explore.leaf_panel import Drawing
from softsurv.explore.style import INK, NO_ROWS, literal_text, read_data, takes_tables
from softsurv.explore.tree_layout import FONT, LINE
from softsurv.explore.tree_parts import MOST_LEAVES, TreePart, tree_parts
from softsurv.explore.tree_plot import MARGIN, draw_tree, size_in_inches
from softsurv.explore.view import tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@takes_tables
def plot_tree_parts(
    tree: Any,
    data: Any,
    *,
    most_leaves: int = MOST_LEAVES,
    horizon: float | None = None,
    time_unit: str | None = None,
    max_terms: int = 3,
    max_curves: int = 300,
) -> list[Axes]:
    """The tree in pictures for paper: `plot_tree` of its upper part, then of every part below.

    Parameters
    ----------
    tree, data, horizon, time_unit, max_terms, max_curves
        As in `plot_tree`.
    most_leaves : int
        Most leaves of a picture, at least 2. Six are 11.4 inches wide: legible on A4 or letter paper in landscape.

    Returns
    -------
    list of matplotlib axes
        A figure for each part, numbered from the root down and from the left. A grey panel stands for a part that has
        a picture of its own; its curves are those of all rows there.

    Raises
    ------
    InvalidParameterError
        ``most_leaves`` is no integer >= 2.

    Examples
    --------
    >>> from matplotlib.backends.backend_pdf import PdfPages
    >>> with PdfPages("tree.pdf") as pages:                     # doctest: +SKIP
    ...     for ax in plot_tree_parts(tree, test):
    ...         pages.savefig(ax.figure, bbox_inches="tight")
    """
    with brought_by("explore"):
        import matplotlib.pyplot as plt

    if isinstance(most_leaves, bool) or not isinstance(most_leaves, int) or most_leaves < 2:
        raise InvalidParameterError(f"most_leaves must be an integer >= 2, got {most_leaves!r}")
    return draw_parts(
        tree,
        read_data(data),
        plt.figure,
        most_leaves,
        horizon=horizon,
        time_unit=time_unit,
        max_terms=max_terms,
        max_curves=max_curves,
    )


def draw_parts(
    tree: Any,
    data: SurvivalData,
    new_figure: Callable[..., Figure],
    most_leaves: int = MOST_LEAVES,
    *,
    horizon: float | None = None,
    time_unit: str | None = None,
    max_terms: int = 3,
    max_curves: int = 300,
) -> list[Axes]:
    """As `plot_tree_parts`, on figures that ``new_figure(figsize=...)`` makes."""
    parts, times = tree_parts(tree_view(tree), most_leaves), default_times(tree, horizon=horizon)
    ends = {end: leaves for part in parts for end, leaves in part.leaves.items()}
    curves = curves_by_leaf(tree, data, times, max_curves=max_curves, together=ends)
    later = {end: number for part in parts for end, number in part.goes_on.items()}
    titles = {end: f"part {later[end]}: {len(ends[end])} leaves" if end in later else f"leaf {end}" for end in ends}
    drawing = Drawing(data, times, time_unit, max_terms, leaf_looks(tree) | dict.fromkeys(later, NO_ROWS), titles)
    return [_draw_part(part, new_figure, curves, drawing, len(parts)) for part in parts]


@literal_text
def _draw_part(
    part: TreePart, new_figure: Callable[..., Figure], curves: Sequence[RowCurves], drawing: Drawing, count: int
) -> Axes:
    """The picture of one part; ``curves`` are those of the ends of all parts."""
    ax = _headed_axes(new_figure, part, count, drawing.max_terms)
    own = [one for one in curves if one.leaf in part.leaves]
    return draw_tree(ax, part.view, own, drawing, frozenset(part.goes_on))


def _headed_axes(new_figure: Callable[..., Figure], part: TreePart, count: int, max_terms: int) -> Axes:
    """Axes of a figure of the size that a part needs, below a line that says where in the tree it is."""
    width, height = size_in_inches(part.view, max_terms)
    words = f"Part {part.number} of {count}" + (f": where {part.where}." if part.where else " of the tree.")
    if part.goes_on:
        words += " Each grey panel is a part with a picture of its own."
    lines = textwrap.wrap(words, int((width - 2 * MARGIN) / (0.58 * FONT / 72)))
    head = (len(lines) + 0.5) * LINE
    figure = new_figure(figsize=(width, height + head))
    figure.text(
        MARGIN / width, 1 - 0.25 * FONT / 72 / (height + head), "\n".join(lines), va="top", fontsize=FONT, color=INK
    )
    return figure.add_axes((MARGIN / width, 0.0, 1 - 2 * MARGIN / width, height / (height + head)))
