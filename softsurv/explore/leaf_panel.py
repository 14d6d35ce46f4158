"""What the pictures of a tree share: the curves and numbers of a leaf, and the key to the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.curves import RowCurves, curve_name, leaf_kaplan_meier, steps
from softsurv.explore.style import INK, RISK_COLORS, RULE_FILL, LineStyle, unit_of, with_unit
from softsurv.nonparametric import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Drawing:
    """What the panels of a picture share; ``looks`` and ``titles`` by the number of the end."""

    data: SurvivalData
    times: FloatArray  # (T,)
    time_unit: str | None
    max_terms: int
    looks: Mapping[int, LineStyle]
    titles: Mapping[int, str]


def draw_curves(panel: Axes, one: RowCurves, drawing: Drawing) -> tuple[str, str]:
    """The curves of a leaf; returns its numbers in words: rows and events, and the observed median."""
    data, times, look = drawing.data, drawing.times, drawing.looks[one.leaf]
    panel.set(xlim=(0, times[-1]), ylim=(0, 1.02))
    panel.spines[["top", "right"]].set_visible(False)
    if one.rows.size == 0:
        panel.set_facecolor(RULE_FILL)
        return "n = 0", ""
    panel.fill_between(times, one.lower, one.upper, color=look.color, alpha=0.22, linewidth=0)
    curve = leaf_kaplan_meier(data, one.rows)
    x, y = steps(curve, times[-1])
    panel.step(x, y, where="post", color=INK, linewidth=0.9)
    panel.plot(times, one.mean, color=look.color, linestyle=look.linestyle, linewidth=1.8)
    middle = with_unit(median(curve), unit_of(data, drawing.time_unit))
    return f"n = {one.rows.size}, events = {int(data.failed[one.rows].sum())}", f"observed median {middle}"


def draw_key(ax: Axes, drawing: Drawing, curves: Sequence[RowCurves], side: str, width: float) -> None:
    """Legend of the lines, on the left, where a wide picture in a page begins; in the colour farthest from black.

    ``side`` is where the lower risk of a split is, ``width`` that of the picture in inches.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    color, narrow = RISK_COLORS[0], width < 6
    spread = any(bool((one.upper > one.lower).any()) for one in curves if one.rows.size)
    band = [Patch(facecolor=color, alpha=0.22, label="5–95 % of rows")] if spread else []
    ax.legend(
        handles=[
            Line2D([], [], color=color, linewidth=1.8, label="predicted: mean" if spread else "predicted"),
            *band,
            Line2D([], [], color=INK, linewidth=0.9, label=f"observed: {curve_name(drawing.data)}"),
        ],
        title=f"lower risk {side} at every split; darker: higher" if len(drawing.looks) > 1 else None,
        title_fontsize=7 if narrow else 8,
        loc="upper center" if narrow else "upper left",
        alignment="center" if narrow else "left",
        ncols=3,
        fontsize=7 if narrow else 8,
        frameon=False,
        borderaxespad=0.1,
        handlelength=2,
        columnspacing=1.2,
    )
