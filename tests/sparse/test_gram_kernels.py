"""Curvatures of leaves: one row after the other against whole products."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.sparse.gram_kernels import add_leaf_grams

CURVATURE = 0.25


def tables(kinds, rows=30, groups=2, trees=4, columns=3):
    rng = np.random.default_rng(kinds)
    mass = rng.random((trees, rows)) * (rng.random((trees, rows)) < 0.8)
    return (
        rng.normal(size=(groups, rows, columns)),
        rng.random((groups, kinds, rows)),
        rng.random((groups, kinds, rows)) + 0.1,
        (rng.random((groups, rows)) < 0.5).astype(float),
        mass,
        rng.integers(0, 2, (trees, rows)),
        rng.random((trees, kinds)) + 0.5,
    )


@pytest.mark.parametrize("kinds", [0, 1, 3])
def test_sums_of_rows_are_products_of_tables(kinds):
    design, rise, slope, event, mass, leaf, weights = tables(kinds)
    n_leaves, size = 3, 3 + kinds  # the last leaf is empty
    found = np.zeros((len(mass), n_leaves, size, size))
    plain(add_leaf_grams)(design, rise, slope, event, mass, leaf, weights, CURVATURE, found)
    for m in range(len(mass)):
        g = m // 2
        table = np.hstack([design[g], (weights[m][:, None] * rise[g]).T])
        share = (weights[m][:, None] * slope[g]).T
        share = np.hstack([np.zeros((len(table), 3)), share / share.sum(1, keepdims=True)])
        for k in range(n_leaves):
            own = mass[m] * (leaf[m] == k)
            expected = CURVATURE * (table.T * own) @ table + (share.T * own * event[g]) @ share
            np.testing.assert_allclose(found[m, k], expected, rtol=1e-12, atol=1e-14)
