"""The search by cuts as plain Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from oracles.plain_search import body, small

from softsurv.exact.bounds import Bounds
from softsurv.exact.cuts.node import search_cuts
from softsurv.exact.cuts.scratch import new_cuts, sort_rows
from softsurv.exact.cuts.sweep import open_columns


class Cutting(NamedTuple):
    """A small search, its problem as the search by cuts takes it, and the scratch of that search."""

    found: Any
    problem: Any
    cuts: Any

    @property
    def n(self):
        """Rows."""
        return len(self.found.rows)

    def column(self, f):
        """Codes of the rows on a column, and the columns' cuts: (mask of the left rows) for each."""
        code = self.cuts.code[f, self.found.rows]
        return [(code <= value) for value in np.unique(code)[:-1]]

    def cost(self, rows):
        """Cost of some rows as a leaf, without a cost per leaf."""
        return self.found.cost(rows) - self.found.problem.complexity


def cutting(depth=2, open_base=True, **how):
    """A search by cuts, the columns of its root open."""
    found = small(bounds=Bounds(bits=False), **how)
    calls = found.problem.calls._replace(search_cuts=body(search_cuts))
    problem = found.problem._replace(complexity=0.0, use_size=False, calls=calls)
    given = found.problem
    cuts = new_cuts(problem, depth, given.complexity, given.use_size, given.linear, found.search.control)
    sort_rows(cuts, found.rows)
    body(open_columns)(problem, cuts, 0, len(found.rows), open_base, len(cuts.code))
    return Cutting(found, problem, cuts)
