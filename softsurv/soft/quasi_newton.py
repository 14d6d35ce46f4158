"""The memory of L-BFGS for every tree of a stack, and the direction that follows from it.

The inverse Hessian is written in one matrix form (Byrd, Nocedal & Schnabel 1994, eq. 3.1), where textbooks loop over
the pairs. With the last k pairs as the rows of S (steps) and Y (changes of the gradient), a metric P,
``D + L = lower triangle of Y S'`` and ``gamma = s'y / y'Py`` of the newest pair,

    u = L'^-1 S g,    v = L^-1 (D u + gamma (Y P Y' u - Y P g)),    H g = gamma (P g - (Y P)' u) + S' v.

So a round is a few products of small matrices for all trees, instead of several operators for each pair. On a CPU
compiled loops do the same tree by tree (`softsurv.soft.step_kernels`).
"""

from __future__ import annotations

from copy import copy
from functools import cache

import torch
from torch import Tensor

from softsurv.soft import step_kernels as compiled
from softsurv.soft.one_pass import arrays, is_compiled
from softsurv.soft.problem import taken

CURVATURE = 1e-10
"""A pair is kept where s'y exceeds this share of y'y: the Hessian stays positive definite."""


class Memory:
    """Point, gradient and pairs of m trees in one table, written in place.

    Parameters
    ----------
    x, gradient, scaled : Tensor (m, D)
        The point, the gradient g there and the metric's P g.
    size : int
        k, pairs to remember.

    Notes
    -----
    Rows of the table (m, 3 k + 3, D): S, P Y, P g, x, g, Y. The pairs lie in a ring; ``slot`` (m,) is where a tree's
    next pair goes, in the place of its oldest one. When trees leave the stack, compiled loops leave all tables where
    they are; ``place`` (m,) says which of them belong to the trees that remain.
    """

    def __init__(self, x: Tensor, gradient: Tensor, scaled: Tensor, size: int) -> None:
        self.size = size
        self.table = x.new_zeros(len(x), 3 * size + 3, x.shape[1])
        self._here.copy_(torch.stack([scaled, x, gradient], 1))
        self.slot = torch.zeros(len(x), 1, dtype=torch.int64, device=x.device)
        self.place, self.parted = torch.arange(len(x), device=x.device), False

    @property
    def x(self) -> Tensor:
        """The point (m, D), a view until trees have left the stack."""
        point = self.table[:, 2 * self.size + 1]
        return point.index_select(0, self.place) if self.parted else point

    @property
    def _here(self) -> Tensor:
        """P g, x and g, (m, 3, D)."""
        return self.table[:, 2 * self.size : 2 * self.size + 3]

    def take(self, rows: Tensor) -> Memory:
        """The memory of some trees; for compiled loops it shares its tables with this one."""
        part = copy(self)
        if is_compiled(self.table):
            part.place, part.parted = taken(self.place, rows), True
        else:
            part.table, part.slot = taken(self.table, rows), taken(self.slot, rows)
            part.place = self.place[: len(rows)]
        return part

    def move(self, x: Tensor, gradient: Tensor, scaled: Tensor, accepted: Tensor) -> None:
        """Go to the new point where it is accepted (m,), and remember the pair if its curvature is positive."""
        if is_compiled(self.table):
            compiled.move(*arrays(self.table, self.slot, self.place, x, gradient, scaled, accepted), CURVATURE)
            return
        new = torch.stack([scaled, x, gradient], 1)
        pair = new - self._here  # (m, 3, D): P y, s, y
        products = pair @ pair.mT  # (m, 3, 3)
        curved = products[:, 1, 2] > CURVATURE * products[:, 2, 2]
        kept = (accepted & curved)[:, None]
        at = self.slot + _places(self.size, x.device)
        old = self.table[self.place[:, None], at]
        self.table.index_put_((self.place[:, None], at), torch.where(kept[..., None], pair, old))
        self.slot.add_(kept).remainder_(self.size)
        torch.where(accepted[:, None, None], new, self._here, out=self._here)

    def direction(self) -> tuple[Tensor, Tensor]:
        """The direction -H g (m, D) and its slope (m,); -P g where rounding makes -H g go uphill."""
        direction = self.table.new_empty(len(self.place), self.table.shape[-1])
        slope = direction.new_empty(len(direction))
        self.write_direction(direction, slope)
        return direction, slope

    def write_direction(self, direction: Tensor, slope: Tensor) -> None:
        """Write :meth:`direction` into existing tensors."""
        if is_compiled(self.table):
            compiled.descend(*arrays(self.table, self.slot, self.place, direction, slope))
            return
        k, bases = self.size, self.table[:, : 2 * self.size + 1]  # S, P Y, P g
        products = self.table[:, 2 * k + 2 :] @ bases.mT  # (m, k + 1, 2 k + 1): of g and Y with S, P Y and P g
        orders = _orders(k, self.table.device)[self.slot[:, 0]]
        by_age, by_slot = orders[:, : -2 * k - 1], orders[:, -2 * k - 1 :]
        products = products.flatten(1).gather(1, by_age).view_as(products)
        weight = _weights(products, k)
        downhill = torch.bmm(products[:, :1], weight) < 0
        weight = torch.where(downhill, weight, _steepest(k, weight.device, weight.dtype))  # NaN is not downhill
        torch.bmm(products[:, :1], weight, out=slope[:, None, None])
        ordered = weight[..., 0].gather(1, by_slot)
        torch.bmm(ordered[:, None], bases, out=direction[:, None])


