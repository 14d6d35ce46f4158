"""OptimalFairSurvivalTree: the survival tree of least deviance whose predictions differ little between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.data.in_time import look_at_numbers
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.estimators.optimal.parameters import OptimalParameters, check_parameters, size_limits
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import RelativeRisks, import_torch
from softsurv.estimators.optimal.tree import OptimalSurvivalTree, with_report
from softsurv.estimators.optimal.tree_search import FoundTree
from softsurv.estimators.rashomon import NearSource
from softsurv.estimators.separable.tree import branches
from softsurv.estimators.shared.arguments import refuse_unknown
from softsurv.estimators.shared.checks import number, share, whole
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.shared.progress import search_bar
from softsurv.exact.compile import ready
from softsurv.exact.memory import Room
from softsurv.exact.objectives.survival_fairness import RULE, fair_survival_search, fairness_front
from softsurv.exact.tree import CodeTree, SearchProgress
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree

ELSEWHERE = {"upper": "SoftSurvivalTree takes events in intervals, and fairness between groups"} | dict.fromkeys(
    ("cause", "cause_names", "start", "stop", "id", "recurrent"),
    "OptimalSurvivalTree takes causes, and several rows of a subject",
)
"""Arguments of ``fit`` that other trees have."""


class FairRelativeRiskSearch(RelativeRisks):
    """Relative-risk trees under a limit on the difference of mean predicted survival between groups."""

    def __init__(
        self,
        rows: Rows,
        p: OptimalParameters,
        group: np.ndarray[Any, Any],
        times: FloatArray,
        tolerance: float,
        room: Room,
    ) -> None:
        super().__init__(rows, p, "nelson_aalen", room)
        self.group, self.hazard_at, self.tolerance = group, self.baselines[0](times), tolerance

    @classmethod
    def warm_up(cls, depth: int | str | None) -> None:
        deep = depth not in (0, 1, 2)
        ready(RULE.task, deep=deep, leaf_points=RULE.leaf_points, meanwhile=import_torch)

    def pareto(self, depth: int, leaves: int | None, stop: StopSignal, *, count: bool = False) -> VectorSearch:
        """The search over deviance and differences; the time of ``stop`` does not include compilation."""
        return fair_survival_search(
            self.rows.codes, self.rows.binarizer.n_codes, self.rows.binarizer.nominal, self.statistics, self.group,
            self.rows.weight, self.hazard_at, self.tolerance, depth,
            leaves=leaves, count=count, complexity=self.p.complexity, min_leaf=self.least,
            memory_limit=self.room.left, n_jobs=self.n_jobs, stop=stop,
        )  # fmt: skip

    def best(self, depth: int | None, leaves: int | None, seconds: float, progress: SearchProgress | None) -> FoundTree:
        """The tree of least deviance among those that keep to the tolerance."""
        assert depth is not None
        with StopSignal(seconds) as stop:
            pareto = self.pareto(depth, leaves, stop)
            self.room.check(pareto.held)
            state = constrained_optimum(pareto, stop, progress=progress)
        constant = self.constant
        report = FitReport(
            state.status, state.value + constant, state.bound + constant, stop.seconds,
            tuple(value + constant for value in state.trace), {"multipliers": state.multipliers.tolist()},
        )  # fmt: skip
        return FoundTree(self.hard_tree(state.tree.tree), report)

    @property
    def held(self) -> float:
        """Nothing: the search over both objectives is made for each limit on depth and leaves."""
        return 0.0

    def hard_tree(self, tree: CodeTree) -> HardTree:
        """The tree in the data's own units. A tree of a front has no sums of its leaves."""
        return self.grown(branches(tree, self.rows.binarizer)[0])


