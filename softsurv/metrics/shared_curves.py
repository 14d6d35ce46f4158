"""Curves that many subjects share, as the rows of a leaf do: only those that differ are worked out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.errors import InvalidParameterError


@dataclass(frozen=True)
class CurvesInCommon:
    """Curves of N subjects, of whom many have the same one: what `SharedCurves` and `SharedIncidences` share."""

    member: IntArray
    curves: Callable[[FloatArray], FloatArray]
    n_curves: int

    def take(self, rows: IntArray | BoolArray) -> Self:
        """Those of some of the subjects."""
        return replace(self, member=self.member[rows])


class SharedCurves(CurvesInCommon):
    """The log cumulative hazards of N subjects, of whom many have the same one.

    Parameters
    ----------
    member : ndarray of int (N,)
        Curve of each subject, from 0 to G - 1.
    curves : callable
        Takes times (T,), returns log H (G, T).
    n_curves : int
        G; some may be nobody's.
    """

    def __call__(self, times: FloatArray) -> FloatArray:
        """Log H of each subject, (N, T)."""
        return np.asarray(self.curves(np.asarray(times, dtype=float))[self.member])

    def check(self, n_rows: int) -> None:
        """Raise InvalidParameterError where these are not the curves of so many subjects."""
        if self.member.shape != (n_rows,):
            raise InvalidParameterError(
                f"member must name one curve for each of the {n_rows} subjects, got {self.member.shape}"
            )


class SharedIncidences(CurvesInCommon):
    """The cumulative incidences of competing causes of N subjects, of whom many have the same ones.

    Parameters
    ----------
    member, n_curves
        As in `SharedCurves`.
    curves : callable
        Takes times (T,), returns the incidence of each cause (G, T, K).
    """

    def of_cause(self, code: int) -> SharedCurves:
        """The curves of the cause 1..K, to be compared as log cumulative hazards are."""
        return SharedCurves(self.member, lambda times: self.curves(times)[..., code - 1], self.n_curves)

    def __call__(self, times: FloatArray, code: int) -> FloatArray:
        """Incidence of a cause for each subject, (N, T)."""
        return self.of_cause(code)(times)
