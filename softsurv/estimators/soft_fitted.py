"""The side of a soft tree's estimator that is there once it is fitted: predictions, reading, saving."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.base import FloatArray, SurvivalTreeBase
from softsurv.estimators.soft_features import encoded_names, importances, reading_notes
from softsurv.estimators.soft_parameters import choose_device
from softsurv.metrics.evaluate import outcome
from softsurv.nonparametric import StepFunction
from softsurv.soft.fitted import FittedSoftTree
from softsurv.soft.problem import time_floor
from softsurv.trees.soft_text import soft_tree_dot, soft_tree_text
from softsurv.trees.soft_tree import SoftTree


class PreparedRows:
    """Encoded features, and which leaves speak for a row."""

    def __init__(self, x: Tensor, path: str = "hbp") -> None:
        self.x = x
        self.path = path


def leaf_of(tree: SoftTree, x: Tensor) -> NDArray[np.int64]:
    """HBP leaf of each row, (n,)."""
    with torch.no_grad():
        return tree.apply_leaf(x.to(tree.leaves))[0].cpu().numpy()


class FittedSoftEstimator(SurvivalTreeBase):
    """What a fitted `SoftSurvivalTree` answers; its attributes are documented there."""

    device: str

    # -- taking over ---------------------------------------------------------------------------------------------
    def _adopt(self, fitted: FittedSoftTree) -> None:
        """Take a fitted tree over: from a fit, a streamed fit or a file."""
        self.tree_, self.candidate_, self.depth_ = fitted.tree, fitted.candidate, fitted.tree.depth
        self.report_, self.leaf_table_, self.spread_ = fitted.report, fitted.leaf_table, fitted.spread
        self.time_floor_, self.preprocessor_ = fitted.time_floor, fitted.preprocessor
        self.selection_ = pd.DataFrame(fitted.tried)

    def _keep_curves(self, censoring: StepFunction, unique_times: FloatArray, horizon: float) -> None:
        """Keep what scores and default grids need of the training outcomes."""
        self.censoring_, self.unique_times_, self.horizon_ = censoring, unique_times, horizon

    def _adopt_streamed(
        self,
        fitted: FittedSoftTree,
        names: list[str],
        censoring: StepFunction,
        unique_times: FloatArray,
        horizon: float,
    ) -> Self:
        """Take a streamed fit over."""
        self._adopt(fitted)
        self._keep_curves(censoring, unique_times, horizon)
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        return self

    # -- predictions ---------------------------------------------------------------------------------------------
    def _prepare(self, X: Any, *, path: str = "hbp", **unknown: Any) -> PreparedRows:
        if unknown:
            raise InvalidParameterError(f"predictions take path=, got {', '.join(unknown)}")
        if path not in ("hbp", "soft"):
            raise InvalidParameterError(f'path must be "hbp" or "soft", got {path!r}')
        if isinstance(X, SurvivalData):
            X = X.X
        if self.preprocessor_ is not None:
            return PreparedRows(torch.tensor(self.preprocessor_.transform(X).to_numpy(np.float64)), path)
        from softsurv.data.frames import as_frame, numeric_matrix

        frame = as_frame(X)
        if frame.shape[1] != self.n_features_in_:
            raise InvalidParameterError(
                f"X must have {self.n_features_in_} features as in training, got {frame.shape[1]}"
            )
        return PreparedRows(torch.as_tensor(numeric_matrix(frame)), path)

    def _leaf(self, prepared: PreparedRows) -> NDArray[np.int64]:
        return leaf_of(self.tree_, prepared.x)

    def _log_cumulative_hazard(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        positive = np.where(times > 0, times, 1.0)
        grid = self._place(torch.as_tensor(positive))
        with torch.no_grad():
            x = self._place(prepared.x)
            if prepared.path == "hbp":
                values = self.tree_.log_cumulative_hazard(x, grid)[0]
            else:
                survival = self.tree_.survival_function(x, grid, "soft")[0]
                values = torch.log(-torch.log(survival.clamp(min=1e-300)))
        out = values.double().cpu().numpy()
        out[:, times <= 0] = -np.inf
        return out

    def _hazard(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        if prepared.path != "hbp":
            raise InvalidParameterError('a hazard belongs to one leaf; leave path at "hbp"')
        with torch.no_grad():
            grid = self._place(torch.as_tensor(np.ascontiguousarray(times)))
            return self.tree_.log_hazard(self._place(prepared.x), grid)[0].double().exp().cpu().numpy()

    def _quantile(self, prepared: PreparedRows, level: float) -> FloatArray:
        with torch.no_grad():
            return self.tree_.survival_time(self._place(prepared.x), level, prepared.path)[0].double().cpu().numpy()

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
            ``time``, ``event``, ``entry``, ``upper``, ``sample_weight`` as in ``fit``.

        Notes
        -----
        log S(t) - log S(entry), with log h(t) for an event; log(S(t) - S(upper)) - log S(entry) for an interval.
        Events and censorings at time 0 are read at ``time_floor_``.
        """
        check_is_fitted(self, "censoring_")
        data = survival_data(X, y, weight=columns.pop("sample_weight", None), **columns)
        rows = self._prepare(data.X)
        left = torch.zeros_like(data.event) if data.upper is None else ~data.event & data.upper.isfinite()
        time = torch.where((data.time > 0) | left, data.time, self.time_floor_)
        with torch.no_grad():
            values = self.tree_.log_likelihood(self._place(rows.x), time, data.event, data.entry, data.upper)
        weight = 1.0 if data.weight is None else data.weight.numpy()
        return np.asarray(weight * values[0].double().cpu().numpy())

    # -- reading the tree ----------------------------------------------------------------------------------------
    def routing_probability(self, X: Any) -> FloatArray:
        """Probability of going left at each branch node, (n, B), nodes in heap order."""
        with torch.no_grad():
            return self.tree_.routing_probability(self._place(self._prepare(X).x))[0].cpu().numpy()

    def leaf_probability(self, X: Any) -> FloatArray:
        """Probability of each leaf, (n, L); rows sum to one."""
        with torch.no_grad():
            return self.tree_.leaf_probability(self._place(self._prepare(X).x))[0].cpu().numpy()

    @property
    def encoded_names_(self) -> list[str]:
        """Names of the encoded features, as the rules show them."""
        return encoded_names(self.preprocessor_, self.n_features_in_, getattr(self, "feature_names_in_", None))

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each raw feature in the tree, (n_features_in_,), summing to one; zero for an unused feature.

        Notes
        -----
        Sum over branch nodes and leaves of |coefficient| times the standard deviation of the encoded feature, each
        node weighted by its share of the training rows; one-hot columns add up for their source.
        """
        return importances(self.tree_, self.leaf_table_, self.spread_, self.preprocessor_)

    def export_text(self) -> str:
        """The tree as text: the rules that decide, in the data's own units, and each leaf's numbers.

        Notes
        -----
        What is printed is the model: whoever follows the rules by hand comes to the leaf of ``apply``. A dense split
        is printed by its points, with the whole table of points below the tree.
        """
        notes = reading_notes(self.tree_, self.preprocessor_, self.report_)
        return soft_tree_text(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_, notes)

    def export_dot(self) -> str:
        """The tree in Graphviz's language."""
        return soft_tree_dot(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_)

    # -- saving --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        tried = self.selection_.to_dict("records")
        return FittedSoftTree(
            self.tree_, self.candidate_, self.report_, self.leaf_table_, self.spread_, self.time_floor_,
            self.preprocessor_, [{str(name): value for name, value in row.items()} for row in tried],
        ).state()  # fmt: skip

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        # a model saved without its floor has the training times in the censoring curve
        floor = time_floor(torch.as_tensor(self.censoring_.times))
        self._adopt(FittedSoftTree.restored(arrays, meta, choose_device(self.device), floor))
