"""The training objective against plain loops, difference quotients, and trees one by one."""

import numpy as np
import pytest
import torch

from softsurv.hazards import family_names, get_family
from softsurv.soft.fairness import GroupFairness
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import join_problems, make_problem
from softsurv.trees.routing import hard_reach
from softsurv.trees.topology import level_slice, n_branches, n_leaves, paths

families = pytest.mark.parametrize("family", family_names())


def loop_value(data, objective, routing, leaves, tree):
    """Objective of one tree by its definition: rows, leaves, log probabilities (paper `sst`, eq. 5)."""
    problem, depth = objective.problem, objective.depth
    family, time_scale = problem.family, problem.time_scale[0]
    total, table = 0.0, paths(depth)

    def hazard(leaf, row, time):
        if time == 0:
            return 0.0
        b = leaves[tree, leaf]
        features = family.time_features(torch.tensor([np.log(time)], dtype=torch.float64), time_scale)
        value, log_slope = family.baseline(b[None, 1 + data.x.shape[1] :], features)
        z = b[0] + b[1 : 1 + data.x.shape[1]] @ data.x[row] + value[0, 0]
        density = family.link.log_density(z)[0] + log_slope[0, 0]  # of log h, less log t + log s
        return float(family.link.cumulative_hazard(z)[0]), float(density)

    def loss(leaf, row):
        time, event = float(data.time[row]), bool(data.event[row])
        upper = np.inf if data.upper is None else float(data.upper[row])
        entry = 0.0 if data.entry is None else float(data.entry[row])
        before = hazard(leaf, row, entry)[0] if entry > 0 else 0.0
        if event:
            at, density = hazard(leaf, row, time)
            return at - density - before
        low = hazard(leaf, row, time)[0] if time > 0 else 0.0
        if np.isfinite(upper):
            return -np.log(np.exp(-low) - np.exp(-hazard(leaf, row, upper)[0])) - before
        return low - before

    for row in range(data.n):
        x = torch.cat([torch.ones(1, dtype=torch.float64), data.x[row]])
        left = [1 / (1 + np.exp(-float(routing[tree, b] @ x))) for b in range(n_branches(depth))]
        for leaf in range(n_leaves(depth)):
            probability = np.prod([p if s == 1 else 1 - p for p, s in zip(left, table[leaf], strict=True) if s])
            total += float(problem.weight[tree, 0, row]) * probability * loss(leaf, row)
    q, a = objective.penalties, slice(1, 1 + data.x.shape[1])
    total += 0.5 * float(q.l2[tree] * leaves[tree, :, a].square().sum())
    total += 0.5 * float(q.shrinkage[tree] * (leaves[tree] - q.anchor[tree]).square().sum())
    total += 0.5 * float(q.l2_all[tree] * leaves[tree].square().sum())
    return total + 0.5 * float(q.routing_l2[tree] * routing[tree, :, 1:].square().sum())


@families
@pytest.mark.parametrize("rows", ["right censored", "everything"])
def test_value_is_the_sum_over_rows_and_leaves(tools, family, rows):
    make = tools.simulate if rows == "right censored" else tools.with_everything
    data = make(n=12, p=2)
    for depth, penalised in ((0, True), (2, True), (1, False)):
        objective = tools.make_objective(data, family, depth, n_trees=2, penalised=penalised)
        routing, leaves = tools.random_parameters(objective)
        value = objective.value(routing, leaves)
        for tree in range(2):
            expected = loop_value(data, objective, routing, leaves, tree)
            assert float(value[tree]) == pytest.approx(expected, rel=1e-9)
        torch.testing.assert_close(objective.value_and_gradient(routing, leaves)[0], value)


def slope_along(function, routing, leaves, d_routing, d_leaves):
    """Central difference of values (M,) along a direction."""
    step = 1e-6
    up = function(routing + step * d_routing, leaves + step * d_leaves)
    return (up - function(routing - step * d_routing, leaves - step * d_leaves)) / (2 * step)


