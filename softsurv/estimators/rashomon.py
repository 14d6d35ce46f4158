"""All trees that are nearly as good as the optimal one (its Rashomon set), as a fitted estimator answers for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import DataWarning, InvalidParameterError, warn
from softsurv.estimators.shared.checks import flag, number, whole
from softsurv.exact.rashomon.near_optimal import NearOptimal
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.tree import CodeTree
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal

SAME = 1e-9
"""Share of an objective by which two may differ and be the same: above the rounding of sums."""


@dataclass(frozen=True)
class NearSource:
    """What an estimator keeps of its fit for its near-optimal trees.

    Attributes
    ----------
    problem : SearchProblem
    depth, leaves : int, int or None
        Limits of the trees.
    scale : float
        The objective is the summed cost divided by this.
    columns : tuple of str (P,)
        Raw column of each feature of the problem.
    names : tuple of str
        All raw columns, in the order of ``feature_importances_``.
    fitted : callable (CodeTree, FitReport) -> estimator
        A copy of the estimator with another tree.
    """

    problem: SearchProblem
    depth: int
    leaves: int | None
    scale: float
    columns: tuple[str, ...]
    names: tuple[str, ...]
    fitted: Callable[[CodeTree, FitReport], Any]

    def importances(self, gains: FloatArray) -> FloatArray:
        """Share of each raw column in what the splits take off the objective, from the gains of features (P,)."""
        total = dict.fromkeys(self.names, 0.0)
        for name, gain in zip(self.columns, gains.tolist(), strict=True):
            total[name] += max(gain, 0.0)
        shares = np.array(list(total.values()))
        return shares / shares.sum() if shares.sum() > 0 else shares

    def is_asked(self, asked: BoolArray) -> BoolArray:
        """Which raw columns are asked, from features (P,)."""
        return np.isin(self.names, [name for name, one in zip(self.columns, asked.tolist(), strict=True) if one])


@dataclass(frozen=True)
class NearOptimalTree:
    """A tree near the optimum.

    Attributes
    ----------
    objective : float
    excess : float
        Objective minus that of the best tree.
    importances : Series
        Share of each raw column in what the splits take off the objective.
    features : tuple of str
        Raw columns that the tree asks.
    status : Status
        NEAR_OPTIMAL; OPTIMAL where it is the best tree; of `RashomonSet.without` the limit that ended its search.
    """

    objective: float
    excess: float
    importances: pd.Series
    features: tuple[str, ...]
    status: Status
    _fitted: Callable[[], Any]

    @cached_property
    def estimator(self) -> Any:
        """The estimator with this tree: it predicts, prints, draws and saves as after a fit."""
        return self._fitted()


class RashomonSet:
    """Every tree within the limits of a fit whose objective is close to the optimum; iterate for them, best first.

    Attributes
    ----------
    objective : float
        Objective of the best tree.
    threshold : float
        Trees up to this objective are in the set.
    n_trees : int
        Trees found; these are all where ``status`` is OPTIMAL.
    n_by_leaves : Series
        Trees found by number of leaves.
    status : Status
        OPTIMAL where the set is complete. Else the limit of time or memory that ended the search: then every tree
        found belongs to the set, as far as the best tree is proven, and others are missing.
    seconds : float

    Notes
    -----
    Two trees differ where a node asks another column, or divides its training rows otherwise. Costs closer than 1e-10
    of the root's are the same. A tree is left out where a split between two leaves lowers no cost, such as one between
    two leaves of the same class: without that split it is in the set.

    References
    ----------
    Xin et al. (2022), Exploring the whole Rashomon set of sparse decision trees: TreeFARMS. Fisher, Rudin and Dominici
    (2019), All models are wrong, but many are useful.
    """

    def __init__(
        self, source: NearSource, epsilon: float, absolute: bool, time_limit: float | None, memory_limit: float
    ) -> None:
        self._source, self._time_limit = source, time_limit
        stop = StopSignal(time_limit)
        self._near = NearOptimal(source.problem, source.depth, source.leaves, memory_limit, columns=source.columns)
        best = self._near.solve(stop).report
        self.objective = best.objective / source.scale
        self.threshold = self.objective + (epsilon if absolute else epsilon * abs(self.objective))
        self.status = self._near.find(self.threshold * source.scale, stop)
        counts = self._near.n_by_leaves
        self.n_trees = sum(counts)
        self.n_by_leaves = pd.Series(counts, range(1, len(counts) + 1), name="trees", dtype=object).rename_axis(
            "leaves"
        )
        self.seconds = stop.seconds
        self._undecided: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[NearOptimalTree]:
        """The trees, the best first, each made when it is asked for."""
        for near in self._near:
            objective = near.objective / self._source.scale
            yield self._tree(objective, near.gains, near.asked, partial(self._near.tree, near))

    def _tree(
        self,
        objective: float,
        gains: FloatArray,
        asked: BoolArray,
        make: Callable[[], CodeTree],
        status: Status | None = None,
    ) -> NearOptimalTree:
        same = objective <= self.objective + SAME * abs(self.objective)
        objective = self.objective if same else objective
        status = status or (Status.OPTIMAL if same and self.status == Status.OPTIMAL else Status.NEAR_OPTIMAL)
        report = FitReport(status, objective, self.objective)
        names = list(self._source.names)
        importances = pd.Series(self._source.importances(gains), names, name="importance")
        return NearOptimalTree(
            objective,
            objective - self.objective,
            importances,
            tuple(np.array(names, object)[self._source.is_asked(asked)].tolist()),
            status,
            lambda: self._source.fitted(make(), report),
        )

    def __contains__(self, tree: object) -> bool:
        """Whether the objective of a `NearOptimalTree` of this fit is within the threshold."""
        if not isinstance(tree, NearOptimalTree):
            raise TypeError(f"a Rashomon set holds trees as without() gives them, got {type(tree).__name__}")
        return bool(tree.objective <= self.threshold + SAME * abs(self.threshold))

    # -- features ------------------------------------------------------------------------------------------------
    def without(self, *features: str) -> NearOptimalTree:
        """The best tree that asks for none of these columns; ``tree in near_set`` tells whether it is as good.

        Parameters
        ----------
        features : str
            Raw columns.

        Raises
        ------
        InvalidParameterError
            A name is not a column of the fit.
        """
        for name in features:
            if name not in self._source.names:
                shown = ", ".join(map(repr, self._source.names[:8]))
                raise InvalidParameterError(f"features must name columns of the fit, {shown}, got {name!r}")
        places = [k for k, column in enumerate(self._source.columns) if column in features]
        solution = self._near.without(places, StopSignal(self._time_limit))
        tree, report, p = solution.tree, solution.report, self._source.problem
        gains, asked = np.zeros(p.codes.shape[1]), np.isin(np.arange(p.codes.shape[1]), tree.feature)
        cost = p.task.costs(tree.sums)
        for node in np.flatnonzero(tree.feature >= 0):
            gains[tree.feature[node]] += cost[node] - cost[tree.left[node]] - cost[tree.right[node]]
        ended = None if report.status == Status.OPTIMAL else report.status
        return self._tree(report.objective / self._source.scale, gains, asked, lambda: tree, ended)

    @cached_property
    def needed_features(self) -> tuple[str, ...]:
        """Columns that every tree of the set asks; worked out by the best tree without each, when asked for.

        Warns
        -----
        ConvergenceWarning
            Where a search ended early, so that a column may be needed that is not named.
        """
        needed: list[str] = []
        open_: list[str] = []
        asked = np.isin(np.arange(len(self._source.columns)), self._near.best.tree.feature)
        for name in np.array(self._source.names)[self._source.is_asked(asked)].tolist():  # the best tree needs no other
            tree = self.without(name)
            if tree not in self:
                (needed if tree.status in (Status.OPTIMAL, Status.NEAR_OPTIMAL) else open_).append(name)
        self._undecided = tuple(open_)
        if open_:
            warn(
                f"whether {', '.join(map(repr, open_))} can be left out was not found out in time; raise time_limit",
                ConvergenceWarning,
            )
        return tuple(needed)

    def importances(self, max_trees: int = 100_000) -> pd.DataFrame:
        """How important each column can be, over the trees of the set.

        Parameters
        ----------
        max_trees : int
            The best so many trees are looked at. ``attrs["n_trees"]`` tells how many that were.

        Returns
        -------
        DataFrame, index ``feature``
            ``needed``: every tree of the set asks it. ``share`` of the trees looked at that ask it. ``least``,
            ``best`` and ``most``: its importance where it is least, in the best tree, and where it is most.
        """
        whole("max_trees", max_trees, 1)
        names, n = list(self._source.names), 0
        least, most, asked = np.full(len(names), np.inf), np.zeros(len(names)), np.zeros(len(names))
        best = np.zeros(len(names))
        for near in islice(self._near, max_trees):
            shares = self._source.importances(near.gains)
            best = shares if n == 0 else best
            least, most = np.minimum(least, shares), np.maximum(most, shares)
            asked += self._source.is_asked(near.asked)
            n += 1
        columns = {
            "needed": [name in self.needed_features for name in names],
            "share": asked / max(n, 1),
            "least": np.where(np.isfinite(least), least, 0.0),
            "best": best,
            "most": most,
        }
        table = pd.DataFrame(columns, index=pd.Index(names, name="feature"))
        table = table.sort_values(["most", "best"], ascending=False, kind="stable")
        table.attrs["n_trees"] = n
        return table

    def __str__(self) -> str:
        end = "interruption" if self.status == Status.INTERRUPTED else str(self.status).replace("_", " ")
        more = "" if self.status == Status.OPTIMAL else f" found before the {end}"
        trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees:,} trees"
        text = f"{trees}{more} with an objective of at most {self.threshold:.6g}; the best has {self.objective:.6g}"
        needed = ", ".join(self.needed_features) or ("none known" if self._undecided else "no feature")
        return f"{text}\nAsked by every tree: {needed}"

    __repr__ = __str__


class HasRashomonSet:
    """Mixin of the estimators that answer for all trees near the optimum."""

    memory_limit: float

    @abstractmethod
    def _near_source(self) -> NearSource:
        """What the last fit keeps for its near-optimal trees, or an error that says why there is nothing."""

    def rashomon_set(
        self, epsilon: float = 0.01, *, absolute: bool = False, time_limit: float | None = 60.0
    ) -> RashomonSet:
        """All trees within the limits of this fit that are nearly as good as the best one.

        Parameters
        ----------
        epsilon : float
            Trees are wanted whose objective, cost per leaf included, is at most ``(1 + epsilon)`` times the least.
        absolute : bool
            ``epsilon`` is added to the least objective instead.
        time_limit : float, optional
            Seconds. Where they do not suffice, the set says so by its ``status``.

        Returns
        -------
        RashomonSet

        Raises
        ------
        InvalidParameterError
            For an objective whose trees cannot be listed, and for a copy of the tree without training rows: neither
            saving nor pickling keeps them.
        """
        check_is_fitted(self, "tree_")
        if vars(self)["report_"].status is Status.CONTINUED:
            warn(
                "the tree goes on below a proven one; the set holds trees near the proven one, of its depth at most",
                DataWarning,
            )
        number("epsilon", epsilon, 0.0)
        flag("absolute", absolute)
        if time_limit is not None:
            number("time_limit", time_limit, 0.0, "seconds")
        return RashomonSet(self._near_source(), float(epsilon), absolute, time_limit, self.memory_limit)


def refuse_objective(objective: str, known: Sequence[str]) -> None:
    """Refuse an objective whose near-optimal trees cannot be listed."""
    if objective not in known:
        raise InvalidParameterError(
            f"a Rashomon set needs objective={' or '.join(map(repr, known))}, got {objective!r}; fit with one of these"
        )


def rows_are_gone() -> InvalidParameterError:
    """The error for a copy without its training rows."""
    return InvalidParameterError(
        "a Rashomon set needs the training rows, which a saved or pickled tree does not keep, got none; fit again"
    )
