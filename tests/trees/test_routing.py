"""Soft routing against products over each leaf's path, and against plain loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.trees.routing import (
    hard_reach,
    hbp_leaf,
    leaf_probability,
    linear,
    linear_pullback,
    reach_probability,
    routing_slopes,
    side_probability,
    subtree_costs,
)
from softsurv.trees.topology import level_slice, n_branches, n_leaves, paths

DEPTHS = range(5)
depths = pytest.mark.parametrize("depth", DEPTHS)


def random_stack(depth, seed=0, m=3, n=11):
    rng = np.random.default_rng(seed)
    split = torch.tensor(2 * rng.standard_normal((m, n_branches(depth), n)))
    cost = torch.tensor(rng.standard_normal((m, n_leaves(depth), n)))
    return split, torch.sigmoid(split), cost


def product_over_paths(go_left, depth):
    """Probability of each leaf by its definition, (M, L, N)."""
    table = torch.tensor(paths(depth).astype(np.int64))[None, :, :, None]  # (1, L, B, 1)
    p = go_left[:, None]
    return torch.where(table == 1, p, torch.where(table == -1, 1 - p, 1.0)).prod(2)


@depths
def test_leaf_probability_is_the_product_over_the_path(depth):
    _, go_left, _ = random_stack(depth)
    found = leaf_probability(go_left)
    torch.testing.assert_close(found, product_over_paths(go_left, depth))


@given(depth=st.integers(0, 5), seed=st.integers(0, 1000), size=st.sampled_from([1.0, 1e3, 1e8]))
@settings(max_examples=30, deadline=None)
def test_leaf_probabilities_are_a_distribution(depth, seed, size):
    split, _, _ = random_stack(depth, seed)
    found = leaf_probability(torch.sigmoid(size * split))
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(1), torch.ones_like(found.sum(1)))


@depths
def test_reach_starts_with_the_weight_and_ends_at_the_leaves(depth):
    split, go_left, _ = random_stack(depth)
    weight = torch.rand(3, 1, 11, dtype=torch.float64)
    reach = reach_probability(side_probability(split), weight)
    assert [r.shape[1] for r in reach] == [2**level for level in range(depth + 1)]
    torch.testing.assert_close(reach[-1], weight * product_over_paths(go_left, depth))
    for level in range(depth + 1):
        torch.testing.assert_close(reach[level].sum(1, keepdim=True), weight)


@depths
def test_highest_probability_path_goes_left_where_the_split_is_not_negative(depth):
    split, _, _ = random_stack(depth)
    split[:, :, 0] = 0  # ties go left
    leaf = hbp_leaf(split, depth)
    for tree in range(3):
        for row in range(11):
            node = 0
            for _ in range(depth):
                node = 2 * node + (1 if split[tree, node, row] >= 0 else 2)
            assert leaf[tree, row] == node - n_branches(depth)
    assert (leaf[:, 0] == 0).all()
    hard = hard_reach(split, depth, torch.ones(3, 1, 11, dtype=torch.float64))
    assert (hard.argmax(1) == leaf).all()


@depths
def test_hard_levels_give_each_row_whole_to_one_node(depth):
    split, _, _ = random_stack(depth)
    weight = torch.rand(3, 1, 11, dtype=torch.float64)
    for levels in range(depth + 1):
        found = hard_reach(split, levels, weight)
        assert found.shape == (3, 2**levels, 11)
        torch.testing.assert_close(found.sum(1, keepdim=True), weight)
        assert torch.equal(found.argmax(1), hbp_leaf(split, levels))
        assert ((found > 0).sum(1) == 1).all()


@depths
def test_subtree_costs_are_expectations_below_each_node(depth):
    split, go_left, cost = random_stack(depth)
    costs, gaps = subtree_costs(side_probability(split), cost)
    probability = product_over_paths(go_left, depth)
    for level in range(depth):
        for position, node in enumerate(range(level_slice(level).start, level_slice(level).stop)):
            below = np.flatnonzero(paths(depth)[:, node]).tolist()
            reach = probability[:, below].sum(1)
            expected = (probability[:, below] * cost[:, below]).sum(1) / reach
            torch.testing.assert_close(costs[level][:, position], expected, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(gaps[level], costs[level + 1][:, 0::2] - costs[level + 1][:, 1::2])
    torch.testing.assert_close(costs[-1], cost)


@depths
def test_routing_slopes_are_the_gradient_of_the_expected_cost(depth):
    split, _, cost = random_stack(depth)
    weight = torch.rand(3, 1, 11, dtype=torch.float64)
    for first in range(depth + 1):
        start = hard_reach(split, first, weight)
        at = split[:, level_slice(first).start :].clone().requires_grad_(True)
        reach = reach_probability(side_probability(at), start)
        value = (reach[-1] * cost).sum()
        expected = torch.autograd.grad(value, at)[0] if first < depth else torch.zeros_like(at)
        sides = side_probability(at.detach())
        costs, gaps = subtree_costs(sides, cost, first)
        torch.testing.assert_close((start * costs[0]).sum(), value)
        found = routing_slopes(sides, [r.detach() for r in reach], gaps)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_linear_and_its_pullback_go_group_by_group(groups):
    m, rows, n, q = 6, 4, 9, 5
    coefficients = torch.randn(m, rows, q, dtype=torch.float64, requires_grad=True)
    design = torch.randn(groups, n, q, dtype=torch.float64)
    found = linear(coefficients, design)
    for tree in range(m):
        torch.testing.assert_close(found[tree], coefficients[tree] @ design[tree * groups // m].T)
    grad = torch.randn(m, rows, n, dtype=torch.float64)
    (expected,) = torch.autograd.grad(found, coefficients, grad)
    torch.testing.assert_close(linear_pullback(grad, design), expected)


def test_linear_takes_trees_without_branch_nodes():
    assert linear(torch.zeros(2, 0, 3), torch.zeros(1, 4, 3)).shape == (2, 0, 4)
    assert linear_pullback(torch.zeros(2, 0, 4), torch.zeros(1, 4, 3)).shape == (2, 0, 3)
