"""Hazards and incidences of several causes, row by row and time by time, beside those of compiled loops."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from softsurv.trees.causes_in_leaves import CausesInLeaves
from softsurv.trees.incidence import incidences

GRID = np.geomspace(0.01, 40.0, 30)


def safe(z):
    """exp(z), continued by its tangent above 30."""
    low = np.minimum(z, 30.0)
    return np.exp(low) * (1.0 + np.maximum(z - 30.0, 0.0))


LINKS = {
    "proportional_hazards": safe,
    "proportional_odds": lambda z: np.logaddexp(0.0, z),
    "probit": lambda z: -log_ndtr(-z),
}
"""H of z by the name of the link."""


class Rows:
    """N rows in two leaves, of K causes, some of them equal; ``late`` is added to all predictors."""

    def __init__(self, link, n=40, causes=3, seed=0, late=0.0):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 12, n)
        self.link, self.leaf = LINKS[link], rng.integers(0, 2, 12)[kind]
        self.offset = rng.normal(size=(causes, 12))[:, kind]
        self.slope, self.late = rng.uniform(0.5, 3.0, (causes, 2)), late
        self.curves = CausesInLeaves.of(link, self.leaf, self.offset, self.baseline, lambda last: GRID)

    def baseline(self, times):
        """What each leaf adds to z, (K, G, T)."""
        with np.errstate(divide="ignore"):
            return self.slope[..., None] * np.log(times / 10.0) + self.late

    def hazards(self, times):
        """Cumulative hazards, (N, T, K)."""
        z = self.offset[..., None] + self.baseline(times)[:, self.leaf]
        return np.moveaxis(self.link(z), 0, -1)

    def log_hazard(self, times):
        """Log hazard of all causes, (N, T)."""
        with np.errstate(divide="ignore"):
            return np.log(self.hazards(times).sum(-1))

    def incidences(self, times):
        """Survival (N, T) and incidences (N, T, K)."""
        return incidences(self.hazards, GRID, times)


def counted(values, rows, first, last, mass):
    """Masses with less and with as much as each event's own, (E,) each, from values (N, E) at the events."""
    event = np.arange(rows.size)
    compared = (event >= first[:, None]) & (event < last[:, None])
    own = values[rows, event]
    near = np.isclose(values, own, rtol=1e-12, atol=0.0)  # equal rows, whatever rounding says
    return mass @ (compared & (values < own) & ~near), mass @ (compared & near)
