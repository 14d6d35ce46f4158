"""What corrections of leaves gain, and the best cuts of binned features, by enumeration of all of them."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.sparse.kernels import (
    N_SUMS,
    best_trees,
    causes_of,
    gain_of,
    gains_alone,
    histogram_pair,
    leaf_gain,
    rest_gain,
)

PENALTY = 2.0


def sums_of(rng, n, causes=1):
    """Slopes and curvatures of rows, each cause's curvature positive definite."""
    parts = []
    for _ in range(causes):
        h = rng.uniform(0.1, 1, n)
        parts.append(np.column_stack([rng.normal(size=n), rng.normal(size=n), h, 0.2 * h, h]))
    return np.hstack(parts)


def gain_by_newton(sums, penalty):
    """1/2 g' (H + penalty I)^-1 g, added up over the causes."""
    gain = 0.0
    for c in range(0, len(sums), N_SUMS):
        g0, g1, h00, h01, h11 = sums[c : c + N_SUMS]
        hessian = np.array([[h00 + penalty, h01], [h01, h11 + penalty]])
        gain += 0.5 * np.array([g0, g1]) @ np.linalg.solve(hessian, [g0, g1])
    return gain


@pytest.mark.parametrize("causes", [1, 2, 3])
def test_gains_are_those_of_newtons_step(causes):
    rng = np.random.default_rng(causes)
    rows = sums_of(rng, 20, causes)
    total, low = rows.sum(0), rows[:8].sum(0)
    columns = causes_of(rows)
    assert len(columns) == causes
    assert plain(gain_of)(total, PENALTY, columns) == pytest.approx(gain_by_newton(total, PENALTY))
    assert plain(rest_gain)(total, low, PENALTY, columns) == pytest.approx(gain_by_newton(total - low, PENALTY))


def test_where_the_shape_is_not_determined_the_level_alone_is_corrected():
    gain = plain(leaf_gain)
    assert gain(3.0, 5.0, 4.0, 4.0, 4.0, 0.0) == pytest.approx(0.5 * 9 / 4)
    assert gain(3.0, 5.0, 0.0, 0.0, 0.0, 0.0) == 0.0
    assert gain(3.0, 5.0, 0.0, 0.0, 0.0, 1.0) == pytest.approx(0.5 * (9 + 25))


def test_cumulated_sums_of_pairs_of_bins():
    rng = np.random.default_rng(0)
    first, second, rows = rng.integers(0, 3, 30), rng.integers(0, 4, 30), np.arange(0, 30, 2)
    sums, size, out = sums_of(rng, 30), rng.random(30), np.full((5, 5, 6), np.nan)
    plain(histogram_pair)(first, second, 3, 4, rows, sums, size, out, (0,))
    for a in range(3):
        for b in range(4):
            inside = rows[(first[rows] <= a) & (second[rows] <= b)]
            np.testing.assert_allclose(out[a, b, :5], sums[inside].sum(0), atol=1e-12)
            assert out[a, b, 5] == pytest.approx(size[inside].sum())


@pytest.mark.parametrize("causes", [1, 2])
@pytest.mark.parametrize("least", [0.0, 3.0])
def test_every_root_with_the_best_further_cut_of_each_side(causes, least):
    rng = np.random.default_rng(causes)
    n_codes = np.array([4, 3, 2])
    codes, rows = np.array([rng.integers(0, c, 25) for c in n_codes]), np.arange(1, 25)
    sums, size = sums_of(rng, 25, causes), rng.integers(0, 2, 25).astype(float)
    gain, inner, cut = plain(best_trees)(codes, n_codes, rows, sums, size, least, PENALTY, causes_of(sums))

    def of(part):
        return gain_by_newton(sums[part].sum(0), PENALTY)

    for f in range(3):
        for a in range(n_codes[f] - 1):
            sides = rows[codes[f, rows] <= a], rows[codes[f, rows] > a]
            allowed = min(size[side].sum() for side in sides) >= least
            np.testing.assert_allclose(gain[f, a], [of(side) if allowed else -np.inf for side in sides])
            for side, mine in enumerate(sides):
                best = -np.inf
                for s in range(3):
                    for b in range(n_codes[s] - 1):
                        parts = mine[codes[s, mine] <= b], mine[codes[s, mine] > b]
                        nothing = s == f and (b >= a if side == 0 else b <= a)
                        if not nothing and min(size[part].sum() for part in parts) >= least and allowed | (s != f):
                            value = sum(of(part) for part in parts)
                            best = max(best, value)
                            if cut[f, a, side].tolist() == [s, b]:
                                assert value == pytest.approx(inner[f, a, side])
                assert inner[f, a, side] == pytest.approx(best)


@pytest.mark.parametrize("causes", [1, 2])
@pytest.mark.parametrize("least", [0.0, 4.0, 100.0])
def test_gains_of_features_alone_are_those_of_their_best_roots(causes, least):
    rng = np.random.default_rng(5)
    codes, rows = rng.integers(0, 4, (3, 40)).astype(np.int16), np.sort(rng.choice(40, 25, replace=False))
    how = (codes, np.array([4, 4, 4]), rows, sums_of(rng, 40, causes), rng.random(40), least, PENALTY)
    columns = causes_of(how[3])
    roots = plain(best_trees)(*how, columns)[0].sum(-1).max(1)
    np.testing.assert_allclose(plain(gains_alone)(*how, columns), roots)
