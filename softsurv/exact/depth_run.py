"""One run of the compiled recursion at a fixed limit on depth: what its threads share, and what it has proven."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.exact.cuts.choice import CUT_WORK
from softsurv.exact.kernels.cache import Cache
from softsurv.exact.kernels.nodes import ENOUGH, UNKNOWN, leaf_shares
from softsurv.exact.kernels.recursion import solve
from softsurv.exact.kernels.root import solve_root
from softsurv.exact.kernels.subsets import BLOCKS, CALLS, Local
from softsurv.exact.kernels.views import Packed
from softsurv.exact.problem import Scratch, SearchArrays, Shared
from softsurv.exact.row_kinds import ADDITION, BIT_COLUMN, BIT_PAIR

SHORT_WORK = 1e7
"""Work (`work_of`) of some ten milliseconds at most: a run this short needs no thread that watches the clock."""


def new_shared(control: IntArray, order: NDArray[np.int32], leaves: int, value: float, sides: FloatArray) -> Shared:
    """State of a run with an incumbent of some objective, and bounds of both sides of the root's splits, (2, G)."""
    return Shared(
        control=control,
        next=np.zeros(leaves, np.int64),
        order=order,
        bound=np.repeat(sides[None], leaves, axis=0),
        best=np.array([value]),
        choice=np.array([UNKNOWN]),
        rank=np.array([-1]),
        lock=np.zeros(1, np.int64),
    )


def root_bounds(problem: SearchArrays, local: Local | None) -> FloatArray:
    """Bound of both sides of the root's splits, (2, G); ``local`` holds the base case of the root, if it was solved.

    The bound by equivalent points, raised as in `nodes.look_ahead`.
    """
    total = float(problem.floor.sum())
    floor = np.zeros(len(problem.feature_of))
    if problem.floor.any():
        for f, nominal in enumerate(problem.nominal):
            first, end = int(problem.code_start[f]), int(problem.code_start[f + 1])
            sums = np.bincount(problem.gcode[:, f] - first, problem.floor, end - first)
            floor[first:end] = sums if nominal else sums.cumsum()
    sides = np.stack([floor, total - floor])
    if problem.use_look_ahead and local is None:
        sides += problem.complexity
    elif problem.use_look_ahead and local is not None:
        n = int(local.size[2])
        splits, stump = local.split_code[:n], local.stump[:, :n]
        stump = np.where(local.flipped[:n] == 1, stump[::-1], stump)
        bound = np.minimum(stump, sides[:, splits] + 3 * problem.complexity)
        if problem.use_size:
            left = np.where(local.flipped[:n] == 1, local.total[-1] - local.side[-1, :n], local.side[-1, :n])
            size = np.stack([left, local.total[-1] - left])
            bound = np.where(size < 3 * problem.min_leaf * ENOUGH, stump, bound)
        sides[:, splits] = bound
    return sides


def work_of(problem: SearchArrays, n_rows: int, depth: int, base: str, by_cuts: bool) -> float:
    """Additions of a search that skips nothing: pairs of features times rows, and pairs of splits, at all nodes."""
    splits, features = len(problem.feature_of), len(problem.nominal)
    by_bits = (BIT_PAIR * splits + BIT_COLUMN) * splits / (2 * ADDITION)
    per_row = by_bits if base == "bits" else features**2
    one = per_row * n_rows + splits**2  # the base case of the whole problem
    one = 10 * CUT_WORK * features * n_rows if by_cuts else one
    return one * float(splits) ** max(depth - 2, 0)


@contextmanager
def in_threads(parts: Iterable[Callable[[], object]]) -> Iterator[None]:
    """Run parts in other threads during a ``with`` block; its end waits for them."""
    threads = [threading.Thread(target=part, daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def details_of(control: IntArray, cache: Cache, n_rows: int) -> dict[str, Any]:
    """Counts that a report gives of a search."""
    return {
        "base_cases": int(control[CALLS]),
        "lane_runs": int(control[BLOCKS]),
        "cache_entries": int(min(cache.used[0], len(cache.tags))),
        "cache_full": bool(cache.used[0] >= len(cache.tags) * 7 // 8),
        "distinct_rows": n_rows,
    }


@dataclass(frozen=True)
class DepthRun:
    """A run over all trees down to one depth.

    Attributes
    ----------
    shared : Shared
    depth, leaves : int
        Limits of the trees.
    floor : float or None
        A lower bound for trees as deep as the user asked for, where this run is over shallower ones.
    """

    shared: Shared
    depth: int
    leaves: int
    floor: float | None

    def shares(
        self, problem: Packed, rows: Any, key: Any, cache: Packed, scratch: list[Scratch]
    ) -> list[Callable[[], object]]:
        """Calls of the compiled recursion that share this run, one for each scratch; each ends when the run does."""
        upper, shared = float(self.shared.best[0]), Packed(self.shared)
        if problem.value.calls.solve != 0:
            work = partial(solve, problem, rows, len(rows), *key, self.depth, self.leaves, upper, 0)
        else:
            work = partial(solve_root, problem, rows, len(rows), *key, self.leaves, upper)
        return [partial(work, *mine, cache, shared) for mine in scratch]

    @property
    def incumbent(self) -> float:
        """Objective of the best tree so far."""
        return float(self.shared.best[0])

    @property
    def done(self) -> float:
        """Share of the root's splits that are settled."""
        return min(1.0, float(self.shared.next.max()) / max(len(self.shared.order), 1))

    def promise(self) -> FloatArray:
        """Lower bound of the best tree with each of the root's splits first, (G,)."""
        leaves = len(self.shared.bound)
        used = [leaf_shares.py_func(turn, leaves, 1 << (self.depth - 1)) != (0, 0) for turn in range(leaves)]
        return self.shared.bound[used].sum(axis=1).min(axis=0)

    def proven(self) -> float:
        """Lower bound for trees as deep as the user asked for: the incumbent, or the least promise of a first split."""
        if self.floor is not None:
            return min(self.floor, self.incumbent)
        return min(self.incumbent, float(self.promise()[self.shared.order].min(initial=np.inf)))
