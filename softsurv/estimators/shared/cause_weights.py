"""``cause_weights`` of the survival trees: how much each cause counts where a tree is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray
from softsurv.data.histories import cause_code
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import number


def cause_weights(given: Any, names: tuple[str, ...]) -> FloatArray:
    """How often each cause counts, (K,): ones, one cause alone, or as given by name."""
    if not names:
        if given is not None:
            raise InvalidParameterError(f"cause_weights needs data with causes, got {given!r}; pass cause= to fit")
        return np.ones(1)
    if given is None:
        return np.ones(len(names))
    if not isinstance(given, (Mapping, str, int, np.integer)):
        raise InvalidParameterError(
            f"cause_weights must map causes to weights, such as {{{names[0]!r}: 1.0}}, or name one, got {given!r}"
        )
    weights, asked = np.zeros(len(names)), dict[Any, float](given if isinstance(given, Mapping) else {given: 1.0})
    known = dict[int, Any]()
    for cause, weight in asked.items():
        number("cause_weights", weight, 0.0)
        code = cause_code(cause, names)
        if code in known:
            raise InvalidParameterError(
                f"cause_weights must weigh each cause once, got {known[code]!r} and {cause!r} for one; drop one of them"
            )
        known[code], weights[code - 1] = cause, weight
    if not weights.any():
        raise InvalidParameterError(f"cause_weights must be > 0 for some cause, got {given!r}")
    return weights
