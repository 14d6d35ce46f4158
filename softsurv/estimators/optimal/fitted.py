"""What a fitted optimal tree answers: predictions, exports, and its state on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.rules import rounded_text
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.optimal.bands import LeafBands
from softsurv.estimators.optimal.leaves import CauseCurves, LeafCurves
from softsurv.estimators.optimal.near_optimum import near_source
from softsurv.estimators.optimal.on_demand import TreeParts
from softsurv.estimators.optimal.parameters import HISTORIES
from softsurv.estimators.rashomon import HasRashomonSet, NearSource
from softsurv.estimators.shared.base import SurvivalTreeBase
from softsurv.estimators.shared.checks import instead_of
from softsurv.estimators.shared.exact_tree import ExactTree, SizedTree
from softsurv.estimators.shared.on_demand import Later
from softsurv.metrics.histories import Incidence
from softsurv.metrics.shared_curves import SharedCurves
from softsurv.results import Status, how_it_ended
from softsurv.trees.leaf_table import LeafTable
from softsurv.trees.soft_text import leaf_line, leaf_size

WITH_RISK = ("adaptive", "nelson_aalen", "mean_count")
"""Leaves that are ranked by their relative risk."""
RELATIVE_TO = "Relative risk: the hazard against that of all training rows."


class OptimalSurface(LeafBands, ExactTree, HasRashomonSet, SurvivalTreeBase):
    """Predictions and exports of `OptimalSurvivalTree`, whose ``fit`` sets what they read."""

    leaf_: str
    shrinkage_: float
    complexity_: float
    selection_ = Later[pd.DataFrame]()
    _parts: TreeParts
    _knows = ("causes", "subjects", "recurrent")

    def _near_source(self) -> NearSource:
        return near_source(self)

    # -- worked out when asked for -------------------------------------------------------------------------------
    @property
    def path_(self) -> tuple[SizedTree, ...]:
        """Best trees with at most 1, 2, ... leaves."""
        return self._parts.path

    @path_.setter
    def path_(self, sizes: tuple[SizedTree, ...]) -> None:
        self._parts.path = sizes

    @property
    def curves_(self) -> LeafCurves:
        """Cumulative hazard of each leaf."""
        return self._parts.curves

    @property
    def leaf_table_(self) -> LeafTable:
        """Rows and events of each leaf, with the curve and median that it predicts."""
        return self._parts.leaf_table

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each raw column in what the splits take off the objective, (n_features_in_,), summing to one."""
        return self._parts.importances

    # -- predictions ---------------------------------------------------------------------------------------------
    def _prepare(self, X: Any, **unknown: Any) -> IntArray:
        check_is_fitted(self, "tree_")  # a fit that was refused has read the outcome
        if unknown:
            raise InvalidParameterError(
                f"predictions of an optimal tree take no {', '.join(unknown)}; {instead_of(unknown.keys())}"
            )
        frame = X.X if isinstance(X, SurvivalData) else X
        return self.tree_.leaf_of(*self.binarizer_.filled(frame))

    def _leaf(self, prepared: IntArray) -> IntArray:
        return prepared

    def _log_hazard_of(self, prepared: IntArray) -> SharedCurves:
        return self.curves_.of_rows(prepared)

    def _log_cumulative_hazard(self, prepared: IntArray, times: FloatArray) -> FloatArray:
        return self.curves_.log_cumulative_hazard(prepared, times)

    def _at_own_times(self, prepared: IntArray, times: FloatArray) -> FloatArray:
        return super()._at_own_times(prepared, times) if len(times) == 1 else self.curves_.at_own_times(prepared, times)

    def _restricted_mean(self, prepared: IntArray, end: float) -> FloatArray:
        return self.curves_.restricted_mean(prepared, end)

    def _remaining_mean(self, prepared: IntArray, age: FloatArray, end: float) -> FloatArray:
        return self.curves_.remaining_mean(prepared, np.broadcast_to(age, len(prepared)), end)

    def _hazard(self, prepared: IntArray, times: FloatArray) -> FloatArray:
        return self.curves_.hazard(prepared, times)

    def _quantile(self, prepared: IntArray, level: float | FloatArray) -> FloatArray:
        return self.curves_.quantile(prepared, level)

    # -- lower bounds: rows of a leaf share one curve, so their times are in the order of its values ----------------
    def _score(self, X: pd.DataFrame, time: FloatArray) -> FloatArray:
        return time

    def _time_of_score(self, X: pd.DataFrame, level: float) -> FloatArray:
        return np.full(len(X), level)

    # -- event histories -----------------------------------------------------------------------------------------
    def _cause_hazards(self, prepared: IntArray, times: FloatArray) -> FloatArray:
        if isinstance(self.curves_, CauseCurves):
            return self.curves_.cause_hazard(prepared, times)
        return super()._cause_hazards(prepared, times)

    def _hazard_grid(self, last: float) -> FloatArray:
        jumps = self.curves_.jumps()
        return np.unique(np.append(jumps[jumps <= last], last))

    def _incidence_of(self, prepared: IntArray) -> Incidence:
        curves = self.curves_
        return (
            curves.incidence_of_rows(prepared) if isinstance(curves, CauseCurves) else super()._incidence_of(prepared)
        )

    def _incidences(self, prepared: IntArray, times: FloatArray) -> FloatArray:
        assert isinstance(self.curves_, CauseCurves)
        return self.curves_.incidence(prepared, times)

    def _incidence_quantile(self, prepared: IntArray, probability: float, code: int) -> FloatArray:
        assert isinstance(self.curves_, CauseCurves)
        return self.curves_.incidence_quantile(prepared, probability, code - 1)

    def _time_lost(self, prepared: IntArray, horizon: float) -> FloatArray:
        assert isinstance(self.curves_, CauseCurves)
        return self.curves_.time_lost(prepared, horizon)

    @property
    def recurrent_(self) -> bool:
        """Whether the tree was fitted to events that recur."""
        return self.leaf_ == HISTORIES["recurrent"]

    def predict(self, X: Any, cause: int | str | None = None, **how: Any) -> FloatArray:
        """Risk score of each row, (n,); higher means an earlier event.

        Parameters
        ----------
        X : table of n rows
        cause : int or str, optional
            Of the events of this cause; of all events by default.

        Notes
        -----
        The relative risk theta that the tree prints; with Kaplan-Meier, "ipcw" and Aalen-Johansen leaves, whose curves
        may cross, the expected time lost (to the cause) before the last training time.
        """
        leaf = self._checked(X, how)
        if cause is not None:
            code = self._cause(cause)
            return self._time_lost(leaf, self.horizon_)[:, code - 1]
        if self.leaf_ in WITH_RISK:
            return self.tree_.value[leaf, 0]
        return self._expected_loss(leaf)

    def _expected_loss(self, leaf: IntArray) -> FloatArray:
        """Expected time lost before the last training time, (n,)."""
        return self.horizon_ - self.curves_.restricted_mean(leaf, self.horizon_)

    def predict_hazard_function(self, X: Any, times: Any = None, **how: Any) -> FloatArray:
        """Hazard of each row at each time > 0, per unit of time, (n, T).

        Notes
        -----
        A step estimate has no density. This is the slope of its cumulative hazard drawn as straight lines between
        the steps: constant between two event times, 0 after the last.
        """
        return super().predict_hazard_function(X, times, **how)

    # -- reading the tree ----------------------------------------------------------------------------------------
    def leaf_lines(self) -> list[str]:
        """Size, events and prediction of each leaf in words: median and relative risk, incidences, or mean count."""
        leaves = range(self.tree_.n_leaves)
        if self.leaf_ in HISTORIES.values():
            return [self._history_line(leaf) for leaf in leaves]
        ranked, own = self.ranked_by(), self.curves_.own
        return [
            f"{leaf_line(self.leaf_table_, k)}, {ranked[k]}" + (", a curve of its own" if own[k] else "")
            for k in leaves
        ]

    def ranked_by(self) -> Sequence[str]:
        """Relative risk or time lost of each leaf in words; empty for causes and recurrent events."""
        if self.leaf_ in HISTORIES.values():
            return ()
        if self.leaf_ in WITH_RISK:
            return self.tree_.leaf_lines()
        return [
            f"time lost {rounded_text(one)}" for one in self._expected_loss(np.arange(self.tree_.n_leaves)).tolist()
        ]

    def ranking_note(self) -> str:
        """What relative risk or time lost mean; empty for causes and recurrent events."""
        if self.leaf_ in HISTORIES.values():
            return ""
        lost = f"Time lost: expected before {rounded_text(self.horizon_, 6)}."
        return RELATIVE_TO if self.leaf_ in WITH_RISK else lost

    def _history_line(self, leaf: int) -> str:
        """What a leaf of an event history predicts by the middle of the event times."""
        time = float(f"{np.median(self.unique_times_):.2g}")
        at, grid = np.array([leaf]), np.array([time])
        if isinstance(self.curves_, CauseCurves):
            pairs = zip(self.cause_names_, self.curves_.incidence(at, grid)[0, 0], strict=True)
            words = ", ".join(f"{name} {_small_too(value)}" for name, value in pairs)
            return f"{leaf_line(self.leaf_table_, leaf)}, by {time:g} {words}"
        count = float(self.curves_.hazards[leaf](time))
        return f"{leaf_size(self.leaf_table_, leaf)}, mean count {_small_too(count)} by {time:g}"

    def _reading_notes(self) -> list[str]:
        numbers = [note] if (note := self.ranking_note()) else []
        return [*numbers, *self._size_notes(), *self._proof_notes(), *super()._reading_notes()]

    def _choice_ended(self) -> str | None:
        """How the choice of the size ended before its end, in words; None where it did not, or nothing was chosen."""
        status = Status(self.report_.details.get("selection", Status.OPTIMAL))
        if status is Status.OPTIMAL:
            return None
        count = int(self.selection_["loss"].notna().sum())
        return f"{how_it_ended('cross-validation', status)} with {count or 'no'} size{'s' * (count != 1)} compared"

    def _size_notes(self) -> list[str]:
        """That cross-validation did not end, or why it chose a single leaf, where it compared larger trees."""
        if ended := self._choice_ended():
            return [f"{ended[0].upper()}{ended[1:]}: another size may be better."]
        if self.tree_.n_leaves > 1 or self.selection_.empty or self.selection_["leaves"].max() <= 1:
            return []
        return ["A single leaf was chosen by cross-validation: no split is clearly better on held-out rows."]

    def _proof_notes(self) -> list[str]:
        """What is proven of a tree that goes on below a proven one."""
        if self.status_ is not Status.CONTINUED:
            return []
        told = self.report_.details
        proven = f"of depth {told['proven_depth']} with {told['proven_leaves']} leaves"
        first = f"The first splits are those of the best tree {proven}, which is proven; those below are not"
        return [f"{first}, and gap_ is to trees of any size."]

    def to_dict(self) -> dict[str, Any]:
        """Tree, leaves and report as plain JSON values; a median that is not reached is None."""
        check_is_fitted(self, "tree_")
        table, names, values = self.leaf_table_, self.tree_.value_names, self.tree_.value.tolist()
        if self.leaf_ not in WITH_RISK and self.leaf_ not in HISTORIES.values():  # what such leaves predict
            names, values = ("time lost",), self._expected_loss(np.arange(len(values)))[:, None].tolist()
        leaves = [
            {
                "n": int(table.n[k]),
                "events": int(table.events[k]),
                "median": float(table.median[k]) if np.isfinite(table.median[k]) else None,
                **{name.replace(" ", "_"): value for name, value in zip(names, values[k], strict=True)},
                **({"events_by_cause": table.cause_events[k].tolist()} if table.cause_names else {}),
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
            **self._search_state(),
            "leaf": self.leaf_,
            "shrinkage": self.shrinkage_,
            "complexity": self.complexity_,
            "leaves": table_meta,
            "selection": self.selection_.to_dict("records"),
        }
        return arrays, meta

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        self.leaf_, self.shrinkage_ = meta["leaf"], float(meta.get("shrinkage", 0.0))
        self.complexity_ = float(meta.get("complexity", 0.0) or self.complexity)
        table = LeafTable.restore(_below("leaves.", arrays), meta["leaves"])
        kind = CauseCurves if self.leaf_ == HISTORIES["causes"] else LeafCurves
        curves = kind.restore(_below("curves.", arrays), len(table.n))
        self._parts = TreeParts.known(curves, table, arrays["importances"])
        self._restore_search(meta)
        self.selection_ = pd.DataFrame(meta["selection"])


def _below(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _small_too(value: float) -> str:
    """Two decimals, or as many as the first digit of a rare event needs: 0.25, 0.0004."""
    return f"{value:.2f}" if value >= 0.01 or value == 0 else rounded_text(value, 1)
