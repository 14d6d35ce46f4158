"""The hazards of several causes of rows in leaves of a soft tree, as numbers that compiled loops go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.threads import in_threads, row_parts, threads_for
from softsurv.trees.link_codes import CODES, PROBIT

LARGEST_EXPONENT = 300.0
"""Each row and each baseline adds at least minus this to z, and at most this over K: a float holds all products."""

ROWS_AT_ONCE = 1024
"""Rows of a part of a prediction."""

FEW_CELLS = 1e6
"""Rows times times times causes of a prediction that tables do at once: the loops are compiled first, in seconds."""

FEW_PAIRS = 3e5
"""Rows times events of a measure, likewise."""

PARTS = 16
"""Parts of the rows that are counted by themselves, whatever the number of threads: a sum is always the same."""

NEVER = -1000.0
"""Probit: stands for a baseline of minus infinity. With any number of a row, Phi(z) is 0 in a float."""


Counts: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class CausesInLeaves:
    """Rows, each in a leaf, with the hazard of each cause there.

    Parameters
    ----------
    link : int
        How H comes from z, one of `softsurv.trees.link_codes`.
    leaf : ndarray of int (N,)
    effect : ndarray (N, K)
        exp of what the row adds to z, less the typical number of its leaf; with probit, the difference itself.
    baseline : callable
        Takes times (T,), returns what each leaf adds to z, with this typical number, (G, K, T); -inf at time 0.
    grid : callable
        Takes the last time, returns the times (P,) between which shares of the causes are constant.
    """

    link: int
    leaf: IntArray
    effect: FloatArray
    baseline: Callable[[FloatArray], FloatArray]
    grid: Callable[[float], FloatArray]

    @classmethod
    def of(
        cls,
        link: str,
        leaf: IntArray,  # (N,)
        offset: FloatArray,  # (K, N) what each row adds to z
        baseline: Callable[[FloatArray], FloatArray],  # times (T,) to (K, G, T)
        grid: Callable[[float], FloatArray],
    ) -> CausesInLeaves | None:
        """The curves of rows; None where the link is another one, or a float does not hold what they differ by."""
        code = CODES.get(link)
        if code is None or not leaf.size:
            return None
        typical = np.zeros((int(leaf.max()) + 1, len(offset)))
        for g in np.unique(leaf):
            typical[g] = np.median(offset[:, leaf == g], 1)
        own = offset.T - typical[leaf]
        if not _is_held(own, len(offset)):
            return None
        most = len(typical)
        return cls(
            code,
            np.ascontiguousarray(leaf, dtype=np.int64),
            np.ascontiguousarray(own if code == PROBIT else np.exp(own)),
            lambda times: baseline(times)[:, :most].swapaxes(0, 1) + typical[..., None],
            grid,
        )

    def take(self, rows: Any) -> CausesInLeaves:
        """Those of some of the rows."""
        return replace(self, leaf=self.leaf[rows], effect=np.ascontiguousarray(self.effect[rows]))

    def incidences(self, times: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Survival (N, T) and incidences (N, T, K); None where they are few, or a float does not hold the baselines."""
        n, n_causes = self.effect.shape
        if times.size == 0 or n * n_causes * (self.grid(float(times.max())).size + times.size) < FEW_CELLS:
            return None
        from softsurv.trees.cause_kernels import fill_incidences  # numba comes with it

        if (tables := self._tables(times)) is None:
            return None
        survival, found = np.empty((n, times.size)), np.empty((n, times.size, n_causes))

        def fill(rows: slice) -> None:
            fill_incidences(self.link, self.effect[rows], self.leaf[rows], *tables, survival[rows], found[rows])

        in_threads(fill, row_parts(n, ROWS_AT_ONCE), threads_for(found.size))
        return survival, found

    def count_by_hazard(
        self, rows: IntArray, time: FloatArray, first: IntArray, last: IntArray, mass: NDArray[Any]
    ) -> Counts | None:
        """Masses of the rows compared with each event that have less, and as much, hazard of all causes, (E,) each.

        Parameters
        ----------
        rows, time : ndarray (E,)
            Row of each event, and its time, rising.
        first, last : ndarray of int (N,)
            Each row is compared with the events from the first to before the last.
        mass : ndarray (N,)

        Returns
        -------
        tuple of two ndarray (E,), or None where they are few, or a float does not hold the baselines
        """
        if rows.size * mass.size < FEW_PAIRS:
            return None
        from softsurv.trees.cause_kernels import compare_hazards

        if (table := self._levels(time)) is None:
            return None
        at = self.link, self.effect, self.leaf, table, rows, first, last, mass
        return _added_up(lambda *part: compare_hazards(*at, *part), rows.size, mass)

    def count_by_incidence(
        self, cause: int, rows: IntArray, time: FloatArray, first: IntArray, last: IntArray, mass: NDArray[Any]
    ) -> Counts | None:
        """As `count_by_hazard`, by the incidence of a cause, 0 to K - 1."""
        if rows.size * mass.size < FEW_PAIRS:
            return None
        from softsurv.trees.cause_kernels import compare_incidences, own_incidences

        if (tables := self._tables(time)) is None:
            return None
        own = np.empty(rows.size)
        points, steps, place, before, more = tables
        of_cause = self.link, self.effect, self.leaf, cause

        def fill(some: slice) -> None:
            near = (np.ascontiguousarray(table[..., some]) for table in (before, more))
            own_incidences(*of_cause, points, steps, place[some], *near, rows[some], own[some])

        in_threads(fill, row_parts(rows.size, ROWS_AT_ONCE), threads_for(rows.size * points.shape[-1]))
        at = *of_cause, *tables, own, first, last, mass
        return _added_up(lambda *part: compare_incidences(*at, *part), rows.size, mass)

    def log_hazards(self, times: FloatArray) -> FloatArray | None:
        """Log H of all causes together, (N, T); None where they are few, or a float does not hold the baselines."""
        if self.effect.size * times.size < FEW_CELLS or (table := self._levels(times)) is None:
            return None
        from softsurv.trees.cause_kernels import fill_hazards

        found = np.empty((self.leaf.size, times.size))

        def fill(rows: slice) -> None:
            fill_hazards(self.link, self.effect[rows], self.leaf[rows], table, found[rows])
            with np.errstate(divide="ignore"):
                np.log(found[rows], out=found[rows])

        in_threads(fill, row_parts(self.leaf.size, ROWS_AT_ONCE), threads_for(found.size))
        return found

    def _levels(self, times: FloatArray) -> FloatArray | None:
        """exp of the baselines, (G, K, T), with probit the baselines; None where a float does not hold them."""
        found = self.baseline(times)
        if self.link == PROBIT:
            return np.ascontiguousarray(np.maximum(found, NEVER)) if (found <= LARGEST_EXPONENT).all() else None
        held = _is_held(found[..., times > 0], found.shape[1])
        return np.ascontiguousarray(np.exp(found)) if held else None

    def _tables(self, times: FloatArray) -> tuple[Any, ...] | None:
        """What loops take for times (T,): points and steps of the grid, place of each time, level and rise there."""
        grid = self.grid(float(times.max()))
        at_grid, at_times = self._levels(grid), self._levels(times)
        if at_grid is None or at_times is None:
            return None
        nothing = np.full_like(at_grid[..., :1], NEVER if self.link == PROBIT else 0.0)
        points = np.concatenate([nothing, at_grid], -1)
        place = np.searchsorted(grid, times, side="right")
        before = np.ascontiguousarray(points[..., place])
        return points, np.diff(points, axis=-1), place, before, np.maximum(at_times - before, 0.0)