def random_fairness(problem, seed=0):
    rng = np.random.default_rng(seed)
    time = torch.tensor(np.sort(rng.uniform(0.5, 8, 6)))
    step = torch.tensor(rng.dirichlet(np.ones(6)))
    groups = problem.n_groups
    return GroupFairness(
        rho=torch.tensor(rng.uniform(0.5, 2, problem.n_trees)),
        in_group=torch.tensor(rng.random((groups, problem.design.shape[1])) < 0.4).double(),
        grid_features=problem.family.time_features(time.log().expand(groups, -1), problem.time_scale),
        step=step,
    )


@families
@pytest.mark.parametrize("rows", ["right censored", "everything", "fair"])
def test_gradients_are_the_slopes_in_random_directions(tools, family, rows):
    data = tools.with_everything(40, 3) if rows == "everything" else tools.simulate(40, 3)
    for depth in (0, 1, 3):
        objective = tools.make_objective(data, family, depth, n_trees=4, penalised=True)
        if rows == "fair":
            objective.fairness = random_fairness(objective.problem)
        routing, leaves = tools.random_parameters(objective, seed=depth)
        for hard in range(depth + 1):
            _, d_routing, d_leaves = objective.value_and_gradient(routing, leaves, hard)
            for seed in range(3):
                u, v = tools.random_parameters(objective, seed=10 + seed, size=1.0)
                found = (d_routing * u).sum((1, 2)) + (d_leaves * v).sum((1, 2))

                def value(r, b, hard=hard, objective=objective):
                    return objective.value_and_gradient(r, b, hard)[0]

                expected = slope_along(value, routing, leaves, u, v)
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("depth", [1, 3])
def test_blocks_agree_with_the_whole(tools, depth):
    objective = tools.make_objective(tools.with_everything(40), "spline_po", depth, n_trees=3, penalised=True)
    routing, leaves = tools.random_parameters(objective)
    loss = objective.leaf_terms(leaves).loss
    for hard in range(depth + 1):
        whole, d_routing, d_leaves = objective.value_and_gradient(routing, leaves, hard)
        top = level_slice(hard).start
        mass = hard_reach(objective.splits(routing), hard, objective.problem.weight)
        value, gradient = objective.routing_value_and_gradient(routing[:, top:], loss, mass)
        above = objective.penalty(routing[:, :top], 0 * leaves)[0] - objective.penalty(0 * routing, 0 * leaves)[0]
        torch.testing.assert_close(value + above + objective.penalty(0 * routing, leaves)[0], whole)
        torch.testing.assert_close(gradient, d_routing[:, top:])
        value, gradient = objective.leaf_value_and_gradient(leaves, objective.reach(routing, hard))
        rest = objective.penalty(routing, leaves)[0] - objective.penalty(0 * routing, leaves)[0]
        torch.testing.assert_close(value + rest, whole)
        torch.testing.assert_close(gradient, d_leaves)


def test_hard_levels_split_the_rows_among_the_working_sets(tools):
    """With the top level decided, the objective is the sum of its two subtrees', each on its own rows."""
    data = tools.simulate(50)
    objective = tools.make_objective(data, "loglogistic", 2)
    routing, leaves = tools.random_parameters(objective)
    left = objective.splits(routing)[0, 0] >= 0
    parts = []
    for rows, node, pair in ((left, 1, slice(0, 2)), (~left, 2, slice(2, 4))):
        problem = make_problem(data, get_family("loglogistic"), weight=rows[None].double())
        small = Objective(problem, 1, no_penalties(1, leaves.shape[-1], leaves))
        parts.append(rows.double().mean() * small.value(routing[:, node : node + 1], leaves[:, pair]))
    torch.testing.assert_close(objective.value_and_gradient(routing, leaves, 1)[0], sum(parts))


