"""Trees of rules as stacks: rules improve in turn, sides are exchanged, and the best of what was fitted is kept."""

from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
import torch
from oracles.simulated import simulate

from softsurv.hazards import get_family
from softsurv.soft.problem import make_problem
from softsurv.sparse import train
from softsurv.sparse.causes import fit_causes, losses_of_causes
from softsurv.sparse.leaf_fit import ROUGH
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import (
    Grown,
    Plan,
    StackRows,
    _of_moving,
    complete,
    corrections,
    grow,
    held_out_losses,
    leaves_of,
    penalties_of,
    polish,
    start_problem,
    swap_sides,
)
from softsurv.trees.linear_rule import LinearRule, leaf_of

N = 90


def rule(column, threshold):
    return LinearRule((column,), (1.0,), threshold)


@pytest.fixture(scope="module")
def rows():
    data = simulate(N)
    split = SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(data.x.shape[1])), ())
    return StackRows(split, np.ones(N), data.failed.astype(float), (np.arange(N),), 5.0, 10.0)


@pytest.fixture(scope="module")
def problems():
    return (make_problem(simulate(N), get_family("weibull")),)


def test_a_deeper_tree_sends_every_row_the_same_way(rows):
    rules = (rule(0, 0.1),)
    deeper = complete(rules, 3)
    assert deeper == (*rules, None, None)
    np.testing.assert_array_equal(leaf_of(deeper, rows.split.values), 2 * leaf_of(rules, rows.split.values))


def test_exchanged_sides_with_the_opposite_rule_are_the_same_tree(rows):
    rules = [rule(0, 0.1), rule(1, -0.2), rule(2, 0.3), None, rule(1, 0.5), None, rule(0, 0.7)]
    before = leaf_of(tuple(rules), rows.split.values)
    turned = list(rules)
    swap_sides(turned, 0)
    turned[0] = LinearRule((0,), (-1.0,), -0.1)
    after = leaf_of(tuple(turned), rows.split.values)
    np.testing.assert_array_equal((after + 4) % 8, before)
    swap_sides(turned, 0)
    assert turned[1:] == rules[1:]
    below = list(rules)
    swap_sides(below, 1)
    assert below[3:5] == [rules[4], rules[3]]
    assert below[5:] == rules[5:]


def test_leaves_of_several_trees(rows):
    trees = [(rule(0, 0.1),), (rule(1, 0.0),)]
    found = leaves_of(trees, rows.split)
    for own, rules in zip(found, trees, strict=True):
        np.testing.assert_array_equal(own.numpy(), leaf_of(rules, rows.split.values))


def test_held_out_losses_are_those_of_each_rows_leaf(rows, problems):

    torch.manual_seed(0)
    size = problems[0].design.shape[-1] + problems[0].family.n_shape
    models = (0.3 * torch.randn(1, 3, size, dtype=torch.float64),)
    leaf = leaves_of([(rule(0, 0.1),)], rows.split)
    weight = torch.rand(1, N, dtype=torch.float64)
    weight[0, ::3] = 0.0
    found, every = held_out_losses(problems, models, leaf, weight), losses_of_causes(problems, models)
    for row in range(N):
        assert float(found[0, row]) == pytest.approx(float(weight[0, row] * every[0, leaf[0, row], row]))
    twice = held_out_losses(problems, models, leaf, weight, np.array([2.0]))
    torch.testing.assert_close(twice, 2 * found)


def test_polished_rules_cost_no_more_and_are_the_best_of_their_feature(rows):
    """Losses of two leaves are given: the best cut is that by which the rows cost least."""
    rng = np.random.default_rng(0)
    x = rows.split.values
    losses = np.stack([np.where(x[1] > 0.4, 0.0, 1.0), np.where(x[1] > 0.4, 1.0, 0.0)]) + 0.01 * rng.random((2, N))
    table = np.zeros((N, 5))
    table[:, 0] = losses[1] - losses[0]
    table[:, 2] = table[:, 4] = 0.3
    (found,) = polish((rule(0, 0.0),), rows, np.arange(N), losses, table, 1)
    assert found.columns == (1,)
    high = found.holds(x)
    agreement = (high == (x[1] > 0.4)).mean()
    assert max(agreement, 1 - agreement) > 0.95
    assert polish((rule(0, 0.0),), rows, np.arange(N), losses, table, 1, lambda: True) == (rule(0, 0.0),)
    few = rows.split.values.shape[1] - 2
    assert polish((rule(0, 0.0),), rows, np.arange(N)[few:], losses, table, 1) == (rule(0, 0.0),)  # too few events


def test_without_corrections_a_rule_between_two_leaves_is_judged_by_their_losses(rows):
    """Leaves with slopes of their own may differ where corrections of level and shape say nothing."""
    x = rows.split.values
    losses = np.stack([np.where(x[1] > 0.4, 0.0, 1.0), np.where(x[1] > 0.4, 1.0, 0.0)])
    (found,) = polish((rule(0, 0.0),), rows, np.arange(N), losses, None, 1)
    assert found.columns == (1,)
    np.testing.assert_array_equal(x[1] > found.threshold, x[1] > 0.4)


