"""What L-BFGS remembers, and the direction that follows from it."""

import numpy as np
import torch
from oracles.both_ways import both_ways

from softsurv.soft.quasi_newton import Memory


def remembered(accepted):
    """Directions and slopes of a memory of three pairs after each of some moves, which some trees refuse."""
    rng, found = np.random.default_rng(0), []
    curvature = torch.tensor(rng.standard_normal((4, 6, 6)))
    curvature = curvature @ curvature.mT + torch.eye(6, dtype=torch.float64)
    x = torch.tensor(rng.standard_normal((4, 6)))

    def gradient(at):
        return (curvature @ at[..., None])[..., 0]

    memory = Memory(x, gradient(x), 0.3 * gradient(x), 3)
    for kept in accepted:
        direction, slope = memory.direction()
        trial = memory.x + 0.7 * direction
        trial = torch.where(torch.isfinite(trial), trial, 0.0)
        new = torch.where(kept[:, None], gradient(trial), torch.nan)  # a refused trial may have no gradient
        memory.move(trial, new, 0.3 * new, kept)
        found += [direction, slope, memory.x.clone()]
    return found


def test_the_memory_of_quasi_newton_steps():
    """Before it is full, once it turns over, and in trees that stay where they are."""
    accepted = torch.tensor(np.random.default_rng(1).random((9, 4)) < 0.7)
    for ours, theirs in zip(*both_ways(remembered, accepted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_a_pair_without_curvature_is_not_remembered():
    """Along a line that falls ever more steeply the metric's direction stays."""

    def direction():
        x = torch.zeros(1, 2, dtype=torch.float64)
        memory = Memory(x, x + 1, x + 1, 2)
        memory.move(x - 1, x + 2, x + 2, torch.tensor([True]))
        return memory.direction()

    for ours, theirs in zip(*both_ways(direction), strict=True):
        assert torch.equal(ours, theirs)
    assert direction()[0].tolist() == [[-2.0, -2.0]]
