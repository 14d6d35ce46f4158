"""Names that the template modules read and `compile` sets: declarations only, never executed.

They tell readers and type checkers what a template may call. The functions are compiled.
"""

from __future__ import annotations

from collections.abc import Callable

leaf_costs: Callable[..., None]
"""(sums, n, out) or, where ``parametric``, (sums, n, out, parameters): the task's leaf cost."""

parametric: bool
"""Whether the leaf cost takes the numbers ``problem.parameters`` too."""

leaf_points: Callable[..., None]
"""(sums, weights (L, D, K), out (L, D)): objectives of a leaf under each label, for `listing.py`."""
