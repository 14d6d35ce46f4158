"""The NODEC-DR loop: descent, stacks, stopping, budgets, reproducibility."""

import numpy as np
import pytest
import torch

import softsurv.soft.nodec as module
from softsurv.hazards import family_names, get_family
from softsurv.soft.fit_stack import FIRST_LEAVES, fit_single_leaf
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.restricted import fit_leaves
from softsurv.soft.starts import initial_leaves, logrank_routing, random_routing
from softsurv.soft.watch import never_waiting
from softsurv.stopping import StopSignal

QUICK = NodecSettings(max_sweeps=3)

ONE_SWEEP = NodecSettings(max_sweeps=1)
"""For comparisons of two ways to the same trees: each sweep multiplies the difference that rounding makes."""


def started(tools, data, family="weibull", depth=2, seeds=(0, 1, 2), **options):
    """Objective of one tree for each seed, with its random start."""
    objective = tools.make_objective(data, family, depth, n_trees=len(seeds), **options)
    single = fit_single_leaf(objective.problem).point[0]
    return objective, random_routing(data.x.numpy(), depth, seeds), initial_leaves(single, depth, seeds)


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("penalised", [False, True])
def test_best_objective_never_rises_and_belongs_to_the_parameters(tools, depth, penalised):
    objective, routing, leaves = started(tools, tools.simulate(120), depth=depth, penalised=penalised)
    kept = routing.clone(), leaves.clone()
    found = nodec(objective, routing, leaves, QUICK)
    trace = torch.stack([objective.value(routing, leaves), *found.trace])
    assert (trace.diff(dim=0) <= 0).all()
    torch.testing.assert_close(found.trace[-1], found.objective)
    torch.testing.assert_close(objective.value(found.routing, found.leaves), found.objective)
    torch.testing.assert_close((routing, leaves), kept)  # the start is not written over


@pytest.mark.parametrize("family", family_names())
def test_a_planted_split_is_found(tools, family):
    data = tools.simulate(300, seed=4)
    objective, routing, _ = started(tools, data, family, depth=1, seeds=(0, 1, 2))
    routing[0] = torch.tensor(logrank_routing(data.x.numpy(), data.time.numpy(), data.event.numpy(), 1))
    single = fit_single_leaf(objective.problem).point[0]
    leaves = fit_leaves(objective, routing, initial_leaves(single, 1, (0, 1, 2)), FIRST_LEAVES)
    one_leaf = Objective(objective.problem, 0, objective.penalties).value(routing[:, :0], single)
    found = nodec(objective, routing, leaves, NodecSettings())
    best = found.objective.argmin()
    assert float(found.objective[best]) < float(one_leaf[0]) - 0.02
    assert found.routing[best, 0, 1:].abs().argmax() == 0  # the jump is over the first feature


def test_stack_is_its_trees_one_by_one(tools):
    folds = torch.tensor(np.random.default_rng(0).random((3, 100)) < 0.8)
    data = tools.simulate(100)
    objective, routing, leaves = started(tools, data, depth=2, weight=folds)
    together = nodec(objective, routing, leaves, ONE_SWEEP)
    for k in range(3):
        one = torch.tensor([k])
        alone = nodec(objective.take(one), routing[one], leaves[one], ONE_SWEEP)
        torch.testing.assert_close(alone.objective, together.objective[one], rtol=1e-6, atol=1e-8)


def test_groups_are_their_problems_one_by_one(tools):
    family, seeds = get_family("loglogistic"), (0, 1)
    sets = [tools.simulate(n, seed=n) for n in (60, 75)]
    parts = [make_problem(data, family, n_trees=2) for data in sets]
    starts = [
        (random_routing(data.x.numpy(), 2, seeds), initial_leaves(fit_single_leaf(problem).point[0], 2, seeds))
        for data, problem in zip(sets, parts, strict=True)
    ]
    joined = join_problems(parts)
    penalties = tools.penalties_for(joined)
    routing, leaves = (torch.cat(tensors) for tensors in zip(*starts, strict=True))
    together = nodec(Objective(joined, 2, penalties), routing, leaves, ONE_SWEEP)
    for k, (problem, start) in enumerate(zip(parts, starts, strict=True)):
        rows = torch.tensor([2 * k, 2 * k + 1])
        alone = nodec(Objective(problem, 2, penalties.take(rows)), *start, ONE_SWEEP)
        torch.testing.assert_close(together.objective[rows], alone.objective, rtol=1e-6, atol=1e-8)


def test_same_start_same_result(tools):
    objective, routing, leaves = started(tools, tools.simulate(80))
    first, second = (nodec(objective, routing, leaves, QUICK) for _ in range(2))
    assert torch.equal(first.routing, second.routing)
    assert torch.equal(first.leaves, second.leaves)
    assert torch.equal(first.objective, second.objective)


def test_order_of_rows_leaves_the_result_within_tolerance(tools):
    data = tools.simulate(120)
    objective, routing, leaves = started(tools, data)
    shuffled = data.take(np.random.default_rng(0).permutation(120))
    plain = nodec(objective, routing, leaves, ONE_SWEEP)
    again = nodec(tools.make_objective(shuffled, depth=2, n_trees=3), routing, leaves, ONE_SWEEP)
    torch.testing.assert_close(again.objective, plain.objective, rtol=1e-5, atol=1e-6)


