"""The root of a search down to depth three, where the lanes do all the work: the recursion need not be compiled."""

from __future__ import annotations

import numpy as np

from softsurv.exact.entries import LONG, entry
from softsurv.exact.kernels.recursion import SCRATCH, SUBSET, share_three
from softsurv.exact.kernels.views import ints_at


@entry(*SUBSET, LONG, float, *SCRATCH)
def solve_root(problem, at, n, low, high, leaves, upper, nodes, local, lanes, cache, shared):
    """The root of depth three. What `solve` does there; threads after the first return at once."""
    rows = ints_at(at, (n,))
    share_three(problem, rows, n, low, high, leaves, upper, np.int64(0), nodes, local, lanes, cache, shared)
