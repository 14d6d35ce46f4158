"""The searches of cross-validation: one over the training rows of each fold, with the rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property

from softsurv.arrays import IntArray
from softsurv.data.binarize import Binarizer
from softsurv.data.blocks import NumberBlock
from softsurv.data.canonical import column_order
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning
from softsurv.estimators.optimal.held_out import HeldOutRows
from softsurv.estimators.optimal.level_order import add_level_orders
from softsurv.estimators.optimal.parameters import OptimalParameters, score_of
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.search import SEARCHES
from softsurv.estimators.optimal.sizes import FoldPath
from softsurv.estimators.optimal.tree_search import TreeSearch
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
        self.outcomes = outcomes_of(data)
        self.kept: dict[int, tuple[TreeSearch, HeldOutRows]] = {}
        self.most = len(folds)  # to be kept
        self.last: tuple[int, tuple[TreeSearch, HeldOutRows]] | None = None  # to be made

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
            score = score_of(self.p)
            losses = [held_out.losses(size.tree, strengths, score, size.leaf_sums) for size in sizes]
            paths.append(FoldPath.of(sizes, losses))
        return status

    def rest(self, search: TreeSearch) -> None:
        """Let a search keep its share of the room while others work."""
        search.rest(KEPT_SHARE * self.room.left / len(self.folds))

    def fold(self, number: int) -> tuple[TreeSearch, HeldOutRows]:
        """The search over the training rows of a fold, and the rows held out."""
        if number in self.kept:
            return self.kept[number]
        if self.last is None or self.last[0] != number:
            self.last = None  # its memory is that of the next
            self.last = number, self._made(number)
        return self.last[1]

    def _made(self, number: int) -> tuple[TreeSearch, HeldOutRows]:
        """A fold made, and kept where there is room."""
        train, test = self.folds[number]
        with warnings.catch_warnings():  # levels that a fold lacks say nothing to the user
            warnings.simplefilter("ignore", DataWarning)
            fitted = Binarizer(**self.binarizer.get_params())
            frame, part = self.data.X.iloc[train], self.outcomes.take(train)
            block = NumberBlock.of(frame)
            table, _ = fitted.fit_filled(frame, order=self.columns, block=block)
            if self.p.level_sets:
                add_level_orders(fitted, table, part)
            rows = Rows.coded(part, fitted, table, block=block)
            search = SEARCHES[self.p.objective](rows, self.p, self.leaf, self.room)
            held_out = Rows.coded(self.outcomes.take(test), fitted, fitted.filled(self.data.X.iloc[test])[0])
            made = search, HeldOutRows(search, held_out)
        size = search.held + bytes_of(search.rows, made[1].rows)
        if not self.kept:  # all folds are about as large
            free = FOLDS_SHARE * self.room.left - 2 * bytes_of(self.data.X)  # for what is copied while a fold is made
            self.most = min(max(int(free / size), 0), len(self.folds))
        others = (self.most - (number < self.most)) * size + KEPT_SHARE * self.room.left
        search.limit_to(self.room.beside(search.rows, made[1].rows).less(others))
        if len(self.kept) < self.most:
            self.kept[number] = made
        return made


def outcomes_of(data: SurvivalData) -> SurvivalData:
    """The same rows without their features, which many copies of rows do not need."""
    return data.with_encoded(data.X.iloc[:, :0])
