"""Names that the templates of the Pareto search read and `compile.specialise` sets: declarations only."""

from __future__ import annotations

from collections.abc import Callable

leaf_points: Callable[..., None]
"""(sums (K,), params, out (L, D)): objectives of a leaf under each label."""

leaf_cost: Callable[..., float]
"""(sums (K,), label, points (L, D), weights): reduced cost of one label."""

price: Callable[..., None]
"""(problem, weights, scratch, sums (K, >= n), n, work, out): least reduced cost over the labels of n leaves."""

price_two: Callable[..., None]
"""(problem, weights, scratch, level, depth): the base case, costs only."""

list_two: Callable[..., float]
"""(problem, weights, scratch, control, level, depth, upper): the base case, every tree below ``upper``."""