@dataclass(frozen=True)
class RankedByHazard:
    """Log cumulative hazards of all causes, which the concordance counts without a table of rows and times."""

    curves: CausesInLeaves
    log_cumulative_hazard: Callable[[FloatArray], FloatArray]

    def __call__(self, times: FloatArray) -> FloatArray:
        """Log H of each row, (N, T)."""
        found = self.curves.log_hazards(np.asarray(times, dtype=float))
        return self.log_cumulative_hazard(times) if found is None else found

    def count(self, *compared: Any) -> Counts | None:
        """As `CausesInLeaves.count_by_hazard`."""
        return self.curves.count_by_hazard(*compared)


@dataclass(frozen=True)
class RankedByIncidence:
    """The same of the incidence of the cause 1..K."""

    curves: CausesInLeaves
    code: int
    incidence: Callable[[FloatArray], FloatArray]

    def __call__(self, times: FloatArray) -> FloatArray:
        """Incidence of each row, (N, T)."""
        return self.incidence(times)

    def count(self, *compared: Any) -> Counts | None:
        """As `CausesInLeaves.count_by_incidence`."""
        return self.curves.count_by_incidence(self.code - 1, *compared)


@dataclass(frozen=True)
class CountedIncidences:
    """The cumulative incidences of all causes, which the measures by cause take as they take a function.

    Parameters
    ----------
    curves : CausesInLeaves
    incidences : callable
        Takes times (T,), returns (N, T, K).
    """

    curves: CausesInLeaves
    incidences: Callable[[FloatArray], FloatArray]
    _latest: dict[bytes, FloatArray] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, times: FloatArray, code: int) -> FloatArray:
        """Incidence of a cause for each row, (N, T). One cause after the other at the same times costs that of one."""
        at = np.asarray(times, dtype=float)
        if at.tobytes() not in self._latest:
            self._latest.clear()
            self._latest[at.tobytes()] = self.incidences(at)
        return self._latest[at.tobytes()][..., code - 1]

    def of_cause(self, code: int) -> RankedByIncidence:
        """What ranks the rows in the concordance of the cause 1..K."""
        return RankedByIncidence(self.curves, code, lambda times: self(times, code))


def _is_held(parts: FloatArray, n_causes: int) -> bool:
    """Whether a float holds the products of the exponentials of such parts of z."""
    return bool(((parts >= -LARGEST_EXPONENT) & (parts <= LARGEST_EXPONENT / n_causes)).all())


def _added_up(count: Callable[..., None], n_events: int, mass: NDArray[Any]) -> Counts:
    """The counts (E,) of all rows: ``count`` takes the first row, that after the last, and two arrays to add to."""
    lower, equal = (np.zeros((PARTS, n_events), mass.dtype) for _ in range(2))
    ends = np.linspace(0, mass.size, PARTS + 1).astype(np.int64)

    def of_part(number: int) -> None:
        count(ends[number], ends[number + 1], lower[number], equal[number])

    in_threads(of_part, range(PARTS), threads_for(n_events * mass.size))
    return lower.sum(0), equal.sum(0)