@pytest.mark.parametrize("sweeps", [0, 1, 3])
def test_growing_never_ends_above_its_first_fit(rows, problems, sweeps):
    plans = [Plan(0, 0.3, 10.0, 1, (rule(c, t),)) for c, t in product((0, 1), (0.0, 0.4))]
    start = grow(problems, rows, plans, np.array([float(N)]), 0)
    grown = grow(problems, rows, plans, np.array([float(N)]), sweeps)
    assert (grown.loss <= start.loss + 1e-12).all()
    assert sweeps or grown.rules == tuple(plan.rules for plan in plans)
    for own, rules in zip(grown.leaf, grown.rules, strict=True):
        np.testing.assert_array_equal(own.numpy(), leaf_of(rules, rows.split.values))
    assert [plan.size for plan in plans] == [1] * 4


def test_trees_settle_alone_as_they_do_together(problems, rows):
    """On several threads, and where the tables of settled trees are no longer asked for."""
    plans = [Plan(0, 1.0, 10.0, 1, (one,)) for one in (rule(0, 0.1), rule(1, -0.2), rule(1, 1.5))]
    n, widths = np.array([float(N)]), []
    plans[0] = replace(plans[0], rules=grow(problems, rows, plans[:1], n, 4).rules[0])  # settles at once

    def watched(*given):
        widths.append(len(given[3]))
        return _of_moving(*given)

    alone = [grow(problems, rows, [plan], n, 4) for plan in plans]
    with patch.object(train, "_of_moving", watched):
        together = grow(problems, rows, plans, n, 4, workers=2)
    assert widths[0] == 3
    assert widths[-1] < 3
    assert together.rules == tuple(one.rules[0] for one in alone)
    torch.testing.assert_close(together.loss, torch.cat([one.loss for one in alone]), rtol=ROUGH.ftol, atol=0)


def test_better_trees_are_taken_over_whole():
    def trees(levels):
        levels = torch.tensor(levels, dtype=torch.float64)
        rules = tuple((rule(0, float(level)),) for level in levels)
        leaf = levels.long()[:, None].expand(-1, 2)
        return Grown(rules, leaf, (levels[:, None, None].expand(-1, 3, 1).clone(),), levels)

    old = trees([3.0, 1.0, 5.0])
    new = old.better(trees([4.0, 2.0]), torch.tensor([2, 1]))
    assert new.loss.tolist() == [3.0, 1.0, 4.0]
    assert [own[0].threshold for own in new.rules] == [3.0, 1.0, 4.0]
    assert new.leaf[:, 0].tolist() == [3, 1, 4]
    assert new.models[0][:, 0, 0].tolist() == [3.0, 1.0, 4.0]
    assert old.loss.tolist() == [3.0, 1.0, 5.0]
    assert old.better(trees([9.0]), torch.tensor([0])) is old


def test_a_fit_of_the_leaves_alone_is_that_of_the_causes(rows, problems):
    plan = Plan(0, 0.3, 10.0, 1, (rule(0, 0.1),))
    grown = grow(problems, rows, [plan], np.array([float(N)]), 0)

    penalties = penalties_of(np.array([float(N)]), [0.3], [10.0], None)
    models, loss = fit_causes(problems, leaves_of([plan.rules], rows.split), 2, penalties, None, ROUGH)
    torch.testing.assert_close(grown.models[0], models[0])
    torch.testing.assert_close(grown.loss, loss.double())


def test_trees_begin_on_all_rows_of_a_fold_or_on_a_sample(rows, problems, monkeypatch):
    table = np.random.default_rng(0).random((N, 5))
    whole = start_problem(rows, 0, table)
    assert whole.rows.tolist() == list(range(N))
    assert (whole.least, whole.penalty) == (rows.least, rows.penalty)
    monkeypatch.setattr("softsurv.sparse.train.START_ROWS", 30)
    assert start_problem(rows, 0, table).numbers is whole.numbers  # found once
    rows = replace(rows, _starts={})
    part = start_problem(rows, 0, table)
    assert len(set(part.rows.tolist())) == 30
    assert (part.least, part.penalty) == (rows.least / 3, rows.penalty / 3)
    assert start_problem(rows, 0, table).rows.tolist() == part.rows.tolist()


def test_corrections_are_weighed_row_by_row(rows, problems):
    size = problems[0].design.shape[-1] + problems[0].family.n_shape
    models = (torch.zeros(1, 1, size, dtype=torch.float64),)
    heavy = replace(rows, weight=np.arange(N, dtype=float))
    plain, weighed = corrections(problems, models, rows), corrections(problems, models, heavy)
    np.testing.assert_allclose(weighed, plain * np.arange(N)[:, None])
    assert plain.shape == (1, N, 5)
