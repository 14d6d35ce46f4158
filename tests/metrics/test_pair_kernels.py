"""Counted pairs against plain comparisons of all subjects with all events."""

import numpy as np
import pytest

from softsurv.metrics.pair_kernels import compare_block, scan_backwards, weigh_block


@pytest.mark.parametrize("n_ranks", [1, 3, 17])
def test_later_subjects_are_counted_by_rank(n_ranks):
    rng = np.random.default_rng(n_ranks)
    position, rank = rng.integers(0, 6, 40), rng.integers(0, n_ranks, 40)  # many tied positions: none of them is later
    lower, equal = scan_backwards(np.argsort(-position, kind="stable"), position, rank, n_ranks)
    later = position[None, :] > position[:, None]
    np.testing.assert_array_equal(lower, (later & (rank[None, :] < rank[:, None])).sum(1))
    np.testing.assert_array_equal(equal, (later & (rank[None, :] == rank[:, None])).sum(1))


def test_one_subject_has_nobody_after_it():
    one = np.zeros(1, np.int64)
    assert [counts.tolist() for counts in scan_backwards(one, one, one, 1)] == [[0], [0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_events_are_compared_with_subjects_from_entry_to_time(weighted):
    rng = np.random.default_rng(0)
    n, n_columns, n_events = 12, 4, 9
    block = rng.integers(0, 3, (n, n_columns)).astype(float)  # ties of risk
    column, own = np.sort(rng.integers(0, n_columns, n_events)), rng.integers(0, 3, n_events).astype(float)
    missed = rng.integers(-3, 5, n)  # below 0 and above the size: the events of another part
    earlier = missed + rng.integers(0, 12, n)
    mass = rng.random(n) if weighted else np.ones(n)
    lower, equal = np.zeros((2, n_events), float if weighted else np.int64)
    if weighted:
        weigh_block(block, column, own, missed, earlier, mass, lower, equal)
    else:
        compare_block(block, column, own, missed, earlier, lower, equal)
    event = np.arange(n_events)
    within = (event >= missed[:, None]) & (event < earlier[:, None])
    np.testing.assert_allclose(lower, mass @ (within & (block[:, column] < own)))
    np.testing.assert_allclose(equal, mass @ (within & (block[:, column] == own)))
