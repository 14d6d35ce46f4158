"""Does a task keep what it promises? A check on random samples, for those who write a task of their own.

The conditions are those under which the search is exact (paper `streed`, Theorem 4.6). With sums of leaf costs under
``<`` order preservation (a better subtree never makes a worse tree) holds by itself; what can go wrong is the leaf
cost: it must be a function of sums alone, 0 where a leaf is empty, at least 0 with the offset, and superadditive
where the task says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact.task import Task

TOLERANCE = 1e-9
"""Share of the largest cost that rounding may explain."""


def check_task(
    task: Task, statistics: ArrayLike, offset: ArrayLike | None = None, *, samples: int = 500, random_state: int = 0
) -> None:
    """Check a task on random sets of rows.

    Parameters
    ----------
    task : Task
    statistics : (N, K)
        Statistics of real or typical rows.
    offset : (N,), optional
        As `Search` is given it.
    samples : int
        Pairs of disjoint sets of rows to try.
    random_state : int

    Raises
    ------
    InvalidParameterError
        A promise is broken: the sentence says which, and by which rows.
    """
    stats = np.asarray(statistics, dtype=float)
    if stats.ndim != 2 or not len(stats) or not np.isfinite(stats).all():
        raise InvalidParameterError(f"statistics must be a finite matrix with a row per instance, got {stats.shape}")
    if task.n_statistics not in (None, stats.shape[1]):
        raise InvalidParameterError(
            f"statistics must have the {task.n_statistics} columns of task {task.name!r}, got {stats.shape[1]}"
        )
    extra = np.zeros(len(stats)) if offset is None else np.asarray(offset, dtype=float)
    first, second = _pairs(len(stats), samples, np.random.default_rng(random_state))
    _check_empty(task, stats.shape[1])
    _check_alone(task, first @ stats)
    for member in (first, second):
        _check_positive(task, member, stats, extra)
    if task.superadditive:
        _check_superadditive(task, first, second, stats)
    if task.linear:
        _check_linear(task, first @ stats)


def _pairs(n: int, samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Disjoint sets of rows as 0/1 matrices (S, N), of one row up to all."""
    share = rng.random((samples, 1)) ** 2
    chosen = rng.random((samples, n)) < np.maximum(share, 1.0 / n)
    chosen[np.arange(samples), rng.integers(0, n, samples)] = True
    side = rng.random((samples, n)) < 0.5
    return (chosen & side).astype(float), (chosen & ~side).astype(float)


def _tolerance(costs: FloatArray) -> float:
    return TOLERANCE * max(1.0, float(np.abs(costs).max(initial=0.0)))


def _check_empty(task: Task, width: int) -> None:
    cost = float(task.costs(np.zeros((1, width)))[0])
    if cost != 0.0:
        raise InvalidParameterError(
            f"task {task.name!r}: an empty leaf must cost 0, got {cost:g}; guard divisions and logarithms of 0"
        )


def _check_alone(task: Task, sums: FloatArray) -> None:
    """A cost does not depend on what else is in the batch."""
    together = task.costs(sums)
    alone = np.array([task.costs(row[None])[0] for row in sums[:50]])
    worst = int(np.argmax(np.abs(together[:50] - alone))) if len(alone) else 0
    if not np.isfinite(together).all():
        row = int(np.flatnonzero(~np.isfinite(together))[0])
        raise InvalidParameterError(
            f"task {task.name!r}: costs must be finite, got {together[row]} for the sums {sums[row].tolist()}"
        )
    if abs(together[worst] - alone[worst]) > _tolerance(together):
        raise InvalidParameterError(
            f"task {task.name!r}: the cost of a leaf must depend on its own sums alone, got {together[worst]:g} in a "
            f"batch and {alone[worst]:g} alone for the sums {sums[worst].tolist()}"
        )


def _check_positive(task: Task, member: FloatArray, stats: FloatArray, offset: FloatArray) -> None:
    costs = task.costs(member @ stats) + member @ offset
    worst = int(costs.argmin())
    if costs[worst] < -_tolerance(member @ np.abs(offset)):
        raise InvalidParameterError(
            f"task {task.name!r}: a leaf and its offset must cost at least 0, got {costs[worst]:g} for the rows "
            f"{_rows(member[worst])}; give Search an offset that makes up for it"
        )


def _check_superadditive(task: Task, first: FloatArray, second: FloatArray, stats: FloatArray) -> None:
    a, b, both = (task.costs(member @ stats) for member in (first, second, first + second))
    excess = a + b - both
    worst = int(excess.argmax())
    if excess[worst] > _tolerance(np.concatenate([a, b, both])):
        raise InvalidParameterError(
            f"task {task.name!r}: two leaves must not cost more than one of all their rows, got {a[worst]:g} + "
            f"{b[worst]:g} > {both[worst]:g} for the rows {_rows(first[worst])} and {_rows(second[worst])}; "
            "set superadditive=False"
        )


def _check_linear(task: Task, sums: FloatArray) -> None:
    worst = int(np.argmax(np.abs(task.costs(sums) - sums.min(axis=1))))
    if abs(task.costs(sums)[worst] - sums[worst].min()) > _tolerance(sums):
        raise InvalidParameterError(
            f"task {task.name!r}: with linear=True the cost must be the least of the sums, got "
            f"{task.costs(sums)[worst]:g} for {sums[worst].tolist()}; set linear=False"
        )


def _rows(member: FloatArray) -> list[int]:
    return [int(row) for row in np.flatnonzero(member)[:8]]
