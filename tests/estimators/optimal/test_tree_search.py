"""What searches share: limits that come from the rows, sums of leaves, and what a search without sizes answers."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.estimators.optimal.rows import Rows
from softsurv.estimators.optimal.tree_search import TreeSearch
from softsurv.exact.memory import Room
from softsurv.results import Status
from softsurv.trees.hard_tree import Branch


class Shared(TreeSearch):
    """The part that needs no objective."""

    best = loss = held = None


def shared(rows, **settings):
    data = survival_data(*rows)
    return Shared(Rows.of(data, Binarizer(5).fit(data.X)), OptimalSurvivalTree(**settings), "km", Room(1e9))


def test_sums_of_leaves_are_events_and_expected_events(rows):
    search = shared(rows, min_samples_leaf=1)
    rule, _ = search.rows.binarizer.rule(*search.rows.binarizer.splits[0])
    tree = search.grown(Branch(rule, None, None))
    leaf, sums = search.rows.leaf_of(tree), search.leaf_sums(tree)
    for k in range(2):
        assert sums[k] == pytest.approx([search.rows.event[leaf == k].sum(), search.hazards[0][leaf == k].sum()])
    assert sums.sum(axis=0)[0] == pytest.approx(sums.sum(axis=0)[1])  # Nelson-Aalen expects as many as there are


def test_arguments_become_numbers(rows):
    search = shared(rows, shrinkage=3, complexity=2, min_samples_leaf=7)
    assert (search.shrinkage, search.complexity, search.least) == (3.0, 2.0, 7)


def test_a_search_without_sizes_has_no_path_and_takes_another_room(rows):
    search = shared(rows)
    assert search.path(3, 8, np.inf) == ([], Status.OPTIMAL)
    search.limit_to(Room(5e8))
    assert search.room.left == 5e8
