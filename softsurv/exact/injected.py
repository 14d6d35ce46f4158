"""Names that the template modules read and `compile.specialise` sets: declarations only, never executed.

They tell readers and type checkers what a template may call. The functions are compiled.
"""

from __future__ import annotations

from collections.abc import Callable

leaf_costs: Callable[..., None]
"""(sums, n, out): the task's leaf cost."""

price: Callable[..., None]
"""(problem, batch, n, cost): leaf costs with the cost per leaf and the limit on rows per leaf."""

sum_sides: Callable[..., None]
"""(problem, local): sums and leaf costs of both sides of every split of a localised subset."""

solve_one: Callable[..., None]
"""(problem, rows, n, local): the best single split of one subset."""

solve_two: Callable[..., None]
"""(problem, rows, n, local): the base case over one subset."""

solve_lanes: Callable[..., None]
"""(problem, local, lanes, passes): the base case over eight or sixteen subsets at once."""
