"""OptimalPolicyTree: which treatment for whom, as the tree with the best estimated mean outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.policy_tree import PolicyTree, Rewards, mean_score
from softsurv.estimators.separable.tree import TrainingTable
from softsurv.estimators.shared.checks import one_of
from softsurv.estimators.shared.inputs import checked_matrix, checked_target, checked_treatment, coded
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.exact.objectives.policy import METHODS, treatment_scores


class OutcomePolicyTree(PolicyTree):
    """Base of the policy trees that score treatments by outcomes which are numbers."""

    method: str

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        treatment: Any = None,
        propensity: Any = None,
        predicted: Any = None,
        scores: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Estimated mean outcome if the rows were given the treatments that the tree chooses; higher is better.

        The estimate is by ``method``, from the same arguments as in ``fit``. On held-out rows it says what the policy
        is worth, and scikit-learn's tools compare policies by it.

        Parameters
        ----------
        X : DataFrame or array (n, p)
        y, treatment, propensity, predicted, scores, sample_weight
            As in ``fit``. Not every treatment needs to be among those given.

        Returns
        -------
        float
            On the training rows, minus ``objective_`` without the cost of the leaves.

        Raises
        ------
        InvalidParameterError, InvalidSurvivalDataError
            As in ``fit``, or a treatment was not seen in training.
        """
        check_is_fitted(self, "tree_")
        tables = {"propensity": propensity, "predicted": predicted, "scores": scores}
        held_out, chosen = self._held_out(X, sample_weight, y=y, treatment=treatment, **tables)
        known = self.treatments_
        rewards = read_rewards(held_out, self.method, y, treatment, propensity, predicted, scores, known)
        return mean_score(rewards, chosen, held_out.rows.weight)


@dataclass(eq=False, repr=False)
class OptimalPolicyTree(OutcomePolicyTree):
    """Prescriptive tree: every leaf names one treatment, and the mean score of the treatments chosen is the largest.

    Parameters
    ----------
    method : {"doubly_robust", "direct", "ips"}
        How treatments are scored from observed outcomes, see `softsurv.exact.objectives.policy.treatment_scores`. Not
        used where ``fit`` is given scores.
    max_depth, max_leaves, min_samples_leaf, min_weight_fraction_leaf, thresholds, max_levels, min_share, missing, path,
    time_limit, memory_limit, n_jobs, progress
        As in `OptimalClassificationTree`.
    complexity : float
        Mean score that a further leaf has to add.

    Attributes
    ----------
    treatments_ : ndarray (K,)
        The treatments, in the order of the scores.
    tree_ : HardTree
        Splits in the data's units, with the mean score of each treatment in each leaf.
    label_ : ndarray (L,)
        Treatment of each leaf, as a place in ``treatments_``.
    objective_, lower_bound_, gap_ : float
        Minus the mean score on the training rows (plus the cost of the leaves), its lower bound, and the difference.
    share_ : dict
        Share of the training weight that each treatment is given.
    status_, path_, report_, binarizer_
        As in `OptimalClassificationTree`.

    References
    ----------
    Van der Linden et al. (2023), paper `streed`, section 4.4. Dudik et al. (2011), Doubly robust policy evaluation
    and learning.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv import OptimalPolicyTree
    >>> X = np.arange(8.0)[:, None]
    >>> scores = np.where(X < 4, [[1.0, 0.0]], [[0.0, 1.0]])
    >>> OptimalPolicyTree(max_depth=1).fit(X, scores=scores).predict([[1.0], [6.0]]).tolist()
    [0, 1]
    """

    method: str = "doubly_robust"
    max_depth: int = 4
    max_leaves: int | None = None

    @one_fit_at_a_time
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        treatment: Any = None,
        propensity: Any = None,
        predicted: Any = None,
        scores: Any = None,
        sample_weight: Any = None,
    ) -> OptimalPolicyTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array (n, p)
            May hold categories (in a frame) and missing values.
        y : (n,)
            Observed outcome, higher is better.
        treatment : (n,)
            The treatment given: numbers or text.
        propensity : (n,)
            Probability with which that treatment was given, in (0, 1]; for "ips" and "doubly_robust".
        predicted : (n, K)
            Outcome of every treatment as a model of one's own predicts it, treatments in sorted order; for "direct"
            and "doubly_robust". A model fitted to the same rows should predict them by cross-fitting.
        scores : (n, K), optional
            Scores of one's own in the place of the four above, higher is better.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.

        Raises
        ------
        InvalidParameterError
            An argument of the estimator is out of range, or what ``method`` needs is not given.
        InvalidSurvivalDataError
            A column or table has the wrong shape, or holds a value that it may not.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        one_of("method", self.method, METHODS)
        tables = {"propensity": propensity, "predicted": predicted, "scores": scores}
        training = self._training(X, sample_weight, y=y, treatment=treatment, **tables)
        rewards = read_rewards(training, self.method, y, treatment, propensity, predicted, scores)
        self.treatments_ = rewards.treatments
        self._solve(training, rewards)
        return self


