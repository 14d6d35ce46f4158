"""Our trees by name, and what each of them turned out to be: leaves, splits, and how far the splits part the rows.

A name is ``soft`` or ``optimal``, with arguments after a colon: ``soft:depth=0``, ``optimal:objective=ibs,tune=cv``.
"""

from __future__ import annotations

import ast
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from _survset_rules import Table, UnreadableTreeError, leaves_of_text
from numpy.typing import NDArray

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, SurvivalData

CLASSES = {"soft": SoftSurvivalTree, "optimal": OptimalSurvivalTree}
N_GRID = 30
"""Times at which two sides of a split are compared: quantiles of the training event times, and the horizon."""

Tree = SoftSurvivalTree | OptimalSurvivalTree
Curves = Callable[[NDArray], NDArray]
Apart = Callable[[NDArray, NDArray], NDArray]


@dataclass
class Fitted:
    """A model on one fold: log H of the test rows by time, their leaves (a tree's), what is known of it, and costs."""

    curves: Curves  # (T,) -> (n, T)
    leaf: NDArray[np.int64] | None
    facts: dict[str, Any]
    seconds: float
    cpu_seconds: float


class Stopwatch:
    """Seconds by the wall and of CPU, those of ended child processes included, since it was made."""

    def __init__(self) -> None:
        self._began = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime

    def read(self) -> tuple[float, float]:
        """Wall, CPU."""
        return tuple(now - began for now, began in zip(self._now(), self._began, strict=True))


def make(name: str) -> Tree:
    """The estimator of a name."""
    kind, _, listed = name.partition(":")
    arguments = dict(pair.split("=", 1) for pair in listed.split(",") if pair)
    return CLASSES[kind](**{key: _value(text) for key, text in arguments.items()})


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@lru_cache
def warm_up(name: str) -> None:
    """Compile before the clock runs: a fit of 60 rows."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((60, 2)), columns=["a", "b"])
    tree = make(name)
    if isinstance(tree, OptimalSurvivalTree):
        tree.set_params(min_samples_leaf=1)  # whatever is asked for, 60 rows are enough
    tree.fit(x, (np.arange(60) % 2 == 0, rng.exponential(size=60) + 0.01))


def fit_ours(name: str, train: SurvivalData, test: SurvivalData, seed: int) -> Fitted:
    """Fit one of our trees on raw features."""
    if name.startswith("optimal"):
        warm_up(name)
    model = make(name).set_params(random_state=seed)
    clock = Stopwatch()
    model.fit(train.X, train.y)
    spent = clock.read()

    def curves(at: NDArray) -> NDArray:
        with np.errstate(divide="ignore"):
            return np.log(model.predict_cumulative_hazard_function(test.X, at))

    return Fitted(curves, np.asarray(model.apply(test.X)), facts_of(model, train, test), *spent)


# -- what the tree is ------------------------------------------------------------------------------------------------
def facts_of(model: Tree, train: SurvivalData, test: SurvivalData) -> dict[str, Any]:
    """What is recorded of a tree.

    ``n_leaves`` counts leaves with training rows, ``depth`` the levels of splits that part training rows, ``terms`` is
    the median number of raw features in such a split, ``difference`` is explained in `least_difference`,
    ``printed_agreement`` in the function, ``printed_rule`` tells whether it is 1, and ``status`` how the fit ended.
    """
    soft = isinstance(model, SoftSurvivalTree)
    tree, apart = (soft_splits if soft else hard_splits)(model, train)
    parting = [node for node in tree.branches() if tree.parts(node)]
    terms = [tree.terms[node] for node in parting]
    agreement = printed_agreement(model, train.X, test.X)
    facts = {
        "n_leaves": len(np.unique(model.apply(train.X))),
        "depth": max((tree.level(node, parting) for node in parting), default=0),
        "terms": float(np.median(terms)) if terms else None,
        "difference": least_difference(tree, parting, apart),
        "printed_agreement": agreement,
        "printed_rule": None if agreement is None else agreement == 1,
        "status": str(model.report_.status),
    }
    chosen = getattr(model, "candidate_", None)
    return facts if chosen is None else facts | {"candidate": vars(chosen)}


def printed_agreement(model: Tree, train: pd.DataFrame, test: pd.DataFrame) -> float | None:
    """Share of the fold's rows that the printed text sends where ``apply`` does; None where the text cannot be read."""
    rows = pd.concat([train, test])
    try:
        printed = leaves_of_text(model.export_text(), Table.of(train, rows))
    except UnreadableTreeError:
        return None
    return float((printed == model.apply(rows)).mean())


