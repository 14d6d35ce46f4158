"""Rows, definitions and fitted trees that the tests of optimal survival trees share."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sksurv.util import Surv

from softsurv import OptimalSurvivalTree
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import nelson_aalen


def _make_rows(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups whose risk runs against each other in x, a number with gaps and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(2),
            "side": rng.choice(["left", "middle", "right"], n),
            "noise": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    slope = np.where(X["side"] == "left", 1.0, -1.0)
    time = (8 * rng.weibull(1.6, n) * np.exp(-slope * X["x"])).round(1) + 0.1
    censoring = rng.exponential(25.0, n).round(1) + 0.1
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring))


def _deviance(y, leaf, weight=None):
    """Eq. 20 of paper `surtree`, row by row."""
    w = np.ones(len(y)) if weight is None else weight
    hazard = nelson_aalen(y["time"], y["event"], w)(y["time"])
    hazard = np.where(hazard > 0, hazard, 1 / (w.sum() + 1))
    total = 0.0
    for k in np.unique(leaf):
        here = leaf == k
        es, hs = (w * y["event"])[here].sum(), (w * hazard)[here].sum()
        total -= sum(w[i] * math.log(hazard[i]) for i in np.flatnonzero(here & y["event"]))
        total -= es * math.log(es / hs) if es else 0.0
    return total


def _brier(y, leaf, kind="km", weight=None):
    """Eq. 4 of paper `osst` without complexity, of curves that do not rise."""
    score = IbsScore.from_columns(y["time"], y["event"], weight)
    members = [np.flatnonzero(leaf == k) for k in np.unique(leaf)]
    return sum(score.loss(rows, score.curve(rows, kind, monotone=True)) for rows in members)


@pytest.fixture(scope="session")
def make_rows():
    return _make_rows


@pytest.fixture(scope="session")
def deviance():
    return _deviance


@pytest.fixture(scope="session")
def brier():
    return _brier


@pytest.fixture(scope="module")
def rows():
    return _make_rows()


@pytest.fixture(scope="module")
def trees(rows):
    """A fitted tree of depth two, leaves by themselves, for each objective and leaf, made when asked for."""
    fitted: dict[tuple[str, str], OptimalSurvivalTree] = {}

    def tree(objective: str = "relative_risk", leaf: str = "nelson_aalen") -> OptimalSurvivalTree:
        if (objective, leaf) not in fitted:
            fitted[objective, leaf] = OptimalSurvivalTree(
                objective, max_depth=2, leaf=leaf, min_samples_leaf=1, shrinkage=0.0
            ).fit(*rows)
        return fitted[objective, leaf]

    return tree
