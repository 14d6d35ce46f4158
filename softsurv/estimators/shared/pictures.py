"""How a fitted survival tree shows itself: the one place where an estimator calls the layer above.

`softsurv.explore` draws and describes fitted trees and is not needed to fit or predict. A user wants its answers as
methods of the tree. Each method therefore imports its function when it is called; `tests/test_layers.py` allows this
module, and no other, to import `softsurv.explore` from below.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.explore.words import Explanation


class Pictures:
    """Mixin of the survival trees: a table of the leaves, the path of a row in words, what a notebook shows."""

    def leaf_summary(self, data: Any = None, **options: Any) -> pd.DataFrame:
        """One row for each leaf: n, events, median with its interval, restricted mean, top features.

        Parameters
        ----------
        data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``, optional
            Rows to summarise; the training rows' stored numbers by default.
        **options
            ``horizon`` and others of :func:`softsurv.explore.leaf_summary`.
        """
        from softsurv.explore.curves import leaf_summary

        return leaf_summary(self, data, **options)

    def explain(self, row: Any, **options: Any) -> Explanation:
        """The path of one row in words and as values; see :func:`softsurv.explore.explain`."""
        from softsurv.explore.words import explain

        return explain(self, row, **options)

    def _repr_html_(self) -> str:
        if not hasattr(self, "tree_"):
            return f"<pre>{escape(repr(self))}</pre>"
        from softsurv.explore.html import tree_html

        return tree_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
