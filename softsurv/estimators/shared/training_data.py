"""How survival trees read the rows they are fitted on, and what they remember of the outcome."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.canonical import column_order, row_order
from softsurv.data.frames import has_names
from softsurv.data.readers import survival_data
from softsurv.data.spells import observed
from softsurv.data.survival_data import SurvivalData
from softsurv.estimators.shared.on_demand import OnDemand
from softsurv.estimators.shared.training_rows import refuse_unknown_histories, remember
from softsurv.metrics.evaluate import censoring_of, times_known
from softsurv.metrics.ranges import default_grid
from softsurv.nonparametric import StepFunction


class TrainingData:
    """Mixin of the survival trees: training data in, names and times of the outcome kept."""

    cause_names_: tuple[str, ...]
    unique_times_: FloatArray
    horizon_: float
    n_features_in_: int
    _censoring: OnDemand[StepFunction]

    _knows: tuple[str, ...] = ()
    """What of event histories a subclass can fit: "causes", "subjects" (covariates that change), "recurrent"."""

    def _read(self, X: Any, y: Any, **columns: Any) -> SurvivalData:
        """Training data as :class:`SurvivalData`; remembers names, the censoring curve and the default grid."""
        data = survival_data(X, y, **columns).joined()
        if data is X:
            data = data._derive({})  # whose block of numbers is that of the table as it is now
        data.require_events()
        refuse_unknown_histories(self, data)
        self.cause_names_ = data.cause_names
        self.n_features_in_ = data.X.shape[1]
        for name in ("feature_names_in_", "calibration_"):
            self.__dict__.pop(name, None)
        if has_names(X) or isinstance(X, SurvivalData):
            self.feature_names_in_ = np.array([str(c) for c in data.X.columns], dtype=object)
        remember(self, data, X, y, columns)
        self._censoring = OnDemand(partial(censoring_of, observed(data).outcomes()))
        known = times_known(data)
        self.unique_times_ = default_grid(*known)
        self.horizon_ = float(known[0].max())
        return data

    @property
    def censoring_(self) -> StepFunction:
        """Probability of being uncensored at each time, of the training rows; the measures weigh by it."""
        return self._censoring.value

    @censoring_.setter
    def censoring_(self, curve: StepFunction) -> None:
        self._censoring = OnDemand(lambda: curve)

    def _in_order(self, data: SurvivalData) -> tuple[IntArray, list[str]]:
        """The rows and the columns in an order that depends on the content alone: the same seed, the same tree."""
        columns = column_order(data.X, data)
        return row_order(data, columns), columns
