"""OptimalSurvivalTree: a provably optimal survival tree as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch  # noqa: F401  every fit needs it; loaded with the class, its second is not one of the first fit
from sklearn.exceptions import ConvergenceWarning

from softsurv.data.binarize import Binarizer
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.estimators.optimal_cv import choose_size
from softsurv.estimators.optimal_leaves import leaf_curves
from softsurv.estimators.optimal_parameters import OptimalParameters, check_parameters, leaf_kind
from softsurv.estimators.optimal_reference import reference_curves
from softsurv.estimators.optimal_rows import Rows
from softsurv.estimators.optimal_search import SEARCHES, Found, IbsSearch, RelativeRiskSearch, TreeSearch
from softsurv.estimators.optimal_surface import OptimalSurface
from softsurv.estimators.progress import SearchBar
from softsurv.estimators.solvers import SizedTree
from softsurv.results import Status
from softsurv.stopping import StopSignal
from softsurv.trees.leaf_table import leaf_table

TUNING_SHARE = 0.7
"""Share of the time limit that cross-validation may take; the rest is for the tree of all rows."""


class OptimalSurvivalTree(OptimalParameters, OptimalSurface):
    """Survival tree with axis-parallel splits that is optimal for its objective, or says how far it may be from it.

    Parameters
    ----------
    objective : {"relative_risk", "ibs"}
        Deviance of proportional hazards over a common Nelson-Aalen baseline (paper `surtree`, eq. 20; summed over
        rows), or the integrated Brier score (paper `osst`, eq. 4; a mean over rows and time).
    max_depth : int, optional
        0 (a single leaf) to 10. None, for "ibs" only: ``complexity`` alone limits the tree.
    max_leaves : int, optional
        No more than ``2**max_depth`` by default. For "ibs" it also makes the search keep ``path_``.
    min_samples_leaf : int
        Least rows per leaf.
    complexity : float
        Cost per leaf, in the unit of the objective.
    thresholds, max_levels, min_share
        Splits to choose from, as in `Binarizer`: ten quantiles of each number by default, of the rows whatever
        their weights; "all" loses nothing.
    leaf : {"auto", "nelson_aalen", "km", "ipcw"}
        Curve of a leaf: its relative risk times the baseline, the default of "relative_risk"; Kaplan-Meier, the
        default of "ibs"; or, for "ibs", the non-increasing curve that minimises the leaf's score.
    reference : estimator or ndarray (N, T), optional
        For "ibs": a survival model whose losses act as lower bounds ("guessing", paper `osst`, Theorem 2.7), fitted
        here unless it is already, or its survival probabilities at the distinct training times. The result is then
        optimal on the condition that no tree beats the reference on any row; ``report_.details`` says how far it can
        be from the optimum without it.
    tune : {None, "cv"}
        "cv": choose depth and leaves, up to the limits, by event-stratified cross-validation of the held-out
        objective; see ``selection_``.
    time_limit : float, optional
        Seconds after which the best tree so far is returned with its bound, and a `ConvergenceWarning`.
    memory_limit : float
        Bytes for the cache of subproblems.
    n_jobs : int, optional
        Threads of the search, -1 for all cores; the tree does not depend on it. With "ibs" the path of sizes
        (``max_leaves``, ``tune``) takes one.
    random_state : int, optional
        Seed of the folds; 0 by default, so that a fit can be repeated.
    progress : bool
        Show a progress bar with bound and incumbent.

    Attributes
    ----------
    tree_ : HardTree
        Splits in the data's units, with the relative risk of each leaf.
    objective_, lower_bound_, gap_ : float
        Objective of the tree on the training rows, what no tree can fall below, and the difference.
    status_ : Status
        OPTIMAL, CONDITIONALLY_OPTIMAL (with a reference), or the limit that ended the search.
    path_ : tuple of SizedTree
        Best trees with at most 1, 2, ... leaves, up to where more do not help; what the time limit cut off is not
        there.
    report_ : FitReport
    selection_ : DataFrame
        What ``tune`` tried, best first; empty without it.
    leaf_table_ : LeafTable
        Rows, events and Kaplan-Meier curve of each leaf.
    feature_importances_ : ndarray (n_features_in_,)
        Share of each raw column in what the splits take off the objective, summing to one.
    binarizer_ : Binarizer

    References
    ----------
    Huisman et al. (2024), Optimal survival trees: a dynamic programming approach (paper `surtree`). Zhang et al.
    (2024), Optimal sparse survival trees (paper `osst`).

    Examples
    --------
    >>> from softsurv import OptimalSurvivalTree, load_dataset
    >>> train, test = load_dataset("gbsg2").split(seed=0)
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(train.X, train.y)
    >>> tree.status_, tree.gap_, tree.tree_.n_leaves
    (<Status.OPTIMAL: 'optimal'>, 0.0, 4)
    """

    # -- fitting -------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        entry: Any = None,
        time: Any = None,
        event: Any = None,
    ) -> OptimalSurvivalTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.
        entry : (n,), optional
            Left truncation ("relative_risk" only).

        Raises
        ------
        InvalidSurvivalDataError, InvalidParameterError

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        check_parameters(self)
        SEARCHES[self.objective].warm_up()
        timer = StopSignal(self.time_limit, hears_inner=True)
        data = self._read(X, y, weight=sample_weight, entry=entry, time=time, event=event)
        if data.weight is not None and not bool((data.weight > 0).all()):
            data = data.take(np.flatnonzero(data.weight.numpy() > 0)).require_events()
        if self.min_samples_leaf > data.n:
            raise InvalidParameterError(
                f"min_samples_leaf must be at most the number of rows, {data.n}, got {self.min_samples_leaf}"
            )
        self.binarizer_ = Binarizer(self.thresholds, self.max_levels, self.min_share).fit(data.X)
        if not self.binarizer_.columns_:
            warnings.warn("no feature can be split, so all rows get one curve; check X", DataWarning, stacklevel=2)
        self.leaf_ = leaf_kind(self)
        rows = Rows.of(data, self.binarizer_)
        search = self._search(rows, data)
        with timer:  # a Ctrl-C between two searches counts too
            found = self._find(data, search, timer)
        self._keep(rows, search, found)
        self._warn_unless_proven()
        return self

    def _search(self, rows: Rows, data: SurvivalData) -> TreeSearch:
        if self.objective == "relative_risk":
            return RelativeRiskSearch(rows, self, self.leaf_)
        reference = None if self.reference is None else reference_curves(self.reference, data)
        return IbsSearch(rows, self, self.leaf_, reference)

    def _find(self, data: SurvivalData, search: TreeSearch, timer: StopSignal) -> Found:
        """The tree within the limits, or within those that cross-validation chooses."""
        depth, leaves, tuned = self.max_depth, self.max_leaves, Status.OPTIMAL
        self.selection_ = pd.DataFrame()
        if self.tune == "cv":
            seed = 0 if self.random_state is None else int(self.random_state)
            share = StopSignal(TUNING_SHARE * timer.left, outer=timer)
            choice = choose_size(data, self.binarizer_, self, self.leaf_, seed, share)
            depth, leaves, tuned = choice.depth, choice.leaves, choice.status
            self.selection_ = pd.DataFrame(choice.table)
        if not self.binarizer_.columns_:
            depth, leaves = 0, None if leaves is None else 1
        bar = SearchBar() if self.progress else None
        # whoever interrupted the cross-validation does not wait for the search
        interrupted = timer.status is Status.INTERRUPTED
        found = search.best(depth, leaves, 0.0 if interrupted else timer.left, bar)
        if bar is not None:
            bar.close()
        report = replace(found.report, seconds=timer.seconds, details={**found.report.details, "selection": str(tuned)})
        if interrupted and report.status is Status.TIME_LIMIT:
            report = replace(report, status=Status.INTERRUPTED)
        return replace(found, report=report)

    def _keep(self, rows: Rows, search: TreeSearch, found: Found) -> None:
        self.tree_, self.report_ = found.tree, found.report
        self.path_ = found.path or (SizedTree(found.tree.n_leaves, found.report.objective, found.tree),)
        self.curves_ = leaf_curves(rows, self.tree_, self.leaf_)
        self.leaf_table_ = leaf_table(
            rows.leaf_of(self.tree_), rows.time, rows.event, self.tree_.n_leaves, rows.weight, rows.entry
        )
        total = dict.fromkeys(self.binarizer_.filler_.input_names_, 0.0)
        for node, gain in enumerate(search.gains(self.tree_)):
            if self.tree_.feature[node] >= 0:
                total[self.tree_.sources[self.tree_.feature[node]].name] += gain
        # a Kaplan-Meier leaf does not minimise the Brier score: a split that only prepares others may cost something
        gains = np.maximum(list(total.values()), 0.0)
        self.feature_importances_ = gains / gains.sum() if gains.sum() > 0 else gains

    def _warn_unless_proven(self) -> None:
        if self.status_ not in (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL):
            warnings.warn(
                f"the search ended at its {str(self.status_).replace('_', ' ')} with objective {self.objective_:.6g} "
                f"and lower bound {self.lower_bound_:.6g}; raise time_limit, or lower max_depth or thresholds",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif self.report_.details["selection"] != Status.OPTIMAL:
            warnings.warn(
                f"cross-validation ended early ({self.report_.details['selection']}) with {len(self.selection_)} "
                "sizes compared; raise time_limit or lower max_depth",
                ConvergenceWarning,
                stacklevel=3,
            )
