"""Functions to be minimised whose minima are known."""

from dataclasses import dataclass

import torch

from softsurv.soft.bfgs import BfgsSettings

TO_THE_END = BfgsSettings(max_iterations=500, accuracy=1e-14)


@dataclass(frozen=True)
class Rosenbrock:
    """One valley for each tree, of its own steepness."""

    steepness: torch.Tensor  # (M,)

    def take(self, trees):
        return type(self)(self.steepness[trees.to(self.steepness.device)])

    def value_and_gradient(self, x):  # (M, 2)
        a, b = x[:, 0], x[:, 1]
        rise = b - a**2
        value = (1 - a) ** 2 + self.steepness * rise**2
        d_a = -2 * (1 - a) - 4 * self.steepness * a * rise
        return value, torch.stack([d_a, 2 * self.steepness * rise], 1)


@dataclass(frozen=True)
class WithHole(Rosenbrock):
    """The same without a value where the first coordinate is above 5."""

    def value_and_gradient(self, x):
        value, gradient = super().value_and_gradient(x)
        return torch.where(x[:, 0] > 5, torch.nan, value), gradient


VALLEYS = Rosenbrock(torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64))


START = torch.tensor([[-1.2, 1.0], [0.0, 3.0], [-1.2, 1.0]], dtype=torch.float64)
