"""What the parts of the OSST experiments share: lambdas, folds, and our trees on all rows of a set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from _osst_models import MIN_ROWS, Data, load, our_tree, rows
from _results import Results
from sklearn.model_selection import StratifiedKFold

COMPLEXITIES = (0.1, 0.05, 0.01, 0.005, 0.0025, 0.001, 0.0005, 0.00025, 0.0001, 0.00005, 0.000025, 0.00001)
FOLD_SETS = ("churn", "credit", "employee", "maintenance", "servo")


def whole(options: Any, results: Results, name: str, depth: int, least_rows: int = MIN_ROWS) -> list[dict]:
    """Our trees on all rows of a set, for every complexity."""
    data = load(options.data, name)
    rows_asked = "" if least_rows == MIN_ROWS else f" rows {least_rows}"
    return [
        results.get(
            f"times {name} {depth} {c:g} {options.time_limit:g}{rows_asked}",
            lambda c=c: our_tree(data, data, depth, c, options.time_limit, least_rows=least_rows),
        )
        for c in complexities(options)
    ]


def five_folds(data: Data) -> Iterator[tuple[Data, Data]]:
    """Five seeded folds, stratified by event."""
    for a, b in StratifiedKFold(5, shuffle=True, random_state=2023).split(data[0], data[2]):
        yield rows(data, a), rows(data, b)


def chosen(options: Any, table: dict) -> list:
    """The data sets asked for, of a table of printed numbers."""
    return [(name, printed) for name, printed in table.items() if not options.sets or name in options.sets]


def complexities(options: Any) -> tuple[float, ...]:
    """Complexities asked for, the largest first."""
    return tuple(options.complexity or ((0.05, 0.01, 0.0025) if options.quick else COMPLEXITIES))


def ended(cases: list[dict]) -> str:
    """How many of the searches ended with a proof."""
    return f"{sum(case['status'] == 'optimal' for case in cases)} of {len(cases)}"


def medians(cases: list[dict], keys: tuple[str, ...]) -> dict[str, float]:
    """The median of each key."""
    return {key: float(np.median([case[key] for case in cases])) for key in keys}
