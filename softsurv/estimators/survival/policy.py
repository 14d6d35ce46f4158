"""OptimalSurvivalPolicyTree: which treatment for whom, so that the expected time without event is longest."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.checks import number, whole
from softsurv.estimators.inputs import checked_treatment
from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree
from softsurv.estimators.separable.tree import Training
from softsurv.estimators.survival.policy_models import folds_of, propensities, survival_curves
from softsurv.estimators.survival.policy_scores import restricted_mean_scores


class OptimalSurvivalPolicyTree(OptimalCapacityPolicyTree):
    """Policy tree that is optimal for restricted mean survival, from censored observations of one treatment per row.

    Parameters
    ----------
    horizon : float
        Survival is counted up to this time; some rows of every treatment must be followed to it.
    method : {"doubly_robust", "direct", "ips"}
        How treatments are scored, see `softsurv.estimators.survival.policy_scores`. Doubly robust scores need either
        the survival model or both propensity and censoring curves to be right.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalPolicyTree`.
    complexity : float
        Time that a further leaf has to add to the mean.
    capacity : mapping from treatment to share, optional
        As in `OptimalCapacityPolicyTree`.
    survival_model : estimator, optional
        With ``fit(X, (event, time))`` and ``predict_survival_function(X, times)`` as the survival estimators of this
        package have; one is fitted per treatment. Cox regression with a small ridge penalty by default.
    overlap : float
        Propensities below this are raised to it, with a warning.
    n_folds : int
        Folds of the cross-fitting: every row is scored by models that have not seen it.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    scores_ : ndarray (N, K)
        Score of every treatment for every training row.
    treatments_, tree_, label_, objective_, lower_bound_, gap_, status_, path_, report_, binarizer_
        As in `OptimalPolicyTree`: the objective is minus the mean score, a time.

    References
    ----------
    Cui et al. (2023), Estimating heterogeneous treatment effects with right-censored data via causal survival forests.
    Zhang & Schaubel (2012), Double-robust semiparametric estimator for differences in restricted mean lifetimes.
    Van der Linden et al. (2023), paper `streed`, section 4.4.
    """

    def __init__(
        self,
        horizon: float | None = None,
        method: str = "doubly_robust",
        max_depth: int = 2,
        max_leaves: int | None = None,
        *,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        complexity: float = 0.0,
        thresholds: Any = DEFAULT_THRESHOLDS,
        max_levels: int | None = None,
        min_share: float = 0.0,
        path: bool = False,
        time_limit: float | None = 60.0,
        memory_limit: float = 1e9,
        n_jobs: int | None = 1,
        progress: bool = False,
        capacity: Any = None,
        survival_model: Any = None,
        overlap: float = 0.01,
        n_folds: int = 5,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            capacity,
            method,
            max_depth,
            max_leaves,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            complexity=complexity,
            thresholds=thresholds,
            max_levels=max_levels,
            min_share=min_share,
            path=path,
            time_limit=time_limit,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            progress=progress,
        )
        self.horizon = horizon
        self.survival_model = survival_model
        self.overlap = overlap
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, *, treatment: Any = None, propensity: Any = None, sample_weight: Any = None
    ) -> OptimalSurvivalPolicyTree:
        """Score the treatments and find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            Features known before the treatment; may hold categories and missing values.
        y : structured array, or (event, time)
        treatment : (n,)
            The treatment given: numbers or text.
        propensity : (K,) or (n, K), optional
            Probability of every treatment, in sorted order, where it is known (a trial); estimated otherwise.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Warns
        -----
        DataWarning
            Where propensities are small or few rows are followed to the horizon.
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        if self.horizon is None:
            raise InvalidParameterError("horizon must be the time up to which survival counts, got None")
        number("horizon", self.horizon, math.ulp(0.0))
        number("overlap", self.overlap, 0.0)
        whole("n_folds", self.n_folds, 2)
        super().fit(X, y, treatment=treatment, propensity=propensity, sample_weight=sample_weight)
        return self

    def _scores_of(self, training: Training, y: Any, treatment: Any, propensity: Any, predicted: Any) -> FloatArray:
        """Scores in the place of those of `OptimalPolicyTree`."""
        horizon = float(self.horizon)  # type: ignore[arg-type]
        data = survival_data(np.zeros((training.n_given, 1)), y).take(training.kept)
        time, event = data.time.numpy(), data.event.numpy()
        codes = self._treatments(training, treatment)
        folds = folds_of(codes, event, int(self.n_folds), int(self.random_state))
        weight, frame = training.rows.weight, pd.DataFrame(training.table, index=range(training.rows.n))
        curves = chance = None
        if self.method != "ips":
            self._require_events(codes[event])
            curves = survival_curves(frame, time, event, codes, horizon, self.survival_model, folds)
        if self.method != "direct":
            known = None if propensity is None else self._known(propensity, training)
            chance = self._overlapping(propensities(frame, codes, weight, folds) if known is None else known)
        scores = restricted_mean_scores(self.method, time, event, codes, horizon, chance, curves, weight)
        self.scores_ = scores
        return scores

    def _treatments(self, training: Training, treatment: Any) -> IntArray:
        given = checked_treatment(treatment, training.n_given)
        self.treatments_, codes = np.unique(given[training.kept], return_inverse=True)
        if len(self.treatments_) < 2:
            raise InvalidParameterError("treatment must have at least two values, got one; there is nothing to choose")
        return np.asarray(codes)

    def _require_events(self, seen: IntArray) -> None:
        """Refuse treatments that no event was observed under: no survival model can be fitted to them."""
        none = np.bincount(seen, minlength=len(self.treatments_)) == 0
        if none.any():
            names = ", ".join(str(name) for name in self.treatments_[none])
            raise InvalidSurvivalDataError(
                f"event must be True in at least one row of every treatment, got none for {names}; merge treatments, "
                'leave its rows out, or take method="ips", which needs no survival model'
            )

    def _known(self, propensity: Any, training: Training) -> FloatArray:
        """Given propensities as (N, K)."""
        k = len(self.treatments_)
        table = check_array(propensity, ensure_2d=False, dtype=np.float64, input_name="propensity")
        if table.shape == (k,):
            table = np.tile(table, (training.n_given, 1))
        if table.shape != (training.n_given, k):
            raise InvalidSurvivalDataError(
                f"propensity must be ({k},) or ({training.n_given}, {k}), one for each treatment, got {table.shape}"
            )
        if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0)):
            raise InvalidSurvivalDataError("propensity must be >= 0 and sum to one in each row")
        return np.asarray(table[training.kept])

    def _overlapping(self, chance: FloatArray) -> FloatArray:
        """Propensities of at least ``overlap``."""
        small = (chance < self.overlap).any(axis=1)
        if small.any():
            warnings.warn(
                f"{int(small.sum())} rows have a propensity below {self.overlap:g}, raised to it; leave out rows whose "
                "treatment was as good as certain",
                DataWarning,
                stacklevel=5,
            )
        return np.maximum(chance, max(self.overlap, np.finfo(float).tiny))
