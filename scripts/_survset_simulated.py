"""Survival data whose true leaves are known: five trees and pure noise.

Every table has ten features: ``x0`` to ``x7`` uniform on [0, 1], ``sex`` with two levels and ``site`` with three. At
most three of them matter. 30 % of the rows are censored, at k (1 - u^2) with u uniform, as in paper `surtree`. Times
are Weibull; shape 1 is exponential.

- ``rotated``: the half with x0 + x1 > 1 has `ROTATED_RATIO` times the hazard of the other; exponential. No
  axis-parallel split has it.
- ``four_leaves``: x0 <= 0.5, then x1 <= 0.4 on its left and x2 <= 0.6 on its right; exponential, with `FOUR_RATES`.
- ``xor``: `XOR_RATIO` times the hazard where exactly one of x0 and x1 is above 0.5; exponential. The four quarters are
  the true leaves, as no smaller tree has it. No single split shows anything.
- ``crossing``: x0 <= 0.5 parts curves with one median, 1, and with `CROSSING_SHAPES`. They cross at the median, so that
  a log-rank test sees little.
- ``two_weibull``: x0 <= 0.5 parts two Weibull regressions, each with its own shape and its own slope of x1. x2 acts
  alike in both.
- ``noise``: no feature tells anything; the truth is one leaf.

Effects were set so that a method of the right kind finds the leaves. Mean adjusted Rand index on the test rows, at
n = 300 and 3,000, three to ten repeats:

- rotated: .79 and .97, and two_weibull: .80 and .95, by soft trees of depth 1 without shrinkage, ``routing_l2=0.01``;
- four_leaves: .82 and .93, and xor: .71 and .96, by optimal trees of depth 2 with 30 thresholds;
- crossing: 1.00 and 1.00 by the best of all splits between two Weibull fits, .75 and .97 by soft trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from _surtree_synthetic import censor
from numpy.typing import NDArray

from softsurv import SurvivalData

TRUTHS = ("rotated", "four_leaves", "xor", "crossing", "two_weibull", "noise")
SIZES = (300, 3000)
N_REPEATS = 10
N_TEST = 2000
CENSORED = 0.3

ROTATED_RATIO = 8.5
FOUR_RATES = (0.25, 0.75, 0.5, 2.0)
XOR_RATIO = 2.5
CROSSING_SHAPES = (0.7, 2.5)
TWO_SHAPES = (0.8, 2.5)
TWO_SLOPES = (1.5, -1.5)
COMMON_SLOPE = 0.5
NOISE_SHAPE = 1.3

Floats = NDArray[np.float64]
Leaves = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Rows of a known truth, and the true leaf of each, (N,)."""

    data: SurvivalData
    leaf: Leaves


def simulate(truth: str, n: int, repeat: int) -> tuple[Sample, Sample]:
    """Training rows (n) and test rows (`N_TEST`) of a truth; equal arguments give equal rows."""
    rng = np.random.default_rng([TRUTHS.index(truth), n, repeat])
    x = features(rng, n + N_TEST)
    leaf, shape, scale = law(truth, x)
    time, event, _ = censor(scale * rng.weibull(shape), rng.random(len(x)), CENSORED)
    data = SurvivalData(x, time=time, event=event, name=truth)
    train, test = np.split(np.arange(len(x)), [n])
    return Sample(data.take(train), leaf[train]), Sample(data.take(test), leaf[test])


def features(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """The ten features."""
    columns: dict[str, NDArray] = {f"x{k}": rng.random(n) for k in range(8)}
    columns["sex"] = rng.choice(np.array(["f", "m"], dtype=object), n)
    columns["site"] = rng.choice(np.array(["a", "b", "c"], dtype=object), n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(columns)


def law(truth: str, x: pd.DataFrame) -> tuple[Leaves, Floats, Floats]:
    """True leaf, Weibull shape and Weibull scale of each row, (N,) each."""
    a, b, c = (x[f"x{k}"].to_numpy() for k in range(3))
    one, half = np.ones(len(x)), (a > 0.5).astype(int)
    if truth == "rotated":
        leaf = (a + b > 1).astype(int)
        return leaf, one, 1 / np.array([1.0, ROTATED_RATIO])[leaf]
    if truth == "four_leaves":
        leaf = np.where(a <= 0.5, np.where(b <= 0.4, 0, 1), np.where(c <= 0.6, 2, 3))
        return leaf, one, 1 / np.array(FOUR_RATES)[leaf]
    if truth == "xor":
        leaf = 2 * half + (b > 0.5)
        return leaf, one, 1 / np.array([1.0, XOR_RATIO, XOR_RATIO, 1.0])[leaf]
    if truth == "crossing":
        shape = np.array(CROSSING_SHAPES)[half]
        return half, shape, np.log(2) ** (-1 / shape)
    if truth == "two_weibull":
        log_scale = np.array(TWO_SLOPES)[half] * (b - 0.5) + COMMON_SLOPE * (c - 0.5)
        return half, np.array(TWO_SHAPES)[half], np.exp(log_scale)
    assert truth == "noise", truth
    return np.zeros(len(x), dtype=int), NOISE_SHAPE * one, one
