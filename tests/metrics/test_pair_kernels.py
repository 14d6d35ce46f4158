"""Counted pairs against plain comparisons of all subjects with all events."""

import numpy as np
import pytest

from softsurv.metrics.pair_kernels import compare_block, scan_backwards, weigh_block, win_by_rank


def _sorted_within(curve, offset, n_curves):
    """Places (N,) by curve and offset, where each curve starts, and the offsets in that order."""
    kept = np.lexsort((offset, curve))
    return np.argsort(kept), np.searchsorted(curve[kept], np.arange(n_curves + 1)), offset[kept]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_curves", [1, 4])
def test_subjects_met_so_far_are_counted_by_value(n_curves, weighted):
    rng = np.random.default_rng(n_curves)
    n, n_events = 40, 9
    curve, offset = rng.integers(0, n_curves, n), rng.integers(0, 5, n).astype(float)  # ties of offsets
    order, number = rng.permutation(n), np.sort(rng.integers(0, n + 1, n_events))[::-1]
    base, column = rng.integers(0, 3, (n_curves, 4)).astype(float), rng.integers(0, 4, n_events)
    own, mass = (
        rng.integers(0, 7, n_events).astype(float),
        rng.random((n, 3)) if weighted else np.ones((n, 1), np.int64),
    )
    kept = _sorted_within(curve, offset, n_curves)
    lower, equal = scan_backwards(order, number, curve, *kept, base, column, own, mass)
    value = offset[:, None] + base[curve][:, column]  # (N, E)
    met = np.argsort(order)[:, None] < number
    np.testing.assert_allclose(lower, (met & (value < own)).T @ mass)
    np.testing.assert_allclose(equal, (met & (value == own)).T @ mass, atol=1e-14)
    assert lower.dtype == mass.dtype


def test_an_event_with_nobody_after_it_has_no_pair():
    one, offset = np.zeros(1, np.int64), np.zeros(1)
    kept = _sorted_within(one, offset, 1)
    found = scan_backwards(one, one, one, *kept, np.zeros((1, 1)), one, offset, np.ones((1, 1), np.int64))
    assert [counts.tolist() for counts in found] == [[[0]], [[0]]]


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


def test_cases_and_controls_are_compared_by_rank():
    rng = np.random.default_rng(0)
    n = 50
    risk, control, mass = rng.integers(0, 9, n), rng.random(n) < 0.5, rng.random((n, 3))
    case = np.where(rng.random(n) < 0.5, rng.random(n), 0.0)
    order = np.argsort(risk)
    won, pairs = win_by_rank(order, np.diff(risk[order], prepend=-1) > 0, case, control, mass)
    points = (risk[:, None] > risk) + 0.5 * (risk[:, None] == risk)  # of each case (N, 1) against each control
    of_case, of_control = case[:, None] * mass, control[:, None] * mass
    np.testing.assert_allclose(won, (of_case * (points @ of_control)).sum(0))
    np.testing.assert_allclose(pairs, of_case.sum(0) * of_control.sum(0))
