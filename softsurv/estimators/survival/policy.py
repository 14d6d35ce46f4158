"""OptimalSurvivalPolicyTree: which treatment for whom, so that the expected time without event is longest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch  # noqa: F401  every fit needs torch: loading it with the class keeps its second out of the first fit's time limit
from sklearn.utils.validation import check_is_fitted

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.separable.capacity_policy import within_capacity
from softsurv.estimators.separable.policy_tree import PolicyTree, mean_score
from softsurv.estimators.shared.checks import number, one_of, share, whole
from softsurv.estimators.shared.inputs import checked_treatment, coded
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.survival.policy_rewards import RestrictedMeanScoring
from softsurv.exact.objectives.policy import METHODS


@dataclass(eq=False, repr=False)
class OptimalSurvivalPolicyTree(PolicyTree):
    """Policy tree that is optimal for restricted mean survival, from censored observations of one treatment per row.

    Parameters
    ----------
    horizon : float
        Survival is counted up to this time; some rows of every treatment must be followed to it.
    method : {"doubly_robust", "direct", "ips"}
        How treatments are scored, see `softsurv.estimators.survival.policy_scores`. Doubly robust scores need either
        the survival model or both propensity and censoring curves to be right.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, missing, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalPolicyTree`. The search gets the time that the survival models and propensities leave. The time
        limit is checked at every step of a Cox model, and between propensity models and survival models of your own. It
        does not stop a fit of your ``survival_model``, a logistic regression, or the scores.
    complexity : float
        Time by which a further leaf must raise the mean score.
    capacity : mapping from treatment to share, optional
        As in `OptimalCapacityPolicyTree`.
    survival_model : estimator, optional
        With ``fit(X, (event, time))`` and ``predict_survival_function(X, times)``, as the survival estimators of this
        package have them; one is fitted for each treatment and fold. Where rows have different weights, ``fit`` must
        also take ``sample_weight``. Cox regression with a small ridge penalty by
        default. Survival is predicted at the event times, at most at 300 of them, with equal numbers of events between
        them; a short time limit takes fewer.
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

    horizon: float | None = None
    method: str = "doubly_robust"
    max_depth: int = 2
    max_leaves: int | None = None
    _: KW_ONLY
    capacity: Mapping[Any, float] | None = None
    survival_model: Any = None
    overlap: float = 0.01
    n_folds: int = 5
    random_state: int = 0

    @one_fit_at_a_time
    def fit(
        self, X: Any, y: Any = None, *, treatment: Any = None, propensity: Any = None, sample_weight: Any = None
    ) -> OptimalSurvivalPolicyTree:
        """Score the treatments and find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            Features known before the treatment; may hold categories and missing values.
        y : structured array, or (event, time)
            Whether there was an event, and the time of it or of censoring.
        treatment : (n,)
            The treatment given: numbers or text.
        propensity : (K,) or (n, K), optional
            Probability of every treatment, in sorted order, where it is known (a trial); estimated otherwise.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Warns
        -----
        DataWarning
            If propensities are small or few rows are followed to the horizon.
        ConvergenceWarning
            If the tree is not proven optimal, or the time ended before all models were fitted.

        Raises
        ------
        InvalidParameterError
            If an argument is not what it must be, or no row of a treatment is followed to the horizon.
        InvalidSurvivalDataError
            If a treatment has no event, or too few rows for the folds, or ``propensity`` does not fit the rows.
        """
        scoring = self._scoring()
        columns = {"treatment": treatment, "propensity": propensity, **_outcome(y)}
        training = self._training(X, sample_weight, **columns)
        rewards = scoring.rewards(training, y, treatment, propensity)
        self.treatments_, self.scores_ = rewards.treatments, rewards.scores
        self._solve(training, within_capacity(rewards, self.capacity))
        return self

    def score(
        self, X: Any, y: Any = None, *, treatment: Any = None, propensity: Any = None, sample_weight: Any = None
    ) -> float:
        """Estimated restricted mean survival if the rows were given the treatments that the tree chooses.

        The rows are scored by ``method`` as those of a fit are: their own models are fitted, by cross-fitting. On
        held-out rows the score says what the policy is worth, and scikit-learn's tools compare policies by it.

        Parameters
        ----------
        X : DataFrame or array (n, p)
        y, treatment, propensity, sample_weight
            As in ``fit``, with rows of every treatment.

        Returns
        -------
        float
            A time, at most ``horizon`` but for the noise of weighted outcomes; higher is better. On the training rows,
            minus ``objective_`` without the cost of the leaves.

        Warns
        -----
        DataWarning, ConvergenceWarning
            As in ``fit``.

        Raises
        ------
        InvalidParameterError, InvalidSurvivalDataError
            As in ``fit``, or the treatments are not those of training.
        """
        check_is_fitted(self, "tree_")
        scoring = self._scoring()
        columns = {"treatment": treatment, "propensity": propensity, **_outcome(y)}
        held_out, chosen = self._held_out(X, sample_weight, **columns)
        given, _ = coded("treatment", checked_treatment(treatment, held_out.n_given)[held_out.kept])
        if given.tolist() != self.treatments_.tolist():
            raise InvalidSurvivalDataError(
                f"treatment must take the values of training, {self.treatments_.tolist()}, got {given.tolist()}: each "
                "has a survival model of the rows scored"
            )
        rewards = scoring.rewards(held_out, y, treatment, propensity)
        return mean_score(rewards, chosen, held_out.rows.weight)

    def _scoring(self) -> RestrictedMeanScoring:
        """How rows are scored, once the arguments are checked."""
        if self.horizon is None:
            raise InvalidParameterError("horizon must be the time up to which survival counts, got None")
        number("horizon", self.horizon, math.ulp(0.0))
        share("overlap", self.overlap)
        whole("n_folds", self.n_folds, 2)
        whole("random_state", self.random_state, 0)
        one_of("method", self.method, METHODS)
        return RestrictedMeanScoring(
            self.method, float(self.horizon), self.survival_model, self.overlap, self.n_folds, self.random_state
        )


def _outcome(y: Any) -> dict[str, Any]:
    """The columns of an outcome, by name."""
    pair = isinstance(y, (tuple, list)) and len(y) == 2
    return dict(zip(("event", "time"), y, strict=True)) if pair else {"y": y}
