"""Leaves that borrow from the nodes above them: relative risks and curves pulled along the path from the root.

A leaf of few events says little of the next subject. So a node's estimate starts from its parent's, as if k more events
had been seen there (a gamma prior on a relative risk, a beta process prior on a hazard), and the root's from that of
all rows. With k = 0 every leaf stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add

import numpy as np
from scipy.optimize import isotonic_regression

from softsurv.arrays import FloatArray, IntArray
from softsurv.estimators.optimal.rows import Rows
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.brier import NEGLIGIBLE, IbsScore
from softsurv.nonparametric import SUM_ROUNDING
from softsurv.trees.hard_tree import HardTree


def parents(tree: HardTree) -> IntArray:
    """Parent of each node, (V,); -1 at the root."""
    parent = [-1] * tree.n_nodes
    for node, (left, right) in enumerate(zip(tree.left.tolist(), tree.right.tolist(), strict=True)):
        if left >= 0:
            parent[left] = parent[right] = node
    return np.array(parent)


def node_sums(tree: HardTree, leaf_sums: FloatArray) -> FloatArray:
    """Sums of every node (V, K) from those of the leaves (L, K)."""
    sums, parent = np.zeros((tree.n_nodes, leaf_sums.shape[1])), parents(tree).tolist()
    sums[tree.leaf >= 0] = leaf_sums
    total = sums.tolist()
    for node in range(tree.n_nodes - 1, 0, -1):  # children come after their parents
        total[parent[node]] = list(map(add, total[parent[node]], total[node]))
    return np.array(total)


def node_rows(tree: HardTree, at: IntArray) -> list[IntArray]:
    """Rows that pass each node, in order, from the node at which each row ends (N,)."""
    order = np.argsort(at, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(at, minlength=tree.n_nodes))[:-1])
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.feature[node] >= 0:
            members[node] = np.sort(np.concatenate([members[tree.left[node]], members[tree.right[node]]]))
    return members


def shrunk_risks(tree: HardTree, leaf_sums: FloatArray, events: float, one: float = 1.0) -> FloatArray:
    """Relative risk of each leaf, (L,): theta = (E + k theta_parent) / (H + k) from the root down, where it is 1.

    Parameters
    ----------
    tree : HardTree
    leaf_sums : (L, 2)
        Events E and expected events H of each leaf.
    events : float
        k, in subjects; 0 gives E / H, or half an event where a leaf has none.
    one : float
        What one subject weighs.
    """
    if events == 0:
        return relative_risk.relative_risk(leaf_sums, one)
    parent, k = parents(tree).tolist(), events * one
    theta: list[float] = []
    for node, (happened, expected) in enumerate(node_sums(tree, leaf_sums).tolist()):
        prior = 1.0 if node == 0 else theta[parent[node]]
        theta.append((happened + k * prior) / (expected + k))
    return np.array(theta)[tree.leaf >= 0]


def with_risk(rows: Rows, tree: HardTree, leaf_sums: FloatArray, events: float) -> HardTree:
    """The tree with the relative risk of every leaf, of each cause where there are several; ``leaf_sums`` (L, 2 K)."""
    theta = [
        shrunk_risks(tree, leaf_sums[:, k : k + 2], events, rows.one_subject) for k in range(0, leaf_sums.shape[1], 2)
    ]
    names = ("relative risk",) if rows.cause is None else tuple(f"relative risk of {c}" for c in rows.cause_names)
    return tree.with_values(np.stack(theta, axis=1), names)


def shrunk_hazards(
    tree: HardTree, rows: Rows, members: list[IntArray], strengths: Sequence[float], times: FloatArray
) -> Iterator[FloatArray]:
    """Hazard of one kind of event in each leaf in turn (S, T), pulled to its parent's with each of S strengths.

    h = (d + c h_parent) / (Y + c). ``members`` are the rows of each node, ``times`` (T,) hold those of all events; c
    are so many subjects of the parent that a strength's number of events happened among them: a leaf without events
    takes no more of these from above than others do, and a rare cause borrows more. Who is at risk is counted once for
    all strengths. Hazards are kept of those nodes alone whose children are to come.
    """
    place, nowhere = places(rows, times), np.zeros((len(strengths), times.size))
    above = {-1: (nowhere, nowhere[:, :1])}  # hazards (S, T) of these nodes, and subjects (S, 1) taken from them
    for node, (some, parent) in enumerate(zip(members, parents(tree).tolist(), strict=True)):
        died, at_risk = risk_set(rows, some, times, place)
        # the right child comes last
        prior, pull = above.pop(parent) if node == 0 or node == tree.right[parent] else above[parent]
        hazard = pulled(died, at_risk, pull, prior)
        if tree.leaf[node] >= 0:
            yield hazard
        else:
            above[node] = hazard, np.array(strengths)[:, None] * subjects_per_event(rows, some)


def pulled(died: FloatArray, at_risk: FloatArray, pull: FloatArray | float, prior: FloatArray) -> FloatArray:
    """Hazard (..., T) with so many more subjects at risk under a prior hazard; 0 where nobody is at risk."""
    total = at_risk + pull
    return np.divide(died + pull * prior, total, out=np.zeros_like(total), where=total > 0)


def subjects_per_event(rows: Rows, some: IntArray) -> float:
    """Weight of the subjects among whom one event happens, at the rate of some rows."""
    one, weight = rows.one_subject, rows.weight[some]
    return one * float(weight.sum()) / max(float(weight[rows.event[some]].sum()), one)


def places(rows: Rows, times: FloatArray) -> IntArray:
    """Number of times that lie at or before the time of each row, (N,)."""
    return np.searchsorted(times, rows.time, side="right")


def risk_set(rows: Rows, some: IntArray, times: FloatArray, place: IntArray) -> tuple[FloatArray, FloatArray]:
    """Weight of events and at risk among some rows at each time, both (T,), which hold those of all events.

    ``place`` (N,) is what :func:`places` gives for all rows.
    """
    here, weight = place[some], rows.weight[some]
    # an event at time k has the place k + 1
    died: FloatArray = np.bincount(here, weight * rows.event[some], times.size + 1)[1:].astype(np.float64, copy=False)
    gone = np.bincount(here, weight, times.size + 1)
    at_risk = np.cumsum(gone[:0:-1], dtype=np.float64)[::-1]  # from the last time on: where all left die, none stays
    if rows.entry is None:
        return died, at_risk
    not_come = weight.sum() - _weight_before(times, np.where(rows.entry[some] > 0, rows.entry[some], -np.inf), weight)
    left = at_risk - not_come - died
    return died, died + np.where(left > SUM_ROUNDING * weight.sum(), left, 0.0)


def _weight_before(times: FloatArray, moment: FloatArray, weight: FloatArray) -> FloatArray:
    """Weight of the rows whose moment lies before each time, (T,)."""
    order = np.argsort(moment)
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(total[np.searchsorted(moment[order], times, side="left")])


def shrunk_score_curves(tree: HardTree, members: list[IntArray], score: IbsScore, events: float) -> list[FloatArray]:
    """Curve of each leaf (T,) of least Brier score with ``events`` more subjects, who survive as in the parent."""
    parent, curves = parents(tree), list[FloatArray]()
    seen = score.weight * score.event / relative_risk.one_subject(score.weight)  # events of each row, in subjects
    for node, some in enumerate(members):
        if node == 0 or events == 0:
            curves.append(score.curve(some, "ipcw", monotone=True))
            continue
        above = members[parent[node]]
        share = events / max(float(seen[above].sum()), 1.0)
        curves.append(_pulled_curve(score, some, above, share, curves[parent[node]]))
    return [curves[node] for node in np.flatnonzero(tree.leaf >= 0)]


def _pulled_curve(score: IbsScore, some: IntArray, above: IntArray, share: float, prior: FloatArray) -> FloatArray:
    """Best non-increasing curve of some rows and a share of the rows above, which keep the prior curve, (T,)."""
    alive, died = score.curve_weights(some)
    pull = share * np.add(*score.curve_weights(above))
    total = alive + died + pull
    value = np.divide(alive + pull * prior, total, out=prior.copy(), where=total > 0)
    weight = score.grid().dt * total
    weight = np.maximum(weight, NEGLIGIBLE * max(float(weight.max()), 1.0))
    return np.asarray(isotonic_regression(value, weights=weight, increasing=False).x)
