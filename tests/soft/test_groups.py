"""Groups of trees that share rows: trees leave them one by one, and a stack gives what each tree gives alone."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from oracles.recorded import Again
from oracles.rounds import rounds_taken
from oracles.soft_stack import stack

from softsurv.hazards import get_family
from softsurv.soft import groups as module
from softsurv.soft import nodec as nodec_module
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.groups import Groups
from softsurv.soft.newton import NewtonSettings
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import ALONE, NARROWER, LbfgsSettings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.replay import recording
from softsurv.soft.watch import LOOK_EVERY, never_waiting

RULE = LbfgsSettings(max_iterations=60, ftol=1e-6)
UNEVEN = torch.tensor([0, 2, 3, 5, 6, 7, 8])
"""Of three groups of three trees: two of the first, two of the second, all of the third."""


def grouped(tools, family="weibull", trees=3):
    """Objective, start and metric of three groups of trees of depth 2."""
    objective, routing, leaves = stack(tools, family, groups=3, trees=trees)
    return objective, (routing, leaves), GramMetric(objective.problem, 3, 4)


@pytest.mark.parametrize("operators", [False, True], ids=["compiled", "operators"])
@pytest.mark.parametrize("family", ["weibull", "lognormal"])
def test_a_tree_leaves_its_group_as_soon_as_it_has_converged(tools, family, operators):
    """Round by round the trees of a grouped stack are those that have not converged."""
    objective, start, metric = grouped(tools, family)
    with operators_alone() if operators else nullcontext(), rounds_taken() as rounds:
        found = minimise(objective, start, RULE, metric)
    assert [one.trees for one in rounds] == [one.moving for one in rounds]
    assert len({one.trees for one in rounds}) >= 5  # one by one, not group by group
    assert found.converged.any()


@pytest.mark.parametrize("family", ["weibull", "lognormal"])
def test_on_a_device_without_graphs_a_tree_leaves_as_soon_as_the_host_knows(tools, family):
    objective, start, metric = grouped(tools, family)
    with never_waiting(), operators_alone(), rounds_taken() as rounds:
        minimise(objective, start, RULE, metric)
    assert [one.trees for one in rounds] == [one.moving for one in rounds]
    assert len({one.trees for one in rounds}) >= 5


@pytest.mark.parametrize("family", ["weibull", "lognormal"])
def test_recorded_rounds_take_at_most_a_third_more_trees(tools, family):
    """One by one before; then four rounds begin with fewer than 4 / 3 trees for each one that moves."""
    objective, start, metric = grouped(tools, family, trees=8)
    rule, again = LbfgsSettings(max_iterations=80, ftol=1e-8), Again()
    with never_waiting(), operators_alone(), recording(again), rounds_taken() as rounds:
        found = minimise(objective, start, rule, metric)
    first, later = rounds[:ALONE], rounds[ALONE:]
    assert all(one.trees == one.moving for one in first)
    fours = [later[k : k + LOOK_EVERY] for k in range(0, len(later), LOOK_EVERY)]
    assert all(NARROWER * four[0].trees < four[0].moving for four in fours)
    assert any(four[0].trees > four[0].moving for four in fours)  # in steps
    needed = sum(one.moving for one in rounds)
    at_most = needed + (LOOK_EVERY - 1) * len(found.loss)  # a tree that stops within four rounds stays for these
    assert sum(one.trees for one in rounds) <= at_most / NARROWER
    assert 2 <= again.made <= 1 + math.log(len(found.loss)) / -math.log(NARROWER)


def test_on_a_device_with_graphs_trees_end_where_they_do_without(tools):
    objective, start, metric = grouped(tools)
    with never_waiting(), operators_alone():
        expected = minimise(objective, start, RULE, metric)
        with recording(Again()):
            found = minimise(objective, start, RULE, metric)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("late", [False, True], ids=["cpu", "device"])
@pytest.mark.parametrize("family", ["weibull", "spline_ph", "lognormal"])
def test_a_grouped_stack_is_its_trees_one_by_one(tools, family, late):
    objective, (routing, leaves), metric = grouped(tools, family)
    rule = LbfgsSettings(max_iterations=25, ftol=1e-5)
    with operators_alone() if late else nullcontext(), never_waiting() if late else nullcontext():
        together = minimise(objective, (routing, leaves), rule, metric)
        for k in range(len(leaves)):
            one = torch.tensor([k])
            alone = minimise(objective.take(one), (routing[one], leaves[one]), rule, metric.take(one))
            torch.testing.assert_close(together.loss[one], alone.loss, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("inner", [NewtonSettings(), LbfgsSettings(max_iterations=10)], ids=["newton", "lbfgs"])
def test_sweeps_go_on_with_the_trees_that_still_improve(tools, inner, monkeypatch):
    """A sweep has the trees that have not stopped, whatever their groups; each ends as it does alone."""
    objective, (routing, leaves), _ = grouped(tools)
    settings = NodecSettings(max_sweeps=8, patience=1, tolerance=1e-3, branch=inner, leaf=inner)
    widths, improve = [], nodec_module._improve

    def counted(part, *given):
        widths.append((part.problem.n_trees, part.problem.groups.sizes))
        return improve(part, *given)

    monkeypatch.setattr(nodec_module, "_improve", counted)
    together = nodec(objective, routing, leaves, settings)
    of_sweeps, ends = widths[:: objective.depth], []
    for k in range(len(leaves)):
        one, before = torch.tensor([k]), len(widths)
        alone = nodec(objective.take(one), routing[one], leaves[one], settings)
        torch.testing.assert_close(together.objective[one], alone.objective, rtol=1e-6, atol=1e-8)
        ends.append((len(widths) - before) // objective.depth)
    needed = [sum(end > sweep for end in ends) for sweep in range(max(ends))]
    assert [trees for trees, _ in of_sweeps] == needed
    assert any(len(set(sizes)) > 1 for _, sizes in of_sweeps)  # groups are not of one size


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("device", [False, True], ids=["cpu", "device"])
def test_values_and_gradients_of_some_trees_are_those_of_the_stack(tools, everything, device, monkeypatch):
    """With late entry and intervals too; on a device with rows repeated, and with too many to be."""
    make = tools.with_everything if everything else tools.simulate
    parts = [make_problem(make(20 + 4 * k, seed=k), get_family("weibull"), n_trees=3) for k in range(3)]
    problem = join_problems(parts)
    objective = Objective(problem, 2, tools.penalties_for(problem))
    start = tools.random_parameters(objective)
    expected = [one[UNEVEN] for one in objective.value_and_gradient(*start)]
    chosen = [one[UNEVEN] for one in start]
    for most in (module.REPEATED, 0):
        monkeypatch.setattr(module, "REPEATED", most)
        with operators_alone() if device else nullcontext():
            part = objective.take(UNEVEN)
            found = part.value_and_gradient(*chosen)
        assert (part.problem.sizes is None) == (device and most > 0)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_groups_of_some_trees():
    groups, table = Groups.equal(9, 3), torch.zeros(3, 5, 2)
    left, which = groups.take(UNEVEN, table)
    assert left.sizes == (2, 2, 3)
    assert which is None
    left, which = left.take(torch.tensor([1, 4, 5]), table)
    assert left.sizes == (1, 2)
    assert which.tolist() == [0, 2]
    left, which = left.take(torch.tensor([1, 2]), table)
    assert left.sizes == (2,)
    assert left.alike
    assert which.tolist() == [1]


def test_trees_may_be_taken_in_any_order():
    left, which = Groups.equal(6, 3).take(torch.tensor([4, 5, 0, 2]), torch.zeros(3, 1))
    assert left.sizes == (2, 1, 1)
    assert which.tolist() == [2, 0, 1]
    left, which = Groups.equal(3, 3).take(torch.tensor([2, 0, 1]), torch.zeros(3, 1))
    assert which.tolist() == [2, 0, 1]


def test_a_device_repeats_the_rows_of_groups_until_all_are_of_one_size():
    groups, table = Groups.equal(12, 3), torch.zeros(3, 5, 2)
    with operators_alone():
        left, which = groups.take(torch.tensor([0, 1, 4, 5, 6, 7]), table)
        assert left.sizes == (2, 2, 2)
        assert which.tolist() == [0, 1, 1]
        left, which = groups.take(torch.tensor([0, 1, 4, 5]), table)
        assert left.sizes == (2, 2)
        assert which.tolist() == [0, 1]


def test_products_of_uneven_groups_are_those_of_each_tree():
    rng = np.random.default_rng(0)
    left, right = torch.tensor(rng.standard_normal((6, 2, 4))), torch.tensor(rng.standard_normal((3, 4, 5)))
    groups = Groups((3, 1, 2))
    expected = left @ right[[0, 0, 0, 1, 2, 2]]
    torch.testing.assert_close(groups.product(left, right), expected)
    torch.testing.assert_close(groups.per_tree(right), right[[0, 0, 0, 1, 2, 2]])
    assert groups.even(right) is not right
    assert Groups((2, 2, 2)).even(right) is right
    assert groups.product(left[:, :0], right).shape == (6, 0, 5)


def test_single_leaves_of_groups_are_fitted_as_alone(tools):
    parts = [make_problem(tools.simulate(30 + 9 * k, seed=k), get_family("weibull"), n_trees=2) for k in range(3)]
    together = fit_single_leaf(join_problems(parts))
    for k, part in enumerate(parts):
        torch.testing.assert_close(together.loss[2 * k : 2 * k + 2], fit_single_leaf(part).loss, rtol=1e-8, atol=0)
