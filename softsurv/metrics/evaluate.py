"""The four measures of one model on one test fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray
from softsurv.data.spells import observed
from softsurv.errors import EvaluationWarning, InvalidParameterError, NoComparablePairsError, warn
from softsurv.metrics.auc import cumulative_dynamic_auc
from softsurv.metrics.brier import Scale, integrated_brier_score
from softsurv.metrics.concordance import TiedTimes, count_pairs
from softsurv.metrics.entering import entry_distribution
from softsurv.metrics.predicted import log_hazard_of, warn_of_long_steps
from softsurv.metrics.ranges import (
    EvaluationRange,
    checked_matrix,
    evaluation_range,
    survival_from_log_cumulative_hazard,
)
from softsurv.nonparametric import StepFunction, as_exact, censoring_survival, checked_columns, in_interval

if TYPE_CHECKING:
    from softsurv.data.survival_data import SurvivalData

MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")
"""Names of the four measures, by which models are compared."""


def evaluate(
    train_time: ArrayLike,
    train_event: ArrayLike,
    test_time: ArrayLike,
    test_event: ArrayLike,
    log_cumulative_hazard: Callable[[FloatArray], ArrayLike] | None = None,
    *,
    survival: Any = None,
    survival_times: ArrayLike | None = None,
    train_weight: ArrayLike | None = None,
    train_entry: ArrayLike | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Discrimination and calibration of predicted curves on a test fold.

    Parameters
    ----------
    train_time, train_event : array_like, shape (K,)
        Training fold: the censoring curve G is estimated on it alone.
    test_time, test_event, log_cumulative_hazard, **options
        As in `evaluate_with_censoring`, as are the result, errors and warnings.
    survival, survival_times : optional
        Predicted survival of the test subjects instead of ``log_cumulative_hazard``, in any form that
        `log_hazard_of` takes: a matrix with its times, a frame of lifelines, step functions of scikit-survival. An
        `EvaluationWarning` tells of curves given at too few times, or not to the end: they count as constant there.
    train_weight, train_entry : array_like, shape (K,), optional
        Case weights and left-truncation times for the estimate of G.

    Examples
    --------
    >>> time, event, x = [1.0, 2.0, 3.0, 4.0], [1, 1, 1, 0], np.array([2.0, 1.0, 0.5, 0.1])
    >>> result = evaluate(time, event, time, event, lambda times: np.log(np.outer(x, times)))
    >>> result["harrell_c"], result["n"], result["range"]
    (1.0, 4, (1.0, 3.0))
    >>> evaluate(time, event, time, event, survival=np.exp(-np.outer(x, time)), survival_times=time)["harrell_c"]
    1.0
    """
    if (survival is None) == (log_cumulative_hazard is None):
        raise InvalidParameterError("give log_cumulative_hazard or survival, and not both")
    curves = log_cumulative_hazard or log_hazard_of(survival, survival_times)
    if survival is not None:
        known, happened, _, _ = checked_columns(train_time, train_event)
        warn_of_long_steps(survival, survival_times, np.unique(known[happened]))
    censoring = censoring_survival(train_time, train_event, train_weight, train_entry)
    return evaluate_with_censoring(censoring, test_time, test_event, curves, **options)