def _weights(
    products: Tensor,  # (m, k + 1, 2 k + 1): rows g and Y, columns S, P Y and P g, the oldest pair first
    k: int,
) -> Tensor:  # (m, 2 k + 1, 1)
    """Weights of S, P Y and P g in the direction -H g. The diagonals of the products are changed in place."""
    steps, scaled = products[:, 0, :k, None], products[:, 0, k : 2 * k, None]  # S g and Y P g, (m, k, 1)
    own = products[:, 1:, : 2 * k].unflatten(2, (2, k)).diagonal(dim1=1, dim2=3)  # (m, 2, k): s'y and y'Py
    own += own[:, :1] <= 0  # an empty slot has zeros for products: with ones on the diagonal it has no effect
    lower = products[:, 1:, :k].tril()
    gamma = (own[:, 0, -1:] / own[:, 1, -1:])[..., None]  # (m, 1, 1)
    u = torch.linalg.solve_triangular(lower.mT, steps, upper=True)
    inner = gamma * torch.baddbmm(scaled, products[:, 1:, k : 2 * k], u, alpha=-1)
    v = torch.linalg.solve_triangular(lower, torch.addcmul(inner, own[:, 0, :, None], u, value=-1), upper=False)
    return torch.cat([v, gamma * u, -gamma], 1)


@cache
def _places(k: int, device: torch.device) -> Tensor:
    """Rows of P y, s and y of the pair in slot 0, (1, 3)."""
    return torch.tensor([[k, 0, 2 * k + 3]], device=device)


@cache
def _orders(k: int, device: torch.device) -> Tensor:  # (k, (k + 2) (2 k + 1))
    """For each next slot two index tables side by side, (k, (k + 1) (2 k + 1)) and (k, 2 k + 1).

    The first one sorts the products by age, the oldest pair first; the second one sorts the weights back by slot.
    """
    width, products, weights = 2 * k + 1, [], []
    for slot in range(k):
        age = [(slot + a) % k for a in range(k)]
        columns = [*age, *(k + s for s in age), 2 * k]
        products.append([row * width + column for row in (0, *(1 + s for s in age)) for column in columns])
        back = [(s - slot) % k for s in range(k)]
        weights.append([*back, *(k + a for a in back), 2 * k])
    return torch.tensor([a + b for a, b in zip(products, weights, strict=True)], device=device)


@cache
def _steepest(k: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Weights of the metric's own direction -P g, (2 k + 1, 1)."""
    return torch.tensor([[0.0]] * (2 * k) + [[-1.0]], device=device, dtype=dtype)
