"""A problem column by column: what is a column, its rows by code, and room for what is written."""

import numpy as np
import pytest
from oracles.plain_cuts import cutting
from oracles.plain_search import small

from softsurv.exact.cuts.scratch import aligned_copy, bytes_of_cuts, columns_of, take_rows


def test_a_column_is_an_ordered_feature_or_a_level_against_the_rest():
    problem = small(n=40, levels=3, nominal=[False, True, False]).problem
    code, split = columns_of(problem)
    divisions = {(int(problem.feature_of[g]), tuple(column == 0)) for column, g in zip(code, split, strict=True)}
    assert len(code) == 1 + 3 + 1
    for column, g in zip(code, split, strict=True):
        f = int(problem.feature_of[g])
        if problem.nominal[f]:
            np.testing.assert_array_equal(column == 0, problem.gcode[:, f] == g)
        else:
            np.testing.assert_array_equal(column, problem.gcode[:, f] - problem.code_start[f])
    assert len(divisions) == len(code)


def test_two_levels_are_one_column():
    problem = small(n=40, levels=2, nominal=[True, True, True]).problem
    assert len(columns_of(problem)[0]) == 3


def test_rows_of_a_node_are_taken_in_order():
    made = cutting(n=20, levels=5, depth=3)
    wanted = np.zeros(len(made.problem.stats), bool)
    wanted[made.found.rows[::3]] = True
    p = len(made.cuts.code)
    ordered = made.cuts.order[:p, : made.n].copy()
    taken = take_rows(made.cuts, ordered, wanted)
    assert taken == wanted.sum()
    for f in range(p):
        assert made.cuts.order[f, :taken].tolist() == [row for row in ordered[f] if wanted[row]]


@pytest.mark.parametrize("k", [3, 8])
def test_vectors_of_labels_repeat_the_first(k):
    statistics = np.random.default_rng(k).random((5, k))
    vectors = aligned_copy(statistics, True).reshape(5, 8)
    np.testing.assert_array_equal(vectors[:, :k], statistics)
    assert (vectors[:, k:] == statistics[:, :1]).all()
    assert len(aligned_copy(statistics, False)) == 0


@pytest.mark.parametrize("labels", [2, 3, 9])  # in lanes by column, in lanes by label, in none
@pytest.mark.parametrize("min_leaf", [1, 5])
def test_memory_is_told_before_it_is_made(labels, min_leaf):
    statistics = np.random.default_rng(0).integers(1, 9, (400, labels)).astype(float)
    made = cutting(n=400, levels=9, nominal=[False] * 3, statistics=statistics, min_leaf=min_leaf)
    intervals = {"key", "slot", "back", "span", "side_bound", "batch", "cost"}  # of which few are written
    arrays = {name: one for name, one in made.cuts._asdict().items() if isinstance(one, np.ndarray)}
    held = sum(one.nbytes for name, one in arrays.items() if name not in intervals)
    # those of a least size go into the statistics of the problem, and not into those of its cuts
    told = bytes_of_cuts(made.problem._replace(use_size=made.cuts.limited), made.cuts.similar)
    assert 0.9 * held < told < 1.1 * held


def test_shortcuts_are_taken_where_they_are_proven():
    sums = np.random.default_rng(0).integers(1, 9, (14, 3)).astype(float)
    assert cutting().cuts.two_labels
    assert cutting(statistics=sums).cuts.few_labels
    limited = cutting(statistics=sums, min_leaf=3).cuts
    assert limited.few_labels
    assert limited.similar
    assert limited.limited
    wide = np.random.default_rng(0).integers(1, 9, (14, 9)).astype(float)
    assert not cutting(statistics=wide).cuts.few_labels
