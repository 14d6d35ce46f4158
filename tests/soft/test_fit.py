"""One soft tree from several starts: the best is kept, and the report is its own."""

import numpy as np
import pytest
import torch
from oracles.simulated import simulate

from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.results import Status
from softsurv.soft.fit import build_tree, fit_starts, fit_tree
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.parallel import Machine
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate, Recipe, Training
from softsurv.stopping import StopSignal

CPU = Machine(torch.device("cpu"))
TRAINING = Training(joint=LbfgsSettings(max_iterations=8))
FAMILY = get_family("weibull")


def recipe_of(depth=1, starts=("logrank", "random", "random"), **how):
    return Recipe(FAMILY, Candidate("weibull", depth, 0.5), starts, TRAINING, **how)


@pytest.fixture(scope="module")
def data():
    return simulate(60)


@pytest.fixture(scope="module")
def fitted(data):
    return fit_starts(data, recipe_of(), CPU)


def objective_of(tree, data, ridge=0.5):
    """Loss of the tree with the ridge on its leaves' slopes, by the objective."""
    problem = make_problem(data, FAMILY)
    free = no_penalties(1, tree.leaves.shape[-1], problem.design)
    penalties = type(free)(free.l2 + ridge / data.n, free.shrinkage, free.routing_l2, free.anchor, free.l2_all)
    with torch.no_grad():
        return float(Objective(problem, tree.depth, penalties).value(tree.routing, tree.leaves))


def test_each_start_has_its_tree_and_objective(data, fitted):
    assert len(fitted.trees) == len(fitted.objectives) == 3
    for tree, objective in zip(fitted.trees, fitted.objectives, strict=True):
        assert tree.time_scale.shape[0] == 1
        assert objective_of(tree, data) == pytest.approx(objective, rel=1e-8)
    assert len({round(one, 9) for one in fitted.objectives}) > 1


def test_the_best_is_kept_and_reported(data, fitted):
    assert fitted.best is fitted.trees[int(np.argmin(fitted.objectives))]
    assert fitted.best_of_causes == (fitted.best,)
    assert fitted.report.objective == min(fitted.objectives)
    assert fitted.report.details["objectives"] == list(fitted.objectives)
    assert fitted.report.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
    tree, report = fit_tree(data, recipe_of(), CPU)
    assert torch.equal(tree.leaves, fitted.best.leaves)
    assert report.objective == fitted.report.objective


def test_the_best_start_does_not_depend_on_the_others_beside_it(data, fitted):
    """But for rounding: a start is what its seed says."""
    alone = fit_starts(data, recipe_of(starts=("logrank",)), CPU)
    assert alone.objectives[0] == pytest.approx(fitted.objectives[0], rel=1e-6)
    seeded = fit_starts(data, recipe_of(starts=("random",), seed=1), CPU)
    assert seeded.objectives[0] == pytest.approx(fitted.objectives[1], rel=1e-4)


def test_without_time_the_tree_is_as_it_begins(data):
    late = Machine(torch.device("cpu"), budget=StopSignal(0.0))
    fitted = fit_starts(data, recipe_of(), late)
    assert fitted.report.status == Status.TIME_LIMIT
    assert all(torch.isfinite(tree.leaves).all() for tree in fitted.trees)


def test_a_branch_that_sends_all_rows_one_way_is_collapsed(data):
    q, k = data.x.shape[1] + 1, FAMILY.n_shape
    routing = torch.zeros(1, q, dtype=torch.float64)
    routing[0, 0] = 50.0
    leaves = torch.randn(2, q + k, dtype=torch.float64)
    scale = make_problem(data, FAMILY).time_scale[0]
    plain, seen = (build_tree(FAMILY, 1, routing, leaves, scale, x) for x in (None, data.x))
    grid = torch.tensor([1.0, 2.0], dtype=torch.float64)
    torch.testing.assert_close(
        seen.log_cumulative_hazard(data.x, grid), plain.log_cumulative_hazard(data.x, grid), rtol=1e-9, atol=1e-9
    )
    assert not torch.equal(seen.routing, plain.routing)


def test_causes_share_their_rules_and_have_leaves_of_their_own(data):
    cause = np.where(data.failed, np.random.default_rng(0).integers(1, 3, data.n), 0)
    causes = survival_data(data.X, time=data.time.numpy(), cause=cause)
    fitted = fit_starts(causes, recipe_of(starts=("logrank", "random")), CPU)
    assert [len(trees) for trees in fitted.causes] == [2, 2]
    first, second = fitted.best_of_causes
    assert torch.equal(first.routing, second.routing)
    assert not torch.equal(first.leaves, second.leaves)
    assert fitted.best is first
