"""What a tree of competing risks is to be compared with: one Aalen-Johansen curve, and cause-specific Cox regression.

Both predict and evaluate as trees do. With one kind of event they are Kaplan-Meier and Cox regression.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from softsurv.aalen_johansen import aalen_johansen
from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.cox import efron_steps
from softsurv.data.frames import as_frame
from softsurv.data.histories import cause_code
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, need_docstrings, warn
from softsurv.estimators.column_names import reader_columns
from softsurv.estimators.shared.checks import grid_of
from softsurv.estimators.shared.evaluation import evaluate_fitted
from softsurv.metrics.evaluate import outcome, training_censoring
from softsurv.metrics.histories import Incidence, by_code
from softsurv.nonparametric import StepFunction, ratio
from softsurv.trees.incidence import accumulated

INDEPENDENT = 1e-8
"""A column follows from others where less than this share of its length is left beside them."""


class Baseline(BaseEstimator):
    """Shared surface of the baselines: hazards of the causes that rise in steps at ``times_``."""

    censoring_: StepFunction
    cause_names_: tuple[str, ...]
    times_: FloatArray

    @abstractmethod
    def _fit(self, data: SurvivalData, codes: IntArray) -> None:
        """Learn from rows with the causes ``codes`` (N,)."""

    @abstractmethod
    def _rises(self, prepared: Any) -> FloatArray:
        """Rise of each cumulative hazard at ``times_``, (n, T, K)."""

    def fit(self, X: Any, y: Any = None, **columns: Any) -> Baseline:
        """Fit; arguments as `survival_data`, whose ``weight`` may also be called ``sample_weight``."""
        data = survival_data(X, y, **reader_columns(self.fit, columns)).joined().that_count().require_events()
        if data.upper is not None and bool(data.upper.isfinite().any()):
            raise InvalidSurvivalDataError("upper must be left out: this baseline takes no interval-censored rows")
        self.cause_names_ = data.cause_names
        self.censoring_ = training_censoring(data)
        codes = (data.event if data.cause is None else data.cause).cpu().numpy().astype(np.int64)
        self.times_ = np.unique(data.y["time"][codes > 0])
        self._fit(data, codes)
        return self

    def predict_cumulative_incidence(self, X: Any, times: ArrayLike, cause: int | str | None = None) -> FloatArray:
        """Probability of an event of a cause by each time, (n, T); of all causes (n, T, K) where ``cause`` is None."""
        check_is_fitted(self, "censoring_")
        found = self._incidences(self._prepare(as_frame(X)), grid_of(times))
        return found if cause is None else found[..., cause_code(cause, self.cause_names_) - 1]

    def predict_survival_function(self, X: Any, times: ArrayLike) -> FloatArray:
        """Probability of being free of all events at each time, (n, T)."""
        return 1.0 - self.predict_cumulative_incidence(X, times).sum(-1)

    def evaluate(self, X: Any, y: Any = None, **options: Any) -> dict[str, Any]:
        """The measures that ``evaluate`` of a tree returns; the outcome as in `SurvivalData` or ``y``."""
        check_is_fitted(self, "censoring_")
        return evaluate_fitted(self, survival_data(X, y).that_count(), options)

    def _prepare(self, X: Any) -> Any:
        return X

    def _outcome(self, data: SurvivalData) -> dict[str, Any]:
        return outcome(data)

    def _log_hazard_of(self, prepared: Any) -> Any:
        total = np.cumsum(self._rises(prepared).sum(-1), 1)  # (n, T)

        def log_hazard(times: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self._at(total, np.asarray(times, dtype=float))))

        return log_hazard

    def _incidence_of(self, prepared: Any) -> Incidence:
        return by_code(partial(self._incidences, prepared))

    def _incidences(self, prepared: Any, times: FloatArray) -> FloatArray:
        return self._at(accumulated(self._rises(prepared))[1], times)

    def _at(self, steps: FloatArray, times: FloatArray) -> FloatArray:
        """Values at any times of what rises from 0 in steps at ``times_``, along the second axis."""
        whole = np.concatenate([np.zeros_like(steps[:, :1]), steps], 1)
        return np.asarray(whole[:, np.searchsorted(self.times_, times, side="right")])


class AalenJohansenBaseline(Baseline):
    """One curve of each cause for everybody: the null model.

    Examples
    --------
    >>> from softsurv import load_dataset
    >>> data = load_dataset("survset:follic")
    >>> AalenJohansenBaseline().fit(data).predict_cumulative_incidence(data.X[:1], [5.0]).round(3).tolist()
    [[[0.377, 0.052]]]
    """

    def _fit(self, data: SurvivalData, codes: IntArray) -> None:
        known = data.outcomes()
        curve = aalen_johansen(known["time"], codes, known["weight"], known["entry"], max(len(self.cause_names_), 1))
        place = np.searchsorted(curve.times, self.times_)
        risen = np.diff(curve.incidence, axis=0, prepend=0.0)[place]  # (T, K)
        free = np.concatenate([[1.0], curve.survival])[place]
        share = ratio(risen, risen.sum(1)[:, None])
        gone = np.minimum(ratio(risen.sum(1), free), 1.0)
        with np.errstate(divide="ignore"):
            self.rises_ = np.minimum(-np.log1p(-gone), 1e300)[:, None] * share

    def _rises(self, prepared: Any) -> FloatArray:
        return np.broadcast_to(self.rises_, (len(prepared), *self.rises_.shape))


class CauseSpecificCox(Baseline):
    """Cox regression of each cause, the others censored, composed into cumulative incidences.

    Ties are Efron's, in the coefficients and in the baseline hazards. Features are encoded by `Preprocessor`; missing
    values are filled in. Without late entry and weights scikit-survival fits, otherwise lifelines.

    Attributes
    ----------
    coefficients_ : ndarray (K, P)
        Log hazard ratios of the encoded features.
    preprocessor_ : Preprocessor
        How the raw features became numbers.

    References
    ----------
    Benichou, Gail, Biometrics 46 (1990); ``CSC`` of R's riskRegression.
    """

    def _fit(self, data: SurvivalData, codes: IntArray) -> None:
        self.preprocessor_ = Preprocessor(drop_first=True).fit(data.X)
        x = self._prepare(data.X)
        known = data.outcomes()
        kept, coefficients, rises = independent(x), [], []
        for code in range(1, max(len(self.cause_names_), 1) + 1):
            event = codes == code
            name = f"cause {self.cause_names_[code - 1]!r}" if self.cause_names_ else "the event"
            told = self.preprocessor_.get_feature_names_out()[foretelling(x, known["time"], event)]
            if told.size:
                warn(
                    f"{name} is foretold by {', '.join(map(repr, told))}: each event has the highest value at risk, or "
                    "each the lowest. Its Cox regression has no bound; leave the column out",
                    ConvergenceWarning,
                )
            coefficients.append(_coefficients(x, kept, known["time"], event, known["weight"], known["entry"], name))
            risk = np.exp(x @ coefficients[-1])
            steps = efron_steps(known["time"], event, risk, known["weight"], known["entry"])
            rises.append(steps[np.searchsorted(np.unique(known["time"]), self.times_)])
        self.coefficients_ = np.array(coefficients)
        self.rises_ = np.array(rises).T  # (T, K)

    def _prepare(self, X: Any) -> FloatArray:
        return np.asarray(self.preprocessor_.transform(X), dtype=float)

    def _rises(self, prepared: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            risk = np.minimum(np.exp(prepared @ self.coefficients_.T), 1e300)  # (n, K)
        return np.minimum(risk[:, None, :] * self.rises_, 1e300)


def _coefficients(
    x: FloatArray,
    kept: BoolArray,
    time: FloatArray,
    event: Any,
    weight: FloatArray | None,
    entry: FloatArray | None,
    name: str,
) -> FloatArray:
    """Log hazard ratios (P,) by Efron's partial likelihood; 0 for the columns that are not ``kept`` (P,)."""
    found = np.zeros(x.shape[1])
    if not kept.any() or not event.any():
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of standard errors, and of what was said
        try:
            found[kept] = _efron(x[:, kept], time, event, weight, entry)
        except InvalidParameterError:  # lifelines is not installed
            raise
        except (ArithmeticError, ValueError) as error:  # lifelines has a ValueError of its own
            raise InvalidSurvivalDataError(
                f"the Cox regression of {name} does not converge; leave out columns that foretell it, or one another"
            ) from error
    return found


