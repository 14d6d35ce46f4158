"""Names that the template modules read and `compile.specialise` sets: declarations only, never executed.

They tell readers and type checkers what a template may call. The functions are compiled.
"""

from __future__ import annotations

from collections.abc import Callable

leaf_costs: Callable[..., None]
"""(sums, n, out) or, where ``parametric``, (sums, n, out, parameters): the task's leaf cost."""

price: Callable[..., None]
"""(problem, batch, n, cost): leaf costs with the cost per leaf and the limit on rows per leaf."""

price_sides: Callable[..., None]
"""(problem, local): leaf costs of both sides of every split from their sums."""

best_roots: Callable[..., None]
"""(problem, local): the best trees with 1 to 4 leaves from leaves and stumps."""

linear: bool
"""Whether the leaf cost is the least of its sums."""

parametric: bool
"""Whether the leaf cost takes the numbers ``problem.parameters`` too."""

branching: bool
"""Whether splits cost something (`split_costs.py`); the code for it is left out of the kernels of all other tasks."""

has_lanes: bool
"""Whether the base case runs over eight subsets at once below nodes of depth three."""

sum_sides: Callable[..., None]
"""(problem, local): sums and leaf costs of both sides of every split of a localised subset."""

solve_one: Callable[..., None]
"""(problem, rows, n, local): the best single split of one subset."""

solve_two: Callable[..., None]
"""(problem, rows, n, local): the base case over one subset."""

solve_lanes: Callable[..., None]
"""(problem, local, lanes, passes): the base case over eight or sixteen subsets at once."""

solve: Callable[..., float]
"""The recursion of `recursion.py`."""

leaf_points: Callable[..., None]
"""(sums, weights (L, D, K), out (L, D)): objectives of a leaf under each label, for `listing.py`."""
