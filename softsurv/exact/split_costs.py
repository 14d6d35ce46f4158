"""What a split costs where asking for a feature is a test that has to be paid for (paper `streed`, eq. 8).

Every row that reaches a branch node pays for the test of its feature: the full price; nothing where the path has made
the test already; the reduced price where the path has made another test of the same group. So the price depends on
the path, the *context* of a subproblem: two subproblems are the same only where rows and prices are, and the prices
enter the key of the cache. (The paper caches by branch; equal prices by different branches are one entry here.)

The bounds on nested subsets hold: a tree restricted to fewer rows of the same context loses rows that pay, and branch
nodes that nobody pays for (`bounds.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.jit import shared_kernel
from softsurv.exact.kernels.views import Floats, Ints, WordMatrix
from softsurv.exact.kernels.words import lower
from softsurv.exact.tree import CodeTree


class Prices(NamedTuple):
    """Prices of T tests for the kernels; no tests where splits cost nothing."""

    full: Floats  # (T,) price per unit of weight
    reduced: Floats  # (T,) price once another test of the group has been made
    group: Ints  # (T,) int32 group of each test, -1 for none
    test_of: Ints  # (P,) int32 test of each feature
    words: WordMatrix  # (T, 2) uint64 random words for the key of a context
    column: int  # column of the statistics that holds the weight which pays


@dataclass(frozen=True)
class SplitCosts:
    """Prices of tests as the search takes them.

    Parameters
    ----------
    full : (T,)
        Price of each test per unit of weight, >= 0.
    test_of : (P,) int
        The test that each feature belongs to.
    weight : (N,)
        What each row pays with.
    reduced : (T,), optional
        Price once another test of the same group has been made; at most the full price, which is the default.
    group : (T,) int, optional
        Group of each test, -1 for none.
    """

    full: FloatArray
    test_of: NDArray[np.integer]
    weight: FloatArray
    reduced: FloatArray | None = None
    group: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        reduced = self.full if self.reduced is None else self.reduced
        if not (np.isfinite(self.full).all() and (reduced >= 0).all() and (reduced <= self.full).all()):
            raise InvalidParameterError(
                f"prices of tests must be finite with 0 <= reduced <= full, got {reduced.tolist()} and "
                f"{self.full.tolist()}"
            )

    def prices(self, features: IntArray, column: int) -> Prices:
        """For the kernels; ``features`` are those of the problem."""
        n = len(self.full)
        return Prices(
            np.array(self.full, dtype=float),
            np.array(self.full if self.reduced is None else self.reduced, dtype=float),
            np.full(n, -1, np.int32) if self.group is None else np.array(self.group, np.int32),
            np.array(self.test_of, np.int32)[features],
            _words(n),
            column,
        )


@cache
def _words(n: int) -> NDArray[np.uint64]:
    """Random words of n tests, (n, 2)."""
    return np.random.default_rng(1).integers(0, 2**64, (n, 2), dtype=np.uint64)


def no_prices(n_features: int) -> Prices:
    """The empty form."""
    none = np.zeros(0)
    return Prices(none, none, np.zeros(0, np.int32), np.zeros(n_features, np.int32), np.zeros((0, 2), np.uint64), 0)


def paid(tree: CodeTree, costs: SplitCosts, weight: FloatArray) -> float:
    """What all rows pay for the tests of a tree; ``weight`` is that of the rows in each node."""
    prices = costs.prices(np.arange(len(costs.test_of)), 0)
    due = {0: prices.full}
    total = 0.0
    for node in np.flatnonzero(tree.feature >= 0):  # preorder: parents come first
        test = int(prices.test_of[tree.feature[node]])
        total += float(weight[node]) * float(due[int(node)][test])
        due[int(tree.left[node])] = due[int(tree.right[node])] = prices_after(prices, due[int(node)], test)
    return total


def prices_after(prices: Prices, due: FloatArray, test: int) -> FloatArray:
    """As `pay`, called from Python."""
    same = (prices.group == prices.group[test]) & (prices.group >= 0)
    after = np.where(same, np.minimum(due, prices.reduced), due)
    after[test] = 0.0
    return after


def show_prices(prices: Prices, due: FloatArray, local: Any) -> None:
    """As `set_prices`, called from Python."""
    if not len(due):
        return
    local.due[:] = due
    same = (prices.group[:, None] == prices.group) & (prices.group >= 0)
    local.after[:] = np.where(same, np.minimum(due, prices.reduced), due)
    np.fill_diagonal(local.after, 0.0)


@shared_kernel
def pay(prices, due, test, after):
    """Prices ``after`` (T,) a test that is made at prices ``due`` (T,)."""
    for t in range(due.shape[0]):
        after[t] = due[t]
        if t == test:
            after[t] = 0.0
        elif prices.group[t] >= 0 and prices.group[t] == prices.group[test]:
            after[t] = lower(due[t], prices.reduced[t])


@shared_kernel
def context_of(prices, due):
    """What prices add to the key of a subset: two words."""
    low, high = np.uint64(0), np.uint64(0)
    for t in range(due.shape[0]):
        if due[t] == prices.full[t]:
            continue
        state = np.uint64(1) if due[t] == prices.reduced[t] else np.uint64(2)
        low += prices.words[t, 0] * state
        high += prices.words[t, 1] * state
    return low, high


@shared_kernel
def open_contexts(prices, level, nodes):
    """Keys of the contexts after each test that a node may make; the prices of the next level are scratch."""
    for test in range(prices.full.shape[0]):
        pay(prices, nodes.due[level], test, nodes.due[level + 1])
        nodes.context[level, test, 0], nodes.context[level, test, 1] = context_of(prices, nodes.due[level + 1])


@shared_kernel
def set_prices(prices, due, local):
    """Prices at a base case, and after each first test."""
    for test in range(due.shape[0]):
        local.due[test] = due[test]
        pay(prices, due, test, local.after[test])
