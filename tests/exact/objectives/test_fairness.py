"""Group fairness as objectives: what constraints on sums say, against shares of rows called positive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsurv.errors import InvalidParameterError
from softsurv.exact.objectives.fairness import (
    KINDS,
    difference,
    difference_constraint,
    fair_search,
    share_weights,
)


def shares(label, group, called, kind, weight):
    """Share of rows called positive in each group, by loops."""
    out = []
    for g in np.unique(group):
        rows = [i for i in range(len(label)) if group[i] == g and (kind == KINDS[0] or label[i] == 1)]
        if rows:
            out.append(sum(weight[i] * called[i] for i in rows) / sum(weight[i] for i in rows))
    return np.array(out)


def random_groups(seed, n_groups, n=20):
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.repeat(np.arange(n_groups), 2), rng.integers(0, n_groups, n - 2 * n_groups)])
    label = np.concatenate([np.tile([0, 1], n_groups), rng.integers(0, 2, n - 2 * n_groups)])
    return label, group, rng.integers(0, 2, n), rng.integers(1, 4, n).astype(float)


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(2, 4))
def test_difference_is_the_largest_gap_between_shares(seed, kind, n_groups):
    label, group, called, weight = random_groups(seed, n_groups)
    expected = np.ptp(shares(label, group, called, kind, weight))
    assert difference(called, label, group, kind, weight) == pytest.approx(expected)
    alike = np.ptp(shares(label, group, called, kind, np.ones(len(label))))
    assert difference(called, label, group, kind) == pytest.approx(alike)


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(2, 3), st.sampled_from([0.0, 0.1, 0.3]))
def test_the_constraint_holds_where_no_two_groups_differ_by_more(seed, kind, n_groups, tolerance):
    label, group, called, weight = random_groups(seed, n_groups)
    counts = label == 1 if kind == KINDS[1] else np.ones(len(label), bool)
    size = np.bincount(group[counts], weight[counts], n_groups)
    statistics = np.zeros(2 * n_groups)  # rows called positive, by class and group
    np.add.at(statistics, label * n_groups + group, weight * called)
    kept = share_weights(n_groups, kind, size) @ statistics
    rows, limit = difference_constraint(n_groups, size, tolerance)
    holds = bool((rows @ np.concatenate([[123.0], kept]) <= limit).all())  # errors do not matter
    gap = np.ptp(shares(label, group, called, kind, weight))
    assert holds == (gap <= tolerance * (1 + 1e-9) + 1e-12)


def test_rows_that_no_tree_may_part_are_called_alike():
    columns = np.zeros((4, 1), np.int32)
    search = fair_search(
        columns, np.array([2]), np.zeros(1, bool), np.array([1, 1, 0, 1]), np.array([0, 0, 1, 1]), KINDS[0], 0.0, 1
    )
    points = search.objectives.points(search.totals[None])[0]
    np.testing.assert_allclose(points, [[3.0, 0.0], [1.0, 0.0]])  # all called alike: no difference


def test_a_group_without_rows_is_named():
    with pytest.raises(InvalidParameterError, match="group 1 must have rows of the positive class for 'equality_of"):
        fair_search(
            np.zeros((3, 1), np.int32), np.array([2]), np.zeros(1, bool), np.array([1, 1, 0]), np.array([0, 0, 1]),
            KINDS[1], 0.0, 1,
        )  # fmt: skip
