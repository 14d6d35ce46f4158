"""The objective summed over chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv.data.readers import survival_data
from softsurv.hazards import family_names, get_family
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import Penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.streaming.axis import make_axis
from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkStore, gather_outcomes


def stored(data, chunk_rows, memory, order=None):
    """The rows of numeric data in a store."""
    store = ChunkStore(memory)
    x, time, event = data.x.numpy(), data.time.numpy(), data.event.numpy()
    weight = None if data.weight is None else data.weight.numpy()
    firsts = list(range(0, data.n, chunk_rows))
    for first in firsts if order is None else [firsts[k] for k in order]:
        part = slice(first, first + chunk_rows)
        store.append(x[part], time[part], event[part], None if weight is None else weight[part])
    return store


def numeric_data(n=200, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 4))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    weights = rng.random(n) if weighted else None
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(n) < 0.7, weight=weights)


@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("memory", [10**9, 3000, 0])
def test_value_and_gradient_equal_those_in_memory(family, memory):
    data, leaf = numeric_data(weighted=True), get_family(family)
    problem = make_problem(data, leaf)
    generator = torch.Generator().manual_seed(0)
    size = 5 + leaf.n_shape
    routing = torch.randn(1, 3, 5, generator=generator, dtype=torch.float64)
    leaves = 0.3 * torch.randn(1, 4, size, generator=generator, dtype=torch.float64)
    one = torch.full((1,), 0.01, dtype=torch.float64)
    anchor = torch.ones(1, 1, size, dtype=torch.float64)
    penalties = Penalties(one, 2 * one, 3 * one, anchor, 4 * one)
    expected = Objective(problem, 2, penalties).value_and_gradient(routing, leaves)
    with stored(data, 37, memory) as store:
        assert store.in_memory <= memory
        assert store.on_disk + store.in_memory == data.n * 5 * 8
        axis = make_axis(leaf, *gather_outcomes(store, Ranks()))
        for workers in (1, 2):
            objective = StreamedObjective(PlacedChunks(store, axis, routing), 2, penalties, Ranks(), workers)
            for ours, theirs in zip(objective.value_and_gradient(routing, leaves), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_order_of_chunks_changes_no_digit():
    data, leaf = numeric_data(), get_family("weibull")
    routing, leaves = torch.ones(1, 1, 5, dtype=torch.float64), torch.full((1, 2, 6), 0.1, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    penalties = Penalties(zero, zero, zero, torch.zeros(1, 1, 6, dtype=torch.float64), zero)
    values = []
    for order in (None, [7, 1, 5, 0, 6, 3, 2, 4], [4, 2, 3, 6, 0, 5, 1, 7]):
        with stored(data, 25, 10**9, order) as store:
            axis = make_axis(leaf, *gather_outcomes(store, Ranks()))
            objective = StreamedObjective(PlacedChunks(store, axis, routing), 1, penalties, Ranks())
            values.append(objective.value_and_gradient(routing, leaves))
    for value in values[1:]:
        assert all(torch.equal(a, b) for a, b in zip(value, values[0], strict=True))
