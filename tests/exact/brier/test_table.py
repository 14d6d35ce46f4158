"""The local table of a subproblem, against loops over its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.brier_rows import in_order, rules_of
from oracles.plain_python import plain

from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, KM_ROWS, LANES
from softsurv.exact.brier.table import (
    column_sums,
    enough_rows,
    feasible_splits,
    gather,
    permuted,
    split_rows,
    take,
    time_bins,
)


@given(seed=st.integers(0, 1 << 30), n=st.integers(1, 12), p=st.integers(0, 60), least=st.integers(1, 3))
def test_of_splits_that_agree_the_first_is_kept(seed, n, p, least):
    rng = np.random.default_rng(seed)
    x = rng.random((n, p)) < rng.choice([0.1, 0.5])
    word = rng.integers(0, 2**64, n, dtype=np.uint64)
    key = np.zeros((2, p + 1), dtype=np.uint64)
    key[0] = np.append((x * word[:, None]).sum(0, dtype=np.uint64), word.sum(dtype=np.uint64))
    count = np.append(x.sum(0), n).astype(float)
    enough = [f for f in range(p) if least <= count[f] <= n - least]
    kept = []
    for f in enough:
        if not any((x[:, f] == x[:, k]).all() or (x[:, f] != x[:, k]).all() for k in kept):
            kept.append(f)
    assert plain(feasible_splits)(count, key, float(least)).tolist() == kept
    assert plain(enough_rows)(count, float(least)).tolist() == enough


def test_sums_of_the_rows_with_each_feature():
    x, _, rows = in_order(0)
    index = np.array([1, 4, 5, 9, 20])
    count, bound, key = plain(column_sums)(rows, index)
    for f in range(x.shape[1] + 1):
        inside = index if f == x.shape[1] else index[x[index, f] == 1]
        assert count[f] == len(inside)
        assert bound[f] == pytest.approx(rows.bound[inside].sum())
        np.testing.assert_array_equal(key[:, f], rows.key[inside].sum(axis=0, dtype=np.uint64))


@pytest.mark.parametrize("ipcw", [False, True])
def test_bins_cover_the_time_from_the_first_row_on(ipcw):
    _, _, rows = in_order(1, n=30, n_times=15)
    index = np.array([5, 6, 11, 12, 25])
    level, dh, dy, stop = plain(time_bins)(rows, rows.time_id[index], ipcw)
    first = rows.time_id[index[0]]
    assert dy.sum() == pytest.approx(rows.t[-1] - rows.t[first])
    assert dh.sum() == pytest.approx(rows.th[-1] - rows.th[first])
    assert (np.diff(stop) >= 0).all()
    assert stop[-1] == len(index)
    starts = first + np.flatnonzero(np.isin(rows.t[first:], rows.t[first] + np.r_[0.0, np.cumsum(dy)[:-1]]))
    for b, time in enumerate(starts[: len(level)]):
        assert stop[b] == (rows.time_id[index] <= time).sum() or b + 1 < len(level)
        assert level[b] == pytest.approx(rows.g[time] if ipcw else 1.0 / rows.g[time] if rows.g[time] else 0.0)


@pytest.mark.parametrize(("mode", "n_times"), [(KM_ROWS, 100), (KM_ROWS, 2), (IPCW, 12)])
def test_a_table_holds_the_columns_of_its_splits(mode, n_times):
    x, _, rows = in_order(2, n=100, n_times=n_times)
    index, feature = np.arange(3, 99, 2), np.array([3, 0])
    local = plain(gather)(rows, index, feature, rules_of(rows, mode))
    assert local.mode == (IPCW if mode == IPCW else KM_BINS if n_times == 2 else KM_ROWS)  # few bins of time are faster
    np.testing.assert_array_equal(local.x[:, :2], x[index][:, feature])
    assert (local.x[:, -1] == 1).all()
    assert not local.x[:, 2:-1].any()
    assert local.x.shape[1] == LANES + 1
    np.testing.assert_array_equal(local.total[-1], local.x.sum(axis=0))
    np.testing.assert_array_equal(np.bitwise_count(local.bits).sum(axis=0), local.x.sum(axis=0))
    if local.mode == KM_BINS:  # events and censorings of each bin in words of their own
        for segment in range(len(local.total) - 1):
            words = local.bits[local.first[segment] : local.first[segment + 1]]
            np.testing.assert_array_equal(np.bitwise_count(words).sum(axis=0), local.total[segment])
            began = 0 if segment < 2 else local.stop[segment // 2 - 1]
            inside = index[began : local.stop[segment // 2]]
            died = rows.v[inside] > 0
            assert local.total[segment, -1] == (died if segment % 2 == 0 else ~died).sum()


@pytest.mark.parametrize("n_times", [2, 100])
def test_splits_in_another_order(n_times):
    _, _, rows = in_order(2, n=100, n_times=n_times)
    index, order = np.arange(100), np.array([2, 0, 1])
    rules = rules_of(rows)
    turned = plain(permuted)(plain(gather)(rows, index, np.array([3, 0, 1]), rules), order)
    again = plain(gather)(rows, index, np.array([1, 3, 0]), rules)
    for name in ("feature", "bits", "total", "lanes"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(again, name), err_msg=name)
    if turned.mode == KM_ROWS:
        np.testing.assert_array_equal(turned.x, again.x)


def test_rows_with_a_feature_and_without():
    x, _, rows = in_order(0)
    index = np.array([2, 3, 7, 11, 19])
    ones, zeros = plain(split_rows)(x, index, 1)
    assert ones.tolist() == [i for i in index if x[i, 1]]
    assert zeros.tolist() == [i for i in index if not x[i, 1]]
    taken = plain(take)(rows, index)
    np.testing.assert_array_equal(taken.y, rows.y[index])
    np.testing.assert_array_equal(taken.time_id, rows.time_id[index])
