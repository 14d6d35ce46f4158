"""OptimalSurvivalTree: a provably optimal survival tree as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from softsurv.arrays import IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.in_time import look_at_numbers
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, warn
from softsurv.estimators.optimal.continued import continued
from softsurv.estimators.optimal.cross_validation import SizeChoice, choose_size
from softsurv.estimators.optimal.fitted import WITH_RISK, OptimalSurface
from softsurv.estimators.optimal.level_order import add_level_orders
from softsurv.estimators.optimal.on_demand import TreeParts
from softsurv.estimators.optimal.parameters import (
    OptimalParameters,
    check_history,
    check_least_rows,
    check_parameters,
    is_tuned,
    leaf_kind,
    size_limits,
)
from softsurv.estimators.optimal.reference import reference_curves
from softsurv.estimators.optimal.rows import Rows, warn_of_early_end
from softsurv.estimators.optimal.search import SEARCHES, IbsSearch, RelativeRiskSearch
from softsurv.estimators.optimal.tree_search import FoundTree, TreeSearch
from softsurv.estimators.shared.arguments import refuse_unknown, understands
from softsurv.estimators.shared.exact_tree import PROVEN, warn_unless_proven
from softsurv.estimators.shared.on_demand import OnDemand
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.shared.progress import search_bar
from softsurv.exact.memory import Room, bytes_of_frame
from softsurv.results import Status
from softsurv.stopping import StopSignal

TUNING_SHARE = 0.7
"""Share of the time limit that cross-validation may take; the rest is for the tree of all rows."""

ELSEWHERE = {
    "upper": "SoftSurvivalTree takes events in intervals",
    "group": "OptimalFairSurvivalTree and SoftSurvivalTree take groups",
}
"""Arguments of ``fit`` that other trees have."""

NO_TABLE = OnDemand(pd.DataFrame)
"""The table of sizes where none is chosen. It is made once, as small fits would notice."""

FOLD_SHARE = 0.9
"""Memory of a fold of cross-validation, as a share of that of all rows: its own table, codes and search."""


@understands(depth="max_depth")
class OptimalSurvivalTree(OptimalParameters, OptimalSurface):
    """Survival tree with axis-parallel splits that is optimal for its objective, or says how far it may be from it.

    Parameters
    ----------
    objective : {"relative_risk", "ibs"}
        Deviance of proportional hazards over a common Nelson-Aalen baseline (paper `surtree`, eq. 20; summed over
        rows), or the integrated Brier score (paper `osst`, eq. 4; a mean over rows and time).
    max_depth : int, optional
        0 (a single leaf) to 10; 3 by default, with further levels below where more leaves are clearly better
        (see ``tune``). None, for "ibs" only: ``complexity`` alone limits the tree.
    max_leaves : int, optional
        No more than ``2**max_depth`` by default, and 32 where the tree goes on below depth 3 (see ``tune``). For "ibs"
        it also makes the search keep ``path_``.
    min_samples_leaf : int, optional
        Least rows per leaf; by default so many that 5 events are expected among them, where events are rare at most
        40 or a twentieth of the rows.
    complexity : float
        Cost per leaf, in the unit of the objective.
    thresholds : int, "all", list of float, or mapping
        Where numbers may be cut: at so many quantiles of the rows, whatever their weights; "all": between any two
        neighbouring values, so that nothing is lost; at the values of a list; or one of these for each column named.
    max_levels : int, optional
        Most levels of a category; the least frequent ones are merged into "other". None: all.
    min_share : float
        Cuts with a smaller share of the rows on either side are left out, and levels with a smaller share are merged.
    missing : {"impute", "route"}
        "impute": a missing value counts as the training mean or the most frequent level. "route": the search chooses
        a side for missing values at every split, which the printed rule says (``age <= 63 or missing``), and may
        split by whether a value is missing. Where a split met no missing value in training, they go to the side of
        more rows.
    level_sets : bool
        Let several levels of a category go left: its levels may also be cut in the order of their risk among all
        training rows, each pulled to that of all rows as by five events more. Sets out of order are not tried. For a
        single split by relative risk the best set is in the order of the node's own risks, which may be another.
    leaf : {"auto", "adaptive", "nelson_aalen", "km", "ipcw"}
        Curve of a leaf. "adaptive", the default of "relative_risk": its relative risk times the common baseline, or a
        Kaplan-Meier curve of its own where its events clearly come at other times; where the size is chosen and
        Kaplan-Meier curves in all leaves are clearly better on held-out rows, the leaves get these (they are compared
        where ``memory_limit`` has room for that, at 2,000 times where rows have more). "nelson_aalen": no exception.
        "km", the default of "ibs": Kaplan-Meier. "ipcw", for "ibs": the non-increasing curve that minimises the leaf's
        score; such trees are proven for curves that may rise, objective and gap are those of the curves predicted.
    shrinkage : float, optional
        A leaf's relative risk and curve are pulled to those of the nodes above it, as if it had seen so many events
        more there: theta = (E + k theta_parent) / (H + k), E events where H were expected. Chosen together with the
        size, or 10 where nothing is chosen. 0 takes each leaf for itself. The search, its objective and its proof are
        about leaves that stand for themselves.
    reference : estimator or ndarray (N, T), optional
        For "ibs": a survival model whose losses act as lower bounds ("guessing", paper `osst`, Theorem 2.7), fitted
        here unless it is already, or its survival probabilities at the distinct training times. The result is then
        optimal on the condition that no tree beats the reference on any row; ``report_.details`` says how far it can
        be from the optimum without it.
    cause_weights : mapping, int or str, optional
        With competing causes: how much each counts in the objective, by name or code, those not named not at all; or
        the one cause of interest. All count alike by default. The leaves show every cause in any case.
    tune : {"auto", None, "cv"}
        "cv": choose depth, leaves, cost per leaf (unless ``complexity`` is given) and shrinkage, up to the limits, by
        event-stratified cross-validation, twice five folds, from one path of sizes a fold: a single leaf unless a limit
        is better by more than one standard error of their paired difference; then the largest size that is as good as
        the best up to two, and no worse than the single leaf; or a cost per leaf that is better than every limit by
        more than two; see ``selection_``. "auto": so where none of ``max_depth``, ``max_leaves``, ``complexity`` and
        ``reference`` is given. For "relative_risk" with ``max_depth`` left open, where a tree of depth 3 is chosen, it
        goes on below its leaves: up to four levels more, each split the first of the best tree of depth two
        of its rows, cut back at a cost per leaf. It does so where that is better by more than two standard errors, at
        the highest such cost whose loss is within one standard error of the least (Breiman et al. 1984), with at most
        ``max_leaves`` leaves. With more than 500 0/1 columns or 250,000 rows five folds are made once.
    tune_score : {"auto", "likelihood", "ibs", "concordance"}
        What sizes are compared by; the likelihood for "relative_risk", "ibs" for "ibs" by default.
    time_limit : float, optional
        Seconds after which the best tree so far is returned with its bound, and a `ConvergenceWarning`.
    memory_limit : float
        Bytes that a fit may take: table, codes, what the search makes of them, and its cache with the rest. A full
        cache makes the search slower, not inexact. Where the rows alone take more, a `LimitWarning` says how much.
    n_jobs : int, optional
        Threads of the search, -1 for all cores; fewer where ``memory_limit`` has no room for all. The tree does not
        depend on it. With "ibs" the path of sizes (``max_leaves``, ``tune``) takes one.
    random_state : int, optional
        Seed of the folds; 0 by default, so that a fit can be repeated.
    progress : bool
        Show a progress bar with bound and incumbent.

    Attributes
    ----------
    tree_ : HardTree
        Splits in the data's units, with the relative risk of each leaf.
    objective_, lower_bound_, gap_ : float
        Objective of the tree on the training rows, before shrinkage, what no tree can fall below, and the difference.
    shrinkage_ : float
        Events that each leaf takes from above.
    complexity_ : float
        Cost per leaf of the search, which is part of ``objective_``.
    status_ : Status
        OPTIMAL, CONDITIONALLY_OPTIMAL (with a reference), CONTINUED (a proven tree that goes on below its leaves), or
        the limit that ended the search. Of a continued tree ``report_.details`` has leaves and objective of the proven
        part; ``lower_bound_`` is that of trees of any size with the same cuts, and ``rashomon_set`` is about the proven
        part. Where a limit ends the fit before the tree has gone on, the proven part is the tree, and the limit is the
        status.
    path_ : tuple of SizedTree
        Best trees with at most 1, 2, ... leaves, up to where more do not help. Worked out when first asked for, within
        what the fit left of its time limit; what that cut off is not there. Of a continued tree it is the path of the
        proven part. Saving works it out; a pickled copy has it only if it was asked for before.
    report_ : FitReport
        How the search ended, its objective and bound, and the seconds that it took.
    selection_ : DataFrame
        What ``tune`` tried, best first: mean number of leaves and held-out loss, difference to the best limit on the
        leaves and its standard error; empty without it.
    leaf_table_ : LeafTable
        Rows and events of each leaf, and the curve and median that it predicts; the interval of the median is that of
        the leaf's own rows.
    feature_importances_ : ndarray (n_features_in_,)
        Share of each raw column in what the splits take off the objective, summing to one.
    binarizer_ : Binarizer
        How the raw features became the columns and cuts of the search.

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
    @one_fit_at_a_time
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        entry: Any = None,
        time: Any = None,
        event: Any = None,
        cause: Any = None,
        cause_names: Sequence[str] = (),
        start: Any = None,
        stop: Any = None,
        id: Any = None,
        recurrent: bool = False,
        **unknown: Any,
    ) -> OptimalSurvivalTree:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names. Tools of scikit-learn cut ``y`` into rows: give them
            ``survival_data(X, (event, time)).y``, an array.
        sample_weight : (n,), optional
            Rows of weight 0 are left out.
        entry : (n,), optional
            Time from which a row is under observation (late entry, left truncation); for "relative_risk" alone.
        cause : column name or array, optional
            Competing risks, instead of ``event``: 0 for censored rows, else what happened. ``cause_names`` names codes.
            The objective is the sum of the causes' deviances, and leaves hold cumulative incidences.
        start, stop, id : column name or array, optional
            Several rows for each subject, one for each stretch of time; a subject may visit several leaves. Rows that
            only cut a stretch of equal features are joined.
        recurrent : bool
            Whether events of a subject may happen again: leaves hold mean counts (Andersen and Gill 1982).

        Raises
        ------
        InvalidSurvivalDataError, InvalidParameterError
        TypeError
            Of an argument that an optimal tree does not take, such as ``upper``.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal.
        """
        check_parameters(self)
        refuse_unknown(OptimalSurvivalTree.fit, unknown, ELSEWHERE)
        check_history(self, cause is not None, bool(recurrent))  # again once the rows are read, but before compilation
        SEARCHES[self.objective].warm_up(self.max_depth)
        import torch  # noqa: F401  every fit needs it: late, so that the class can be named without, but before the clock

        timer = StopSignal(self.time_limit, hears_inner=True)
        columns = {"weight": sample_weight, "entry": entry, "time": time, "event": event, "cause": cause}
        columns |= {"cause_names": cause_names, "start": start, "stop": stop, "id": id, "recurrent": recurrent}
        with timer.reading():
            data, rows, order = self._coded_rows(self._read(X, y, **columns))
            room = Room(self.memory_limit).less(bytes_of_frame(data.X, data.column_types())).beside(rows)
            search = self._search(rows, data, order, room)
            look_at_numbers(*data.X.shape)
        with timer:  # a Ctrl-C between two searches counts too
            size = self._size(data, order, search, timer)
            # whoever interrupted the cross-validation does not wait for the search
            seconds = 0.0 if timer.interrupted else timer.left
            with search_bar(self.progress) as bar:
                found = search.best(size.depth, size.leaves, seconds, bar)
            if size.price is not None and isinstance(search, RelativeRiskSearch):
                found = continued(search, found, size.price, timer)
        self._keep(rows, search, with_report(found, size.status, timer))
        alone = self.leaf_ not in WITH_RISK and not self.shrinkage_
        warn_of_early_end(rows, rows.leaf_of(found.tree) if alone else None)
        self._warn_unless_proven()
        return self

    def _coded_rows(self, data: SurvivalData) -> tuple[SurvivalData, Rows, IntArray]:
        """The training rows, the same as codes in their order, and that order (N,)."""
        self.leaf_ = leaf_kind(self, data)
        check_least_rows(self, data.n)
        order, names = self._in_order(data)
        if data.number_block().holds_all(data.X):  # the block is all that is read of the table
            frame, block = data.X, data.number_block().in_order(order)
        else:
            ordered = data.take(order)
            frame, block = ordered.X, ordered.number_block()
        self.binarizer_ = Binarizer(self.thresholds, self.max_levels, self.min_share, self.missing)
        table, _ = self.binarizer_.fit_filled(frame, order=names, block=block)
        if self.level_sets:
            add_level_orders(self.binarizer_, table, data.take(order))
        if not self.binarizer_.columns_:
            warn("no feature can be split, so all rows get one curve; check X", DataWarning)
        return data, Rows.coded(data, self.binarizer_, table, order, block), order

    def _search(self, rows: Rows, data: SurvivalData, order: IntArray, room: Room) -> TreeSearch:
        if self.objective == "relative_risk":
            return RelativeRiskSearch(rows, self, self.leaf_, room)
        reference = None if self.reference is None else reference_curves(self.reference, data.take(order), order)
        return IbsSearch(rows, self, self.leaf_, room, reference)

    def _size(self, data: SurvivalData, order: IntArray, search: TreeSearch, timer: StopSignal) -> SizeChoice:
        """Limits on depth and leaves, as given or as cross-validation chooses them, and how that ended."""
        more = FOLD_SHARE * (search.room.held + search.needed) if is_tuned(self) else 0.0
        if search.needed + more > 0:  # else the search says so once it knows: a sentence is said once
            search.room.check(search.needed + more)
        self.selection_ = OnDemand(pd.DataFrame)
        size = SizeChoice(*size_limits(self), self.complexity, search.shrinkage, NO_TABLE, Status.OPTIMAL)
        if is_tuned(self):
            seed = 0 if self.random_state is None else int(self.random_state)
            share = StopSignal(TUNING_SHARE * timer.left, outer=timer)
            share.end_unless(timer.seconds)  # a fold is read as long as the table was
            search.set_aside()
            room = search.room.less(search.held)
            size = choose_size(data, order, self.binarizer_, self, self.leaf_, seed, share, room)
            self.leaf_ = size.leaf or self.leaf_
            search.shrinkage, self.selection_ = size.shrinkage, size.made
            search.ask(size.complexity)
        if not self.binarizer_.columns_:
            size = replace(size, depth=0, leaves=None if size.leaves is None else 1)
        return size

    def _keep(self, rows: Rows, search: TreeSearch, found: FoundTree) -> None:
        self.tree_, self.report_ = found.tree, found.report
        self.shrinkage_, self.complexity_ = search.shrinkage, search.complexity
        self._parts = TreeParts(rows, search, found, self.leaf_)

    def _warn_unless_proven(self) -> None:
        warn_unless_proven(self.report_)
        if self.status_ in (*PROVEN, Status.CONTINUED) and (ended := self._choice_ended()):
            interrupted = self.report_.details["selection"] == Status.INTERRUPTED
            warn(ended + ("" if interrupted else "; raise time_limit or lower max_depth"), ConvergenceWarning)


def with_report(found: FoundTree, tuned: Status, timer: StopSignal) -> FoundTree:
    """What was found, with the report of the whole fit; ``tuned`` says how the choice of the size ended."""
    report = replace(found.report, seconds=timer.seconds, details={**found.report.details, "selection": str(tuned)})
    if timer.interrupted and report.status is Status.TIME_LIMIT:
        report = replace(report, status=Status.INTERRUPTED)
    return replace(found, report=report)
