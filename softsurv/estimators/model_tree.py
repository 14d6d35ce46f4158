"""OptimalModelTree: an exact tree over regressions as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from softsurv.cores import n_threads
from softsurv.data.in_time import look_before_fitting
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.arguments import refuse_unknown, understands
from softsurv.estimators.shared.checks import jobs, number, one_of, whole
from softsurv.estimators.shared.exact_tree import PROVEN, Proven, warn_unless_proven
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.soft.features import encoded_names
from softsurv.estimators.soft.fitted import FittedSoftEstimator
from softsurv.estimators.soft.training import Made, fitted_tree, warn_of_what_was_cut_off
from softsurv.estimators.soft.tree import encoded_rows
from softsurv.estimators.soft.warm_up import LEAVES
from softsurv.exact.compile import ready
from softsurv.exact.objectives import corrections
from softsurv.exact.problem import MAX_DEPTH
from softsurv.hazards import get_family
from softsurv.hazards.base import LeafFamily
from softsurv.results import FitReport, Status
from softsurv.soft.parallel import one_core_each
from softsurv.soft.recipe import Candidate
from softsurv.sparse.exact import ExactModels, ExactSettings, fit_exact
from softsurv.stopping import StopSignal
from softsurv.trees.soft_text import encoded_columns

ELSEWHERE = {"group": "OptimalFairSurvivalTree and SoftSurvivalTree take groups"}
"""Arguments of ``fit`` that other trees have."""

SEARCH = "search"
"""Under this name the report of the search is kept in the details of the fit's."""