def foretelling(x: FloatArray, time: FloatArray, event: Any) -> BoolArray:
    """Columns (P,) of x (N, P) in which each event has the highest value of all rows then at risk, or each the lowest.

    The partial likelihood then rises for ever with the size of the coefficient.
    """
    order = np.argsort(-time, kind="stable")
    at_risk, falling, happened = x[order], time[order], np.asarray(event)[order]
    last = np.searchsorted(-falling, -falling[happened], side="right") - 1
    highest, lowest = (limit.accumulate(at_risk, axis=0)[last] for limit in (np.maximum, np.minimum))
    own = at_risk[happened]
    return ((own == highest).all(0) | (own == lowest).all(0)) & (highest > lowest).any(0)


def independent(x: FloatArray) -> BoolArray:
    """Which columns (P,) of x (N, P) do not follow from a constant and the columns before them."""
    centred = x - x.mean(axis=0)
    size = np.linalg.norm(centred, axis=0)
    rest = np.zeros(x.shape[1])
    diagonal = np.abs(np.diag(np.linalg.qr(centred, mode="r")))
    rest[: len(diagonal)] = diagonal
    return rest > INDEPENDENT * size


def _efron(
    x: FloatArray, time: FloatArray, event: Any, weight: FloatArray | None, entry: FloatArray | None
) -> FloatArray:
    """Log hazard ratios (P,) of independent columns."""
    if weight is None and (entry is None or not (entry > 0).any()):
        need_docstrings()
        from sksurv.linear_model import CoxPHSurvivalAnalysis
        from sksurv.util import Surv

        model = CoxPHSurvivalAnalysis(ties="efron", n_iter=200).fit(x, Surv.from_arrays(event, time))
        return np.asarray(model.coef_, dtype=float)
    try:
        from lifelines import CoxPHFitter
    except ImportError as error:
        raise InvalidParameterError(
            "CauseSpecificCox needs lifelines for late entry and weights: python -m pip install lifelines"
        ) from error
    import pandas as pd

    names = [f"x{k}" for k in range(x.shape[1])]
    frame = pd.DataFrame(x, columns=names).assign(time=time, event=event)
    how: dict[str, Any] = {}
    if entry is not None:
        frame, how["entry_col"] = frame.assign(entry=entry), "entry"
    if weight is not None:
        mean = weight.mean()  # lifelines takes gradients of small weights for those of an optimum
        frame, how["weights_col"] = frame.assign(weight=weight / mean), "weight"
    fitted = CoxPHFitter().fit(frame, "time", "event", **how)
    return np.asarray(fitted.params_[names], dtype=float)
