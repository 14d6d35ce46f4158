"""The measures of a fitted survival tree on held-out rows, for every kind of outcome."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, did_you_mean
from softsurv.metrics.concordance import harrell_c
from softsurv.metrics.evaluate import evaluate_with_censoring, warn_of_ignored
from softsurv.metrics.histories import ends_at_risk, evaluate_causes, evaluate_histories

_OF_ONE_ROW = ("times", "n_times", "scale")
"""Options of measures that need one row for each subject."""

_OPTIONS = (*_OF_ONE_ROW, "tied_event_times", "tied_censoring")
"""All options of the measures."""


def evaluate_fitted(tree: Any, data: SurvivalData, options: dict[str, Any]) -> dict[str, Any]:
    """What ``evaluate`` of a survival tree returns; ``options`` are those of `evaluate_with_censoring`."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"evaluate has no argument {name!r}{did_you_mean(name, _OPTIONS)}")
    data = data.joined()
    known, prepared = tree._outcome(data), tree._prepare(data.X)
    log_hazard = tree._log_hazard_of(prepared)
    codes, incidence = None if data.cause is None else causes_of(tree, data), tree._incidence_of(prepared)
    if data.n_subjects < data.n:
        if given := [name for name in _OF_ONE_ROW if name in options]:
            raise InvalidParameterError(
                f"{given[0]} belongs to measures that need one row for each subject, got {data.n} rows of "
                f"{data.n_subjects} subjects; leave it out"
            )
        warn_of_ignored(known["event"], known.pop("upper"))
        assert data.subject is not None
        causes = {} if codes is None else {"cause": codes, "incidence": incidence, "names": tree.cause_names_}
        who = data.subject.cpu().numpy()
        return evaluate_histories(**known, log_cumulative_hazard=log_hazard, subject=who, **causes, **options)
    result = evaluate_with_censoring(tree.censoring_, **known, log_cumulative_hazard=log_hazard, **options)
    if codes is not None:
        grid = _grid(result, options.pop("times", None))
        how = {"entry": known["entry"], "weight": known["weight"]} | {
            k: v for k, v in options.items() if k != "n_times"
        }
        names = tree.cause_names_
        result["causes"] = evaluate_causes(tree.censoring_, known["time"], codes, incidence, names, grid, **how)
    return result


def score_fitted(tree: Any, data: SurvivalData) -> float:
    """Harrell's concordance of a fold; of several rows of a subject those at risk at each event."""
    data = data.joined()
    known = tree._outcome(data)
    warn_of_ignored(known["event"], known["upper"])
    time = known["time"]
    if data.subject is not None:
        time = ends_at_risk(time, known["event"], data.subject.cpu().numpy(), known["entry"])
    at_risk = {name: known[name] for name in ("entry", "weight")}
    return harrell_c(time, known["event"], tree._log_hazard_of(tree._prepare(data.X)), **at_risk)


def causes_of(tree: Any, data: SurvivalData) -> IntArray:
    """Causes (N,) of a fold in the codes of the tree.

    Raises
    ------
    InvalidParameterError
        If the tree was fitted to one kind of event, or not to a cause of the fold.
    """
    assert data.cause is not None
    names = tree.cause_names_
    if not names:
        raise InvalidParameterError(
            f"the tree was fitted to one kind of event, got data with the causes {list(data.cause_names)}; "
            "evaluate data.of_cause(...), or fit with cause="
        )
    codes = data.cause.cpu().numpy()
    if data.cause_names == tuple(str(k) for k in range(1, data.n_causes + 1)) and data.n_causes <= len(names):
        return codes
    if strange := [name for name in data.cause_names if name not in names]:
        raise InvalidParameterError(f"cause must be one of those of the tree {list(names)}, got {strange[0]!r}")
    return np.array([0, *(names.index(name) + 1 for name in data.cause_names)])[codes]


def _grid(result: dict[str, Any], times: Any) -> FloatArray:
    """The grid (T,) that the measures of a result rest on."""
    first, last = result["range"]
    if times is None:
        return np.linspace(first, last, result["n_times"])
    wanted = np.asarray(times, dtype=float)
    return wanted[(wanted >= first) & (wanted <= last)]
