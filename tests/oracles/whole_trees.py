"""Rows and trees of the local search over whole trees, and the same by plain means."""

import numpy as np

from softsurv.exact.kernels.tree_rows import WIDTH, Goal, TreeRows

N_CODES, NOMINAL = (3, 4, 3), (False, False, True)


def tree_rows(kind, n=20, depth=3, seed=0, price=0.0, most=8, least=1.0, share=1.0):
    """Random rows with three features, of which the last is nominal, ready for the compiled parts."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(N_CODES)]).astype(np.int32)
    codes = np.column_stack([rng.integers(0, k, n) for k in N_CODES])
    label = rng.random(n) < 0.2 + 0.6 * (codes[:, 0] > 0)
    label[:2] = False, True
    sums = np.column_stack([~label, label, np.ones(n)]).astype(float)
    negatives, positives, _ = sums.sum(0)
    goal = Goal(kind, share, float(negatives), float(positives), price, depth, most, least)
    full, g = 1 << depth, int(start[-1])
    whole = [np.empty(size, np.int32) for size in (n, n, g + 1, n, n)]
    return TreeRows(
        (codes + start[:-1]).astype(np.int32), start, np.array(NOMINAL),
        np.repeat(np.arange(3), N_CODES).astype(np.int32), sums, goal, np.full(full - 1, -1, np.int32),
        np.zeros(8, np.int64), np.array([1e9]), *whole,
        np.empty((full + 4, WIDTH)), np.empty(full + 4, np.int32), np.empty(2 * full, np.int32),
        *(np.empty((WIDTH, g)) for _ in range(3)), np.empty((g, WIDTH)), np.empty(g), np.empty((3, WIDTH)),
        np.empty(3, np.int64),
    )  # fmt: skip


def goes_left(rows, split):
    """Whether each row goes left at a split, (U,)."""
    f = rows.feature_of[split]
    return rows.gcode[:, f] == split if rows.nominal[f] else rows.gcode[:, f] <= split


def ends(rows, tree):
    """The leaf of each row in heap order, (U,)."""
    node = np.zeros(len(rows.sums), int)
    for _ in range(rows.goal.depth):
        for at in np.unique(node):
            if at < len(tree) and tree[at] >= 0:
                here = node == at
                node[here] = 2 * at + np.where(goes_left(rows, tree[at])[here], 1, 2)
    return node


def leaves_of(rows, tree):
    """Sums of the leaves that have rows, (L, 3)."""
    node = ends(rows, tree)
    return np.array([rows.sums[node == at].sum(0) for at in np.unique(node)])


def loss_of_labels(goal, leaves, measure):
    """One minus the largest measure over all labels of leaves, cost per leaf included."""
    called = (np.arange(1 << len(leaves))[:, None] >> np.arange(len(leaves))) & 1
    fp, tp = (called @ leaves[:, k] for k in (0, 1))
    best = max(measure(goal, *point) for point in zip(tp, fp, strict=True))
    return 1 - best + goal.price * len(leaves)


def f1(goal, tp, fp):
    """2 TP / (2 TP + FP + FN)."""
    return 2 * tp / (2 * tp + fp + goal.positives - tp)


def matthews(goal, tp, fp):
    """Matthews' correlation, 0 where one label is given to all."""
    fn, tn = goal.positives - tp, goal.negatives - fp
    scale = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(scale) if scale > 0 else 0.0


def area_above(goal, leaves):
    """The area above the ROC curve of leaves by their share of positives."""
    ordered = leaves[np.argsort(-leaves[:, 1] / leaves[:, :2].sum(1), kind="stable")]
    x = np.concatenate([[0], ordered[:, 0].cumsum() / goal.negatives])
    y = np.concatenate([[0], ordered[:, 1].cumsum() / goal.positives])
    return 1 - np.trapezoid(y, x) + goal.price * len(leaves)