def read_rewards(
    training: TrainingTable, method: str, y: Any, treatment: Any, propensity: Any, predicted: Any, scores: Any,
    known: NDArray[Any] | None = None,
) -> Rewards:  # fmt: skip
    """Scores as they are given, or of observed outcomes; the arguments are those of `OptimalPolicyTree.fit`.

    ``known`` (K,) are the treatments where a tree has been fitted: the rows need not have all of them.
    """
    if scores is not None:
        given = _table("scores", scores, training, known)
        _check_columns("scores", given, known)
        return Rewards(np.arange(given.shape[1]) if known is None else known, given)
    treatments, codes = coded("treatment", checked_treatment(treatment, training.n_given))
    if known is not None:
        treatments, codes = known, places_among(known, treatments)[codes]
    chance = None if propensity is None else _chance(propensity, training)
    table = None if predicted is None else _table("predicted", predicted, training, treatments)
    if table is not None:
        _check_columns("predicted", table, treatments)
    outcome = checked_target(y, training.n_given)[training.kept]
    found = treatment_scores(method, outcome, codes[training.kept], len(treatments), chance, table)
    return Rewards(treatments, found)


def places_among(known: NDArray[Any], given: NDArray[Any]) -> IntArray:
    """Place of each given treatment (k,) among those of training (K,)."""
    place = {name: k for k, name in enumerate(known.tolist())}
    for name in given.tolist():
        if name not in place:
            raise InvalidSurvivalDataError(
                f"treatment must be one of those seen in training, {', '.join(map(str, place))}, got {name!r}; leave "
                "out its rows"
            )
    return np.array([place[name] for name in given.tolist()], dtype=np.int64)


def _check_columns(name: str, table: FloatArray, treatments: NDArray[Any] | None) -> None:
    """One column for each treatment."""
    if treatments is not None and table.shape[1] != len(treatments):
        raise InvalidSurvivalDataError(
            f"{name} must have one column for each of the {len(treatments)} treatments, got {table.shape[1]}"
        )


def _chance(propensity: Any, training: TrainingTable) -> FloatArray:
    """Probability of the treatment that each training row was given, (N,)."""
    chance = checked_target(propensity, training.n_given, "propensity")[training.kept]
    bad = ~((chance > 0) & (chance <= 1))
    if bad.any():
        row = int(bad.argmax())
        raise InvalidSurvivalDataError(
            f"propensity must be in (0, 1], got {chance[row]:g} at row {training.kept[row]}; leave out rows whose "
            "treatment could not be given"
        )
    return chance


def _table(name: str, values: Any, training: TrainingTable, names: NDArray[Any] | None = None) -> FloatArray:
    """A matrix (N, K) with one row for each row of X, rows of weight 0 left out."""
    table = checked_matrix(name, values, names)
    if len(table) != training.n_given:
        raise InvalidSurvivalDataError(f"{name} must have {training.n_given} rows as X has, got {len(table)}")
    if table.shape[1] < 2:
        raise InvalidSurvivalDataError(f"{name} must have at least two columns, one for each treatment, got 1")
    return np.asarray(table[training.kept])
