"""What the exact engine asks of an objective: the contract of a task.

A *task* is the objective of an optimal tree, written as a declaration. The engine (`softsurv.exact.search`)
knows nothing about survival or classes; it minimises, over trees with limits on depth, leaves and rows per leaf,

    sum over leaves of  leaf_cost(sum over the rows of the leaf of their statistics)  +  complexity * leaves.

The statistics are a float vector per row (K columns) and must be *additive*: the vector of a leaf is the sum of
the vectors of its rows, whatever their order. The leaf cost is a compiled function of that sum alone.

How a task reaches compiled speed
---------------------------------
The engine is compiled once for all tasks and calls the leaf cost through its address, a batch of leaves at a time.
Numba keeps a compiled function on disk only when the functions it calls are globals of its module. So
`compile.price_of(task)` executes the template module `base_cases/task_costs.py` under a name of its own, with the
task's function among its globals. Each task, a user's own included, is compiled once per machine and again only when it
or the engine changes.

The leaf cost works on a *batch* of leaves, ``leaf_costs(sums, n, out)``: ``sums`` is (K, >= n), one leaf per
column, and ``out`` (>= n,) takes the costs. One plain loop over ``n`` without branches lets the compiler use the
vector unit, which is worth a factor of ten; `per_leaf` turns a function of one leaf into a batch function.

    @njit(**FAST)
    def squared_error(sums, n, out):          # statistics: weight, weight * y, weight * y^2
        for i in range(n):
            weight = max(sums[0, i], 1e-300)
            out[i] = sums[2, i] - sums[1, i] * sums[1, i] / weight

    task = Task("squared_error", 3, squared_error)
    search = Search(task, codes, n_codes, nominal, np.column_stack([np.ones(n), y, y**2]))
    search.solve(depth=4).tree

What the engine guarantees to the leaf cost
-------------------------------------------
- Sums are exact: before the search every column is rounded to a power-of-two grid fine enough that all sums of rows
  are exact in float64 (`problem.round_to_grid`, relative step about 2**-52 of the column's total). So sums taken by
  adding or by subtracting rows agree to the last bit, and a column that should be 0 is 0.
- An empty leaf may be asked for (all sums 0): the cost must then be 0 (not NaN).

What the task promises
----------------------
- ``superadditive``: cost(A u B) >= cost(A) + cost(B) for disjoint sets of rows. It holds whenever the cost is the
  minimum over leaf labels of a loss that adds over rows. It switches on the equivalent-points bound and the
  interval bound (`bounds.py` has the proofs). Without it the search stays exact and only slower.
- Costs are >= 0 once the ``offset`` of the rows, given to `Search`, is added: the part that no split changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Task:
    """An objective for the exact engine.

    Attributes
    ----------
    name : str
        A Python identifier; part of the names of the compiled kernels.
    n_statistics : int or None
        K, the columns of the additive statistics; None where the leaf cost takes any number of columns.
    leaf_costs : compiled function (sums (K, >= n), n, out (>= n,)) -> None
        Cost of n leaves, one per column of ``sums``, written to ``out``. An empty leaf costs 0.
    superadditive : bool
        Whether cost(A u B) >= cost(A) + cost(B) for disjoint A, B: switches on the bounds that rest on it.
    linear : bool
        Whether the leaf cost is the least of its sums, so that a number added to all sums is added to the cost.
    parametric : bool
        Whether ``leaf_costs`` takes numbers that are known at run time as a fourth argument, (M,): one compilation
        serves all of them.
    floor : function (statistics (U, K), parameters (M,)) -> (U,), optional
        Least that each row adds to the cost of any leaf. If the task is ``superadditive``, the cost of the row as a
        leaf is such a number, and no function is needed.
    """

    name: str
    n_statistics: int | None
    leaf_costs: Callable[..., Any]
    superadditive: bool = True
    linear: bool = False
    parametric: bool = False
    floor: Callable[..., np.ndarray] | None = None

    def digest(self) -> str:
        """Ten hex digits that change with the bytecode of the leaf cost, so that a changed task is compiled again."""
        parts = (content_of(self.leaf_costs), self.parametric)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:10]

    def costs(self, sums: np.ndarray, parameters: np.ndarray | None = None) -> np.ndarray:
        """Cost of leaves whose statistics sum to the rows of ``sums`` (L, K), as an array (L,)."""
        out = np.empty(len(sums))
        more = (parameters,) if self.parametric else ()
        self.leaf_costs(np.ascontiguousarray(sums.T, dtype=float), len(sums), out, *more)
        return out

    def worst(self, statistics: np.ndarray) -> np.ndarray:
        """Most that rows (C, W) can cost under any label, (C,); inf where the task does not say."""
        return statistics.max(axis=1) if self.linear else np.full(len(statistics), np.inf)


def content_of(function: Any) -> Any:
    """What decides the machine code of a function: its bytecode, constants, and the values that it closes over."""
    plain = getattr(function, "py_func", function)
    if not hasattr(plain, "__code__"):
        return repr(plain)
    code = plain.__code__
    cells = [content_of(cell.cell_contents) for cell in plain.__closure__ or ()]
    used = [
        content_of(plain.__globals__[name]) for name in code.co_names if hasattr(plain.__globals__.get(name), "py_func")
    ]
    return code.co_code, code.co_consts, code.co_names, cells, used


def per_leaf(cost: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of one leaf, ``cost(sums)`` with sums (K,), into the batch function that a task needs."""
    one = cost if hasattr(cost, "py_func") else njit(cost)

    @njit
    def leaf_costs(sums, n, out):
        for i in range(n):
            out[i] = one(sums[:, i])

    return leaf_costs
