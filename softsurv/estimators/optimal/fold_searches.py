"""The searches of cross-validation: one over the training rows of each fold, with the rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property

from softsurv.arrays import IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.canonical import column_order
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning
from softsurv.estimators.optimal.level_order import add_level_orders
from softsurv.estimators.optimal.parameters import OptimalParameters, score_of
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import SEARCHES, TreeSearch
from softsurv.estimators.optimal.sizes import FoldPath
from softsurv.exact.memory import Room, bytes_of
from softsurv.results import Status
from softsurv.stopping import StopSignal

KEPT_SHARE = 0.1
"""Share of the room that the caches of all folds may keep while another fold is searched."""

FOLDS_SHARE = 0.7
"""Share of the room for rows and searches of folds; folds that do not fit are made anew at every depth."""


class FoldSearches:
    """Searches over the training parts of folds, with the rows held out; as many as there is room for are kept."""

    def __init__(
        self,
        data: SurvivalData,
        binarizer: Binarizer,
        p: OptimalParameters,
        leaf: str,
        folds: list[tuple[IntArray, IntArray]],
        room: Room,
    ) -> None:
        self.data, self.binarizer, self.p, self.leaf, self.folds, self.room = data, binarizer, p, leaf, folds, room
        self.kept: dict[int, tuple[TreeSearch, Rows]] = {}
        self.most = len(folds)  # to be kept

    @cached_property
    def columns(self) -> list[str]:
        """Names of the features in their own order; of thousands that takes seconds, so only where there is time."""
        return column_order(self.data.X, self.data)

    def add_path(
        self, paths: list[FoldPath], number: int, depth: int, leaves: int, timer: StopSignal, strengths: Sequence[float]
    ) -> Status:
        """Add the best trees of a fold with 1, 2, ... leaves and their held-out losses; how the search ended."""
        search, held_out = self.fold(number)
        sizes, status = search.path(depth, leaves, timer.left)
        self.rest(search)
        if status == Status.OPTIMAL:
            losses = [search.held_out(size.tree, held_out, strengths, score_of(self.p)) for size in sizes]
            paths.append(FoldPath.of(sizes, losses))
        return status

    def rest(self, search: TreeSearch) -> None:
        """Let a search keep its share of the room while others work."""
        search.rest(KEPT_SHARE * self.room.left / len(self.folds))

    def fold(self, number: int) -> tuple[TreeSearch, Rows]:
        """The search over the training rows of a fold, and the rows held out."""
        if number in self.kept:
            return self.kept[number]
        train, test = self.folds[number]
        with warnings.catch_warnings():  # levels that a fold lacks say nothing to the user
            warnings.simplefilter("ignore", DataWarning)
            fitted = Binarizer(**self.binarizer.get_params())
            table, part = fitted.fit_filled(self.data.X.iloc[train], order=self.columns)[0], self.data.take(train)
            if self.p.level_sets:
                add_level_orders(fitted, table, part)
            search = SEARCHES[self.p.objective](Rows.of(part, fitted), self.p, self.leaf, self.room)
            made = search, Rows.of(self.data.take(test), fitted)
        size = search.held + bytes_of(search.rows, made[1])
        if not self.kept:  # all folds are about as large
            free = FOLDS_SHARE * self.room.left - 2 * bytes_of(self.data.X)  # two copies while a fold is made
            self.most = min(max(int(free / size), 0), len(self.folds))
        others = (self.most - (number < self.most)) * size + KEPT_SHARE * self.room.left
        search.limit_to(self.room.beside(search.rows, made[1]).less(others))
        if len(self.kept) < self.most:
            self.kept[number] = made
        return made
