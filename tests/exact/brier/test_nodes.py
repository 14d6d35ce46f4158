"""What is known of a subproblem, the agenda of a node, and plans."""

import math

import pytest

from softsurv.exact.brier.base_case import IMPROVEMENT
from softsurv.exact.brier.nodes import Agenda, Known, Node, TreePlan, leaf_count, shallow_plan

STUMP = TreePlan(1, None, None)


def test_bounds_change_for_the_better_alone():
    known = Known(1.0, 5.0)
    known.raise_lower(0.5)
    assert known.lower == 1.0
    known.raise_lower(2.0)
    assert (known.lower, known.value, known.plan) == (2.0, 5.0, None)
    assert not known.improve(5.0 - 0.5 * IMPROVEMENT, STUMP)
    assert known.improve(4.0, STUMP)
    assert (known.value, known.plan) == (4.0, STUMP)
    assert not known.improve(4.5, TreePlan(2, None, None))
    assert known.plan is STUMP


def test_solved_where_the_bounds_meet():
    known = Known(1.0, 2.0)
    assert not known.solved
    known.raise_lower(2.0 - IMPROVEMENT)
    assert known.solved


@pytest.fixture
def agenda():
    child = Node((0, 0), 1.0, 0.0, 0.0, 0)
    return Agenda([(split, (child, child)) for split in (7, 3, 5)], 10.0)


def test_of_equally_good_splits_the_first_is_kept_whatever_comes_first(agenda):
    entry = Known(0.0, 9.0)
    agenda.settle(2, 4.0, TreePlan(5, None, None), entry)
    assert agenda.rank == 2
    assert agenda.ceiling(0, entry) > 4.0 > agenda.ceiling(2, entry)
    agenda.settle(0, 4.0, TreePlan(7, None, None), entry)
    assert entry.plan.split == 7
    assert agenda.rank == 0
    agenda.settle(1, 4.0, TreePlan(3, None, None), entry)
    assert entry.plan.split == 7
    assert agenda.done == agenda.n == 3
    assert not agenda.open


def test_splits_without_a_tree_leave_their_bound(agenda):
    entry = Known(0.0, 9.0)
    agenda.settle(1, 6.0, None, entry)
    assert agenda.unresolved == 6.0
    agenda.settle(0, 8.0, None, entry)
    assert agenda.unresolved == 6.0
    assert list(agenda.open) == [2]
    assert math.isclose(entry.value, 9.0)
    assert [position for position, _ in agenda.waiting] == [0, 1, 2]


def test_plans_of_depth_two():
    assert shallow_plan([4, -1, -1]) == TreePlan(4, None, None)
    assert shallow_plan([4, 2, -1]) == TreePlan(4, TreePlan(2, None, None), None)
    assert shallow_plan([4, -1, 0]) == TreePlan(4, None, TreePlan(0, None, None))
    assert [leaf_count(shallow_plan(one)) for one in ([4, -1, -1], [4, 2, -1], [4, 2, 0])] == [2, 3, 4]
    assert leaf_count(None) == 1
    assert leaf_count(TreePlan(0, TreePlan(1, STUMP, None), STUMP)) == 5
