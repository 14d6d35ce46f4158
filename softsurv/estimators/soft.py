"""SoftSurvivalTree: a soft survival tree as a scikit-learn estimator."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from softsurv.budget import Budget
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.estimators.base import FloatArray, SurvivalTreeBase
from softsurv.estimators.bridge import routing_from_tree, start_tree
from softsurv.estimators.soft_parameters import (
    FitSettings,
    SoftParameters,
    check_parameters,
    choose_device,
    settings_of,
)
from softsurv.hazards import get_family
from softsurv.metrics.evaluate import outcome
from softsurv.results import FitReport
from softsurv.soft.fit import Machine, Recipe, fit_tree
from softsurv.soft.parallel import one_core_each
from softsurv.soft.problem import time_floor
from softsurv.soft.selection import Candidate, Selection, select
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.leaf_table import LeafTable, leaf_table_of
from softsurv.trees.soft_text import soft_tree_dot, soft_tree_text
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import paths

logger = logging.getLogger(__name__)


class SoftSurvivalTree(SoftParameters, SurvivalTreeBase):
    """Survival tree with soft oblique splits and a smooth survival model in every leaf.

    A branch node sends a row left with probability ``sigmoid(w0 + w.x)``; a prediction follows the more probable
    branch to one leaf, whose survival model still varies with x. Without arguments the depth and the penalties are
    chosen by inner cross-validation (see ``selection_``).

    Parameters
    ----------
    depth : int, optional
        0 (a single leaf) to 10; chosen from 0 to 3 by default.
    leaf : str or LeafFamily
        Survival model of the leaves: see ``softsurv.hazards.family_names()``.
    n_knots : int
        Internal knots of the spline leaves.
    solver : {"lbfgs", "nodec"}
        All parameters jointly, or the paper's node-based decomposition.
    n_restarts : int
        Starts, trained together; the one with the lowest training objective is kept.
    init : {"auto", "random", "kmeans", "logrank"} or hard tree
        "auto": a greedy log-rank tree and random starts. An `OptimalSurvivalTree` or `HardTree`: its splits are the
        only start, and its depth is the default of ``depth``.
    l2, shrinkage, routing_l2 : float, optional
        Penalties: on the leaf coefficients, on each leaf's distance from the single-leaf fit, on the routing
        weights. Each is divided by the number of rows. None: chosen by inner cross-validation.
    fairness : float
        Weight of the mean squared distance between the survival curves of the groups (``group`` in ``fit``).
    l1 : float
        Group lasso on the features, so that the tree names few of them; divided by the square root of rows.
    max_iter : int
        Iterations of L-BFGS, or macro iterations of NODEC-DR.
    preset : {None, "paper"}
        "paper": NODEC-DR with the published settings in place of the arguments above; needs ``depth``.
    time_limit : float, optional
        Seconds after which the best tree so far is returned.
    device : str
        "auto" takes CUDA where there is a device.
    dtype : {"float64", "float32"}
    random_state : int, optional
        Seed of folds and starts; 0 by default, so that a fit can be repeated.
    preprocess : bool
        Impute, one-hot encode and scale inside; False takes numeric, complete features as they are.
    progress : bool
        Show a progress bar.

    Attributes
    ----------
    tree_ : SoftTree
        The fitted torch module, a stack of one.
    report_ : FitReport
        Status, objective, trace and seconds.
    candidate_ : Candidate
        Depth, family and penalties used.
    selection_ : DataFrame
        What inner cross-validation tried, best first; empty where nothing was left to choose.
    leaf_table_ : LeafTable
        Rows, events and Kaplan-Meier curve of each leaf, with weights, late entries and intervals.
    time_floor_ : float
        What stands for time 0 in training and in scores: half the smallest positive training time.
    preprocessor_ : Preprocessor

    References
    ----------
    Consolo, Amaldi & Carrizosa (2025), Soft decision trees for survival analysis, eq. 5. Default design: shrinkage
    towards the single leaf and validated depth, which the paper does not have.

    Examples
    --------
    >>> from softsurv import SoftSurvivalTree, load_dataset
    >>> train, test = load_dataset("gbsg2").split(seed=0)
    >>> tree = SoftSurvivalTree(depth=1, l2=1.0, shrinkage=3.0, routing_l2=1.0).fit(train.X, train.y)
    >>> tree.predict_survival_function(test.X, times=[365, 730]).shape
    (137, 2)
    """

    # -- fitting -------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        group: Any = None,
        entry: Any = None,
        upper: Any = None,
        time: Any = None,
        event: Any = None,
    ) -> SoftSurvivalTree:
        """Fit the tree.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names.
        sample_weight : (n,), optional
        group : (n,), optional
            Sensitive group of each row, for ``fairness``; never a feature.
        entry, upper : (n,), optional
            Left truncation, and the upper end of an interval that holds the event (see `SurvivalData`).

        Raises
        ------
        InvalidSurvivalDataError, InvalidParameterError
        """
        check_parameters(self)
        columns = {"weight": sample_weight, "group": group, "entry": entry, "upper": upper, "time": time}
        raw = self._read(X, y, event=event, **columns)
        self.time_floor_ = time_floor(raw.time)
        data = self._encode(raw)
        seed = 0 if self.random_state is None else int(self.random_state)
        start = None if isinstance(self.init, str) else start_tree(self.init, raw)
        settings = settings_of(self, None if start is None else start.depth)
        with Budget(self.time_limit) as budget, one_core_each() as workers:
            machine = Machine(choose_device(self.device), getattr(torch, self.dtype), budget, workers)
            self._train(data, self._choose(data, settings, seed, machine), settings, seed, machine, start)
        self.leaf_table_ = leaf_table_of(raw, self._leaf(_Rows(data.x)), 2**self.depth_)
        return self

    def _encode(self, raw: SurvivalData) -> SurvivalData:
        if not self.preprocess:
            self.preprocessor_ = None
            return raw
        self.preprocessor_ = Preprocessor()
        encoded = self.preprocessor_.fit_transform(raw.X)
        if encoded.shape[1] == 0:
            warnings.warn(
                "every feature is constant, so all rows get one curve; check the columns of X",
                DataWarning,
                stacklevel=4,
            )
        return raw.with_features(encoded)

    def _choose(self, data: SurvivalData, settings: FitSettings, seed: int, machine: Machine) -> Candidate:
        """Depth and penalties: as given, or by inner cross-validation where something is left open."""
        self.selection_ = pd.DataFrame()
        if settings.candidate is not None:
            return settings.candidate
        assert settings.grid is not None
        bar = self._bar("choosing")
        chosen: Selection = select(
            data,
            settings.families,
            settings.grid,
            seed,
            machine.device,
            machine.dtype,
            machine.budget,
            None if bar is None else bar.set_description,
            machine.workers,
        )
        if bar is not None:
            bar.close()
        self.selection_ = pd.DataFrame(chosen.table())
        logger.info("chose %s of %d candidates", chosen.chosen, len(chosen.trials))
        return chosen.chosen

    def _train(
        self,
        data: SurvivalData,
        candidate: Candidate,
        settings: FitSettings,
        seed: int,
        machine: Machine,
        start: HardTree | None,
    ) -> None:
        groups = tuple(self._source_numbers(data.x.shape[1]))
        starts: tuple[Any, ...] = settings.starts
        if start is not None:
            x = data.x.numpy()
            starts = (routing_from_tree(start, self.preprocessor_, x, candidate.depth, self.encoded_names_),)
        recipe = Recipe(candidate, starts, settings.training, settings.l2_all, self.fairness, self.l1, groups)
        bar = self._bar("training")

        def show(number: int, value: Tensor) -> None:
            bar.update()
            bar.set_postfix(objective=f"{float(value.min()):.5f}")

        family = get_family(self.leaf, **settings.family_settings)
        self.tree_, self.report_ = fit_tree(data, family, recipe, seed, machine, None if bar is None else show)
        if bar is not None:
            bar.close()
        self.candidate_, self.depth_ = candidate, candidate.depth
        self.spread_ = data.x.numpy().std(0)

    def _bar(self, what: str) -> Any:
        if not self.progress:
            return None
        from tqdm.auto import tqdm

        return tqdm(desc=what, unit=" rounds")

    # -- predictions ---------------------------------------------------------------------------------------------
    def _prepare(self, X: Any, *, path: str = "hbp", **unknown: Any) -> _Rows:
        if unknown:
            raise InvalidParameterError(f"predictions take path=, got {', '.join(unknown)}")
        if path not in ("hbp", "soft"):
            raise InvalidParameterError(f'path must be "hbp" or "soft", got {path!r}')
        if isinstance(X, SurvivalData):
            X = X.X
        if self.preprocessor_ is not None:
            return _Rows(torch.tensor(self.preprocessor_.transform(X).to_numpy(np.float64)), path)
        from softsurv.data.frames import as_frame, numeric_matrix

        frame = as_frame(X)
        if frame.shape[1] != self.n_features_in_:
            raise InvalidParameterError(
                f"X must have {self.n_features_in_} features as in training, got {frame.shape[1]}"
            )
        return _Rows(torch.as_tensor(numeric_matrix(frame)), path)

    def _leaf(self, prepared: _Rows) -> NDArray[np.int64]:
        with torch.no_grad():
            return self.tree_.apply_leaf(self._place(prepared.x))[0].cpu().numpy()

    def _log_cumulative_hazard(self, prepared: _Rows, times: FloatArray) -> FloatArray:
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

    def _hazard(self, prepared: _Rows, times: FloatArray) -> FloatArray:
        if prepared.path != "hbp":
            raise InvalidParameterError('a hazard belongs to one leaf; leave path at "hbp"')
        with torch.no_grad():
            grid = self._place(torch.as_tensor(np.ascontiguousarray(times)))
            return self.tree_.log_hazard(self._place(prepared.x), grid)[0].double().exp().cpu().numpy()

    def _quantile(self, prepared: _Rows, level: float) -> FloatArray:
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
        if self.preprocessor_ is not None:
            return [str(name) for name in self.preprocessor_.get_feature_names_out()]
        names = getattr(self, "feature_names_in_", None)
        return [f"x{k}" for k in range(self.n_features_in_)] if names is None else [str(n) for n in names]

    def _source_numbers(self, n_encoded: int) -> list[int]:
        """Number of the raw column that each encoded column comes from."""
        if self.preprocessor_ is None:
            return list(range(n_encoded))
        sources = [column.source for column in self.preprocessor_.columns_]
        order = {name: k for k, name in enumerate(dict.fromkeys(sources))}
        return [order[name] for name in sources]

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each raw feature in the tree, (n_features_in_,), summing to one; zero for an unused feature.

        Notes
        -----
        Sum over branch nodes and leaves of |coefficient| times the standard deviation of the encoded feature, each
        node weighted by its share of the training rows; one-hot columns add up for their source.
        """
        routing, leaves = (v[0].detach().double().cpu().numpy() for v in (self.tree_.routing, self.tree_.leaves))
        share = self.leaf_table_.n / max(self.leaf_table_.n.sum(), 1)  # (L,)
        on_path = np.abs(paths(self.depth_)).T @ share if self.depth_ else np.zeros(0)  # (B,)
        p = len(self.spread_)
        size = (on_path @ np.abs(routing[:, 1:]) + share @ np.abs(leaves[:, 1 : p + 1])) * self.spread_
        if self.preprocessor_ is None:
            total = size
        else:
            names = [str(name) for name in self.preprocessor_.input_names_]
            total = np.zeros(len(names))
            for value, column in zip(size, self.preprocessor_.columns_, strict=True):
                total[names.index(column.source)] += value
        return total / total.sum() if total.sum() > 0 else total

    def export_text(self, max_terms: int = 3) -> str:
        """The tree as text: rules in the data's own units with their strongest features, and each leaf's numbers."""
        return soft_tree_text(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_, max_terms)

    def export_dot(self, max_terms: int = 3) -> str:
        """The tree in Graphviz's language."""
        return soft_tree_dot(self.tree_, self.preprocessor_, self.encoded_names_, self.leaf_table_, max_terms)

    # -- saving --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays = {f"tree.{k}": v.detach().cpu().numpy() for k, v in self.tree_.state_dict().items()}
        leaf_arrays, leaf_meta = self.leaf_table_.state()
        meta = {
            "family": self.tree_.family.name,
            "family_settings": self.tree_.family.settings(),
            "depth": self.depth_,
            "candidate": vars(self.candidate_),
            "preprocessor": None if self.preprocessor_ is None else self.preprocessor_.to_dict(),
            "selection": self.selection_.to_dict("records"),
            "report": self.report_.to_dict(),
            "leaves": leaf_meta,
            "time_floor": self.time_floor_,
        }
        arrays["spread"] = self.spread_
        return arrays | {f"leaves.{k}": v for k, v in leaf_arrays.items()}, meta

    def _restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        state = {k.removeprefix("tree."): torch.as_tensor(v) for k, v in arrays.items() if k.startswith("tree.")}
        family = get_family(meta["family"], **meta["family_settings"])
        tree = SoftTree(meta["depth"], state["leaves"].shape[-1] - 1 - family.n_shape, family, 1, state["leaves"].dtype)
        tree.load_state_dict(state)
        self.tree_ = tree.to(choose_device(self.device))
        self.depth_ = meta["depth"]
        self.spread_ = arrays["spread"]
        # a model saved without its floor has the training times in the censoring curve
        self.time_floor_ = meta.get("time_floor", time_floor(torch.as_tensor(self.censoring_.times)))
        self.candidate_ = Candidate(**meta["candidate"])
        encoded = meta["preprocessor"]
        self.preprocessor_ = None if encoded is None else Preprocessor.from_dict(encoded)
        self.selection_ = pd.DataFrame(meta["selection"])
        self.report_ = FitReport.from_dict(meta["report"])
        leaf_arrays = {k.removeprefix("leaves."): v for k, v in arrays.items() if k.startswith("leaves.")}
        self.leaf_table_ = LeafTable.restore(leaf_arrays, meta["leaves"])


class _Rows:
    """Encoded features, and which leaves speak for a row."""

    def __init__(self, x: Tensor, path: str = "hbp") -> None:
        self.x = x
        self.path = path
