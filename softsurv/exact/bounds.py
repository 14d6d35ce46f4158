"""The bounds of the exact search, with their proofs. The code that applies them is in `kernels`.

Notation: opt(S, d, l) is the least objective of a tree over the rows S with depth <= d and <= l leaves, the cost per
leaf c included; cost(L) is the task's cost of one leaf. A task is *superadditive* where
cost(A u B) >= cost(A) + cost(B) for disjoint A, B. It suffices that cost(L) = min over labels of a loss summed over the
rows of L: the label that is best for A u B is available to A and to B. Relative risk is such a minimum (the label is
theta, paper `surtree` eq. 7, 9; the infimum for a leaf without events is 0), and so is misclassification.

Lemma (restriction). For a superadditive task and S' within S, opt(S, d, l) >= opt(S', d, l) + the sum of cost(g) over
the groups g of equal rows of S minus S'. *Proof.* Take an optimal tree of S. Each of its leaves L splits into its part
in S' and the groups of equal rows outside S', and by superadditivity costs at least the sum of their costs. The first
parts form a tree of S' of the same shape (its empty leaves cost 0 and can be cut off, which only lowers c times the
leaves), so they cost at least opt(S', d, l). With a limit m > 1 on rows per leaf the restricted tree may break the
limit, and the value of S' under the limit need not bound it: the interval bound is switched off (`interval_applies`).

equivalent points (papers `gosdt`, Theorem H.2; `osst`, section 2.2)
    The lemma with S' empty: opt(S, d, l) >= sum over groups of cost(g) + c.
interval
    For thresholds a < b of an ordered feature the left side of a lies within that of b, so
    opt(left of b) >= opt(left of a) + groups between, and likewise on the right. A split whose two bounds add up to the
    incumbent or more is passed over; coarse-to-fine order closes whole intervals between two evaluated thresholds.
look-ahead (paper `gosdt`, Theorem B.4, taken further)
    A side of a split that becomes a tree of k leaves or more costs at least its equivalent points plus k c. Its least
    cost with fewer leaves is known from the base case of the node: k = 3, from the best single split of each side.
    Below a node of depth three, which has no such base case, k = 2, from the sides as leaves. The smaller of the two
    numbers is a lower bound of the side, at any depth.
similar support (paper `gosdt`, section 4 and appendix; the similarity bound of paper `streed`, Appendix B)
    A row's cost under any label lies between 0 and w(row). The optimal tree of S, taken to S', costs at most w(row)
    more for each row of S' outside S, and the rows of S outside S' that it no longer pays for cost at least 0, so
    opt(S, d, l) >= opt(S', d, l) - w(S' minus S). Each row's least cost has been taken out before (`cancel`): with it
    left in, w would have to be the most a row can cost, not the spread of its costs. Sides of splits of one node are
    compared: the base case says what two splits share. A left and a right side may have different limits on leaves.
    As opt(S, d, l) falls in d and l, a lower bound under the larger limits also holds under the smaller ones, never
    the reverse. The recursion does without under a limit on the size of leaves, which the tree may break in S'.
intervals of cuts (`cuts/node.py`)
    For cuts a < b of one column with only rows D between them, every cut u from a to b has opt(left of u) >=
    opt(left of a) + cost(g) over the groups g between a and u, and likewise opt(right of u) from b: the interval bound
    from both ends. Where similar support holds as well, opt(left of u) >= opt(left of b) - w(rows between u and b) and
    opt(right of u) >= opt(right of a) - w(rows between a and u); their sum is opt(left of b) + opt(right of a) - w(D),
    whatever u is. Lower bounds may stand for the optima. Under a limit on the size of leaves all of this holds for
    optima without the limit, which bound those with it from below; so both are kept (`Cuts.free`). For three leaves of
    depth two the sides are taken as one leaf and as a stump, and the other way round, each with bounds of its own.
cached bounds (paper `surtree`, section 4)
    A subset abandoned at an upper bound u has opt >= u under the same limits. A later visit to the subset uses that.
joint sums (`joint/kernels.py`)
    This is no bound, and it assumes nothing of the leaf cost: every tree of depth three is compared. Such a tree has a
    root s, a second split t on either side, and at most one more split below each of the four cells of (s, t) and
    (s, t'). The least cost of a cell with at most one more split u is taken over all u from the sums of the rows left
    of s, t and u. The sums of the other seven cells follow by subtraction, exactly (`problem.round_to_grid`). An empty
    cell costs at least 0, so a split that leaves a cell empty is never better than no split.
upper bounds
    The second side of a split is sought only below the incumbent minus the optimum, or bound, of the first side.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Switches of the search, all on by default. They change how long a search takes, not what it finds.

    Attributes
    ----------
    equivalent_points, interval, look_ahead, similar : bool
        The bounds of this module.
    cache : bool
        Keep solved subsets and bounds.
    base_case : bool
        Solve trees of depth two from sums over pairs of splits rather than by partitioning rows.
    lanes : bool
        Solve the base cases below a node eight splits at a time.
    bits : bool
        Count pairs of splits by bits where rows are of few kinds.
    nesting : bool
        Put nested columns of two codes, and columns that exclude each other, together as one feature.
    cuts : bool
        Search cut by cut where features have very many cuts (`cuts/node.py`); needs ``interval``.
    joint : bool
        Compare trees of depth three by sums over three features where rows are many (`joint/kernels.py`); needs
        ``base_case``.
    cancel : bool
        Subtract from the statistics what costs the same under every label.
    first_trees : bool
        Begin deep searches with trees by a rolling horizon (`first_trees.py`).
    """

    equivalent_points: bool = True
    interval: bool = True
    look_ahead: bool = True
    similar: bool = True
    cache: bool = True
    base_case: bool = True
    lanes: bool = True
    bits: bool = True
    nesting: bool = True
    cuts: bool = True
    joint: bool = True
    cancel: bool = True
    first_trees: bool = True


def interval_applies(superadditive: bool, limited: bool) -> bool:
    """Whether the lemma above holds for the sides of splits: superadditive, and no limit on the size of a leaf."""
    return superadditive and not limited