@dataclass
class Splits:
    """A binary tree over the training rows: which way each row would go at each node, and the nodes' children."""

    goes_left: NDArray[np.bool_]  # (N, V)
    left: NDArray[np.int64]  # (V,) -1 at a leaf
    right: NDArray[np.int64]
    terms: NDArray[np.int64]  # (V,) raw features in the split

    def __post_init__(self) -> None:
        reached = np.zeros(self.goes_left.shape, dtype=bool)
        reached[:, 0] = True
        for node in self.branches():  # parents come before their children
            side = self.goes_left[:, node]
            reached[:, self.left[node]] = reached[:, node] & side
            reached[:, self.right[node]] = reached[:, node] & ~side
        self.reached = reached

    def branches(self) -> NDArray[np.int64]:
        """Nodes with children."""
        return np.flatnonzero(self.left >= 0)

    def parts(self, node: int) -> bool:
        """Whether training rows go both ways."""
        return bool(self.reached[:, self.left[node]].any() and self.reached[:, self.right[node]].any())

    def level(self, node: int, parting: list[int]) -> int:
        """Splits among ``parting`` on the way to a node, itself included."""
        count = 0
        while True:
            count += node in parting
            if node == 0:
                return count
            node = int(np.flatnonzero((self.left == node) | (self.right == node))[0])

    def descend(self, rows: NDArray[np.int64], node: int) -> NDArray[np.int64]:
        """Leaf (node number) in which each of the rows ends if it starts at a node."""
        at = np.full(len(rows), node)
        while (inner := np.flatnonzero(self.left[at] >= 0)).size:
            here = at[inner]
            at[inner] = np.where(self.goes_left[rows[inner], here], self.left[here], self.right[here])
        return at


def least_difference(tree: Splits, parting: list[int], apart: Apart) -> float | None:
    """Least over splits of the largest difference in survival between the two sides of the split; None for one leaf.

    A row that reaches the split is followed down both sides, by the rules below. The difference is that between its
    curves in the two leaves, the largest over these rows and over `N_GRID` times up to the horizon.
    """
    found = []
    for node in parting:
        rows = np.flatnonzero(tree.reached[:, node])
        sides = [apart(rows, tree.descend(rows, child)) for child in (int(tree.left[node]), int(tree.right[node]))]
        found.append(float(np.abs(sides[0] - sides[1]).max()))
    return min(found, default=None)


def _times(model: Tree) -> NDArray[np.float64]:
    return np.append(np.quantile(model.unique_times_, np.linspace(0.02, 1, N_GRID)), model.horizon_)


def soft_splits(model: SoftSurvivalTree, train: SurvivalData) -> tuple[Splits, Apart]:
    """Splits of a soft tree in heap order, leaves after branch nodes; survival of rows in given leaves."""
    tree = model.tree_
    prepared = train.X if model.preprocessor_ is None else model.preprocessor_.transform(train.X)
    x = torch.as_tensor(prepared.to_numpy(np.float64)).to(tree.leaves)
    go_left = np.asarray(model.routing_probability(train.X)) >= 0.5
    n_branches = go_left.shape[1]
    nodes = np.arange(2 * n_branches + 1)
    left = np.where(nodes < n_branches, 2 * nodes + 1, -1)
    weights = tree.routing[0, :, 1:].detach().cpu().numpy() != 0
    names = [c.source for c in model.preprocessor_.columns_] if model.preprocessor_ else list(range(x.shape[1]))
    terms = [len({names[k] for k in np.flatnonzero(row)}) for row in weights] + [0] * (n_branches + 1)
    padded = np.pad(go_left, [(0, 0), (0, n_branches + 1)])
    times = torch.as_tensor(_times(model)).to(tree.leaves)

    def survival(rows: NDArray, leaf: NDArray) -> NDArray:
        with torch.no_grad():
            z, _ = tree.predictor(x[rows], times, torch.as_tensor(leaf - n_branches)[None])
            return torch.exp(-torch.exp(tree.family.link.log_cumulative_hazard(z)))[0].cpu().numpy()

    return Splits(padded, left, np.where(left < 0, -1, left + 1), np.array(terms)), survival


def hard_splits(model: OptimalSurvivalTree, train: SurvivalData) -> tuple[Splits, Apart]:
    """Splits of a hard tree; survival in a leaf is that of the first row there."""
    tree = model.tree_
    table, n = model.binarizer_.filled(train.X)
    goes_left = np.zeros((n, tree.n_nodes), dtype=bool)
    for node in np.flatnonzero(tree.feature >= 0):
        values = table[tree.sources[tree.feature[node]].name]
        levels = tree.levels[node]
        goes_left[:, node] = np.isin(values.astype(str), levels) if levels else values <= tree.threshold[node]
    number = tree.leaf[tree.node_of(table, n)]
    _, first = np.unique(number, return_index=True)
    curve = model.predict_survival_function(train.X.iloc[first], _times(model))
    splits = Splits(goes_left, np.asarray(tree.left), np.asarray(tree.right), np.ones(tree.n_nodes, dtype=int))
    return splits, lambda rows, node: curve[tree.leaf[node]]
