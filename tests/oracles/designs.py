"""Rows for starts: plain, of real data, padded designs, and outcomes."""

import numpy as np
import torch

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.numerics import with_intercept


def normal(n=150, p=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


def encoded(name):
    data = load_dataset(name)
    return data.with_features(Preprocessor().fit(data.X).transform(data.X))


def design_of(*tables):
    """Tables (N, P) as padded designs (G, N, Q)."""
    n, p = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    padded = torch.zeros(len(tables), n, p + 1, dtype=torch.float64)
    for design, table in zip(padded, tables, strict=True):
        design[: len(table), : table.shape[1] + 1] = with_intercept(torch.tensor(table))
    return padded


def outcomes(n, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    time = rng.exponential(size=n) + 0.01
    return np.ceil(4 * time) / 4 if ties else time, rng.random(n) < 0.6
