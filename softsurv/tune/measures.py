"""Measures of a fit on held-out rows: of all events, or by cause."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.metrics.fairness import curve_gap
from softsurv.stopping import many_fits

DIRECTIONS: dict[str, Literal["maximize", "minimize"]] = {
    "harrell_c": "maximize",
    "uno_c": "maximize",
    "cd_auc": "maximize",
    "ibs": "minimize",
    "fairness": "minimize",
}
"""Measures and their better direction. "fairness" is the mean gap between two groups' mean survival curves."""

BY_CAUSE = {"harrell_c": "concordance", "cd_auc": "auc", "ibs": "ibs"}
"""Measures that exist by cause, and their names in ``evaluate(...)["causes"]``."""


def check_measures(measures: Sequence[str], data: SurvivalData, interest: int | str | None) -> None:
    """Refuse measures that these rows do not have.

    Raises
    ------
    InvalidParameterError, InvalidSurvivalDataError
    """
    for name in measures:
        if name not in DIRECTIONS:
            raise InvalidParameterError(f"measures must be of {', '.join(DIRECTIONS)}, got {name!r}")
    if not measures or len(set(measures)) < len(measures):
        raise InvalidParameterError(f"measures must be one or more different names, got {list(measures)}")
    if "fairness" in measures:
        found = 0 if data.group is None else data.group.unique().numel()
        if found != 2:
            raise InvalidSurvivalDataError(
                f"the measure fairness compares two groups, got {found}; name the group column, with two levels"
            )
    if data.n_subjects < data.n and (several := [name for name in measures if name != "harrell_c"]):
        raise InvalidParameterError(
            f"measures must be harrell_c alone where features change within subjects, got {several[0]!r}; "
            "the others need one row for each subject"
        )
    if interest is not None and data.cause is None:
        raise InvalidParameterError(
            f"interest names one of several causes, got {interest!r} for data without; leave it"
        )
    if data.cause is not None and "uno_c" in measures:
        raise InvalidParameterError("measures by cause are harrell_c, cd_auc and ibs, got 'uno_c'; leave it out")


@many_fits()
def fit_and_measure(model: Any, train: SurvivalData, test: SurvivalData, interest: str | None) -> dict[str, Any]:
    """Measures of a fold, without its warnings, as they would concern a part of the rows only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(clone(model).fit(train), test, interest)


def measured(fitted: Any, test: SurvivalData, interest: str | None) -> dict[str, Any]:
    """Measures of a fitted estimator on held-out rows."""
    result = counted(fitted.evaluate(test), interest)
    group = test.group
    if group is not None and group.unique().numel() == 2 and result["n_times"]:
        times = np.linspace(result["range"][0], result["range"][1], result["n_times"])
        curves = fitted.predict_survival_function(test.X, times)
        result["fairness"] = curve_gap(curves, times, (group == group.max()).numpy(), test.weight).mean
    return result


def counted(result: dict[str, Any], interest: str | None) -> dict[str, Any]:
    """Measures of held-out rows; where there are causes, those by cause replace those of all events."""
    return result | _by_cause(result["causes"], interest) if "causes" in result else result


def _by_cause(causes: dict[str, dict[str, Any]], interest: str | None) -> dict[str, float | None]:
    """The measures of the cause of interest, or their means over the causes that the fold can measure."""
    counted = list(causes) if interest is None else [interest]
    found: dict[str, float | None] = {"uno_c": None}
    for name, own in BY_CAUSE.items():
        values = [causes[cause][own] for cause in counted if causes[cause][own] is not None]
        found[name] = float(np.mean(values)) if values else None
    return found


def mean_over_folds(folds: Sequence[dict[str, Any]], name: str) -> float:
    """Mean of a measure over the folds that have it.

    Raises
    ------
    InvalidSurvivalDataError
        If no fold has it.
    """
    values = [fold[name] for fold in folds if fold.get(name) is not None]  # a fold may have met one group alone
    if not values:
        few = "rows of a group" if name == "fairness" else "events of the cause"
        raise InvalidSurvivalDataError(
            f"{name} could be measured on none of {len(folds)} folds: too few {few}; choose fewer folds"
        )
    return float(np.mean(values))