class OptimalFairSurvivalTree(OptimalSurvivalTree):
    """Survival tree of least relative-risk deviance whose mean predicted survival differs little between groups.

    Parameters
    ----------
    horizon : float or sequence of float
        Times at which the mean predicted survival of any two groups may differ by at most ``tolerance``.
    tolerance : float
        A difference of probabilities, in [0, 1], on the training rows.
    max_depth, max_leaves, min_samples_leaf, complexity, thresholds, max_levels, min_share, missing, time_limit,
    memory_limit, n_jobs, progress
        As in `OptimalSurvivalTree` with the objective "relative_risk"; the leaves are the same, too.

    Attributes
    ----------
    difference_ : ndarray (H,)
        Largest difference between two groups at each time, on the training rows.
    groups_ : ndarray (G,)
        The groups.
    tree_, objective_, lower_bound_, gap_, status_, report_, leaf_table_, feature_importances_, binarizer_
        As in `OptimalSurvivalTree`.

    Notes
    -----
    The constraint is separable, so the tree is optimal under it. `softsurv.exact.objectives.survival_fairness` has
    the proof and says which constraints are not.

    Examples
    --------
    >>> from softsurv import load_dataset
    >>> from softsurv.estimators.survival.fair import OptimalFairSurvivalTree
    >>> train, _ = load_dataset("gbsg2").split(seed=0)
    >>> old = train.X["age"] >= 55
    >>> tree = OptimalFairSurvivalTree(1000.0, 0.001, max_depth=2).fit(train.X, train.y, group=old)
    >>> bool(tree.difference_[0] <= 0.001), tree.gap_
    (True, 0.0)
    """

    def __init__(
        self,
        horizon: Any = None,
        tolerance: float = 0.01,
        max_depth: int = 3,
        max_leaves: int | None = None,
        *,
        min_samples_leaf: int | str = 1,
        complexity: float = 0.0,
        thresholds: Any = DEFAULT_THRESHOLDS,
        max_levels: int | None = None,
        min_share: float = 0.0,
        missing: str = "impute",
        time_limit: float | None = 60.0,
        memory_limit: float = 1e9,
        n_jobs: int | None = 1,
        progress: bool = False,
    ) -> None:
        super().__init__(
            "relative_risk", max_depth, max_leaves,
            min_samples_leaf=min_samples_leaf, complexity=complexity, thresholds=thresholds, max_levels=max_levels,
            min_share=min_share, missing=missing, shrinkage=0.0, tune=None, time_limit=time_limit,
            memory_limit=memory_limit, n_jobs=n_jobs, progress=progress,
        )  # fmt: skip
        self.horizon = horizon
        self.tolerance = tolerance

    @one_fit_at_a_time
    def fit(  # one kind of event, one row for each subject
        self,
        X: Any,
        y: Any = None,
        *,
        group: Any = None,
        sample_weight: Any = None,
        entry: Any = None,
        time: Any = None,
        event: Any = None,
        **unknown: Any,
    ) -> OptimalFairSurvivalTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names.
        group : (n,) or column name
            The sensitive group of each row; never a feature where it is a column of ``X``.
        sample_weight, entry
            As in `OptimalSurvivalTree.fit`.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.

        Raises
        ------
        InvalidParameterError
            If an argument is not what it must be, ``group`` is missing or has one value, or events have causes.
        InvalidTimesError
            If ``horizon`` is not finite times above 0.
        TypeError
            Of an argument that this tree does not take, such as ``cause``.
        """
        self._check()
        refuse_unknown(OptimalFairSurvivalTree.fit, unknown, ELSEWHERE)
        FairRelativeRiskSearch.warm_up(self.max_depth)
        timer = StopSignal(self.time_limit)
        with timer.reading():
            data = self._read(X, y, group=group, weight=sample_weight, entry=entry, time=time, event=event)
            rows, codes, names, order = self._rows(data)
            look_at_numbers(*data.X.shape)
        self.groups_ = names
        self.leaf_ = "nelson_aalen"
        times = np.atleast_1d(np.asarray(self.horizon, dtype=float))
        room = Room(self.memory_limit).beside(data.X, rows)
        search = FairRelativeRiskSearch(rows, self, codes, times, float(self.tolerance), room)
        size = self._size(data, order, search, timer)
        with search_bar(self.progress) as bar:
            found = search.best(size.depth, size.leaves, timer.left, bar)
        self._keep(rows, search, with_report(found, size.status, timer))
        survival = np.exp(-np.exp(self.curves_.log_cumulative_hazard(rows.leaf_of(self.tree_), times)))
        self.difference_ = group_difference(survival, codes, rows.weight)
        self._warn_unless_proven()
        return self

    def _near_source(self) -> NearSource:
        raise InvalidParameterError(
            "a Rashomon set knows no limit on differences between groups, got an OptimalFairSurvivalTree; fit "
            "OptimalSurvivalTree, or see survival_fairness_front for other fair trees"
        )

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, meta = super()._state()
        return {**arrays, "difference": self.difference_}, {**meta, "groups": [str(name) for name in self.groups_]}

    def _restore(self, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
        super()._restore(arrays, meta)
        self.difference_, self.groups_ = arrays["difference"], np.array(meta["groups"])

    def _check(self) -> None:
        check_parameters(self)
        share("tolerance", self.tolerance)
        if self.horizon is None:
            raise InvalidParameterError("horizon must be the time, or times, at which groups are compared, got None")
        try:
            times = np.atleast_1d(np.asarray(self.horizon, dtype=float))
        except (TypeError, ValueError):
            raise InvalidTimesError(f"horizon must be finite times > 0, got {self.horizon!r}") from None
        if times.ndim != 1 or not times.size or not (np.isfinite(times) & (times > 0)).all():
            raise InvalidTimesError(f"horizon must be finite times > 0, got {self.horizon!r}")

    def _rows(self, data: SurvivalData) -> tuple[Rows, np.ndarray[Any, Any], np.ndarray[Any, Any], IntArray]:
        """Training rows, the group of each, the names of the groups, and the order of the rows."""
        if data.cause is not None or data.subject is not None:
            raise InvalidParameterError(
                "a fair optimal tree takes one kind of event and one row for each subject; pass data.of_cause(...)"
            )
        if data.group is None:
            raise InvalidParameterError("group must say which group each row belongs to, got None")
        data, rows, order = self._coded_rows(data)
        assert data.group is not None
        present, codes = np.unique(data.group.numpy()[order], return_inverse=True)
        if len(present) < 2:
            raise InvalidParameterError("group must have at least two values, got one; take OptimalSurvivalTree")
        return rows, codes, np.array(data.group_names)[present], order


def group_difference(survival: FloatArray, group: np.ndarray[Any, Any], weight: FloatArray | None = None) -> FloatArray:
    """Largest difference between two groups of mean predicted survival (N, H), at each time (H,)."""
    w = np.ones(len(group)) if weight is None else weight
    means = [np.average(survival[group == g], axis=0, weights=w[group == g]) for g in np.unique(group)]
    return np.asarray(np.max(means, axis=0) - np.min(means, axis=0))


@dataclass(frozen=True)
class SurvivalFairnessFront:
    """Trees that no other one dominates by deviance, number of leaves and difference between groups.

    Attributes
    ----------
    table : DataFrame
        Columns deviance, leaves, difference; one row per tree, by leaves.
    trees : tuple of HardTree
    status : Status
        OPTIMAL if the whole front was found, else the limit that ended the search. The trees in the table are proven.
    """

    table: pd.DataFrame
    trees: tuple[HardTree, ...]
    status: Status


def survival_fairness_front(
    X: Any,
    y: Any = None,
    *,
    group: Any,
    horizon: float | Sequence[float],
    max_depth: int = 2,
    max_leaves: int | None = None,
    resolution: float = 0.01,
    time_limit: float | None = 60.0,
    **options: Any,
) -> SurvivalFairnessFront:
    """The Pareto front of relative-risk deviance against number of leaves against group difference.

    Parameters
    ----------
    X, y, group, horizon
        As in `OptimalFairSurvivalTree`.
    max_depth, max_leaves : int
        Largest trees of the front.
    resolution : float
        Least step between two differences. Trees whose differences are closer are not told apart.
    time_limit : float, optional
        Seconds.
    **options
        Further arguments of `OptimalFairSurvivalTree`.

    Raises
    ------
    InvalidParameterError, InvalidTimesError
        As in `OptimalFairSurvivalTree.fit`.
    """
    number("resolution", resolution, 1e-9)
    if max_leaves is not None:
        whole("max_leaves", max_leaves, 1)
    model = OptimalFairSurvivalTree(horizon, 1.0, max_depth, max_leaves, time_limit=time_limit, **options)
    model._check()
    stop = StopSignal(time_limit)
    with stop.reading():
        data = model._read(X, y, group=group)
        rows, codes, *_ = model._rows(data)
        look_at_numbers(*data.X.shape)
    times = np.atleast_1d(np.asarray(horizon, dtype=float))
    search = FairRelativeRiskSearch(rows, model, codes, times, 1.0, Room(model.memory_limit).beside(data.X, rows))
    limit, leaves = size_limits(model)
    depth = (limit or 0) if model.binarizer_.columns_ else 0
    most = min(leaves or 1 << depth, 1 << depth)
    pareto = search.pareto(depth, most, stop, count=True)
    with stop:
        points, status = fairness_front(pareto, stop, leaves=most, resolution=resolution)
    constant = search.constant
    table = pd.DataFrame(
        {
            "deviance": [p.deviance + constant for p in points],
            "leaves": [p.leaves for p in points],
            "difference": [p.difference for p in points],
        }
    )
    return SurvivalFairnessFront(table, tuple(search.hard_tree(p.state.tree.tree) for p in points), status)
