"""Small random problems of two classes for the exact searches."""

import numpy as np
from hypothesis import HealthCheck, settings

from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.vector_search import VectorSearch

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def tiny(seed, n=14, splits=3):
    rng = np.random.default_rng(seed)
    columns = rng.random((n, splits)) < rng.uniform(0.2, 0.8, splits)
    label = ((columns @ rng.normal(size=splits) + rng.normal(size=n)) > 0).astype(int)
    label[:2] = 0, 1
    return columns, label, rng


def error_search(columns, label, depth, weight=None, **how):
    w = np.ones(len(label)) if weight is None else weight
    statistics = np.where(np.arange(2) == label[:, None], w[:, None], 0.0)
    return VectorSearch(ERRORS, *coded(columns), statistics, depth, **how)


def coded(columns):
    """Columns as codes, numbers of codes and kinds."""
    return columns.astype(np.int32), np.full(columns.shape[1], 2), np.zeros(columns.shape[1], bool)


def continuous(seed):
    """Ranks of three columns with so many cuts that they are searched one by one; labels, weights and a generator."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(105, 150))
    columns = rng.random((n, 3))
    label = (columns @ rng.normal(size=3) + 0.5 * rng.normal(size=n) > 0).astype(int)
    label[:4] = 0, 0, 1, 1
    codes = columns.argsort(axis=0).argsort(axis=0).astype(np.int32)
    weight = rng.integers(1, 6, n) / 2 if seed % 2 else np.ones(n)
    return (codes, np.full(3, n), np.zeros(3, bool)), label, weight, rng
