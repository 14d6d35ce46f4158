"""Rows at a branch node, and the best cut of single columns by enumeration."""

import numpy as np

from softsurv.sparse.kernels import causes_of, gain_of_leaf
from softsurv.sparse.splits import NodeRows, SplitData


def node(n=60, seed=0, columns=3, one=False, least=5.0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(columns, n)).round(2)
    h = random.uniform(0.1, 1, n)
    table = np.column_stack([random.normal(size=n), random.normal(size=n), h, 0.1 * h, h])
    table[:, 0] += np.where(values[0] > 0.2, 1.0, -1.0)
    data = SplitData(values, tuple(range(columns)), ())
    return NodeRows(data, np.arange(n), table[:, :1].copy() if one else table, np.ones(n), least, 2.0)


def plain_best(rows):
    """Best gain over all cuts of single columns, by enumeration."""
    best = -np.inf
    for values in rows.data.values:
        for cut in np.unique(values)[:-1]:
            low = values <= cut
            if min(rows.size[low].sum(), rows.size[~low].sum()) < rows.least:
                continue
            if rows.table.shape[1] == 1:
                gain = max(-rows.table[low].sum(), -rows.table[~low].sum())
            else:
                causes = causes_of(rows.table)
                gain = sum(gain_of_leaf(rows.table[side].sum(0), rows.penalty, causes) for side in (low, ~low))
            best = max(best, gain)
    return best
