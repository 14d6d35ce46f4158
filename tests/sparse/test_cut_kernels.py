"""The best cut of a column or a direction, against every cut."""

import numpy as np
import pytest
from oracles.plain_python import plain

from softsurv.sparse.cut_kernels import best_cuts, best_pair, cut_gains, totals
from softsurv.sparse.kernels import causes_of, gain_of

PENALTY = 2.0


def rows_of(seed, n=30, one=False):
    rng = np.random.default_rng(seed)
    h = rng.uniform(0.1, 1, n)
    table = np.column_stack([rng.normal(size=n), rng.normal(size=n), h, 0.1 * h, h])
    return rng, table[:, :1].copy() if one else table, rng.integers(0, 2, n).astype(float)


def gain_of_cut(sums, size, low, least):
    """What the rows at and below a cut against the others gain; -inf where a side is too small."""
    if min(size[low].sum(), size[~low].sum()) < least:
        return -np.inf
    if sums.shape[1] == 1:
        return -sums[low].sum()
    return sum(plain(gain_of)(sums[part].sum(0), PENALTY, causes_of(sums)) for part in (low, ~low))


def test_totals_of_all_rows():
    _, sums, size = rows_of(0)
    total, whole = plain(totals)(sums, size)
    np.testing.assert_allclose(total, sums.sum(0))
    assert whole == size.sum()


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("least", [0.0, 5.0])
def test_gains_along_a_score(one, least):
    rng, sums, size = rows_of(1, one=one)
    score = np.round(rng.normal(size=30), 1)
    order = np.argsort(score, kind="stable")
    gains, best = plain(cut_gains)(score, order, sums, size, least, PENALTY, 1e-9, causes_of(sums))
    for t, gain in enumerate(gains):
        if score[order[t]] == score[order[t + 1]]:
            assert np.isnan(gain)
        else:
            assert gain == pytest.approx(gain_of_cut(sums, size, score <= score[order[t]], least))
    assert best == np.nanmax(gains)


def test_one_row_has_no_cut():
    _, sums, size = rows_of(2, n=1)
    gains, best = plain(cut_gains)(np.ones(1), np.zeros(1, int), sums, size, 0.0, PENALTY, 0.0, (0,))
    assert len(gains) == 0
    assert best == -np.inf


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("least", [0.0, 4.0])
def test_best_cuts_of_sorted_columns(one, least):
    """Over the rows that count, some of many; equal and nearly equal values are one."""
    rng, table, sizes = rows_of(3, one=one)
    values = np.round(rng.normal(size=(3, 30)), 1)
    values[0, ::2] += 1e-13
    place, at = np.full(30, -1), np.sort(rng.choice(30, 18, replace=False))
    place[at] = np.arange(18)
    sums, size = table[at], sizes[at]
    columns = np.array([2, 0])
    how = (place, sums, size, least, PENALTY, 1e-9, np.array([0.0, 0.15]), causes_of(sums))
    found = plain(best_cuts)(columns, values, np.argsort(values, axis=1), *how)
    for c, column in enumerate(columns):
        own = np.round(values[column, at], 6)
        kinds = np.unique(own)
        lows = [own <= cut for cut in kinds[:-1][np.diff(kinds) > 0.15 * c]]  # the second one needs room for a cut
        gains = [gain_of_cut(sums, size, low, least) for low in lows]
        assert found[c, 0] == pytest.approx(max(gains))
        turned = max(-gain if np.isfinite(gain) else gain for gain in gains)
        assert found[c, 1] == (pytest.approx(turned) if one else -np.inf)


def test_the_best_direction_is_that_along_which_rows_differ():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(4, 400))
    sums = np.where(z[1] - 0.5 * z[3] > 0.2, 1.0, -1.0)[:, None]
    pairs, ratios = np.array([[0, 1], [1, 3], [1, 2], [0, 3]]), np.array([-2.0, -0.5, 0.5, 2.0])
    gain, pair, ratio = plain(best_pair)(z, pairs, ratios, sums, np.ones(400), 5.0, PENALTY, (0,))
    assert (pair, ratio) == (1, 1)
    assert 0.9 * 400 * (z[1] - 0.5 * z[3] < 0.2).mean() < gain <= (sums < 0).sum()
    nothing = plain(best_pair)(z, pairs, ratios, sums, np.ones(400), 300.0, PENALTY, (0,))
    assert nothing[0] == -np.inf
    assert nothing[1] == -1
