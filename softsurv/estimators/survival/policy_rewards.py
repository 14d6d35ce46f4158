"""Scores of treatments from censored outcomes, which `OptimalSurvivalPolicyTree.fit` computes before the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import as_tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.canonical import row_order
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, warn
from softsurv.estimators.separable.policy_tree import Rewards
from softsurv.estimators.separable.tree import TrainingTable
from softsurv.estimators.shared.inputs import as_numbers, checked_treatment, coded, refuse_other_order
from softsurv.estimators.survival.policy_models import (
    LEAST_TIMES,
    MOST_TIMES,
    Codes,
    folds_of,
    propensities,
    survival_curves,
)
from softsurv.estimators.survival.policy_scores import restricted_mean_scores
from softsurv.exact.memory import bytes_of
from softsurv.stopping import StopSignal

TABLE_COPIES = 3.5
"""Copies of the table while models are fitted: the frame, the training rows of a fold, and columns of a model."""

FINISHING = 4.0, 0.4
"""Time kept for scores and the start of the search: this multiple of the time of reading, at most this share of the
time limit."""

SCORED_A_SECOND = 4e7
"""Cells of a table of rows, times and treatments that are turned into scores in a second."""

SCORING_SHARE = 0.25
"""Share of the time limit for scores; if they would take more, survival is predicted at fewer times."""

SCORED_ANYHOW = 50_000
"""With so many rows or fewer, scores are computed even after the time limit: they take about half a second."""


@dataclass(frozen=True)
class RestrictedMeanScoring:
    """How treatments are scored; the fields are arguments of `OptimalSurvivalPolicyTree`."""

    method: str
    horizon: float
    survival_model: Any
    overlap: float
    n_folds: int
    seed: int

    def rewards(self, training: TrainingTable, y: Any, treatment: Any, propensity: Any) -> Rewards:
        """Score of every treatment for every training row, by models that have not seen the row."""
        weight = training.rows.weight
        data = survival_data(np.zeros((training.n_given, 1)), y).take(training.kept)
        time, event = data.time.numpy(), data.event.numpy()
        names, codes = read_treatments(training, treatment)
        frame = pd.DataFrame(training.table, index=range(training.rows.n))
        content = data._derive({"X": frame, "weight": as_tensor(weight)})  # the folds depend on it alone
        order = row_order(content, sorted(frame.columns))
        parts = folds_of(codes[order], event[order], int(self.n_folds), int(self.seed))
        folds: list[tuple[Codes, Codes]] = [(order[train], order[held_out]) for train, held_out in parts]
        curves = chance = None
        training.limits.room.check(TABLE_COPIES * bytes_of(training.table))
        most_times, scoring = times_in_time(data.n, len(names), training.limits.stop)
        stop = training.limits.stop.leaving(*FINISHING).ending_sooner(scoring)
        if self.method != "ips":
            require_events(names, codes[event])
            curves = survival_curves(
                frame, time, event, codes, weight, self.horizon, self.survival_model, folds, stop, most_times
            )
        if self.method != "direct":
            if propensity is None:
                chance = propensities(frame, codes, weight, folds, stop)
            else:
                chance = known_propensities(propensity, names, training)
            chance = raised_to_overlap(chance, self.overlap)
            require_possible(chance[np.arange(data.n), codes], training.kept)
        if data.n > SCORED_ANYHOW and training.limits.stop.exhausted:
            raise InvalidParameterError(
                f"time_limit must be longer than reading and modelling {data.n} rows takes, got one that ended before "
                "the scores; raise it, or leave rows out"
            )
        scores = restricted_mean_scores(
            self.method, time, event, codes, self.horizon, chance, curves, weight, names.tolist()
        )
        return Rewards(names, scores)


def times_in_time(n: int, treatments: int, stop: StopSignal) -> tuple[int, float]:
    """The number of times at which survival is predicted, and the seconds that the scores will then take."""
    at_each = n * (treatments + 2) / SCORED_A_SECOND  # the augmentation costs as much as two means
    if stop.deadline is None:
        return MOST_TIMES, 0.0
    room = SCORING_SHARE * (stop.deadline - stop.started)
    most = int(np.clip(room / at_each, LEAST_TIMES, MOST_TIMES))
    return most, min(most * at_each, room)


def read_treatments(training: TrainingTable, treatment: Any) -> tuple[NDArray[Any], IntArray]:
    """Names of the treatments (K,), and the one given to each training row (N,) as a place among them."""
    given = checked_treatment(treatment, training.n_given)
    names, codes = coded("treatment", given[training.kept])
    if len(names) < 2:
        raise InvalidParameterError("treatment must have at least two values, got one; there is nothing to choose")
    return names, codes


def require_events(names: NDArray[Any], seen: IntArray) -> None:
    """Refuse treatments without an observed event: no survival model can be fitted to them."""
    none = np.bincount(seen, minlength=len(names)) == 0
    if none.any():
        listed = ", ".join(str(name) for name in names[none])
        raise InvalidSurvivalDataError(
            f"event must be True in at least one row of every treatment, got none for {listed}; merge treatments, "
            'leave its rows out, or take method="ips", which needs no survival model'
        )


def known_propensities(propensity: Any, names: NDArray[Any], training: TrainingTable) -> FloatArray:
    """Given propensities of the treatments (K,) as (N, K)."""
    k = len(names)
    if isinstance(propensity, (pd.Series, pd.DataFrame)):
        of_treatments = propensity.index if propensity.ndim == 1 else propensity.columns
        refuse_other_order("propensity", of_treatments, names)
    wanted = f"propensity must be ({k},) or ({training.n_given}, {k}), one for each treatment"
    propensity = as_numbers("propensity", propensity)
    if np.ndim(propensity) == 0:
        raise InvalidSurvivalDataError(f"{wanted}, got {propensity!r}")
    table = check_array(propensity, ensure_2d=False, dtype=np.float64, input_name="propensity")
    if table.shape == (k,):
        table = np.tile(table, (training.n_given, 1))
    if table.shape != (training.n_given, k):
        raise InvalidSurvivalDataError(f"{wanted}, got {table.shape}")
    if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0)):
        raise InvalidSurvivalDataError("propensity must be >= 0 and sum to one in each row")
    return np.asarray(table[training.kept])


def raised_to_overlap(chance: FloatArray, overlap: float) -> FloatArray:
    """Propensities (N, K) of at least ``overlap``."""
    small = (chance < overlap).any(axis=1)
    if small.any():
        warn(
            f"{int(small.sum())} rows have a propensity below {overlap:g}, raised to it; leave out rows whose "
            "treatment was as good as certain",
            DataWarning,
        )
    return np.maximum(chance, max(overlap, np.finfo(float).tiny))


def require_possible(chance: FloatArray, kept: IntArray) -> None:
    """Refuse rows whose treatment had no chance: their scores are divided by it. Such rows are there without overlap.

    ``chance`` (N,) is that of the treatment given, ``kept`` (N,) the places of the rows.
    """
    none = chance <= np.finfo(float).tiny
    if none.any():
        raise InvalidSurvivalDataError(
            f"propensity must be > 0 for the treatment that a row was given, got 0 at row {kept[none.argmax()]}; leave "
            "out such rows, or give an overlap above 0, to which they are raised"
        )
