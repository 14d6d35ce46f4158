"""The fairness penalty against its double sum over pairs, and what it accepts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv import SoftSurvivalTree
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.hazards import family_names, get_family
from softsurv.soft.fairness import fairness_of, pairwise_distance, trapezoid_weights
from softsurv.soft.problem import make_problem
from softsurv.trees.soft_tree import SoftTree


def double_sum(survival, in_group, weight, step):
    """Sum over weighted pairs, as printed (paper `sst`, eq. 3), in O(N^2 T)."""
    total = 0.0
    for i in range(len(survival)):
        for j in range(len(survival)):
            if in_group[i] and not in_group[j]:
                total += weight[i] * weight[j] * ((survival[i] - survival[j]) ** 2 * step).sum()
    return total


@given(seed=st.integers(0, 1000), n=st.integers(1, 14), t=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_distance_is_the_double_sum_over_pairs(seed, n, t):
    rng = np.random.default_rng(seed)
    survival = torch.tensor(rng.random((2, n, t)))
    in_group = torch.tensor(rng.random((2, n)) < 0.5).double()
    weight = torch.tensor(rng.random((2, n)) * (rng.random((2, n)) < 0.8))
    step = torch.tensor(rng.random(t))
    value, slope = pairwise_distance(survival, in_group, weight, step)
    for tree in range(2):
        expected = double_sum(survival[tree], in_group[tree], weight[tree], step)
        assert float(value[tree]) == pytest.approx(float(expected), abs=1e-10)
    at = survival.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(pairwise_distance(at, in_group, weight, step)[0].sum(), at)
    torch.testing.assert_close(slope, gradient)


def test_trapezoid_weights_integrate_straight_lines_exactly():
    times = torch.tensor([0.0, 0.5, 2.0, 2.25], dtype=torch.float64)
    weights = trapezoid_weights(times)
    assert float(weights.sum()) == pytest.approx(2.25)
    assert float((weights * (3 * times + 1)).sum()) == pytest.approx(1.5 * 2.25**2 + 2.25)


def grouped(tools, n=24, seed=0):
    return tools.simulate(n, 2, seed, group=np.random.default_rng(seed).permutation(["a", "b"] * (n // 2)))


@pytest.mark.parametrize("family", family_names())
def test_penalty_is_the_mean_distance_of_the_trees_mixture_curves(tools, family):
    data = grouped(tools)
    objective = tools.make_objective(data, family, 2, n_trees=2)
    routing, leaves = tools.random_parameters(objective)
    fairness = fairness_of(data, objective.problem, rho=3.0, n_times=7)
    value, _, _ = fairness.value_and_gradient(objective.problem, routing, leaves, 0)
    events = data.time[data.event].numpy()
    times = torch.tensor(np.unique(np.quantile(events, np.linspace(0, 1, 7), method="inverted_cdf")))
    tree = SoftTree(2, 2, objective.problem.family, 2)
    time_scale = objective.problem.time_scale.expand(2, -1)
    tree.load_state_dict({"routing": routing, "leaves": leaves, "time_scale": time_scale})
    with torch.no_grad():
        curves = tree(data.x, times)
    group = data.group == 1
    step = trapezoid_weights(times) / (times[-1] - times[0])
    for k in range(2):
        total = double_sum(curves[k], group, torch.ones(24), step)
        assert float(value[k]) == pytest.approx(3.0 * float(total) / (12 * 12), rel=1e-9)


def test_weights_are_copies(tools):
    data = grouped(tools, n=60)
    copies = np.random.default_rng(1).integers(0, 4, data.n)
    kept = data.take(np.repeat(np.arange(data.n), copies))
    weighted = SurvivalData(data.X, data.time, data.event, group=data.group, weight=copies)
    how = {"depth": 0, "leaf": "weibull", "fairness": 5.0, "l2": 0.0}
    times = [1.0, 4.0]
    curves = [SoftSurvivalTree(**how).fit(rows).predict_survival_function(data.X, times) for rows in (weighted, kept)]
    np.testing.assert_allclose(*curves, atol=1e-4)
    unweighted = SoftSurvivalTree(**how).fit(data).predict_survival_function(data.X, times)
    assert np.abs(unweighted - curves[1]).max() > 1e-3


def test_held_out_rows_do_not_count(tools):
    data = grouped(tools)
    mask = torch.ones(1, 24, dtype=torch.float64)
    mask[:, 16:] = 0
    objective = tools.make_objective(data, weight=mask)
    parameters = tools.random_parameters(objective)
    before = fairness_of(data, objective.problem, 1.0).value_and_gradient(objective.problem, *parameters, 0)
    objective.problem.design[:, 16:, 1:] += 5.0
    after = fairness_of(data, objective.problem, 1.0).value_and_gradient(objective.problem, *parameters, 0)
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_fold_that_lacks_a_group_costs_nothing(tools, dtype):
    data = grouped(tools)
    mask = (data.group == 0)[None].double()
    problem = make_problem(data, get_family("weibull"), weight=mask, dtype=dtype)
    routing, leaves = (part.to(dtype) for part in tools.random_parameters(tools.make_objective(data)))
    for part in fairness_of(data, problem, 1.0).value_and_gradient(problem, routing, leaves, 0):
        assert (part == 0).all()


def test_groups_that_are_treated_alike_cost_nothing(tools):
    data = grouped(tools)
    objective = tools.make_objective(data)
    routing, leaves = tools.random_parameters(objective)
    routing[..., 1:], leaves[..., 1:3] = 0, 0  # nothing depends on the features
    value, _, _ = fairness_of(data, objective.problem, 1.0).value_and_gradient(objective.problem, routing, leaves, 0)
    assert float(value.abs().max()) < 1e-14


def test_what_it_needs_is_said(tools):
    plain = tools.simulate(20)
    problem = tools.make_objective(plain).problem
    assert fairness_of(plain, problem, 0.0) is None
    with pytest.raises(InvalidSurvivalDataError, match="needs the group of each row; pass group="):
        fairness_of(plain, problem, 1.0)
    three = tools.simulate(21, group=["a", "b", "c"] * 7)
    with pytest.raises(InvalidSurvivalDataError, match="compares two groups, got 3"):
        fairness_of(three, problem, 1.0)
