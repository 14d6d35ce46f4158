"""Every row once in its own leaf: loss and slopes against numpy and differences."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.soft.row_kernels import BLOCK, HAZARDS, ODDS
from softsurv.sparse.leaf_kernels import rows_in_leaves


def tables(kinds, several, rows=BLOCK + 9, trees=2, leaves=3):
    rng = np.random.default_rng(kinds)
    features = rng.random((1, 2 * kinds, rows)) + 0.1
    return {
        "offset": rng.normal(size=(trees, leaves if several else 1, rows)), "level": rng.normal(size=(trees, leaves)),
        "shape": 0.3 * rng.normal(size=(trees, leaves, kinds)), "features": features,
        "event": (rng.random((1, rows)) < 0.5).astype(float), "mass": rng.random((trees, rows)),
        "leaf": rng.integers(0, leaves, (trees, rows)),
    }  # fmt: skip


def value_of(link, t, weights=None):
    """Loss of each tree, row by row in its leaf."""
    kinds = t["shape"].shape[2]
    weights = np.exp(t["shape"]) if weights is None else weights
    out = []
    for m, leaf in enumerate(t["leaf"]):
        at = np.arange(len(leaf))
        offset = t["offset"][m, leaf if t["offset"].shape[1] > 1 else 0 * leaf, at]
        z = offset + t["level"][m, leaf] + (weights[m, leaf] * t["features"][0, :kinds].T).sum(1)
        rise = np.log((weights[m, leaf] * t["features"][0, kinds:].T).sum(1))
        event = t["event"][0]
        loss = np.exp(z) if link == HAZARDS else np.logaddexp(0, z) * (1 + event)
        out.append((t["mass"][m] * (loss - event * (z + rise))).sum())
    return np.array(out)


@pytest.mark.parametrize("link", [HAZARDS, ODDS])
@pytest.mark.parametrize("kinds", [1, 3])
@pytest.mark.parametrize("several", [True, False])
def test_loss_and_slopes(link, kinds, several):
    t = tables(kinds, several)
    weights, rise_log = np.exp(t["shape"]), np.log(t["features"][:, kinds])
    value, total = np.empty(2), np.empty_like(t["offset"])
    by_level, by_weight = np.empty_like(t["level"]), np.empty_like(weights)
    plain(rows_in_leaves)(
        link, t["offset"], t["level"], t["shape"], weights, t["features"], rise_log, t["event"], t["mass"], t["leaf"],
        value, total, by_level, by_weight,
    )  # fmt: skip
    np.testing.assert_allclose(value, value_of(link, t))
    step = 1e-6
    for leaf in range(3):
        moved = [value_of(link, t | {"level": t["level"] + sign * step * (np.arange(3) == leaf)}) for sign in (1, -1)]
        np.testing.assert_allclose(by_level[:, leaf], (moved[0] - moved[1]) / (2 * step), rtol=1e-5, atol=1e-6)
        for k in range(kinds):
            nudge = np.zeros_like(weights)
            nudge[:, leaf, k] = step
            moved = [value_of(link, t, weights + sign * nudge) for sign in (1, -1)]
            np.testing.assert_allclose(by_weight[:, leaf, k], (moved[0] - moved[1]) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.sum((1, 2)), by_level.sum(1))  # an offset moves what a level does
    own = np.take_along_axis(total, t["leaf"][:, None] if several else 0 * t["leaf"][:, None], 1)
    assert np.count_nonzero(total) == np.count_nonzero(own)
