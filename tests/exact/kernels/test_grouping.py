"""Groups of yes/no columns: levels as a plain loop finds them, chains as few as another library's matching leaves."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from softsurv.exact.kernels.grouping import columns_of, group
from softsurv.exact.kernels.views import Packed


def grouped(answers):
    """Levels and chains of columns (B, U), and the codes of all groups."""
    columns = columns_of(np.ascontiguousarray(answers))
    group(Packed(columns))
    n_levels, n_groups = columns.found.tolist()
    ends = np.cumsum(columns.size[:n_groups])
    groups = [columns.place[end - size : end].tolist() for end, size in zip(ends, columns.size, strict=False)]
    return groups[:n_levels], groups[n_levels:], columns.codes[:n_groups]


def different(rng, answers):
    """The different columns, in any order."""
    return rng.permutation(np.unique(answers.astype(np.int32), axis=0))


def levels_of(answers):
    """Groups of three or more columns, of which every row answers 1 to one: each with the first possible ones."""
    found, used = [], set()
    for first in range(len(answers)):
        some = [first]
        for column in range(first + 1, len(answers)):
            if column not in used and not (answers[column] & answers[some].any(axis=0)).any():
                some.append(column)
        if first not in used and len(some) > 2 and answers[some].sum(axis=0).min() == 1:
            found.append(some)
            used |= set(some)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_levels_are_those_of_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, rng.integers(3, 6), 70) for _ in range(3)]
    answers = [value == level for value in values for level in np.unique(value)]
    answers = different(rng, np.array([*answers, *(rng.random((4, 70)) < 0.6)]))
    levels, chains, codes = grouped(answers)
    assert levels == levels_of(answers)
    assert len(levels) > 0
    assert sorted(chain.from_iterable([*levels, *(one[:-1] for one in chains)])) == list(range(len(answers)))
    for level, code in zip(levels, codes, strict=False):
        assert np.array_equal(code, answers[level].argmax(axis=0))


@pytest.mark.parametrize("seed", range(40))
def test_chains_are_as_few_as_the_largest_matching_leaves(seed):
    """On columns of few rows, many of which lie inside each other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    answers = different(rng, rng.random((60, n)) < rng.random((60, 1)))
    answers = answers[answers.sum(axis=1) > n // 3]  # too large for three of them to be levels
    both = answers @ answers.T
    inside = (both == both.diagonal()) & (both.diagonal() < both.diagonal()[:, None])
    matched = (maximum_bipartite_matching(csr_array(inside), perm_type="column") >= 0).sum()
    levels, chains, codes = grouped(answers)
    assert matched > 0
    assert levels == []
    assert len(chains) == len(answers) - matched
    for one, code in zip(chains, codes, strict=True):
        assert one[-1] == one[-2]
        assert inside[one[:-2], one[1:-1]].all()
        assert np.array_equal(code, answers[one[:-1]].sum(axis=0))


def test_more_rows_than_a_word_has_bits():
    value = np.arange(130)
    _, chains, codes = grouped(np.array([value < cut for cut in (129, 1, 65)], np.int32))
    assert chains == [[0, 2, 1, 1]]
    assert np.array_equal(codes[0], (value < 129).astype(int) + (value < 1) + (value < 65))
