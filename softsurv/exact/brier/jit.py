"""The compiled entries of the Brier-score search: their names on disk change with every file compiled into them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from softsurv.exact.entries import Entry
from softsurv.exact.jit import ARRAYS, array_entry, source_digest

COMPILED = "base_case", "bit_columns", "bounds", "coarse", "jit", "leaf_costs", "table", "tiles"

FILES = ("kernels/words.py", "kernels/views.py", "jit.py", *(f"brier/{name}.py" for name in COMPILED))

entry = array_entry(*FILES)

_digest = cache(partial(source_digest, FILES))


def entry_at_address(*arguments: Any, returns: Any = None) -> Callable[[Callable[..., Any]], Entry]:
    """Compile a function that other compiled code calls through its address."""
    return lambda function: Entry(function, arguments, returns, digest=_digest, options=ARRAYS)
