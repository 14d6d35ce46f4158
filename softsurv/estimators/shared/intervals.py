"""Confidence limits of predicted quantiles: a mixin of the trees whose curves have limits."""

from __future__ import annotations

from typing import Any

from softsurv.arrays import FloatArray
from softsurv.estimators.shared.checks import confidence, share_with_event


class QuantileIntervals:
    """Mixin: `predict_quantile_interval`. A subclass answers `_quantile_limits`."""

    def predict_quantile_interval(
        self: Any, X: Any, probability: float = 0.5, *, level: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence limits of the time by which the event has happened with the given probability.

        Parameters
        ----------
        X : table of n rows
        probability : float
            In (0, 1), as `predict_quantile` takes it: 0.1 for B10 life.
        level : float
            Confidence, in (0, 1).

        Returns
        -------
        lower, upper : ndarray (n,)
            In the unit of the training times, around `predict_quantile`. Where that is ``inf`` or 0, the limits of a
            soft tree are nan; an upper limit of an optimal tree is ``inf`` where that of its curve stays too high.

        Raises
        ------
        InvalidParameterError
            As `predict_survival_interval`, and if the probability is not between 0 and 1.

        Notes
        -----
        Soft trees: delta method on log time, as in the medians of ``summary``. Optimal trees: the first times at which
        the lower and the upper limit of the leaf's curve are at most 1 - probability (Brookmeyer and Crowley). What the
        limits do not account for is said of `predict_survival_interval`. In 1,000 simulated samples those of 95 % hold
        the true B10 life, median and time by which three quarters have failed in 93 to 97 %
        (``scripts/tables/coverage.md``).

        References
        ----------
        Brookmeyer and Crowley (1982), Biometrics 38.

        Examples
        --------
        >>> from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
        >>> data = load_dataset("veterans")
        >>> soft = SoftSurvivalTree(depth=0, leaf="weibull").fit(data)
        >>> [limit.round() for limit in soft.predict_quantile_interval(data.X.head(1), 0.1)]
        [array([14.]), array([48.])]
        >>> optimal = OptimalSurvivalTree(max_depth=1, leaf="km", shrinkage=0).fit(data)
        >>> optimal.predict_quantile(data.X.head(1), 0.1), optimal.predict_quantile_interval(data.X.head(1), 0.1)
        (array([22.]), (array([8.]), array([31.])))
        """
        prepared, share = self._checked(X, {}), share_with_event(probability)
        limits: tuple[FloatArray, FloatArray] = self._quantile_limits(prepared, share, confidence(level))
        return limits
