"""Lower bounds of the integrated-Brier-score objective, each with its theorem (paper `osst`, section 2.3).

The loss of a tree is a sum over rows (Theorem 2.1), so the loss of fixed leaves and any additive bound of the rest
bound the tree (Theorems 2.2 and B.6, the hierarchical bounds). In a depth-first search these are the budgets that a
node hands to its children. Theorem B.5, leaf permutations, is the cache by sets of rows. With the Kaplan-Meier leaf a
leaf may lose *less* than the sum of its halves, so the superadditivity bounds of the additive engine do not hold; they
do hold for the pointwise minimiser, from which the bounds here are made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.brier.jit import entry
from softsurv.exact.jit import array_kernel
from softsurv.loops import floats, ints

BLOCKS = 32
"""Blocks of time between two rows of a group; within a block G is replaced by its largest value, still a bound."""


@dataclass(frozen=True)
class IbsBounds:
    """Switches of the bounds, all on by default. They change how long a search takes, not what it finds.

    Attributes
    ----------
    equivalent_points : bool
        Lemma 2.5 and Theorem 2.6; off, a node's loss is only known to be >= 0. A reference model's bound stays.
    look_ahead : bool
        Theorem 2.3: a node that is split pays for two leaves at least, deeper trees for more.
    splitting : bool
        Theorems B.1, B.3 and B.4: leave out splits and depths that cannot pay for their leaves.
    hierarchical : bool
        Theorems 2.2 and B.6: a child is searched only within the rest of its parent's budget.
    base_case : bool
        Solve trees of depth two from all pairs of splits at once rather than split by split.
    coarse_time : bool
        Bound those trees by coarse bins of time first, where there are many rows (`coarse.py`).
    """

    equivalent_points: bool = True
    look_ahead: bool = True
    splitting: bool = True
    hierarchical: bool = True
    base_case: bool = True
    coarse_time: bool = True

    @property
    def base_depth(self) -> int:
        """Depth of the trees that the compiled base case solves at once."""
        return 2 if self.base_case else 1


def floor_with_split(leaf: float, bound: float, complexity: float, least_leaves: float = 2.0) -> float:
    """Least objective of a node that may be split: as a leaf, or with ``least_leaves`` and the additive bound.

    Theorem 2.3 with 2.6 (eq. 11, one-step look-ahead): a tree with two leaves or more on the rows loses at least
    the equivalent-points bound.
    """
    return min(leaf + complexity, bound + least_leaves * complexity)


def deeper_floor(value: float, bound: float, complexity: float, depth: int) -> float:
    """Lower bound at any greater depth of a node whose optimum at ``depth`` is ``value`` or more.

    A tree deeper than d has at least d + 2 leaves, so it costs at least bound + (d + 2) * complexity: Theorem 2.3's
    look-ahead, with all the leaves that the solved depth rules out instead of one.
    """
    return min(value, bound + (depth + 2) * complexity)


def useful_depth(leaf: float, bound: float, size: float, complexity: float, min_rows: float) -> int:
    """Depth beyond which no tree on a node beats the node as a leaf.

    A tree with k leaves has an objective >= bound + k * complexity, so it beats leaf + complexity only while
    k - 1 < (leaf - bound) / complexity, and a tree that reaches depth d has at least d + 1 leaves. This is the
    bound on the number of leaves (Theorems B.3 and B.4), and with d = 0 the splitting bound: a node is split only if
    its loss exceeds the bound by more than the complexity (Theorem B.1, there with bound 0). Every leaf holds
    min_rows rows. It also limits the search without a depth limit.
    """
    splits = size // min_rows - 1.0
    gain = leaf - bound
    if complexity > 0.0:
        splits = min(splits, np.ceil(gain / complexity) - 1.0)
    elif gain <= 0.0:
        splits = 0.0
    return max(int(splits), 0)


def equivalent_points(
    group: IntArray,
    time_id: IntArray,
    weight: FloatArray,
    v: FloatArray,
    g: FloatArray,
    t: FloatArray,
) -> FloatArray:
    """Equivalent-points bound (Lemma 2.5, Theorem 2.6), as a share of each row that adds up over groups.

    Rows that agree in every feature end in one leaf and share one curve; whatever it is, they lose at least what
    they lose under their own best step function S* = B / (B + D) (`leaf_costs.ipcw_costs`).

    Parameters
    ----------
    group : (N,) group of equal rows
    time_id, weight, v : (N,) as in `table.SortedRows`
    g, t : (T,) G and scaled time at the distinct times

    Returns
    -------
    (N,) the group's bound at its first row, 0 elsewhere
    """
    order = np.lexsort((time_id, group))
    return np.asarray(group_bounds(order, group, time_id, weight, v, g, t))


@entry(*ints(1, 1, 1), *floats(1, 1, 1, 1))
def group_bounds(order, group, time_id, weight, v, g, t):
    """Bound of the loss of each group of equal rows, at its first row, (N,); ``order`` is by group and time."""
    shares = np.zeros(order.shape[0])
    begin = 0
    while begin < order.shape[0]:
        end, n = begin, 0.0
        while end < order.shape[0] and group[order[end]] == group[order[begin]]:
            n += weight[order[end]]
            end += 1
        d, loss = 0.0, 0.0
        for k in range(begin, end - 1):
            row, after = order[k], order[k + 1]
            n -= weight[row]
            d += v[row]
            if d > 0.0 and time_id[after] > time_id[row]:
                loss += _least_between(n, d, time_id[row], time_id[after], g, t)
        shares[order[begin]] = loss
        begin = end
    return shares


@array_kernel
def _least_between(n, d, first, last, g, t):
    """Lower bound of the integral of n d / (n + d G) between two distinct times (G falls)."""
    block = max((last - first) // BLOCKS, 1)
    total, at = 0.0, first
    while at < last:
        to = min(at + block, last)
        total += n * d / (n + d * g[at]) * (t[to] - t[at])
        at = to
    return total


def with_reference(shares: FloatArray, group: IntArray, losses: FloatArray) -> FloatArray:
    """Conditional bound from a reference model (section 2.3, eq. 12): its loss on the rows.

    Per group of equal rows the larger of the equivalent-points bound and the reference's loss is taken, which keeps
    the guarantee of Theorem 2.7: the objective found is at most complexity * leaves(t) + sum_i max(reference loss,
    loss of t) for every tree t, for sum_i in group of max(a_i, b_i) >= max(sum a_i, sum b_i).
    """
    merged = np.maximum(np.bincount(group, shares), np.bincount(group, losses))
    out = np.zeros_like(shares)
    _, first = np.unique(group, return_index=True)
    out[first] = merged[group[first]]
    return out
