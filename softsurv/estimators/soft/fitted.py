"""The methods of a fitted soft tree: predictions, explanations, saving and loading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.alignment import align_columns
from softsurv.data.frames import as_frame, checked_features, has_names, numeric_matrix
from softsurv.data.kinds import as_the_tree_knows
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.base import ROWS_AT_ONCE, SurvivalTreeBase
from softsurv.estimators.shared.checks import instead_of
from softsurv.estimators.shared.tables import check_room_to_encode
from softsurv.estimators.soft.bands import CurveBands
from softsurv.estimators.soft.causes import SoftCauses
from softsurv.estimators.soft.prepared import PreparedRows
from softsurv.estimators.soft.reading import SoftReading
from softsurv.estimators.soft.starts import SoftStarts
from softsurv.metrics.evaluate import outcome
from softsurv.metrics.histories import Incidence, by_code
from softsurv.metrics.shifted_curves import ShiftedCurves
from softsurv.nonparametric import StepFunction
from softsurv.trees.causes_in_leaves import CountedIncidences, RankedByHazard

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from softsurv.numerics import Design
    from softsurv.soft.fitted import FittedSoftTree
    from softsurv.trees.soft_tree import SoftTree
else:
    from softsurv.estimators.soft import torch_later as torch


def leaf_of(tree: SoftTree, x: Tensor | Design) -> IntArray:
    """HBP leaf of each row, (n,); leaves that no row can reach have no number."""
    with torch.no_grad():
        leaf = tree.apply_leaf(x.to(tree.leaves))[0].cpu().numpy()
    return np.searchsorted(tree.used_leaves, leaf)


class FittedSoftEstimator(CurveBands, SoftReading, SoftCauses, SoftStarts, SurvivalTreeBase):
    """The methods of a fitted `SoftSurvivalTree`; its attributes are documented there."""

    device: str
    _knows = ("causes", "subjects", "recurrent")

    # -- taking over ---------------------------------------------------------------------------------------------
    def _adopt(self, fitted: FittedSoftTree) -> None:
        """Take a fitted tree over: from a fit, a streamed fit or a file."""
        self.tree_, self.candidate_, self.depth_ = fitted.tree, fitted.candidate, fitted.tree.depth
        self.report_, self.leaf_table_, self.spread_ = fitted.report, fitted.leaf_table, fitted.spread
        self.time_floor_, self.preprocessor_ = fitted.time_floor, fitted.preprocessor
        self.centre_, self.split_sizes_, self.covariance_ = fitted.centre, fitted.split_sizes, fitted.covariance
        self.typical_rows_ = fitted.typical
        self.selection_ = pd.DataFrame(fitted.tried)
        self.cause_trees_ = tuple(tree for tree, _ in fitted.causes)
        self.cause_covariances_ = tuple(covariance for _, covariance in fitted.causes)

    def _keep_curves(self, censoring: StepFunction, unique_times: FloatArray, horizon: float) -> None:
        """Keep the training outcomes that scores and default grids need."""
        self.censoring_, self.unique_times_, self.horizon_ = censoring, unique_times, horizon

    def _adopt_streamed(
        self,
        fitted: FittedSoftTree,
        names: list[str],
        censoring: StepFunction,
        unique_times: FloatArray,
        horizon: float,
    ) -> Self:
        """Take a streamed fit over; nothing of an earlier fit stays."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_starts"]:
            del self.__dict__[name]
        self._adopt(fitted)
        self._keep_curves(censoring, unique_times, horizon)
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        return self

    # -- predictions ---------------------------------------------------------------------------------------------
    def _prepare(self, X: Any, *, path: str = "hbp", **unknown: Any) -> PreparedRows:
        check_is_fitted(self, "tree_")  # a fit that ended in an error may have set other attributes
        if unknown:
            raise InvalidParameterError(
                f"predictions take path=, got {', '.join(unknown)}; {instead_of(unknown.keys())}"
            )
        if path not in ("hbp", "soft"):
            raise InvalidParameterError(f'path must be "hbp" or "soft", got {path!r}')
        if isinstance(X, SurvivalData):
            X = X.X
        if self.preprocessor_ is not None:
            raw = self.preprocessor_.aligned(X)
            check_room_to_encode(len(raw), len(self.preprocessor_.columns_))
            return PreparedRows(torch.tensor(self.preprocessor_.transform_aligned(raw).to_numpy()), path)
        frame, known = as_frame(X), hasattr(self, "feature_names_in_")
        frame = align_columns(frame, self.encoded_names_, named=has_names(X), trained_with_names=known)
        return PreparedRows(torch.as_tensor(numeric_matrix(checked_features(frame))), path)

    def _leaf(self, prepared: PreparedRows) -> IntArray:
        return leaf_of(self.tree_, prepared.x)

    def _log_cumulative_hazard(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        if self.cause_trees_:
            return self._log_hazard_of_all(prepared, times)
        positive = np.where(times > 0, times, 1.0)
        grid = self._place(torch.as_tensor(positive))
        with torch.no_grad():
            values = self.tree_.log_cumulative_hazard(self._place(prepared.x), grid, prepared.path)[0]
        out = values.double().cpu().numpy()
        out[:, times <= 0] = -np.inf
        return out

    def _at_own_times(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        if len(times) == 1 or self.cause_trees_:
            return super()._at_own_times(prepared, times)
        own = self._place(torch.as_tensor(np.where(times > 0, times, 1.0)))
        with torch.no_grad():
            values = self.tree_.log_cumulative_hazard_at(self._place(prepared.x), own, prepared.path)[0]
        return np.where(times > 0, values.double().cpu().numpy(), -np.inf)

    def _log_hazard_of(self, prepared: PreparedRows) -> Callable[[FloatArray], FloatArray]:
        """Equal rows are worked out once: they tie in measures, and no order of rows changes a last digit.

        Rows of a leaf keep their order at all times, so concordance need not compare all rows at all events.
        """
        once, place = prepared.once

        def of_each(times: FloatArray) -> FloatArray:
            return self._log_cumulative_hazard(once, np.asarray(times, dtype=float))[place]

        if prepared.path != "hbp":
            return of_each
        if self.cause_trees_:
            curves = self._cause_curves(self._own_leaf(once), once)
            return of_each if curves is None else RankedByHazard(curves.take(place), of_each)
        leaf = self._leaf(once)
        with torch.no_grad():
            effects = self.tree_.effects_in_leaves(self._place(once.x))[0].double().cpu().numpy()
        offset = effects[self.tree_.used_leaves[leaf], np.arange(len(leaf))]
        return ShiftedCurves(leaf[place], self._rise, len(self.tree_.used_leaves), offset[place], of_each)

    def _rise(self, times: FloatArray) -> FloatArray:
        """What the linear predictor of each leaf gains by each time, (L, T); -inf at time 0."""
        return self._rises(self.tree_, times)[self.tree_.used_leaves]

    def _incidence_of(self, prepared: PreparedRows) -> Incidence:
        once, place = prepared.once

        def of_each(times: FloatArray) -> FloatArray:
            return self._incidences(once, times)[place]

        if prepared.path != "hbp" or not self.cause_trees_:
            return by_code(of_each)
        curves = self._cause_curves(self._own_leaf(once), once)
        return by_code(of_each) if curves is None else CountedIncidences(curves.take(place), of_each)

    def _hazard(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        if prepared.path != "hbp":
            raise InvalidParameterError('a hazard belongs to one leaf; leave path at "hbp"')
        if self.cause_trees_:
            return self._hazard_of_all(prepared, times)
        with torch.no_grad():
            grid = self._place(torch.as_tensor(np.ascontiguousarray(times)))
            return self.tree_.log_hazard(self._place(prepared.x), grid)[0].double().exp().cpu().numpy()

    def _quantile(self, prepared: PreparedRows, level: float | FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):  # at level 1 the hazard is 0
            return self._time_of_hazard(prepared, np.log(-np.log(level)))

    def _remaining_quantile(self, prepared: PreparedRows, age: FloatArray, share: float) -> FloatArray:
        now = self._at_own_times(prepared, age[:, None])[:, 0]  # the hazard counts on where S itself is 0 to rounding
        due = self._time_of_hazard(prepared, np.logaddexp(now, np.log(-np.log(share))))
        return np.maximum(due - age, 0.0)

    def _time_of_hazard(self, prepared: PreparedRows, log_hazard: FloatArray | float) -> FloatArray:
        """Smallest time at which log H is that of each row (n,), or of all; inf where it never is, (n,)."""
        found, level = np.empty(len(prepared)), np.broadcast_to(log_hazard, len(prepared))
        for begin in range(0, len(found), ROWS_AT_ONCE):  # few, as each step of the search reads all
            rows = slice(begin, begin + ROWS_AT_ONCE)
            found[rows] = self._time_of_hazard_of_some(prepared[rows], level[rows])
        return found

    def _time_of_hazard_of_some(self, prepared: PreparedRows, log_hazard: FloatArray) -> FloatArray:
        with torch.no_grad():
            if self.cause_trees_:
                return self._time_of_hazard_of_all(prepared, log_hazard)
            found = self.tree_.time_of_hazard(self._place(prepared.x), log_hazard, prepared.path)
        return found[0].double().cpu().numpy()

    def _outcome(self, data: SurvivalData) -> dict[str, Any]:
        return outcome(data, self.time_floor_)

    def _place(self, value: Tensor) -> Tensor:
        return value.to(self.tree_.leaves)

    def log_likelihood(self, X: Any, y: Any = None, **columns: Any) -> FloatArray:
        """Log-likelihood of each row in its leaf, per unit of time, times the row's weight, (n,).

        Parameters
        ----------
        X, y
            As in ``fit``, also for late entry and intervals.
        **columns
            ``time``, ``event``, ``entry``, ``upper``, ``sample_weight``, ``cause``, ``start``, ``stop``, ``id`` as in
            ``fit``.

        Raises
        ------
        InvalidSurvivalDataError
            If the rows cannot be read, or have other causes than the training rows.

        Notes
        -----
        log S(t) - log S(entry), plus log h(t) for an event; log(S(t) - S(upper)) - log S(entry) for an interval. With
        causes it is a sum over causes; for each the events of the others count as censored. Events and censorings at
        time 0 are taken at ``time_floor_``.
        """
        check_is_fitted(self, "tree_")
        with as_the_tree_knows():
            data = survival_data(X, y, weight=columns.pop("sample_weight", None), **columns)
        rows = self._prepare(data.X)
        left = torch.zeros_like(data.event) if data.upper is None else ~data.event & data.upper.isfinite()
        time = torch.where((data.time > 0) | left, data.time, self.time_floor_)
        self._require_the_same_causes(data)
        with torch.no_grad():
            parts = [
                tree.log_likelihood(self._place(rows.x), time, part.event, data.entry, data.upper)[0]
                for tree, part in zip(self._trees, data.by_cause(), strict=True)
            ]
        weight = 1.0 if data.weight is None else data.weight.numpy()
        return np.asarray(weight * torch.stack(parts).sum(0).double().cpu().numpy())

    # -- reading the tree ----------------------------------------------------------------------------------------
    def routing_probability(self, X: Any) -> FloatArray:
        """Probability of going left at each branch node, (n, B), nodes in heap order."""
        with torch.no_grad():
            return self.tree_.routing_probability(self._place(self._prepare(X).x))[0].cpu().numpy()

    def leaf_probability(self, X: Any) -> FloatArray:
        """Probability of each leaf, (n, L), leaves from left to right; rows sum to one."""
        with torch.no_grad():
            every = self.tree_.leaf_probability(self._place(self._prepare(X).x))[0].cpu().numpy()
        return every[:, self.tree_.used_leaves]

    # -- saving --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        from softsurv.soft.fitted import FittedSoftTree

        tried = self.selection_.to_dict("records")
        return FittedSoftTree(
            self.tree_, self.candidate_, self.report_, self.leaf_table_, self.spread_, self.time_floor_,
            self.preprocessor_, [{str(name): value for name, value in row.items()} for row in tried],
            self.centre_, self.split_sizes_, self.covariance_,
            tuple(zip(self.cause_trees_, self.cause_covariances_, strict=True)), self.typical_rows_,
        ).state()  # fmt: skip

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        from softsurv.estimators.soft.devices import choose_device
        from softsurv.soft.fitted import FittedSoftTree
        from softsurv.soft.problem import time_floor

        # a model saved without its floor has the training times in the censoring curve
        floor = time_floor(torch.as_tensor(self.censoring_.times))
        self._adopt(FittedSoftTree.restored(arrays, meta, choose_device(self.device), floor))
