"""The measures of one model on a fold whose events have causes, or whose subjects have several rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import EvaluationWarning, warn
from softsurv.metrics.brier import Scale
from softsurv.metrics.competing import (
    auc_incidence,
    integrated_brier_score_incidence,
    without_other_causes,
)
from softsurv.metrics.concordance import PairCounts, Risk, TiedTimes, count_pairs
from softsurv.nonparametric import StepFunction, checked_columns

Incidence = Callable[[FloatArray, int], ArrayLike]
"""Times (T,) and the code of a cause to the cumulative incidences (N, T)."""


@runtime_checkable
class ByCause(Protocol):
    """Incidences that know how those of one cause are compared best."""

    def of_cause(self, code: int) -> Callable[[FloatArray], FloatArray]:
        """What ranks the subjects in the concordance of the cause 1..K."""
        ...


def by_code(incidences: Callable[[FloatArray], FloatArray]) -> Incidence:
    """The incidence of one cause from a function that gives those of all, (N, T, K)."""
    return lambda times, code: incidences(np.asarray(times, dtype=float))[..., code - 1]


ONE_ROW_EACH = (
    "uno_c, cd_auc, ibs and the AUC and Brier score by cause need one row for each subject: they are None for subjects "
    "with several rows; concordance compares the rows at risk at each event"
)


def evaluate_causes(
    censoring: StepFunction,
    time: ArrayLike,
    cause: ArrayLike,
    incidence: Incidence,
    names: Sequence[str],
    times: ArrayLike,
    *,
    entry: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    scale: Scale = "time",
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
) -> dict[str, dict[str, Any]]:
    """Concordance, AUC and integrated Brier score of each cause.

    Parameters
    ----------
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival` of all events.
    time, cause : array_like (N,)
        Test fold; ``cause`` is 0 where censored, else the code 1..K of what happened.
    incidence : callable
        Takes times (T,) and a code, returns the cumulative incidences (N, T) of that cause. Of `SharedIncidences` only
        the curves that differ are compared.
    names : sequence of str (K,)
    times : array_like (T,)
        Grid of AUC and Brier score.
    entry, weight, scale, tied_event_times, tied_censoring
        As in `evaluate_with_censoring`.

    Returns
    -------
    dict
        For each name ``concordance`` (`cause_specific_concordance`), ``auc`` (mean of `auc_incidence`), ``ibs``
        (`integrated_brier_score_incidence`) and ``events``. ``concordance`` is None where no pair can be ordered,
        ``auc`` where the fold has no event of the cause up to the last time.
    """
    time_, _, _, _ = checked_columns(time, np.asarray(cause) > 0)
    codes, grid = np.asarray(cause), np.asarray(times, dtype=float)
    ties = {"tied_event_times": tied_event_times, "tied_censoring": tied_censoring}
    at_risk = {"entry": entry, "weight": weight}
    found = {}
    for code, name in enumerate(names, start=1):
        curves = np.asarray(incidence(grid, code))
        measured = ((codes == code) & (time_ <= grid[-1])).any()  # somebody is free of events after the grid's end
        found[name] = {
            "concordance": _concordance(time_, codes, incidence, code, at_risk | ties),
            "auc": auc_incidence(time_, codes, curves, grid, censoring, code, **at_risk)[1] if measured else None,
            "ibs": integrated_brier_score_incidence(time_, codes, curves, grid, censoring, code, scale, **at_risk),
            "events": int((codes == code).sum()),
        }
    return found


def evaluate_histories(
    time: ArrayLike,
    event: ArrayLike,
    log_cumulative_hazard: Callable[[FloatArray], ArrayLike],
    subject: ArrayLike,
    *,
    entry: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    cause: ArrayLike | None = None,
    incidence: Incidence | None = None,
    names: Sequence[str] = (),
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
) -> dict[str, Any]:
    """Concordance of subjects that have several rows, each (entry, time] with its own covariates.

    Parameters
    ----------
    time, event, entry, weight, log_cumulative_hazard
        Rows of the test fold, as in `evaluate_with_censoring`.
    subject : array_like (N,)
        Subject of each row.
    cause, incidence, names
        As in `evaluate_causes`, where events have causes.
    tied_event_times, tied_censoring
        See `harrell_c`.

    Returns
    -------
    dict
        The keys of `evaluate_with_censoring`, with None for the measures that need one row for each subject, and
        ``subjects``. ``range`` is from the first to the last event. With causes ``causes``, as `evaluate_causes`.

    Raises
    ------
    NoComparablePairsError
        If no event has anybody at risk beside it.

    Warns
    -----
    EvaluationWarning
        That the other measures are left out.

    Notes
    -----
    At each event its subject is compared with the rows at risk then, entry < t <= time: each at the covariates that it
    has at t. Where nothing changes within a subject this is `harrell_c` of one row for each.
    """
    warn(ONE_ROW_EACH, EvaluationWarning)
    time_, event_, _, entry_ = checked_columns(time, event, entry=entry)
    ends = ends_at_risk(time_, event_, subject, entry_)
    how: dict[str, Any] = {
        "tied_event_times": tied_event_times,
        "tied_censoring": tied_censoring,
        "entry": entry,
        "weight": weight,
    }
    pairs = count_pairs(ends, event_, log_cumulative_hazard, **how)
    result: dict[str, Any] = {"harrell_c": pairs.concordance()} | facts_of_histories(pairs, event_, subject)
    if cause is not None and incidence is not None:
        codes = np.asarray(cause)
        result["causes"] = {
            name: {
                "concordance": _concordance(ends, codes, incidence, code, how),
                "auc": None,
                "ibs": None,
                "events": int((codes == code).sum()),
            }
            for code, name in enumerate(names, start=1)
        }
    return result


def ends_at_risk(time: FloatArray, event: ArrayLike, subject: ArrayLike, entry: ArrayLike | None) -> FloatArray:
    """Ends (N,) of the rows, a moment later where the subject goes on: it is still at risk at the end of such a row."""
    starts = np.zeros(time.size) if entry is None else np.maximum(np.asarray(entry, dtype=float), 0.0)
    who = np.unique(np.asarray(subject), return_inverse=True)[1]
    order = np.lexsort((starts, who))
    before, after = order[:-1], order[1:]
    goes_on = (who[before] == who[after]) & (time[before] == starts[after]) & ~np.asarray(event, dtype=bool)[before]
    ends = time.copy()
    ends[before[goes_on]] = np.nextafter(time[before[goes_on]], np.inf)
    return ends


def pairs_of_cause(
    ends: FloatArray, codes: IntArray, risk: Risk, code: int, how: dict[str, Any]
) -> tuple[FloatArray, PairCounts] | None:
    """Until when each row (N,) is compared in the concordance of one cause, and the pairs; None where there are none.

    ``how`` holds further arguments of `count_pairs`.
    """
    if not (codes == code).any():
        return None
    later = without_other_causes(ends, codes, code)
    pairs = count_pairs(later, codes == code, risk, **how)
    return (later, pairs) if (pairs.comparable + pairs.tied_events).any() else None


def _concordance(time: FloatArray, codes: Any, incidence: Incidence, code: int, how: dict[str, Any]) -> float | None:
    """Concordance of one cause; None where no pair can be ordered."""
    risk = incidence.of_cause(code) if isinstance(incidence, ByCause) else lambda t: incidence(t, code)
    found = pairs_of_cause(time, codes, risk, code, how)
    return None if found is None else found[1].concordance()


def facts_of_histories(pairs: PairCounts, event: ArrayLike, subject: ArrayLike) -> dict[str, Any]:
    """What the measures of subjects with several rows rest on, and None for those that they have not; columns (N,)."""
    return {
        **dict.fromkeys(("uno_c", "cd_auc", "ibs")),
        "n": int(np.size(event)),
        "events": int(np.sum(event)),
        "range": (float(pairs.time[0]), float(pairs.time[-1])),
        "n_times": 0,
        "n_beyond": 0,
        "events_beyond": 0,
        "subjects": int(np.unique(np.asarray(subject)).size),
    }
