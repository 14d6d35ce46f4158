"""Stacks sized to caches and memory, and optimiser rounds that never wait for the device."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from oracles.live_memory import LiveMemory
from oracles.mixed_data import some_data
from oracles.simulated import simulate, with_everything

from softsurv.hazards import family_names, get_family
from softsurv.soft import capacity, optimisers, selection
from softsurv.soft import fit_stack as fit_stack_module
from softsurv.soft.capacity import (
    CENSORED_TABLES,
    FAIR_TABLES,
    LIVE_TABLES,
    MAX_CELLS,
    MEMORY_SHARE,
    stack_parts,
    stack_size,
)
from softsurv.soft.fairness import fairness_of
from softsurv.soft.fit_stack import Stack, fit_stack
from softsurv.soft.nodec import NodecSettings
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.parallel import Machine, keep_memory
from softsurv.soft.penalties import Penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import Problem, make_problem
from softsurv.soft.recipe import Training
from softsurv.soft.selection import DenseGrid, select
from softsurv.soft.watch import never_waiting
from softsurv.sparse.leaf_fit import LeafObjective, LeafPenalties

CPU = torch.device("cpu")


def test_a_cpu_stack_fills_the_caches():
    assert stack_size(1000, 4, 10, CPU) == MAX_CELLS // 4000
    assert stack_size(10**7, 4, 10, CPU) == 1


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpu_stack_fits_the_memory(shared, dtype):
    rows, leaves, columns, free = 700, 4, 20, 10**9
    n = stack_size(rows, leaves, columns, torch.device("cuda"), dtype, shared_design=shared, free_bytes=free)

    def need(trees):
        tables = rows * columns * (1 if shared else trees)
        return (trees * rows * leaves * LIVE_TABLES + tables) * dtype.itemsize

    assert need(n) <= MEMORY_SHARE * free < need(n + 1)
    assert stack_size(rows, leaves, columns, torch.device("cuda"), dtype, free_bytes=1) == 1


def live_tables(function, point, table):
    """Most memory that a value and gradient hold at once, in tables."""
    with operators_alone(), LiveMemory() as live:
        function.value_and_gradient(*point)
    return live.peak / (8 * table)


TREES, MANY = 4, 2000
"""Rows enough that what is no table of theirs does not count."""


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("data", [simulate, with_everything])
def test_live_tables_are_no_more_than_is_assumed(tools, family, depth, data):
    objective = tools.make_objective(data(MANY), family, depth, TREES, penalised=True)
    assumed = LIVE_TABLES if data is simulate else CENSORED_TABLES
    table = TREES * MANY * 2**depth
    assert live_tables(objective, tools.random_parameters(objective), table) < assumed
    one = torch.full((TREES,), 0.1, dtype=torch.float64)
    leaf = torch.randint(2**depth, (TREES, MANY))
    leaves = LeafObjective(objective.problem, leaf, 2**depth, LeafPenalties(one, one, one))
    common, deviation = (torch.zeros(TREES, n, leaves.free.shape[-1], dtype=torch.float64) for n in (1, 2**depth))
    assert live_tables(leaves, (common, deviation), table) < assumed


@pytest.mark.parametrize("family", family_names())
def test_live_tables_of_the_fairness_penalty(tools, family):
    data = simulate(MANY, group=np.arange(MANY) % 2)
    plain = tools.make_objective(data, family, 1, TREES)
    fairness = fairness_of(data, plain.problem, 1.0)
    objective, times = tools.make_objective(data, family, 1, TREES, fairness=fairness), len(fairness.step)
    most = LIVE_TABLES + FAIR_TABLES * times
    assert live_tables(objective, tools.random_parameters(objective), TREES * MANY * 2) < most


def test_live_memory_counts_what_is_alive():
    with LiveMemory() as live:
        a = torch.ones(1000, dtype=torch.float64)
        b = a[:10] + 1  # the view makes no memory, the sum 80 bytes
        del a
        c = b.view(2, 5)
        del b
        assert live.now == 80
        assert c.sum() == 20
    assert 8080 <= live.peak <= 8100


def test_late_entry_causes_and_fairness_take_their_part_of_the_memory():
    device, free = torch.device("cuda"), 10**9
    plain = stack_size(500, 4, 10, device, free_bytes=free)
    assert stack_size(500, 4, 10, device, free_bytes=free, right_censored=False) < plain / 2
    assert stack_size(500, 4, 10, device, free_bytes=free, n_causes=2) in (plain // 2, plain // 2 + 1)
    assert stack_size(500, 4, 10, device, free_bytes=free, n_times=50) < plain / 40


@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize("data", [simulate, with_everything])
def test_training_a_part_stays_within_the_memory_that_it_was_sized_for(tools, solver, rho, data, monkeypatch):
    rows = replace(data(1000), group=torch.arange(1000) % 2)
    plain = tools.make_objective(rows, "weibull", 2, TREES, penalised=True)
    fairness = fairness_of(rows, plain.problem, rho, 5)
    objective = tools.make_objective(rows, "weibull", 2, TREES, penalised=True, fairness=fairness)
    monkeypatch.setattr(capacity, "MAX_CELLS", TREES * 1000 * 4)  # all as one part
    stack = Stack(objective, *tools.random_parameters(objective))
    training = Training(solver=solver, joint=LbfgsSettings(max_iterations=5), nodec=NodecSettings(max_sweeps=1))
    keep_memory()  # once per process, not to be counted
    with operators_alone(), LiveMemory() as live:
        fit_stack(stack, training, Machine(CPU))
    n_times = 0 if fairness is None else len(fairness.step)
    parts = stack_parts(objective.problem, 4, n_jobs=TREES, n_times=n_times, free_bytes=live.peak)
    assert len(parts) > 1  # a device with so much memory would not train them all at once


@pytest.mark.parametrize("rows", [1_000_000, 2_000_000])
@pytest.mark.parametrize("gigabytes", [24, 80])
def test_a_choice_among_settings_stays_within_the_memory_of_a_device(rows, gigabytes, monkeypatch):
    """90 trees a depth, cut into parts. A thousandth of the rows, on a device with a thousandth of the memory."""
    free, found = gigabytes * 10**6, []
    grid = DenseGrid(starts=("random",) * 3, training=Training(joint=LbfgsSettings(max_iterations=1)))
    data = simulate(rows // 1000)
    keep_memory()
    with operators_alone(), LiveMemory() as live:

        def parts(problem, n_leaves, **jobs):
            found.append(stack_parts(problem, n_leaves, **jobs | {"free_bytes": free - live.now}))
            return found[-1]

        monkeypatch.setattr(selection, "stack_parts", parts)
        monkeypatch.setattr(fit_stack_module, "stack_parts", parts)
        select(data, [get_family("weibull")], grid, 0, Machine(CPU))
    assert {part[-1].stop for part in found} == {90}
    assert max(map(len, found)) > 1  # as one stack they would not fit
    assert live.peak < free


@pytest.mark.parametrize("family", family_names())
def test_a_round_of_the_optimiser_never_waits_for_the_device(family, monkeypatch):
    """Meta tensors have no values: whatever would bring one to the host raises."""
    problem = make_problem(some_data(), get_family(family), n_trees=3)
    metric = GramMetric(problem, 3, 4)
    given = {f.name: getattr(problem, f.name) for f in fields(problem)}
    on_meta = {k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    leaf_size = problem.design.shape[-1] + problem.family.n_shape
    zero = torch.zeros(3, device="meta", dtype=torch.float64)
    penalties = Penalties(zero, zero, zero, zero.new_zeros(3, 1, leaf_size), zero)
    objective = Objective(Problem(**on_meta), 2, penalties)
    metric.inverse, metric.at, metric.scale = (v.to("meta") for v in (metric.inverse, metric.at, metric.scale))
    zeros = torch.zeros(3, 3, problem.design.shape[-1], device="meta", dtype=torch.float64)
    start = zeros, torch.zeros(3, 4, leaf_size, device="meta", dtype=torch.float64)
    looks = []

    class SeenError(Exception):
        """The first look at which trees have stopped."""

    def look(loss):
        looks.append(loss.is_meta)
        raise SeenError

    with monkeypatch.context() as patch, never_waiting():
        patch.setattr(optimisers.Watch, "send", lambda self, *mask: None)  # the host asks nothing of four rounds
        patch.setattr(optimisers.Watch, "known", lambda self: None)
        with pytest.raises(SeenError):
            minimise(objective, start, LbfgsSettings(), metric, on_round=look)
    assert looks == [True]
    with pytest.raises((RuntimeError, NotImplementedError)):
        minimise(objective, start, LbfgsSettings(), metric)  # so a look at a value would have shown
