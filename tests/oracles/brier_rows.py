"""Small problems of the integrated Brier score, in the order in which its search keeps the rows."""

from __future__ import annotations

import numpy as np
from oracles.plain_python import plain

from softsurv.exact.brier.leaf_costs import KM_ROWS
from softsurv.exact.brier.prepare import has_equal_rows, prepare_rows
from softsurv.exact.brier.table import Rules
from softsurv.exact.brier.tiles import tile
from softsurv.exact.objectives.brier import IbsScore


def in_order(seed, n=24, p=4, n_times=12, weighted=False, **how):
    """Features, score and prepared rows; time by time, events first, so that no row moves."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n, p)) < rng.uniform(0.3, 0.7, p)).astype(np.uint8)
    time = np.sort(rng.permutation(n) + 1.0 if weighted else rng.integers(1, n_times + 1, n).astype(float))
    event = rng.random(n) < 0.6
    order = np.lexsort((~event, time))
    score = IbsScore.from_columns(time, event[order], rng.uniform(0.5, 2.0, n) if weighted else None)
    return x, score, prepare_rows(x, score, **how)


def rules_of(rows, mode=KM_ROWS, min_rows=1.0, complexity=0.0):
    """Rules of a search that nothing stops."""
    return Rules(mode, has_equal_rows(rows), min_rows, complexity, 2.0, True, np.zeros(1, np.int64), tile.address)


def in_python(rules):
    """The same for kernels that run as plain Python."""
    return rules._replace(tile=plain(tile))


def four_leaves(x, first, second):
    """Rows of the leaves of two splits: both, the first alone, the second alone, neither."""
    a, b = x[:, first] == 1, x[:, second] == 1
    return [np.flatnonzero(one) for one in (a & b, a & ~b, ~a & b, ~a & ~b)]


def loss_of(score, rows, leaf="km"):
    """Score of a leaf under its own curve; 0 without rows."""
    return score.leaf_loss(rows, leaf) if len(rows) else 0.0


def least_losses(x, score, leaf="km", min_rows=1, rows=None, depth=2):
    """Least loss of trees of depth one or two by number of leaves, (5,), over every pair of splits."""
    rows = np.arange(len(x)) if rows is None else rows
    best = np.full(5, np.inf)
    best[1] = score.leaf_loss(rows, leaf)
    for f in range(x.shape[1]):
        sides = [rows[x[rows, f] == side] for side in (1, 0)]
        if min(map(len, sides)) < min_rows:
            continue
        small = [least_losses(x, score, leaf, min_rows, side, 1) if depth == 2 else None for side in sides]
        leaves = [score.leaf_loss(side, leaf) for side in sides]
        best[2] = min(best[2], sum(leaves))
        if depth == 2:
            best[3] = min(best[3], leaves[0] + small[1][2], leaves[1] + small[0][2])
            best[4] = min(best[4], small[0][2] + small[1][2])
    return best
