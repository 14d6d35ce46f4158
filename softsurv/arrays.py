"""Names of the array types that signatures use, and an argument as a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def as_time(value: Any) -> float:
    """A time as a number, nan where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
