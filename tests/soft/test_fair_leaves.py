"""Fairness of what is predicted: the curves of the HBP leaves, in the fit, its anchor and the choice of penalties."""

import numpy as np
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.hazards import get_family
from softsurv.soft.fair_leaves import fair_in_leaves, held_out_distance
from softsurv.soft.fairness import fairness_of, pairwise_distance, trapezoid_weights
from softsurv.soft.fit_stack import FAIR, fit_anchors
from softsurv.soft.nodec import Trained
from softsurv.soft.objective import Objective
from softsurv.soft.parallel import Machine
from softsurv.soft.penalties import no_penalties
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.selection import FAIRNESS_TIMES, InnerFolds
from softsurv.trees.soft_tree import SoftTree

N = 80
ONE_LEAF = Recipe(get_family("weibull"), Candidate("weibull", 0, 0.1))


@pytest.fixture
def data(tools):
    """The group goes with the first feature, which acts on the time."""
    plain = tools.simulate(N, 2, 3)
    group = np.where(plain.x[:, 0].numpy() > np.median(plain.x[:, 0].numpy()), "a", "b")
    return tools.simulate(N, 2, 3, group=group)


def distance_of_predictions(data, tree, weight, n_times=50):
    """Mean squared distance between the groups' predicted curves, from the predictions alone."""
    times = data.time[data.event].numpy()
    times = torch.tensor(np.unique(np.quantile(times, np.linspace(0, 1, n_times), method="inverted_cdf")))
    with torch.no_grad():
        curves = tree.survival_function(data.x, times)
    group, step = (data.group == data.group.max()).double()[None], trapezoid_weights(times)
    pairs = (group * weight).sum() * ((1 - group) * weight).sum()
    return float(pairwise_distance(curves, group, weight[None], step / step.sum())[0] / pairs)


def tree_of(objective, routing, leaves):
    tree = SoftTree(objective.depth, 2, objective.problem.family, 1)
    tree.load_state_dict({"routing": routing, "leaves": leaves, "time_scale": objective.problem.time_scale})
    return tree


def test_leaves_are_fitted_to_what_is_predicted(tools, data):
    objective = tools.make_objective(data, "weibull", 2)
    fairness = fairness_of(data, objective.problem, 20.0)
    objective = type(objective)(objective.problem, 2, objective.penalties, fairness)
    routing, leaves = tools.random_parameters(objective)
    before = objective.value_and_gradient(routing, leaves, 2)[0]
    start = Trained(routing, leaves, before, torch.ones(1, dtype=torch.bool), ())
    end = fair_in_leaves(objective, start, FAIR)
    assert float(end.objective) < float(before)
    torch.testing.assert_close(end.routing, routing, rtol=0, atol=0)
    tree, weight = tree_of(objective, end.routing, end.leaves), torch.ones(N, dtype=torch.float64)
    leaf = tree.apply_leaf(data.x)
    loss = objective.leaf_terms(end.leaves).loss.gather(1, leaf[:, None]).mean()
    penalty = objective.penalty(end.routing, end.leaves)[0]
    expected = float(loss + penalty) + 20 * distance_of_predictions(data, tree, weight)
    assert float(end.objective) == pytest.approx(expected, rel=1e-9)


def test_held_out_distance_is_that_of_the_predictions(tools, data):
    objective = tools.make_objective(data, "loglogistic", 2)
    routing, leaves = tools.random_parameters(objective)
    weight = (torch.arange(N) % 3 == 0).double()
    fairness = fairness_of(data, objective.problem, 7.0)
    found = held_out_distance(fairness, objective.problem, 2, routing, leaves, weight[None])
    tree = tree_of(objective, routing, leaves)
    assert float(found) == pytest.approx(7 * distance_of_predictions(data, tree, weight), rel=1e-9)


def test_shrinkage_does_not_pull_the_groups_apart(data):
    how = {"depth": 1, "leaf": "weibull", "l2": 0.1, "shrinkage": 1000.0, "routing_l2": 0.1, "max_terms": None}
    weight = torch.ones(N, dtype=torch.float64)
    gaps = []
    for strength in (0.0, 1000.0):
        tree = SoftSurvivalTree(**how, fairness=strength, preprocess=False).fit(data)
        gaps.append(distance_of_predictions(data, tree.tree_, weight))
    assert gaps[1] < 1e-3 * gaps[0]


def test_candidates_are_ranked_by_loss_and_distance(data):
    rows = [np.flatnonzero(np.arange(N) % 2 == k) for k in range(2)]
    inner = InnerFolds.of(data, get_family("weibull"), rows, Machine(torch.device("cpu")), 50.0)
    (found,) = inner.single_leaf_trials([0.1])
    for fold, trained_on in enumerate(rows):
        weight = torch.ones(N, dtype=torch.float64)
        weight[trained_on] = 0
        anchors = fit_anchors(inner.problem, ONE_LEAF, inner.masks.sum(1), fairness=inner.fairness).point[0]
        objective = Objective(inner.problem, 0, no_penalties(2, anchors.shape[-1], inner.problem.design))
        loss = (objective.leaf_terms(anchors[:, 0]).loss[fold, 0] * weight).sum() / weight.sum()
        tree = tree_of(
            Objective(inner.problem.take(torch.tensor([fold])), 0, objective.penalties),
            torch.zeros(1, 0, 3, dtype=torch.float64),
            anchors[fold],
        )
        expected = float(loss) + 50 * distance_of_predictions(data, tree, weight, FAIRNESS_TIMES)
        assert float(found.losses[fold]) == pytest.approx(expected, rel=1e-9)
