"""Incidences of a stack of trees by operators, against those of one tree by numpy."""

import numpy as np
import pytest
import torch

from softsurv.hazards import get_family
from softsurv.trees.incidence import incidences, log_lattice
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.stacked_incidence import Lattice, StackOfCauses

N, P, MODELS, CAUSES, HORIZON = 12, 2, 3, 2, 4.0


def some_stack(family="weibull", dtype=torch.float64):
    """Stacks of trees of two causes that share the routing, and rows of which two are equal."""
    generator = torch.Generator().manual_seed(0)
    normal = lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64)  # noqa: E731
    trees, routing = [], normal(MODELS, 3, P + 1)
    for _ in range(CAUSES):
        tree = SoftTree(2, P, get_family(family), MODELS, dtype)
        with torch.no_grad():
            tree.routing.copy_(routing)
            tree.leaves.copy_(0.3 * normal(*tree.leaves.shape))
        tree.time_scale[:, 1:] = torch.linspace(1.0, 2.0, tree.time_scale.shape[1] - 1)
        trees.append(tree)
    x = normal(N, P)
    x[1] = x[0]
    return StackOfCauses(trees, x)


def hazards_of(stack, m):
    """Hazards (N, T, K) of one model, by numpy."""

    def hazards(times):
        with torch.no_grad():
            found = [
                torch.exp(tree.log_cumulative_hazard(stack.x, torch.as_tensor(times))[m]).double()
                for tree in stack.trees
            ]
        return torch.stack(found, -1).numpy()

    return hazards


@pytest.mark.parametrize("family", ["weibull", "loglogistic", "spline_ph"])
@pytest.mark.parametrize("width", [10**6, 100, 1])
def test_they_are_those_of_one_tree(family, width):
    stack, times = some_stack(family), np.array([1e-7, 0.3, 0.30001, HORIZON, 5.0, 60.0])
    lattice = Lattice(times, HORIZON, 0.0, stack.x)
    found = torch.full((CAUSES, MODELS, N, len(times)), torch.nan, dtype=torch.float64)
    with torch.no_grad():
        for part, block in stack.incidences(lattice, width * CAUSES * MODELS * N):
            found[..., part] = block
    for m in range(MODELS):
        _, expected = incidences(hazards_of(stack, m), log_lattice(HORIZON, times[-1]), times)
        np.testing.assert_allclose(found[:, m].movedim(0, -1), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(found[:, :, 0], found[:, :, 1])  # equal rows tie


def test_a_time_of_the_grid_is_its_own_point():
    stack = some_stack()
    times = log_lattice(HORIZON, HORIZON)[[500, 501, -1]]
    with torch.no_grad():
        ((part, found),) = stack.incidences(Lattice(times, HORIZON, 0.0, stack.x), 10**9)
    assert part == slice(0, 3)
    _, expected = incidences(hazards_of(stack, 0), log_lattice(HORIZON, times[-1]), times)
    np.testing.assert_allclose(found[:, 0].movedim(0, -1), expected, rtol=1e-12, atol=1e-15)


def test_infinite_hazards_leave_numbers():
    stack = some_stack()
    with torch.no_grad():
        stack.trees[0].leaves[..., 0] = 1e4  # H overflows
        ((_, found),) = stack.incidences(Lattice(np.array([1.0, 2.0]), HORIZON, 0.0, stack.x), 10**9)
    assert found.isfinite().all()
    torch.testing.assert_close(found.sum(0), torch.ones_like(found[0]))


def test_log_hazards_of_one_cause_and_of_all():
    stack, times = some_stack("loglogistic"), torch.tensor([0.5, 3.0])
    with torch.no_grad():
        of_all, of_first = stack.log_hazard_of_all(times), stack.log_hazard(times)
        each = [tree.log_cumulative_hazard(stack.x, times) for tree in stack.trees]
    torch.testing.assert_close(of_first, each[0], rtol=0, atol=0)
    torch.testing.assert_close(of_all, torch.logaddexp(*each), rtol=1e-12, atol=1e-12)


def test_a_lattice_without_times_has_no_parts():
    assert list(Lattice(np.array([]), HORIZON, 0.0, torch.zeros(())).parts(10)) == []


def test_parts_hold_every_point_once():
    times = np.array([0.1, 2.0, 2.5, 7.0])
    lattice = Lattice(times, HORIZON, 0.0, torch.zeros(()))
    for width in (1, 3, 1000, 10**6):
        points, asked = [], []
        for of_grid, of_times in lattice.parts(width):
            points += range(of_grid.start, of_grid.stop)
            asked += range(of_times.start, of_times.stop)
            assert of_grid.stop - of_grid.start + of_times.stop - of_times.start <= width
        assert asked == list(range(4))
        assert points == list(range(int((log_lattice(HORIZON, 7.0) <= 7.0).sum())))