@understands(depth="max_depth")
@dataclass(eq=False, repr=False)
class OptimalModelTree(Proven, FittedSoftEstimator):
    """Survival tree with one feature a split and a regression in every leaf, by exact search.

    One regression is fitted to all rows. A leaf corrects its level and shape. To second order the gain of a correction
    in log-likelihood is a function of five sums over the rows of the leaf, so that the exact search finds the tree of
    the largest gain and proves it. Then the common slopes and all leaves are fitted jointly to the full likelihood.

    Parameters
    ----------
    leaf : str or LeafFamily
        Survival model of the leaves: see ``softsurv.hazards.family_names()``.
    max_depth : int
        0 (one regression) to 10.
    max_leaves : int, optional
        No more than ``2**max_depth`` by default.
    min_events_leaf : float
        Least events in a leaf, by weight in units of the mean weight.
    complexity : float or "bic"
        What a leaf has to gain in log-likelihood. "bic": the log of the number of events, for its two parameters, plus
        the log of the number of cuts, among which its split was chosen.
    thresholds : int
        Quantiles at which a number may be cut. The levels of a category are put in the order of the corrections that
        they want, and cut in that order: several levels may go left. Sets of levels out of that order are not tried.
    slopes : {"shared", "own"}
        Whether the regressions of the leaves share their slopes. Own slopes are fitted when the tree is found; the
        search knows corrections of level and shape alone.
    l2 : float, optional
        Penalty of the slopes that the leaves have in common. None: 0.3; where encoded columns outnumber rows as much
        more as it takes for the predictor to vary as it does with a few columns.
    shrinkage : float
        Penalty of each leaf's own level and shape, above 0: a larger one makes the leaves more alike.
    slope_shrinkage : float
        Penalty of each leaf's own slopes: a larger one makes effects more alike across leaves.
    time_limit : float, optional
        Seconds after which the best tree so far is taken, with a `ConvergenceWarning`.
    memory_limit : float
        Bytes that a fit may take: table, codes, what the search makes of them, and its cache with the rest. A full
        cache makes the search slower, not inexact. Where the rows alone take more, a `LimitWarning` says how much.
    n_jobs : int, optional
        Threads of the search.

    Attributes
    ----------
    tree_ : SoftTree
        The rules, and the model of each leaf.
    objective_, lower_bound_, gap_, status_
        They are those of the quadratic objective: minus the gain of the corrections in log-likelihood to second order,
        plus ``complexity`` for each leaf. No tree within the limits and cuts has less than ``lower_bound_``. The
        likelihood of the refitted leaves is another number, and no bound of it is proven. Where the time limit ends the
        fit of the one regression, they are those of corrections to the regression as it was then.
    search_report_ : FitReport
        The same, with seconds and trace.
    report_ : FitReport
        Report of the fit of the leaves: its objective is the penalised mean loss.

    Notes
    -----
    Predictions, text, ``summary()``, pictures and saved models are those of `SoftSurvivalTree`.

    References
    ----------
    Zeileis, Hothorn and Hornik (2008), Model-based recursive partitioning, for the kind of tree.

    Examples
    --------
    >>> from softsurv import OptimalModelTree, load_dataset
    >>> data = load_dataset("veterans")
    >>> tree = OptimalModelTree(max_depth=1, complexity=0.0).fit(data)
    >>> tree.status_, tree.gap_
    (<Status.OPTIMAL: 'optimal'>, 0.0)
    """

    device = "cpu"

    leaf: str | LeafFamily = "weibull"
    max_depth: int = 3
    max_leaves: int | None = None
    _: KW_ONLY
    min_events_leaf: float = 10.0
    complexity: float | str = "bic"
    thresholds: int = 10
    slopes: str = "shared"
    l2: float | None = None
    shrinkage: float = 4.0
    slope_shrinkage: float = 10.0
    time_limit: float | None = 60.0
    memory_limit: float = 1e9
    n_jobs: int | None = 1

    # -- the search ----------------------------------------------------------------------------------------------
    @property
    def search_report_(self) -> FitReport:
        """How the search ended, by the quadratic objective."""
        return self._search_report

    @property
    def _search_report(self) -> FitReport:
        return FitReport.from_dict(self.report_.details[SEARCH])

    # -- fitting -------------------------------------------------------------------------------------------------
    @one_fit_at_a_time
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        entry: Any = None,
        upper: Any = None,
        time: Any = None,
        event: Any = None,
        cause: Any = None,
        cause_names: Sequence[str] = (),
        start: Any = None,
        stop: Any = None,
        id: Any = None,
        recurrent: bool = False,
        **unknown: Any,
    ) -> OptimalModelTree:
        """Fit the tree; arguments as `SoftSurvivalTree.fit` has them, but for ``group``.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names.
        sample_weight : (n,), optional
            How much each row counts, >= 0.
        entry : (n,), optional
            Time from which a row is under observation (late entry, left truncation).
        upper : (n,), optional
            Upper end of an interval that holds the event (interval censoring; see `SurvivalData`).
        cause, cause_names
            Competing risks: each leaf holds one hazard for each cause.
        start, stop, id : (n,), optional
            Covariates that change.
        recurrent : bool
            Whether events of a subject may happen again.

        Raises
        ------
        InvalidSurvivalDataError, InvalidParameterError
        TypeError
            Of an argument that this tree does not take, such as ``group``.

        Warns
        -----
        ConvergenceWarning
            If the tree is not proven optimal for the quadratic objective, or the fit of the regressions was cut off.
        """
        family = self._checked_family()
        refuse_unknown(OptimalModelTree.fit, unknown, ELSEWHERE)
        deep, recursive = self.max_depth > 2, self.max_depth > 3
        ready(corrections.TASK, deep=deep, recursive=recursive, also=LEAVES)
        # two: a Ctrl-C that ends the search does not end the fit of the leaves, but one before it ends both
        budget = StopSignal(self.time_limit)
        signal = StopSignal(self.time_limit, outer=budget)
        columns = {"weight": sample_weight, "entry": entry, "upper": upper, "time": time, "event": event}
        columns |= {"cause": cause, "cause_names": cause_names, "start": start, "stop": stop, "id": id}
        columns["recurrent"] = recurrent
        with budget.reading():
            raw = self._read(X, y, **columns)
            rows, names = self._in_order(raw)
            raw = raw.take(rows)
            encoder, data = encoded_rows(raw, True, names)
        look_before_fitting(*raw.X.shape, budget)
        encoded = encoded_names(encoder, self.n_features_in_, getattr(self, "feature_names_in_", None))
        settings = self._settings()
        with budget, one_core_each():
            made = fit_exact(data, encoded_columns(encoder, list(encoded)), family, settings, signal, budget)
        tree = made.trees[0]
        candidate = Candidate(
            family.name, tree.depth, made.ridge, self.shrinkage, 0.0, len(tree.used_leaves), 1, self._own
        )
        details = {SEARCH: made.search.to_dict(), "reason": self._reason(made)}
        report = FitReport(budget.status or Status.CONVERGED, made.objective, seconds=budget.seconds, details=details)
        self._adopt(
            fitted_tree(raw, encoder, data, Made(made.trees, candidate, report, [], made.covariances), self.horizon_)
        )
        warn_unless_proven(self.search_report_)
        if self.status_ in PROVEN:  # of the regressions as they are
            warn_of_what_was_cut_off(report.status, "the fit of the regressions")
        return self

    def _reason(self, made: ExactModels) -> str:
        """Why the tree has this size."""
        asked = f"the {made.complexity:.3g} in log-likelihood that complexity={self.complexity!r} asks of a leaf"
        if made.rules:
            return f"for each of its splits the tree gains more than {asked}"
        if self.max_depth == 0 or self.max_leaves == 1:
            return "max_depth or max_leaves asks for it"
        return (
            f"no split that leaves {self.min_events_leaf:g} events on each side gains {asked}, to second order; "
            "a smaller complexity gives a tree"
        )

    @property
    def _own(self) -> float | None:
        """Penalty of own slopes, None where they are shared."""
        return self.slope_shrinkage if self.slopes == "own" else None

    def _settings(self) -> ExactSettings:
        """What the tree may be."""
        complexity = None if self.complexity == "bic" else float(self.complexity)
        return ExactSettings(
            self.max_depth, self.max_leaves, float(self.min_events_leaf), complexity, self.thresholds, self.l2,
            self.shrinkage, self._own, self.memory_limit, n_threads(self.n_jobs),
        )  # fmt: skip

    def _checked_family(self) -> LeafFamily:
        """The leaf family, once all arguments are checked."""
        whole("max_depth", self.max_depth, 0)
        if self.max_depth > MAX_DEPTH:
            raise InvalidParameterError(f"max_depth must be an integer from 0 to {MAX_DEPTH}, got {self.max_depth!r}")
        if self.max_leaves is not None:
            whole("max_leaves", self.max_leaves, 1)
        whole("thresholds", self.thresholds, 1)
        one_of("slopes", self.slopes, ("shared", "own"))
        for name in ("min_events_leaf", "shrinkage", "slope_shrinkage"):
            number(name, getattr(self, name), 0.0)
        if self.l2 is not None:
            number("l2", self.l2, 0.0)
        if self.shrinkage == 0:
            raise InvalidParameterError("shrinkage must be > 0, got 0; a small one, such as 0.1, hardly shrinks")
        if self.complexity != "bic":
            number("complexity", self.complexity, 0.0)
        number("memory_limit", self.memory_limit, 1e6, "bytes")
        if self.time_limit is not None:
            number("time_limit", self.time_limit, 0.0, "seconds")
        jobs(self.n_jobs)
        return get_family(self.leaf)
