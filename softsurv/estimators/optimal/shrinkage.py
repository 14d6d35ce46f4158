"""Leaves that borrow from the nodes above them: relative risks and curves pulled along the path from the root.

A leaf of few events says little of the next subject. So a node's estimate starts from its parent's, as if k more events
had been seen there (a gamma prior on a relative risk, a beta process prior on a hazard), and the root's from that of
all rows. With k = 0 every leaf stands for itself.
"""

from __future__ import annotations

from operator import add

import numpy as np
from scipy.optimize import isotonic_regression

from softsurv.arrays import FloatArray, IntArray
from softsurv.estimators.optimal.rows import Rows
from softsurv.exact.objectives import relative_risk
from softsurv.exact.objectives.brier import NEGLIGIBLE, IbsScore
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
    members = [np.flatnonzero(at == node) for node in range(tree.n_nodes)]
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
    one = relative_risk.one_subject(rows.weight)
    theta = [shrunk_risks(tree, leaf_sums[:, k : k + 2], events, one) for k in range(0, leaf_sums.shape[1], 2)]
    names = ("relative risk",) if rows.cause is None else tuple(f"relative risk of {c}" for c in rows.cause_names)
    return tree.with_values(np.stack(theta, axis=1), names)


def shrunk_hazards(tree: HardTree, rows: Rows, members: list[IntArray], events: float) -> FloatArray:
    """Hazard of each cause in each leaf at the distinct times (K, L, T), pulled to its parent's.

    h = (d + c h_parent) / (Y + c). ``members`` are the rows of each node; c are so many subjects of the parent that
    ``events`` events of the cause happened among them: a leaf without events takes no more of these from above than
    others do, and a rare cause borrows more. Where nearly nobody is at risk the hazards of all causes are scaled to sum
    to one at most.
    """
    times, kinds = np.unique(rows.time), rows.by_cause
    parent, hazard = parents(tree), np.zeros((len(kinds), tree.n_nodes, times.size))
    for node, some in enumerate(members):
        for k, one_cause in enumerate(kinds):
            died, at_risk = risk_set(one_cause, some, times)
            pull = subjects_of(one_cause, members[parent[node]], events) if node > 0 else 0.0
            prior = hazard[k, parent[node]] if node > 0 else np.zeros(times.size)
            hazard[k, node] = pulled(died, at_risk, pull, prior)
    leaves = hazard[:, tree.leaf >= 0]
    return np.asarray(leaves if rows.cause is None else leaves / np.maximum(leaves.sum(axis=0), 1.0))


def pulled(died: FloatArray, at_risk: FloatArray, pull: float, prior: FloatArray) -> FloatArray:
    """Hazard (T,) with so many more subjects at risk under a prior hazard; 0 where nobody is at risk."""
    total = at_risk + pull
    return np.divide(died + pull * prior, total, out=np.zeros_like(total), where=total > 0)


def subjects_of(rows: Rows, some: IntArray, events: float) -> float:
    """Weight of the subjects among whom so many events happened, at the rate of some rows."""
    one = relative_risk.one_subject(rows.weight)
    weight = rows.weight[some]
    return events * one * float(weight.sum()) / max(float(weight[rows.event[some]].sum()), one)


def risk_set(rows: Rows, some: IntArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight of events and at risk among some rows at each time, both (T,)."""
    time, weight = rows.time[some], rows.weight[some]
    died = np.bincount(np.searchsorted(times, time), weight * rows.event[some], times.size).astype(np.float64)
    gone = _weight_before(times, time, weight)
    if rows.entry is None:
        return died, np.maximum(weight.sum() - gone, died)
    came = _weight_before(times, np.where(rows.entry[some] > 0, rows.entry[some], -np.inf), weight)
    return died, np.maximum(came - gone, died)


def _weight_before(times: FloatArray, moment: FloatArray, weight: FloatArray) -> FloatArray:
    """Weight of the rows whose moment lies before each time, (T,)."""
    order = np.argsort(moment)
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(total[np.searchsorted(moment[order], times, side="left")])


def shrunk_score_curves(tree: HardTree, members: list[IntArray], score: IbsScore, events: float) -> list[FloatArray]:
    """Curve of each leaf (T,) of least Brier score with ``events`` more subjects, who survive as in the parent."""
    parent = parents(tree)
    curves: list[FloatArray] = []
    for node, some in enumerate(members):
        if node == 0 or events == 0:
            curves.append(score.curve(some, "ipcw", monotone=True))
            continue
        above = members[parent[node]]
        share = events / max(float(score.event[above].sum()), 1.0)
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