def test_what_stopped_before_its_last_sweep_has_converged(tools):
    objective, routing, leaves = started(tools, tools.simulate(80), depth=1)
    assert not nodec(objective, routing, leaves, NodecSettings(max_sweeps=1)).converged.any()
    patient = nodec(objective, routing, leaves, NodecSettings(max_sweeps=60, patience=2))
    assert patient.converged.all()
    assert len(patient.trace) < 60
    single, *start = started(tools, tools.simulate(80), depth=0)
    alone = nodec(single, *start, NodecSettings())
    assert alone.converged.all()
    assert len(alone.trace) == 1


def test_early_stopping_of_some_trees_leaves_the_others_alone(tools):
    objective, routing, leaves = started(tools, tools.simulate(100), depth=2, seeds=range(6))
    together = nodec(objective, routing, leaves, NodecSettings(max_sweeps=8, patience=1, tolerance=1e-3))
    gains = torch.stack(together.trace).diff(dim=0) < 0
    assert gains.sum(0).unique().numel() > 1  # they stopped at different sweeps
    torch.testing.assert_close(objective.value(together.routing, together.leaves), together.objective)


def test_no_level_begins_after_the_time(tools, monkeypatch):
    objective, routing, leaves = started(tools, tools.simulate(60), depth=3, seeds=(0,))
    levels, step = [], module.branch_step
    monkeypatch.setattr(module, "branch_step", lambda *given: levels.append(given[3]) or step(*given))
    nodec(objective, routing, leaves, ONE_SWEEP)
    assert levels == [0, 1, 2]
    nodec(objective, routing, leaves, ONE_SWEEP, StopSignal(0.0))
    assert levels == [0, 1, 2, 0]


@pytest.mark.parametrize("why", ["time", "interrupt"])
def test_an_exhausted_budget_returns_the_best_so_far(tools, why):
    objective, routing, leaves = started(tools, tools.simulate(80))
    budget = StopSignal(0.0 if why == "time" else None)
    budget.interrupted = why == "interrupt"
    found = nodec(objective, routing, leaves, NodecSettings(), budget)
    assert not found.converged.any()
    assert len(found.trace) == 1
    assert (found.objective <= objective.value(routing, leaves)).all()
    torch.testing.assert_close(objective.value(found.routing, found.leaves), found.objective)


def test_interruption_in_the_middle_keeps_what_was_reached(tools):
    objective, routing, leaves = started(tools, tools.simulate(80))
    budget = StopSignal()

    def progress(sweep, value):
        budget.interrupted = sweep == 2

    found = nodec(objective, routing, leaves, NodecSettings(tolerance=0.0), budget, progress)
    assert not found.converged.any()
    assert len(found.trace) == 2


def test_progress_sees_every_sweep(tools):
    objective, routing, leaves = started(tools, tools.simulate(60), depth=1)
    seen = []
    nodec(objective, routing, leaves, NodecSettings(max_sweeps=3, tolerance=0.0), progress=lambda *a: seen.append(a))
    assert [sweep for sweep, _ in seen] == list(range(1, 1 + len(seen)))
    assert all(value.shape == (3,) for _, value in seen)


def test_settings_reach_the_steps(tools):
    objective, routing, leaves = started(tools, tools.simulate(80), depth=1)
    none = LbfgsSettings(max_iterations=0)
    frozen = nodec(objective, routing, leaves, NodecSettings(max_sweeps=2, branch=none, leaf=none))
    torch.testing.assert_close((frozen.routing, frozen.leaves), (routing, leaves))


def test_work_for_nobody_changes_nothing(tools):
    """On a GPU every step is done without a look at whether a tree needs it."""
    objective, routing, leaves = started(tools, tools.simulate(120), depth=3, penalised=True)
    looked = nodec(objective, routing, leaves, ONE_SWEEP)
    with never_waiting():
        blind = nodec(objective, routing, leaves, ONE_SWEEP)
    torch.testing.assert_close(blind.objective, looked.objective)
    torch.testing.assert_close(blind.routing, looked.routing)


def test_the_last_group_may_lose_trees_one_by_one(tools):
    """One group left of several is narrowed tree by tree, as a stack of one group is."""
    family, seeds = get_family("weibull"), (0, 1, 2)
    sets = [tools.simulate(n, seed=n) for n in (40, 75)]
    parts = [make_problem(data, family, n_trees=3) for data in sets]
    joined = join_problems(parts)
    routing = torch.cat([random_routing(data.x.numpy(), 2, seeds) for data in sets])
    leaves = torch.cat([initial_leaves(fit_single_leaf(part).point[0], 2, seeds) for part in parts])
    objective = Objective(joined, 2, tools.penalties_for(joined))
    sizes = []
    narrowed = NodecSettings(max_sweeps=12, patience=1, tolerance=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        take = Objective.take
        patch.setattr(Objective, "take", lambda part, trees: sizes.append(len(trees)) or take(part, trees))
        trained = nodec(objective, routing, leaves, narrowed)
    torch.testing.assert_close(objective.value(trained.routing, trained.leaves), trained.objective)
    assert min(sizes) < 3
