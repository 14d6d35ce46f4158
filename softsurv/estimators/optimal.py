"""OptimalSurvivalTree: a provably optimal survival tree as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from softsurv.data.binarize import Binarizer
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError, InvalidTimesError
from softsurv.estimators.base import FloatArray, SurvivalTreeBase
from softsurv.estimators.optimal_cv import choose_size
from softsurv.estimators.optimal_leaves import LeafCurves, leaf_curves
from softsurv.estimators.optimal_parameters import OptimalParameters, check_parameters, leaf_kind
from softsurv.estimators.optimal_reference import reference_curves
from softsurv.estimators.optimal_rows import Rows
from softsurv.estimators.optimal_search import SEARCHES, Found, IbsSearch, RelativeRiskSearch, SizedTree, TreeSearch
from softsurv.exact.search import Clock
from softsurv.results import FitReport, Status
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.leaf_table import LeafTable, leaf_table
from softsurv.trees.soft_text import leaf_line

TUNING_SHARE = 0.7
"""Share of the time limit that cross-validation may take; the rest is for the tree of all rows."""


class OptimalSurvivalTree(OptimalParameters, SurvivalTreeBase):
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
        Splits to choose from, as in `Binarizer`: ten quantiles of each number by default; "all" loses nothing.
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
        Threads of the "relative_risk" search, -1 for all cores; the tree does not depend on it. The "ibs" search
        takes one.
    random_state : int, optional
        Seed of the folds; 0 by default, so that a fit can be repeated.
    progress : bool
        Show a progress bar with bound and incumbent ("relative_risk").

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
        timer = Clock(math.inf if self.time_limit is None else float(self.time_limit))
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
        self._keep(rows, search, self._find(data, search, timer))
        self._warn_unless_proven()
        return self

    def _search(self, rows: Rows, data: SurvivalData) -> TreeSearch:
        if self.objective == "relative_risk":
            return RelativeRiskSearch(rows, self, self.leaf_)
        reference = None if self.reference is None else reference_curves(self.reference, data)
        return IbsSearch(rows, self, self.leaf_, reference)

    def _find(self, data: SurvivalData, search: TreeSearch, timer: Clock) -> Found:
        """The tree within the limits, or within those that cross-validation chooses."""
        depth, leaves, tuned = self.max_depth, self.max_leaves, Status.OPTIMAL
        self.selection_ = pd.DataFrame()
        if self.tune == "cv":
            seed = 0 if self.random_state is None else int(self.random_state)
            choice = choose_size(data, self.binarizer_, self, self.leaf_, seed, TUNING_SHARE * timer.left)
            depth, leaves, tuned = choice.depth, choice.leaves, choice.status
            self.selection_ = pd.DataFrame(choice.table)
        if not self.binarizer_.columns_:
            depth, leaves = 0, None if leaves is None else 1
        bar = _Bar() if self.progress and self.objective == "relative_risk" else None
        # whoever interrupted the cross-validation does not wait for the search
        found = search.best(depth, leaves, 0.0 if tuned is Status.INTERRUPTED else timer.left, bar)
        if bar is not None:
            bar.close()
        report = replace(found.report, seconds=timer.seconds, details={**found.report.details, "selection": str(tuned)})
        if tuned is Status.INTERRUPTED and report.status is Status.TIME_LIMIT:
            report = replace(report, status=tuned)
        return replace(found, report=report)

    def _keep(self, rows: Rows, search: TreeSearch, found: Found) -> None:
        self.tree_, self.report_ = found.tree, found.report
        self.path_ = found.path or (SizedTree(found.tree.n_leaves, found.report.objective, found.tree),)
        self.curves_ = leaf_curves(rows, self.tree_, self.leaf_)
        self.leaf_table_ = leaf_table(rows.leaf_of(self.tree_), rows.time, rows.event, self.tree_.n_leaves)
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

    @property
    def objective_(self) -> float:
        return self.report_.objective

    @property
    def lower_bound_(self) -> float:
        return self.report_.lower_bound

    @property
    def gap_(self) -> float:
        return self.report_.gap

    @property
    def status_(self) -> Status:
        return self.report_.status

    # -- predictions ---------------------------------------------------------------------------------------------
    def _prepare(self, X: Any, **unknown: Any) -> NDArray[np.int64]:
        if unknown:
            raise InvalidParameterError(f"predictions of an optimal tree take no {', '.join(unknown)}; leave it out")
        frame = X.X if isinstance(X, SurvivalData) else X
        return self.tree_.leaf_of(*self.binarizer_.filled(frame))

    def _leaf(self, prepared: NDArray[np.int64]) -> NDArray[np.int64]:
        return prepared

    def _log_cumulative_hazard(self, prepared: NDArray[np.int64], times: FloatArray) -> FloatArray:
        return self.curves_.log_cumulative_hazard(prepared, times)

    def _hazard(self, prepared: NDArray[np.int64], times: FloatArray) -> FloatArray:
        return self.curves_.hazard(prepared, times)

    def _quantile(self, prepared: NDArray[np.int64], level: float) -> FloatArray:
        return self.curves_.quantile(prepared, 1 - level)

    def predict(self, X: Any, **how: Any) -> FloatArray:
        """Risk score of each row, (n,); higher means an earlier event.

        Notes
        -----
        With Nelson-Aalen leaves the relative risk theta; with curves of their own, which may cross, the expected
        time lost before the last training time.
        """
        leaf = self._checked(X, how)
        if self.leaf_ == "nelson_aalen":
            return self.tree_.value[leaf, 0]
        return self.horizon_ - self.curves_.restricted_mean(leaf, self.horizon_)

    def predict_hazard_function(self, X: Any, times: Any = None, **how: Any) -> FloatArray:
        """Hazard of each row at each time > 0, per unit of time, (n, T).

        Notes
        -----
        A step estimate has no density. This is the slope of its cumulative hazard drawn as straight lines between
        the steps: constant between two event times, 0 after the last.
        """
        return super().predict_hazard_function(X, times, **how)

    def predict_expectation(self, X: Any, horizon: float | None = None, **how: Any) -> FloatArray:
        """Expected time until the event or the horizon, whichever is first, (n,): exact, as the curves are steps.

        Parameters
        ----------
        X : table of n rows
        horizon : float, optional
            In the unit of the training times; the largest training time by default.
        """
        leaf = self._checked(X, how)
        end = self.horizon_ if horizon is None else float(horizon)
        if not 0 < end < np.inf:
            raise InvalidTimesError(f"horizon must be a finite time > 0, got {horizon!r}")
        return self.curves_.restricted_mean(leaf, end)

    # -- reading the tree ----------------------------------------------------------------------------------------
    def leaf_lines(self) -> list[str]:
        """Size, events, median and relative risk of each leaf in words."""
        risk = self.tree_.leaf_lines()
        return [f"{leaf_line(self.leaf_table_, k)}, {risk[k]}" for k in range(self.tree_.n_leaves)]

    def export_text(self) -> str:
        """The tree as text: rules in the data's own units, and each leaf's numbers."""
        check_is_fitted(self, "tree_")
        return self.tree_.export_text(self.leaf_lines())

    def export_dot(self) -> str:
        """The tree in Graphviz's language."""
        check_is_fitted(self, "tree_")
        return self.tree_.export_dot(self.leaf_lines())

    def export_python(self, name: str = "leaf_of") -> str:
        """Source of a plain function that takes one row as a mapping and returns its leaf."""
        check_is_fitted(self, "tree_")
        return self.tree_.to_python(name)

    def to_dict(self) -> dict[str, Any]:
        """Tree, leaves and report as plain JSON values; a median that is not reached is None."""
        check_is_fitted(self, "tree_")
        table = self.leaf_table_
        leaves = [
            {
                "n": int(table.n[k]),
                "events": int(table.events[k]),
                "median": float(table.median[k]) if np.isfinite(table.median[k]) else None,
                "relative_risk": float(self.tree_.value[k, 0]),
            }
            for k in range(self.tree_.n_leaves)
        ]
        return {"tree": self.tree_.to_dict(), "leaf": self.leaf_, "leaves": leaves, "report": self.report_.to_dict()}

    # -- saving --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        table_arrays, table_meta = self.leaf_table_.state()
        arrays: dict[str, NDArray[Any]] = {"importances": self.feature_importances_}
        arrays |= {f"leaves.{k}": v for k, v in table_arrays.items()}
        arrays |= {f"curves.{k}": v for k, v in self.curves_.state().items()}
        meta = {
            "leaf": self.leaf_,
            "tree": self.tree_.to_dict(),
            "binarizer": self.binarizer_.to_dict(),
            "leaves": table_meta,
            "report": self.report_.to_dict(),
            "selection": self.selection_.to_dict("records"),
            "path": [
                {"max_leaves": size.max_leaves, "objective": size.objective, "tree": size.tree.to_dict()}
                for size in self.path_
            ],
        }
        return arrays, meta

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        self.leaf_ = meta["leaf"]
        self.tree_ = HardTree.from_dict(meta["tree"])
        self.binarizer_ = Binarizer.from_dict(meta["binarizer"])
        self.leaf_table_ = LeafTable.restore(_below("leaves.", arrays), meta["leaves"])
        self.curves_ = LeafCurves.restore(_below("curves.", arrays), self.tree_.n_leaves)
        self.feature_importances_ = arrays["importances"]
        self.report_ = FitReport.from_dict(meta["report"])
        self.selection_ = pd.DataFrame(meta["selection"])
        self.path_ = tuple(
            SizedTree(size["max_leaves"], size["objective"], HardTree.from_dict(size["tree"])) for size in meta["path"]
        )


class _Bar:
    """A progress bar of the search: share of the root's splits done, with bound and incumbent."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=100, desc="searching", unit="%")

    def __call__(self, done: float, bound: float, incumbent: float) -> None:
        self._bar.n = round(100 * done)
        self._bar.set_postfix(bound=f"{bound:.6g}", incumbent=f"{incumbent:.6g}")

    def close(self) -> None:
        self._bar.refresh()
        self._bar.close()


def _below(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
