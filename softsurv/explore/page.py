"""Parts of a self-contained HTML page: sections, tables, pictures, and a style for screen, phone and paper."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softsurv.data.kinds import is_text
from softsurv.data.rules import rounded_text
from softsurv.errors import brought_by
from softsurv.explore.style import escaped, with_readable_texts, without_formulas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 900
"""Pixels from which a wide picture gets a page of its own on paper, in landscape."""

LINE = 24
"""Characters of text that a cell of a table holds in one line."""

NAME = 28
"""Characters of the longest name of a row that is never broken."""

STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,"Segoe UI",sans-serif;color:#1a1a1a;background:#fff;margin:0 auto;max-width:1180px;
padding:0 20px 60px}
h1{font-size:1.7rem;line-height:1.2;margin:28px 0 4px}
h2{font-size:1.3rem;margin:44px 0 8px;padding-top:8px;border-top:2px solid #d5d9de}
h3{font-size:1.05rem;margin:26px 0 4px}
p{max-width:75ch;margin:8px 0}
header p{max-width:none}
a{color:#005a91}
a:focus-visible,[tabindex]:focus-visible,summary:focus-visible{outline:3px solid #d55e00;outline-offset:2px}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:#fff;padding:8px;z-index:9}
nav ol{display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:12px 0;list-style:none}
.scroll{overflow-x:auto;max-width:100%;margin:10px 0;container-type:inline-size}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:#5f6670;padding:2px 0 6px}
caption span{display:block;position:sticky;left:0;max-width:min(75ch,100cqw)}
th,td{padding:4px 12px 4px 0;text-align:right;border-bottom:1px solid #e3e6ea;vertical-align:top}
th:first-child,td:first-child,td.words,th.words{text-align:left}
td.words{max-width:70ch;min-width:26ch}
td.text,th.text{text-align:left;white-space:nowrap}
th.name{min-width:20ch;overflow-wrap:anywhere}
figure{margin:14px 0}
figcaption{color:#5f6670;font-size:.88rem;max-width:80ch}
img{max-width:100%;height:auto}
.row{display:flex;flex-wrap:wrap;gap:12px 28px;align-items:flex-start}
.row>*{flex:1 1 420px;min-width:0}
.note{border-left:4px solid #d55e00;padding:2px 14px;background:#fbf4ef;max-width:78ch}
.tree{display:flex;flex-direction:column}.paper{display:none}
.fold,.fold ul{list-style:none;margin:0;padding-left:14px}.fold ul{border-left:1px solid #d5d9de;margin-left:5px}
.fold .size{display:inline-block}
.fold{padding-left:0;font-size:.92rem}.fold li{margin:5px 0;overflow-wrap:anywhere}.fold svg{vertical-align:middle}
.answer{color:#5f6670;display:inline-block;min-width:1.9em}
.end{border-left:6px solid;padding-left:6px;font-weight:600;display:inline-block;min-width:4.6em}
.zoom{display:block;font-size:.88rem;color:#5f6670}.zoom:has(:checked)+.wide img{max-width:100%!important}
.rule{background:#f3f5f7;padding:6px 10px;border-radius:5px;max-width:90ch;overflow-wrap:anywhere}
@media(max-width:760px){.fold{order:-1}}
@media(max-width:560px){body{font-size:15px;padding:0 12px 40px}th,td{padding-right:9px}}
@media print{body{max-width:none;padding:0;font-size:10.5pt}nav,.skip{display:none}
h2,h3{break-after:avoid}figure,tr,.note,section:has(>.rule){break-inside:avoid}.across{page:across}
.tree,.paper{display:block}.screen,.zoom{display:none}.scroll{overflow:visible}
.wide img{max-width:100%!important}a{color:inherit;text-decoration:none}
.paper .wide img{max-width:86%!important}
@supports(page:across){.across .wide img{max-width:25cm!important}}}
@page across{size:landscape}
"""


def page(title: str, intro: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A whole page of sections (anchor, heading, body), with links to them; no scripts, nothing from outside."""
    links = "".join(f'<li><a href="#{key}">{escaped(name)}</a></li>' for key, name, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{escaped(name)}</h2>{text}</section>'
        for key, name, text in sections
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escaped(title)}</title><style>{STYLE}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the report</a><header><h1>{escaped(title)}</h1>{intro}</header>'
        f'<nav aria-label="Sections"><ol>{links}</ol></nav><main id="main">{body}</main></body></html>'
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{escaped(text)}</p>"


def table(frame: pd.DataFrame, caption: str = "", index_name: str = "") -> str:
    """A table with a header row and the index as its first column; text columns are left-aligned."""
    kinds = {str(c): _kind(frame[c]) for c in frame.columns}
    labels = [cell(label) for label in frame.index]
    first = ' class="name"' if max(map(len, labels), default=0) > NAME else ""  # or it leaves no room for the values
    head = "".join(f'<th scope="col"{kind}>{escaped(name)}</th>' for name, kind in kinds.items())
    rows = []
    for label, row in zip(labels, frame.itertuples(index=False), strict=True):
        cells = "".join(f"<td{kind}>{escaped(cell(v))}</td>" for v, kind in zip(row, kinds.values(), strict=True))
        rows.append(f'<tr><th scope="row"{first}>{escaped(label)}</th>{cells}</tr>')
    name = f"<caption><span>{escaped(caption)}</span></caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption or "table")}"><table>{name}'
        f'<thead><tr><th scope="col">{escaped(index_name)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _kind(column: pd.Series) -> str:
    """How a column of a table is set: numbers, short text in one line, or words that wrap."""
    if not is_text(column):
        return ""
    return ' class="words"' if column.astype(str).str.len().max() > LINE else ' class="text"'


def counted(count: int, noun: str) -> str:
    """A number of things in words: "1 row", "2 rows"."""
    return f"{cell(count)} {noun}" if count == 1 else f"{cell(count)} {noun}s"


def cell(value: Any) -> str:
    """A value as a reader expects it."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}" if abs(int(value)) >= 10_000 else str(value)
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return "–"
        return "not reached" if np.isinf(value) else rounded_text(float(value))
    return str(value)


def new_figure(width: float, height: float) -> Axes:
    """Axes of a figure that belongs to no window."""
    with brought_by("explore"):
        from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def figure(ax: Axes, alt: str, caption: str = "", wide: bool = False) -> str:
    """A picture as an image within the page; a wide one shrinks a little at most, and scrolls beyond that."""
    from matplotlib import rc_context

    file = io.BytesIO()
    drawn: Figure = ax.figure  # type: ignore[assignment]
    without_formulas(drawn)
    with_readable_texts(drawn)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "softsurv"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # the browser has one
        drawn.savefig(file, format="svg", dpi=110, metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    width, height = (round(96 * v) for v in drawn.get_size_inches())
    least = f' style="max-width:max(100%,{0.75 * width:.0f}px)"' if wide else ""
    size = f'width="{width}" height="{height}"{least}'
    image = f'<img src="data:image/svg+xml;base64,{data}" {size} alt="{escaped(alt)}">'
    words = f"<figcaption>{escaped(caption)}</figcaption>" if caption else ""
    if wide:
        image = (
            '<label class="zoom"><input type="checkbox"> fit the picture to the page</label>'
            f'<div class="scroll wide" tabindex="0" role="region" aria-label="{escaped(alt)}">{image}</div>'
        )
    across = ' class="across"' if wide and width > ACROSS else ""
    return f"<figure{across}>{image}{words}</figure>"
