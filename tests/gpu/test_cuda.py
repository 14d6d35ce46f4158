"""On a CUDA device: the same values and models as on the CPU, stacks that fit, rounds without waiting."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.device_paths import ON_HOST, ONCE, PATHS, count_rounds, looks_at_rules
from oracles.no_waits import no_waits, refuse_waits
from oracles.spells import KINDS, rows_of_kind

from softsurv import SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.estimators.soft import devices
from softsurv.hazards import family_names, get_family
from softsurv.soft.capacity import stack_size
from softsurv.soft.cross_validation import fit_folds, make_folds
from softsurv.soft.held_out import HeldOut, TrainingTimes
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.parallel import Machine
from softsurv.soft.penalties import Penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.replay import SWITCH, CudaGraphs, capture_on

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.random((400, 5))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(400) < 0.7)


def objective_on(device, data, family, trees=8, depth=2):
    """Objective and parameters of a stack."""
    problem = make_problem(data, get_family(family), n_trees=trees, device=device)
    generator = torch.Generator().manual_seed(0)
    size = problem.design.shape[-1] + problem.family.n_shape
    routing = torch.randn(trees, 2**depth - 1, problem.design.shape[-1], generator=generator, dtype=torch.float64)
    leaves = 0.3 * torch.randn(trees, 2**depth, size, generator=generator, dtype=torch.float64)
    one = problem.weight.new_full((trees,), 0.01)
    penalties = Penalties(one, one, one, problem.weight.new_zeros(trees, 1, size), one)
    return Objective(problem, depth, penalties), routing.to(device), leaves.to(device)


@pytest.mark.parametrize("family", family_names())
def test_value_and_gradient_agree_with_the_cpu(data, family):
    results = []
    for device in ("cpu", "cuda"):
        objective, routing, leaves = objective_on(device, data, family)
        results.append([v.cpu() for v in objective.value_and_gradient(routing, leaves)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
def test_a_fitted_tree_agrees_with_the_cpu(data, solver):
    arguments = {"depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 30.0, "routing_l2": 1.0, "n_restarts": 2}
    models = [SoftSurvivalTree(device=d, solver=solver, **arguments).fit(data) for d in ("cpu", "cuda")]
    assert models[1].tree_.leaves.device.type == "cuda"
    assert models[1].report_.objective == pytest.approx(models[0].report_.objective, rel=1e-6)


def test_a_tree_of_rules_agrees_with_the_cpu(data):
    models = [SoftSurvivalTree(device=d, depth=1, leaf="weibull", max_terms=1).fit(data) for d in ("cpu", "cuda")]
    assert models[1].tree_.leaves.device.type == "cuda"
    assert models[1].tree_.rules == models[0].tree_.rules
    assert models[1].report_.objective == pytest.approx(models[0].report_.objective, rel=1e-6)


@pytest.mark.filterwarnings("ignore:the fit took all its", "ignore:the single-leaf fit")
def test_a_tree_of_rules_is_waited_for_once_where_rules_are_sought():
    seen, needs = looks_at_rules("cuda")
    assert 0 < seen[ON_HOST] <= needs
    others = {name.removeprefix("sparse/") for name in seen if name.startswith("sparse/")}
    assert others == ONCE | {ON_HOST.removeprefix("sparse/")}


def test_auto_takes_the_device_for_large_tables_alone(data, monkeypatch):
    small = SoftSurvivalTree(depth=0, l2=1.0).fit(data)
    monkeypatch.setattr(devices, "TREE_ROWS_A_CORE", 1)
    large = SoftSurvivalTree(depth=0, l2=1.0).fit(data)
    assert (small.tree_.leaves.device.type, large.tree_.leaves.device.type) == ("cpu", "cuda")


def test_rounds_do_not_wait_for_the_device(data):
    objective, routing, leaves = objective_on("cuda", data, "loglogistic")
    metric = GramMetric(objective.problem, routing.shape[1], leaves.shape[1])
    minimise(objective, (routing, leaves), LbfgsSettings(max_iterations=2), metric)  # libraries are loaded
    gradients = objective.value_and_gradient

    def watched(*point):
        """From the second evaluation on, until the first look, no operator may wait."""
        refuse_waits(True)
        return gradients(*point)

    def look(loss):
        refuse_waits(False)

    objective.value_and_gradient = watched
    try:
        found = minimise(objective, (routing, leaves), LbfgsSettings(max_iterations=1), metric, on_round=look)
    finally:
        refuse_waits(False)
    assert torch.isfinite(found.loss).all()


@pytest.mark.parametrize("steps", [3, 7])
def test_a_minimisation_takes_the_rounds_that_it_takes_on_the_cpu(steps):
    """The look is there before the next direction is; where it is late, the host waits for the one before."""
    count_rounds("cuda", steps)  # libraries are loaded
    expected, found = count_rounds("cpu", steps), count_rounds("cuda", steps)
    assert all(one.moving for one in expected)
    assert sum(one.moving > 0 for one in found) == len(expected)
    assert len(found) <= len(expected) + 1


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning", "ignore:the fit took all its")
@pytest.mark.parametrize("kind", KINDS)
def test_measures_do_not_wait_for_the_device(kind):
    train, test = rows_of_kind(kind).joined().split(0.4, seed=0)
    how = {"depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0, "max_iter": 3}
    tree = SoftSurvivalTree(device="cuda", init="random", **how).fit(train)
    known = TrainingTimes(tree.censoring_, tree.time_floor_, tree.horizon_, float(tree.unique_times_[0]))
    rows = HeldOut(test, tree._prepare(test.X).x, known, tree.tree_.leaves)
    expected = rows.measures(tree._trees).cpu()  # libraries are loaded
    with no_waits():
        found = rows.measures(tree._trees)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-12, atol=1e-12)
    own = tree.evaluate(test)["harrell_c"]
    assert rows.result(expected[:, 0].tolist())["harrell_c"] == pytest.approx(own, abs=1e-10)


def test_the_largest_stack_fits_the_memory(data):
    device = torch.device("cuda")
    free = 2 * 10**9
    trees = stack_size(data.n, 4, 6, device, free_bytes=free)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    objective, routing, leaves = objective_on("cuda", data, "spline_po", trees)
    objective.value_and_gradient(routing, leaves)
    assert torch.cuda.max_memory_allocated() < free


def test_folds_as_one_stack_agree_with_the_cpu(data):
    candidate = Candidate("weibull", 1, 1.0, 30.0, 1.0)
    folds, recipe = make_folds(data, 3), Recipe(get_family("weibull"), candidate, ("random", "random"))
    on_cpu, on_gpu = (fit_folds(folds, recipe, Machine(torch.device(d))) for d in ("cpu", "cuda"))
    for a, b in zip(on_cpu, on_gpu, strict=True):
        torch.testing.assert_close(a.leaves, b.leaves.cpu(), rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore:the fit took all its", "ignore:the single-leaf fit")  # they are cut off
@pytest.mark.parametrize("path", PATHS)
def test_each_path_gives_what_it_gives_on_the_cpu(path):
    found = [value.cpu() for value in PATHS[path]("cuda")]
    torch.testing.assert_close(found, PATHS[path]("cpu"), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("family", family_names())
def test_recorded_rounds_end_where_others_do(data, family, monkeypatch):
    objective, routing, leaves = objective_on("cuda", data, family)
    metric, rule = GramMetric(objective.problem, 3, 4), LbfgsSettings(max_iterations=24, ftol=0.0)
    monkeypatch.setenv(SWITCH, "0")
    expected = minimise(objective, (routing, leaves), rule, metric)
    monkeypatch.delenv(SWITCH)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # a capture that fails, or a replay that differs
        found = minimise(objective, (routing, leaves), rule, metric)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=0)
    torch.testing.assert_close(found.point, expected.point, rtol=1e-5, atol=1e-5)


def test_graphs_are_taken_unless_they_are_switched_off(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    assert isinstance(capture_on(torch.device("cuda")), CudaGraphs)
    monkeypatch.setenv(SWITCH, "0")
    assert capture_on(torch.device("cuda")) is None
