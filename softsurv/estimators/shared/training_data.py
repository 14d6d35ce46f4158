"""How survival trees read the rows they are fitted on, and what they remember of the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.canonical import column_order, row_order
from softsurv.data.frames import has_names
from softsurv.data.histories import naming_as_given
from softsurv.data.readers import survival_data
from softsurv.data.spells import observed
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.shared.on_demand import Later, OnDemand
from softsurv.estimators.shared.training_rows import Ranges, refuse_unknown_histories, remember
from softsurv.metrics.evaluate import censoring_of, times_of
from softsurv.metrics.ranges import default_grid
from softsurv.nonparametric import StepFunction


class TrainingData:
    """Mixin of the survival trees: training data in, names and times of the outcome kept."""

    cause_names_: tuple[str, ...]
    censoring_ = Later[StepFunction]()
    """Probability of being uncensored at each time, of the training rows; the measures weigh by it."""
    unique_times_ = Later[FloatArray]()
    horizon_ = Later[float]()
    ranges_ = Later[Ranges]()
    """Smallest and largest training value of each column of numbers."""
    n_features_in_: int

    _knows: tuple[str, ...] = ()
    """What of event histories a subclass can fit: "causes", "subjects" (covariates that change), "recurrent"."""

    def _read(self, X: Any, y: Any, **columns: Any) -> SurvivalData:
        """Training rows of weight above 0; remembers names, the censoring curve and the default grid."""
        with naming_as_given({"weight": "sample_weight"}):
            data = survival_data(X, y, **columns).joined().that_count()
        if data is X:
            data = data._derive({})  # a copy, which reads its block of numbers from the table as it is now
        data.require_events()
        if not data.time.numpy().any():
            raise InvalidSurvivalDataError(
                "time must be > 0 in at least one row, got only intervals from 0: all events at time 0 would fit best"
            )
        refuse_unknown_histories(self, data)
        self.cause_names_ = data.cause_names
        self.n_features_in_ = data.X.shape[1]
        for name in ("feature_names_in_", "calibration_"):
            self.__dict__.pop(name, None)
        if has_names(X) or isinstance(X, SurvivalData):
            self.feature_names_in_ = np.array([str(c) for c in data.X.columns], dtype=object)
        remember(self, data, X, y, columns)
        known = data.outcomes()
        if isinstance(X, SurvivalData):  # whose tensors may change before somebody asks
            known = {name: None if values is None else values.copy() for name, values in known.items()}
        self.censoring_ = OnDemand(partial(censoring_of, known if data.subject is None else observed(data).outcomes()))
        self.unique_times_ = OnDemand(partial(_grid, known))
        self.horizon_ = OnDemand(partial(_last_time, known))
        return data

    def _in_order(self, data: SurvivalData) -> tuple[IntArray, list[str]]:
        """The rows and the columns in an order that depends on the content alone: the same seed, the same tree."""
        columns = column_order(data.X, data)
        return row_order(data, columns), columns


def _grid(known: Mapping[str, Any]) -> FloatArray:
    """Times at which curves are drawn unless others are named."""
    return default_grid(*times_of(known))


def _last_time(known: Mapping[str, Any]) -> float:
    """Last time at which a row was observed."""
    return float(times_of(known)[0].max())