def evaluate_with_censoring(
    censoring: StepFunction,
    time: ArrayLike,
    event: ArrayLike,
    log_cumulative_hazard: Callable[[FloatArray], ArrayLike],
    *,
    entry: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    times: ArrayLike | None = None,
    n_times: int = 100,
    scale: Scale = "time",
    tied_event_times: TiedTimes = "ignore",
    tied_censoring: TiedTimes = "ignore",
) -> dict[str, Any]:
    """Discrimination and calibration on a test fold, for a censoring curve kept from training.

    Parameters
    ----------
    censoring : StepFunction
        G of the training fold, from `softsurv.nonparametric.censoring_survival`.
    time, event : array_like, shape (N,)
        Test fold.
    log_cumulative_hazard : callable
        Takes times (T,), returns log H (N, T) of the test subjects; -inf and inf are allowed.
    entry, upper, weight : array_like, shape (N,), optional
        Late entry, ends of intervals and sample weights of the test fold, as in `SurvivalData`. Sample weights count
        in every measure. With late entry, concordance compares only subjects under observation together, and
        ``uno_c``, ``cd_auc`` and ``ibs`` weigh by the inverse of A(t) G(t), the chances of having entered
        (`entry_distribution` of the test fold) and of not being censored. Intervals are not corrected for: a warning
        says so.
    times, n_times
        Grid for cd_auc and ibs, see `evaluation_range`: by default ``n_times`` equally spaced times
        from the smallest test time to the largest below the maximum that G supports.
    scale : {"time", "log"}
        Scale of the Brier integral, see `integrated_brier_score`.
    tied_event_times, tied_censoring : {"ignore", "count"}
        See `harrell_c`.

    Returns
    -------
    dict
        ``harrell_c`` (all events), ``uno_c`` (events up to the end of the range), ``cd_auc``, ``ibs``;
        ``n`` and ``events`` of the test fold; and what they rest on: ``range`` (first and last grid
        time), ``n_times``, ``n_beyond`` and ``events_beyond`` (test subjects and test events after the
        range). Plain numbers throughout.

    Raises
    ------
    NoComparablePairsError
        If no pair of test subjects can be ordered.
    InvalidTimesError
        If the folds leave no span of time to evaluate on.

    Warns
    -----
    EvaluationWarning
        If some of the wanted ``times`` are not attainable, and if the fold has intervals.
    """
    time_, event_, _, _ = checked_columns(time, event)
    warn_of_ignored(event_, upper)
    pairs = count_pairs(
        time_,
        event_,
        log_cumulative_hazard,
        tied_event_times=tied_event_times,
        tied_censoring=tied_censoring,
        entry=entry,
        weight=weight,
    )
    harrell = pairs.concordance()  # first: a fold without pairs has no range either
    entering = entry_distribution(time_, entry, weight)
    span = evaluation_range(time_, event_, censoring, times, n_times)
    after = float(np.nextafter(span.upper, np.inf))  # tau is exclusive, the range inclusive
    log_hazard = checked_matrix("log_cumulative_hazard", log_cumulative_hazard(span.times), time_.size, span.times.size)
    survival = survival_from_log_cumulative_hazard(log_hazard)
    _, cd_auc = cumulative_dynamic_auc(time_, event_, log_hazard, span.times, censoring, weight, entry)
    return {
        "harrell_c": harrell,
        "uno_c": pairs.concordance(pairs.uno_weight(censoring, after, entering)),
        "cd_auc": cd_auc,
        "ibs": integrated_brier_score(time_, event_, survival, span.times, censoring, scale, weight, entry),
    } | facts_of_fold(event_, span)


def facts_of_fold(event: BoolArray, span: EvaluationRange) -> dict[str, Any]:
    """What the measures of a fold rest on; ``event`` (N,)."""
    return {
        "n": int(event.size),
        "events": int(event.sum()),
        "range": (span.lower, span.upper),
        "n_times": int(span.times.size),
        "n_beyond": span.n_beyond,
        "events_beyond": span.events_beyond,
    }


def training_censoring(data: SurvivalData) -> StepFunction:
    """G of a training fold, from `softsurv.nonparametric.censoring_survival`.

    A row whose event lies in an interval was watched up to the interval's end and left by its event there. A row that
    another of its subject follows is no censoring.
    """
    return censoring_of(outcome(observed(data)))


def censoring_of(fold: Mapping[str, Any]) -> StepFunction:
    """G from columns (N,) or None by name, as `SurvivalData.outcomes` gives them."""
    time, event = times_of(fold)
    return censoring_survival(time, event, fold["weight"], fold["entry"])


def times_known(data: SurvivalData) -> tuple[FloatArray, BoolArray]:
    """Time of each row and whether it is that of an event, both (N,); an interval's event is known at its end."""
    return times_of(data.outcomes())


def times_of(fold: Mapping[str, Any]) -> tuple[FloatArray, BoolArray]:
    """As `times_known`, from columns (N,) or None by name, as `SurvivalData.outcomes` gives them."""
    return as_exact(fold["time"], fold["event"], fold["upper"], 1.0)


def outcome(data: SurvivalData, floor: float = 0.0) -> dict[str, Any]:
    """What `evaluate_with_censoring` takes of a fold: time, event, entry, upper and weight, (N,) or None.

    ``floor`` stands for time 0, or half the smallest positive time of the fold if that is less: the order stays.
    """
    known = data.outcomes()
    time = known["time"]
    least = min(floor, 0.5 * time[time > 0].min(initial=np.inf))
    return known | {"time": np.where(time > 0, time, least)}


def warn_of_ignored(event: ArrayLike, upper: ArrayLike | None) -> None:
    """Say that the measures take events in intervals for censorings; both (N,).

    Raises
    ------
    NoComparablePairsError
        If no other event is left.
    """
    if in_interval(event, upper).any():
        if not np.asarray(event).any():
            raise NoComparablePairsError(
                "every event is known only to lie in an interval (upper), and the measures need some at a known time; "
                "judge a soft tree by tree.log_likelihood(data), which softsurv report shows"
            )
        warn(
            "an event known only to lie in an interval (upper) counts in the measures as censored at the interval's "
            "lower end",
            EvaluationWarning,
        )
