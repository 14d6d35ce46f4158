"""The predictions of a soft tree whose leaves hold one hazard for each cause."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.shared.competing import EARLIEST, REACH, CompetingRisks
from softsurv.estimators.soft.prepared import PreparedRows
from softsurv.trees.causes_in_leaves import CausesInLeaves
from softsurv.trees.incidence import incidences

if TYPE_CHECKING:
    import torch

    from softsurv.results import FitReport
    from softsurv.trees.soft_tree import SoftTree
else:
    from softsurv.estimators.soft import torch_later as torch


class SoftCauses(CompetingRisks):
    """Mixin of the soft trees: hazards of each cause, and of all causes together."""

    tree_: SoftTree
    cause_trees_: tuple[SoftTree, ...]
    report_: FitReport

    def _cause_hazards(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        if not self.cause_trees_:
            return super()._cause_hazards(prepared, times)
        leaf = torch.as_tensor(self.tree_.apply_leaf(prepared.x.to(self.tree_.leaves)))
        return self._hazards_in(leaf, prepared, times)

    def _hazards_in(self, leaf: torch.Tensor, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n, T, K) of rows in given leaves (1, n)."""
        later = torch.as_tensor(np.where(times > 0, times, 1.0)).to(self.tree_.leaves)
        x, found = prepared.x.to(self.tree_.leaves), []
        with torch.no_grad():
            for tree in self.cause_trees_:
                z, _ = tree.predictor(x, later, leaf)
                found.append(tree.family.link.cumulative_hazard(z)[0][0].double().cpu().numpy())
        hazards = np.stack(found, -1)
        hazards[:, times <= 0] = 0.0
        return hazards

    def _incidences(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        """Incidences; with ``path="soft"`` those of all leaves, weighted by the leaf's probability."""
        if prepared.path != "hbp":
            return self._mixed(prepared, times)[1]
        if not self.cause_trees_:
            return super()._incidences(prepared, times)
        return self._in_leaves(self._own_leaf(prepared), prepared, times)[1]

    def _own_leaf(self, prepared: PreparedRows) -> IntArray:
        """HBP leaf of each row, (n,)."""
        return self.tree_.apply_leaf(prepared.x.to(self.tree_.leaves))[0].cpu().numpy()

    def _in_leaves(self, leaf: IntArray, prepared: PreparedRows, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Survival (n, T) and incidences (n, T, K) of rows in given leaves (n,)."""
        curves = self._cause_curves(leaf, prepared)
        found = None if curves is None else curves.incidences(times)
        if found is not None:
            return found
        grid, at = self._hazard_grid(float(times.max())), torch.as_tensor(leaf).to(self.tree_.leaves.device)
        parts = [
            incidences(partial(self._hazards_in, at[None, rows], prepared[rows]), grid, times)
            for rows in self._chunks(len(prepared), len(grid) + len(times))
        ]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _cause_curves(self, leaf: IntArray, prepared: PreparedRows) -> CausesInLeaves | None:
        """The hazards of each cause in given leaves (n,), for compiled loops; None where the loops cannot take them."""
        x, rows = prepared.x.to(self.tree_.leaves), np.arange(len(leaf))
        with torch.no_grad():
            offset = [tree.effects_in_leaves(x)[0].double().cpu().numpy()[leaf, rows] for tree in self.cause_trees_]

        def baseline(times: FloatArray) -> FloatArray:
            return np.stack([self._rises(tree, times) for tree in self.cause_trees_])

        return CausesInLeaves.of(self.tree_.family.link.name, leaf, np.stack(offset), baseline, self._hazard_grid)

    def _rises(self, tree: SoftTree, times: FloatArray) -> FloatArray:
        """What the linear predictor of every leaf gains by each time, (L, T); -inf at time 0."""
        later = torch.as_tensor(np.where(times > 0, times, 1.0)).to(self.tree_.leaves)
        with torch.no_grad():
            found = tree.baseline(later)[0].double().cpu().numpy()
        found[:, times <= 0] = -np.inf
        return found

    def _mixed(self, prepared: PreparedRows, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Survival (n, T) and incidences (n, T, K) of the mixture of all leaves."""
        with torch.no_grad():
            share = self.tree_.leaf_probability(prepared.x.to(self.tree_.leaves))[0].double().cpu().numpy()
        survival = np.zeros((len(prepared), len(times)))
        found = np.zeros((*survival.shape, len(self.cause_trees_)))
        for rows in self._chunks(len(prepared), len(times)):
            part = prepared[rows]
            for number in range(share.shape[1]):
                free, risen = self._in_leaves(np.full(len(part), number), part, times)
                survival[rows] += share[rows, number, None] * free
                found[rows] += share[rows, number, None, None] * risen
        return survival, found

    def _log_hazard_of_all(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        """Log of the hazards of all causes added up, (n, T)."""
        with np.errstate(divide="ignore"):
            if prepared.path == "hbp":
                return np.log(self._cause_hazards(prepared, times).sum(-1))
            survival = np.clip(self._mixed(prepared, times)[0], 1e-300, 1.0)  # rounded shares may sum to above 1
            return np.log(-np.log(survival))

    def _hazard_of_all(self, prepared: PreparedRows, times: FloatArray) -> FloatArray:
        """Hazard of any event per unit of time, (n, T)."""
        grid = torch.as_tensor(np.ascontiguousarray(times)).to(self.tree_.leaves)
        with torch.no_grad():
            x = prepared.x.to(self.tree_.leaves)
            hazards = [tree.log_hazard(x, grid)[0].double().exp().cpu().numpy() for tree in self.cause_trees_]
        return np.sum(hazards, 0)

    def _time_of_hazard_of_all(self, prepared: PreparedRows, log_hazard: FloatArray | float) -> FloatArray:
        """Smallest time at which the hazards of all causes add up to a level, (n,); inf beyond :data:`REACH` horizons.

        Curves may fall early by far: `EARLIEST` horizons is where the times begin.
        """
        from softsurv.trees.hazard_times import above_level, log_hazard_of_mixture, time_of_root  # as late as torch

        x = prepared.x.to(self.tree_.leaves)
        share = self.tree_.leaf_probability(x)[0].mT  # (L, n)
        if prepared.path == "hbp":
            share = torch.nn.functional.one_hot(self.tree_.apply_leaf(x)[0], len(share)).mT.to(x)
        parts = [(tree, tree.effects_in_leaves(x)) for tree in self.cause_trees_]

        def above(log_time: FloatArray) -> FloatArray:
            """By how much log H is above the level, (n,), at a log time for each row (n,)."""
            at = torch.as_tensor(log_time).to(x)[None]
            hazard = sum(tree.hazard_in_leaves(effects, at)[0] for tree, effects in parts)
            found = log_hazard_of_mixture(torch.as_tensor(hazard), share)  # leaf by leaf
            return above_level(found.double().cpu().numpy(), np.asarray(log_hazard))

        return time_of_root(above, *(np.full(len(x), np.log(self.horizon_) + np.log(one)) for one in (EARLIEST, REACH)))

    @property
    def recurrent_(self) -> bool:
        """Whether the tree was fitted to events that recur."""
        return bool(self.report_.details.get("recurrent"))

    def _require_the_same_causes(self, data: SurvivalData) -> None:
        """Refuse data whose causes are not those that the tree was fitted to."""
        if data.cause_names != self.cause_names_:
            raise InvalidSurvivalDataError(
                f"cause must have the names {list(self.cause_names_)} as in training, got {list(data.cause_names)}; "
                "pass cause= and cause_names= as in fit"
            )
