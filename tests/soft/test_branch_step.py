"""The BN and LN steps: working sets, the weighted logistic regression, the reassignment."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from softsurv.hazards import get_family
from softsurv.soft import nodec
from softsurv.soft.nodec import CLASS_RIDGE, Balance, branch_step, classify
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.penalties import no_penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import make_problem
from softsurv.soft.restricted import fit_leaves
from softsurv.trees.routing import hbp_leaf
from softsurv.trees.topology import level_slice

TO_THE_END = LbfgsSettings(max_iterations=500, ftol=1e-14, gtol=1e-9)
NEVER = Balance(0.0, 0.0, 0.0)
"""No node counts as imbalanced, but for an empty one."""


def routed(objective, routing, level):
    """Rows at each node of a level and those that go left, (M, S, N)."""
    split = objective.splits(routing)
    at = hbp_leaf(split, level)[:, None]
    here = at == torch.arange(2**level)[None, :, None]
    return here, split[:, level_slice(level)] >= 0


def sklearn_fit(x, labels, weight):
    model = LogisticRegression(C=1 / CLASS_RIDGE, tol=1e-10, max_iter=5000)
    model.fit(x, labels, sample_weight=weight)
    return np.concatenate([model.intercept_, model.coef_[0]])


def test_classes_are_fitted_as_by_weighted_logistic_regression(tools):
    """Weights as printed (paper `sst`, eq. 8): 1/(2 L) for rows that go left now, 1/(2 (1 - L)) for the others."""
    data = tools.simulate(80, 3)
    objective = tools.make_objective(data, depth=2, n_trees=2)
    routing, _ = tools.random_parameters(objective, size=1.0)
    routing[..., 0] = 0  # every node then splits its rows
    here, left = routed(objective, routing, 1)
    swapped = torch.tensor(np.random.default_rng(0).random(left.shape) < 0.2)
    labels = left ^ swapped
    found = classify(objective, here, left, labels)
    for tree in range(2):
        for node in range(2):
            rows = here[tree, node].numpy()
            side, target = left[tree, node].numpy()[rows], labels[tree, node].numpy()[rows]
            share = side.mean()
            assert 0 < share < 1
            weight = np.where(side, 0.5 / share, 0.5 / (1 - share)) / rows.sum()
            expected = sklearn_fit(data.x.numpy()[rows], target, weight)
            np.testing.assert_allclose(found[tree, node], expected, rtol=1e-3, atol=1e-3)


def test_an_empty_side_does_not_blow_up_the_weights(tools):
    data = tools.simulate(60, 2)
    objective = tools.make_objective(data, depth=1)
    here = torch.ones(1, 1, 60, dtype=torch.bool)
    left = torch.zeros_like(here)  # L = 0: everything goes right
    labels = (data.x[:, 0] > 0.3)[None, None]
    found = classify(objective, here, left, labels)
    expected = sklearn_fit(data.x.numpy(), labels[0, 0].numpy(), np.full(60, 0.5 / 60))
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-3, atol=1e-3)


def lopsided(tools, share, n=200, depth=1, n_trees=1):
    """An objective and routing whose root sends a share of the rows left."""
    data = tools.simulate(n, 2)
    objective = tools.make_objective(data, depth=depth, n_trees=n_trees)
    routing, leaves = tools.random_parameters(objective)
    cut = torch.quantile(data.x[:, 0], share, interpolation="midpoint")
    routing[:, 0] = torch.stack([cut, torch.tensor(-1.0).double(), torch.tensor(0.0).double()])
    return objective, routing, leaves


def root_share(objective, routing):
    return float((objective.splits(routing)[0, 0] >= 0).double().mean())


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.09, 0.92, 0.98, 1.0])
def test_reassignment_moves_the_share_towards_balance(tools, share):
    objective, routing, leaves = lopsided(tools, share)
    if share in (0.0, 1.0):
        routing[:, 0, 0] += 5 * (2 * share - 1)
    before = root_share(objective, routing)
    after = root_share(objective, branch_step(objective, routing, leaves, 0, Balance(), LbfgsSettings()))
    assert abs(before - share) < 0.01
    assert abs(after - 0.5) < abs(before - 0.5) - 0.01


def caught_classes(monkeypatch, objective, routing, leaves, balance):
    """What branch_step hands to the logistic regression: rows, sides now, classes to fit."""
    caught = []

    def catch(objective, rows, left, labels, *rest):
        caught.append((rows, left, labels))
        return routing[:, : rows.shape[1]]

    monkeypatch.setattr(nodec, "classify", catch)
    branch_step(objective, routing, leaves, 0, balance, LbfgsSettings(max_iterations=1))
    return caught


@pytest.mark.parametrize("share", [0.05, 0.93])
def test_swapped_rows_are_the_worst_of_the_big_child(tools, monkeypatch, share):
    objective, routing, leaves = lopsided(tools, share)
    ((rows, left, labels),) = caught_classes(monkeypatch, objective, routing, leaves, Balance())
    error = (objective.reach(routing) * objective.leaf_terms(leaves).loss).sum(1)[0]  # term (9)
    big = (left == (share > 0.5))[0, 0]
    moved = (labels != left)[0, 0]
    assert rows.all()
    assert int(moved.sum()) == 80  # the eps3 = 0.4 share of the node's 200 rows
    assert big[moved].all()
    assert error[moved].min() >= error[big & ~moved].max()


def test_moderate_imbalance_keeps_the_classes_and_balance_needs_none(tools, monkeypatch):
    objective, routing, leaves = lopsided(tools, 0.2)
    ((_, left, labels),) = caught_classes(monkeypatch, objective, routing, leaves, Balance())
    assert (left == labels).all()
    objective, routing, leaves = lopsided(tools, 0.45)
    assert caught_classes(monkeypatch, objective, routing, leaves, Balance()) == []


def test_thresholds_decay_together():
    assert Balance(0.3, 0.1, 0.4).decayed(0.5) == Balance(0.15, 0.05, 0.2)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_branch_step_moves_its_working_set_only_and_never_up(tools, depth):
    objective = tools.make_objective(tools.simulate(150), depth=depth, n_trees=3)
    routing, leaves = tools.random_parameters(objective)
    for level in range(depth):
        after = branch_step(objective, routing, leaves, level, NEVER, LbfgsSettings(max_iterations=30))
        moved = (after != routing).any(-1).any(0)
        assert not moved[: level_slice(level).start].any()
        assert moved[level_slice(level)].any()
        if level == 0:  # the root is taken alone unless it is the whole tree
            assert not moved[1:].any()
        before = objective.value_and_gradient(routing, leaves, level)[0]
        assert (objective.value_and_gradient(after, leaves, level)[0] <= before + 1e-12).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_leaf_step_is_the_fit_of_each_working_set_alone(tools, depth):
    data = tools.simulate(150)
    objective = tools.make_objective(data, "weibull", depth)
    objective.penalties.l2_all.fill_(0.05)  # so that the minimum is one point
    routing, leaves = tools.random_parameters(objective)
    for level in range(depth):
        found = fit_leaves(objective, routing, leaves, TO_THE_END, level)
        here, _ = routed(objective, routing, level)
        width = 2 ** (depth - level)
        for node in range(2**level):
            rows = here[0, node]
            if not rows.any():
                continue
            problem = make_problem(data, get_family("weibull"), weight=rows[None].double())
            small = Objective(problem, depth - level, no_penalties(1, leaves.shape[-1], leaves))
            # the subtree's own routing, and its part of the objective: the rows' share of the weight
            own = []
            for below in range(level, depth):
                first = level_slice(below).start + node * 2 ** (below - level)
                own.append(routing[:, first : first + 2 ** (below - level)])
            small.penalties.l2_all.fill_(0.05 / float(rows.double().mean()))
            pair = slice(node * width, (node + 1) * width)
            alone = fit_leaves(small, torch.cat(own, 1), leaves[:, pair], TO_THE_END)
            torch.testing.assert_close(found[:, pair], alone, rtol=1e-4, atol=1e-4)


def test_leaf_step_leaves_unreached_leaves_alone(tools):
    objective, routing, leaves = lopsided(tools, 0.5, depth=2)
    routing[:, 0] = torch.tensor([50.0, 0.0, 0.0])  # everything goes left
    after = fit_leaves(objective, routing, leaves, LbfgsSettings(), 1)
    torch.testing.assert_close(after[:, 2:], leaves[:, 2:])
    assert (after[:, :2] != leaves[:, :2]).any()


def test_joint_minimisation_reaches_a_stationary_point_below_the_start(tools):
    objective = tools.make_objective(tools.simulate(100), "loglogistic", 2, n_trees=3, penalised=True)
    routing, leaves = tools.random_parameters(objective)
    before = objective.value(routing, leaves)
    metric = GramMetric(objective.problem, 3, 4)
    end = minimise(objective, (routing, leaves), TO_THE_END, metric)
    (r, b), value = end.point, end.loss
    found, d_routing, d_leaves = objective.value_and_gradient(r, b)
    assert (found < before).all()
    torch.testing.assert_close(found, value)
    assert float(max(d_routing.abs().max(), d_leaves.abs().max())) < 1e-4
