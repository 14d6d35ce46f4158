"""The compiled entries of the Brier-score search: their names on disk change with every file compiled into them."""

from __future__ import annotations

from softsurv.exact.jit import array_entry

COMPILED = "base_case", "bit_columns", "bounds", "coarse", "jit", "leaf_costs", "table"

entry = array_entry("kernels/words.py", "jit.py", *(f"brier/{name}.py" for name in COMPILED))