@pytest.mark.parametrize("fair", [False, True])
def test_stacked_trees_are_the_trees_one_by_one(tools, fair):
    folds = torch.tensor(np.random.default_rng(0).random((4, 40)) < 0.7)
    objective = tools.make_objective(tools.with_everything(40), "gompertz", 2, penalised=True, weight=folds)
    objective.fairness = random_fairness(objective.problem) if fair else None
    routing, leaves = tools.random_parameters(objective)
    together = objective.value_and_gradient(routing, leaves)
    for k in range(4):
        alone = objective.take(torch.tensor([k])).value_and_gradient(routing[k : k + 1], leaves[k : k + 1])
        for whole, part in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[k : k + 1], part)


@families
@pytest.mark.parametrize("everything", [False, True])
def test_joined_problems_are_the_problems_one_by_one(tools, family, everything):
    make = tools.with_everything if everything else tools.simulate
    parts = [make_problem(make(n, seed=k), get_family(family), n_trees=2) for k, n in enumerate((20, 31, 25))]
    joined = join_problems(parts)
    size = joined.design.shape[-1] + joined.family.n_shape
    whole = Objective(joined, 2, tools.penalties_for(joined))
    routing, leaves = tools.random_parameters(whole)
    together = whole.value_and_gradient(routing, leaves)
    taken = whole.take(torch.tensor([2, 3, 4, 5])).value_and_gradient(routing[2:], leaves[2:])
    for k, problem in enumerate(parts):
        rows = torch.tensor([2 * k, 2 * k + 1])
        alone = Objective(problem, 2, whole.penalties.take(rows)).value_and_gradient(routing[rows], leaves[rows])
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a[rows], b)
    for a, b in zip(together, taken, strict=True):
        torch.testing.assert_close(a[2:], b)
    assert size == leaves.shape[-1]


def test_rows_without_weight_do_not_count(tools):
    data = tools.simulate(30)
    weight = torch.ones(1, 30, dtype=torch.float64)
    weight[:, 20:] = 0
    kept = data.take(slice(0, 20))
    whole, part = tools.make_objective(data, weight=weight), tools.make_objective(kept)
    part.problem.time_scale.copy_(whole.problem.time_scale)
    features = part.problem.family.time_features(kept.time.log()[None], whole.problem.time_scale)
    part.problem.features.copy_(features)
    parameters = tools.random_parameters(whole)
    for a, b in zip(whole.value_and_gradient(*parameters), part.value_and_gradient(*parameters), strict=True):
        torch.testing.assert_close(a, b)


def test_integer_weights_are_repeated_rows(tools):
    data = tools.simulate(25)
    count = np.random.default_rng(0).integers(1, 4, 25)
    again = data.take(np.repeat(np.arange(25), count))
    weighted = tools.make_objective(data, weight=torch.tensor(count)[None])
    repeated = tools.make_objective(again)
    problem = repeated.problem
    features = problem.family.time_features(again.time.log()[None], weighted.problem.time_scale)
    problem.features.copy_(features)
    parameters = tools.random_parameters(weighted)
    for a, b in zip(weighted.value_and_gradient(*parameters), repeated.value_and_gradient(*parameters), strict=True):
        torch.testing.assert_close(a, b)


def test_single_precision_agrees_with_double(tools):
    data = tools.with_everything(40)
    objective = tools.make_objective(data, "spline_ph", 2, n_trees=2, penalised=True)
    narrow = Objective(make_problem(data, get_family("spline_ph"), n_trees=2, dtype=torch.float32), 2, None)
    size = narrow.problem.design.shape[-1] + narrow.problem.family.n_shape
    narrow.penalties = no_penalties(2, size, narrow.problem.design)
    objective.penalties = no_penalties(2, size, objective.problem.design)
    parameters = tools.random_parameters(objective)
    wide = objective.value_and_gradient(*parameters)
    single = narrow.value_and_gradient(*(p.float() for p in parameters))
    for a, b in zip(wide, single, strict=True):
        assert b.dtype == torch.float32
        torch.testing.assert_close(b.double(), a, rtol=1e-3, atol=1e-4)
