"""The interactive view: a page with the tree's arithmetic inside, for Jupyter, VS Code and the browser."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from softsurv.errors import InvalidParameterError
from softsurv.explore.payload import explorer_payload
from softsurv.explore.style import read_data, takes_tables
from softsurv.files import replace_file


class Explorer:
    """An interactive view of a tree and some rows; show it as the last value of a notebook cell, or save it.

    Attributes
    ----------
    page : str
        The whole HTML page; it needs no server and no network.
    """

    def __init__(self, page: str, height: int) -> None:
        self.page = page
        self.height = height

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file that any browser opens."""
        return replace_file(path, self.page)

    def _repr_html_(self) -> str:
        content = html.escape(self.page, quote=True)
        style = f"width:100%;height:{self.height}px;border:1px solid #d5d9de;border-radius:6px;background:#fff"
        return f'<iframe title="softsurv explorer" style="{style}" srcdoc="{content}"></iframe>'


@takes_tables
def explorer(
    tree: Any,
    data: Any,
    *,
    time_unit: str | None = None,
    max_rows: int | None = None,
    height: int = 900,
) -> Explorer:
    """Open an interactive view of a tree and some rows.

    Pick a leaf: its rows, curves, and the features that set it apart. Pick a row: its path with the routing
    probabilities, its curve, its nearest rows, and the smallest single changes that lead to another leaf. Move a
    feature and watch path and curve change.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Rows to explore.
    time_unit : str, optional
        For labels; known for the package's own data sets.
    max_rows : int, optional
        Rows the page holds; more are thinned evenly. By default 1,000, and fewer of more than 500 features: as
        many as make 500,000 cells. The numbers of the leaves count all rows.
    height : int
        Height of the view in a notebook, in pixels.

    Returns
    -------
    Explorer

    Notes
    -----
    The page holds the splits and the leaves' curves as numbers and repeats the tree's arithmetic in the browser:
    routing and curves are exact; the median of a soft tree is interpolated on the grid of times. A row is called by its
    label in the index of the table.

    In a notebook it is a frame in the output, kept in the file: it shows without a kernel, in light and dark themes.
    Last tried in VS Code 1.139.1 (code-server 4.139.1 in Chromium, also with the setting
    ``notebook.experimental.enableCsp``) on 2026-11-21: leaves, rows, sliders, keys and wheel.

    Examples
    --------
    >>> explorer(tree, test)                                    # doctest: +SKIP
    >>> explorer(tree, test).save("explorer.html")              # doctest: +SKIP
    """
    if max_rows is not None and max_rows < 1:
        raise InvalidParameterError(f"max_rows must be at least 1, got {max_rows!r}")
    read = read_data(data)
    return Explorer(explorer_page(explorer_payload(tree, read, max_rows, time_unit=time_unit)), height)


def asset(name: str) -> str:
    """Text of a file beside this module."""
    return (files("softsurv.explore") / name).read_text(encoding="utf-8")


def explorer_page(payload: dict[str, Any]) -> str:
    """The page for a payload."""
    # "</script" or "<!--<script" within a string would end the script element, or keep it from ending
    model = json.dumps(payload, allow_nan=False).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>softsurv explorer</title><style>{asset('explorer.css')}</style></head><body>"
        '<h1>Explore the tree</h1><p>Choose a leaf in the tree, or <label for="pick">a row</label>: '
        '<select id="pick"></select>. The medians of leaves are observed ones (Kaplan-Meier).</p>'
        '<label class="zoom"><input type="checkbox"> fit the tree to the page</label>'
        '<div id="tree" class="scroll" tabindex="0" role="region" aria-label="tree"></div>'
        '<div class="grid"><div><div id="curves"></div><p id="key"></p><div id="causes"></div><p id="cause-key"></p>'
        '<section id="move"></section></div>'
        '<div><section id="row" aria-live="polite"></section><section id="leaf"></section></div></div>'
        # read as JSON: in a script's own braces a feature called __proto__ would be no feature
        f'<script type="application/json" id="model">{model}</script>'
        f"<script>{asset('explorer_math.js')}\n{asset('explorer_tree.js')}\n{asset('explorer_view.js')}\n"
        'const MODEL = JSON.parse(document.getElementById("model").textContent);\n'
        "const VIEW = explorer(MODEL);</script></body></html>"
    )
