"""The concordance of many models on a test fold whose subjects have several rows, on their device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import EvaluationWarning, warn
from softsurv.metrics.concordance import count_pairs
from softsurv.metrics.evaluate import warn_of_ignored
from softsurv.metrics.histories import ONE_ROW_EACH, ends_at_risk, facts_of_histories
from softsurv.metrics.stacked import CELLS
from softsurv.metrics.stacked_pairs import LogHazards, StackedPairs, placed
from softsurv.nonparametric import checked_columns


class StackedHistories:
    """A test fold of spells (entry, time], on a device, ready to measure stacks of models.

    Parameters
    ----------
    fold : mapping
        Columns of the test fold, as `softsurv.metrics.evaluate.outcome` gives them.
    subject : ndarray (N,)
        Subject of each row.
    like : Tensor
        A tensor on the device. The measure is taken in float64.

    Attributes
    ----------
    ends : ndarray (N,)
        Until when each row can be compared, see `ends_at_risk`.
    facts : dict
        What `softsurv.metrics.histories.evaluate_histories` returns beside the measure.

    Raises
    ------
    NoComparablePairsError
        If no event has anybody at risk beside it.
    """

    names = ("harrell_c",)

    def __init__(self, fold: Mapping[str, Any], subject: IntArray, like: Tensor) -> None:
        time, event, mass, entry = checked_columns(fold["time"], fold["event"], fold["weight"], fold["entry"])
        warn_of_ignored(event, fold["upper"])
        warn(ONE_ROW_EACH, EvaluationWarning)
        self.ends: FloatArray = ends_at_risk(time, event, subject, entry)
        pairs = count_pairs(self.ends, event, np.zeros(time.size), entry=fold["entry"], weight=fold["weight"])
        pairs.concordance()
        self.facts = facts_of_histories(pairs, event, subject)
        times = np.unique(pairs.time)
        self._times = placed(times, like.device)
        self._pairs = StackedPairs.of(pairs, self.ends, entry, mass, times, like.device)

    def measures(self, log_hazard: LogHazards, n_models: int) -> Tensor:
        """The concordance of each model, (1, M), NaN where a prediction is; nothing is brought to the host."""
        return self._pairs.concordances(self._times, log_hazard, n_models, CELLS)
