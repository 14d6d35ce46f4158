"""Soft survival trees as one torch module with a leading stack axis: M trees are one tensor program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from softsurv.arrays import FloatArray, IntArray
from softsurv.errors import InvalidParameterError
from softsurv.hazards.base import LeafFamily
from softsurv.hazards.likelihood import general_loss
from softsurv.numerics import Design, with_intercept
from softsurv.trees.hazard_times import above_level, log_hazard_of_mixture, time_of_root
from softsurv.trees.linear_rule import Rules
from softsurv.trees.routing import hbp_leaf, leaf_probability, linear
from softsurv.trees.topology import check_depth, level_slice, n_branches, n_leaves, used_leaves

SURE = 40.0
"""Log odds of a branch node that sends every row to one side: the other side has probability 4e-18."""


class SoftTree(nn.Module):
    """M complete soft survival trees of one depth and one leaf family (paper `sst`, section 3.1).

    Parameters
    ----------
    depth : int
        Depth D from 0 (a single leaf) up; B = 2^D - 1 branch nodes, L = 2^D leaves.
    n_features : int
        P.
    family : LeafFamily
        Survival model of the leaves.
    n_trees : int
        M, the size of the stack.
    dtype : torch.dtype
        float64 or float32.

    Attributes
    ----------
    routing : Parameter (M, B, P + 1)
        Intercept and weights of each branch node; a row goes left with probability ``sigmoid(w0 + w.x)``.
    leaves : Parameter (M, L, P + 1 + K)
        Intercept a0, coefficients a and K shape parameters of each leaf. A larger a0 + a.x means an earlier event.
    time_scale : Tensor (M, n_time_scale)
        Mean and scale of log time, and the family's knots.
    rules : tuple of LinearRule or None
        In a tree of rules: the rule of each branch node in heap order, None where all rows go left. ``routing`` holds
        the same rules as weights. Empty where splits are dense.
    """

    time_scale: Tensor

    def __init__(
        self,
        depth: int,
        n_features: int,
        family: LeafFamily,
        n_trees: int = 1,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        self.depth = check_depth(depth)
        self.rules: Rules = ()
        self.n_features = n_features
        self.family = family
        columns = n_features + 1
        self.routing = nn.Parameter(torch.zeros(n_trees, n_branches(depth), columns, dtype=dtype))
        self.leaves = nn.Parameter(torch.zeros(n_trees, n_leaves(depth), columns + family.n_shape, dtype=dtype))
        self.register_buffer("time_scale", torch.zeros(n_trees, family.n_time_scale, dtype=dtype))

    @property
    def n_trees(self) -> int:
        """M."""
        return self.leaves.shape[0]

    @property
    def used_leaves(self) -> IntArray:
        """Leaves of the first tree that rows can reach, from left to right: the k-th is leaf k to a reader."""
        return used_leaves(self.routing[0].detach().double().cpu().numpy())

    def select(self, index: int) -> SoftTree:
        """One tree of the stack, as a stack of one."""
        one = SoftTree(self.depth, self.n_features, self.family, 1, self.leaves.dtype)
        one.load_state_dict({k: v[index : index + 1] for k, v in self.state_dict().items()})
        one.rules = self.rules
        return one.to(self.leaves.device)

    def routing_probability(self, x: Tensor) -> Tensor:
        """Probability of going left at each branch node; x (N, P) or (M, N, P), result (M, N, B)."""
        return torch.sigmoid(self._split(x)).mT

    def leaf_probability(self, x: Tensor) -> Tensor:
        """Probability of each leaf; x (N, P) or (M, N, P), result (M, N, L), rows sum to one."""
        return leaf_probability(torch.sigmoid(self._split(x))).expand(-1, -1, x.shape[-2]).mT

    def apply_leaf(self, x: Tensor | Design) -> Tensor:
        """Leaf at the end of the highest-branch-probability path, (M, N)."""
        return hbp_leaf(self._split(x), self.depth)

    def predictor(
        self,
        x: Tensor,  # (N, P) or (M, N, P)
        times: Tensor,  # (T,) > 0
        leaf: Tensor | None = None,  # (M, N); None: the HBP leaf
    ) -> tuple[Tensor, Tensor]:
        """Linear predictor z and log dz/dy in the given leaf of each row, both (M, N, T)."""
        at = self.apply_leaf(x) if leaf is None else leaf
        columns = self.n_features + 1
        offsets = linear(self.leaves[..., :columns], self.design(x)).gather(1, at[:, None])[:, 0]
        value, log_slope = self._baseline(times)
        rows = at[..., None].expand(-1, -1, times.shape[0])
        return offsets[..., None] + value.gather(1, rows), log_slope.gather(1, rows)

    def log_cumulative_hazard(self, x: Tensor, times: Tensor, path: str = "hbp") -> Tensor:
        """Log H, (M, N, T), in the HBP leaf or of the mixture of all leaves; times (T,) > 0."""
        if path == "hbp":
            return self.family.link.log_cumulative_hazard(self.predictor(x, times)[0])
        share = self.leaf_probability(x)[..., None].unbind(2)  # L times (M, N, 1)
        return log_hazard_of_mixture(self._hazards(x, times), share)

    def log_cumulative_hazard_at(self, x: Tensor, times: Tensor, path: str = "hbp") -> Tensor:
        """The same of each row at the row's own times, (M, N, T); times (N, T) > 0."""
        found = self._log_hazard_of(x, path)
        return torch.stack([found(own.expand(self.n_trees, -1)) for own in times.log().T], -1)

    def log_hazard(self, x: Tensor, times: Tensor) -> Tensor:
        """Log h per unit of time in the HBP leaf, (M, N, T); times (T,) > 0."""
        z, log_slope = self.predictor(x, times)
        density, _, _ = self.family.link.log_density(z)
        return density + log_slope - self.time_scale[:, 1, None, None].log() - times.log()

    def survival_function(self, x: Tensor, times: Tensor, path: str = "hbp") -> Tensor:
        """S(t | x), (M, N, T): of the HBP leaf, or with ``path="soft"`` the probability-weighted mixture."""
        if path not in ("hbp", "soft"):
            raise InvalidParameterError(f'path must be "hbp" or "soft", got {path!r}')
        if path == "hbp":
            hazard, _, _ = self.family.link.cumulative_hazard(self.predictor(x, times)[0])
            return torch.exp(-hazard)
        probability = self.leaf_probability(x)  # (M, N, L)
        total = probability.new_zeros(*probability.shape[:2], times.shape[0])
        for number, hazard in enumerate(self._hazards(x, times)):
            total = total + probability[..., number : number + 1] * torch.exp(-hazard)
        return total

    def _hazards(self, x: Tensor, times: Tensor) -> Iterator[Tensor]:
        """Cumulative hazard in one leaf after the other, (M, N, T) each; times (T,) > 0."""
        for number in range(n_leaves(self.depth)):
            at = torch.full((self.n_trees, x.shape[-2]), number, dtype=torch.int64, device=x.device)
            yield self.family.link.cumulative_hazard(self.predictor(x, times, at)[0])[0]

    def log_likelihood(
        self,
        x: Tensor,  # (N, P)
        time: Tensor,  # (N,) > 0, but 0 where left-censored
        event: Tensor,  # (N,) bool
        entry: Tensor | None = None,  # (N,) 0 where the row does not enter late
        upper: Tensor | None = None,  # (N,) end of the interval of a row without event; inf: right-censored
    ) -> Tensor:  # (M, N)
        """Log-likelihood of rows in their HBP leaf, per unit of time."""
        happened = event.to(self.leaves)
        started = time > 0
        interval = None if upper is None else ~event & upper.isfinite()
        truncated = None if entry is None else entry > 0

        def values_at(at: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
            return self._leaf_values(x, torch.where(where, at, 1.0).to(self.leaves).log().expand(self.n_trees, -1))

        z, log_slope = values_at(time, started)
        loss, _ = general_loss(
            self.family.link,
            z,
            log_slope,
            happened,
            started=started.to(z.device),
            z_entry=None if entry is None or truncated is None else values_at(entry, truncated)[0],
            truncated=None if truncated is None else truncated.to(z.device),
            z_upper=None if upper is None or interval is None else values_at(upper, interval)[0],
            interval=None if interval is None else interval.to(z.device),
        )
        log_time = torch.where(started, time, 1.0).to(self.leaves).log()
        at_leaf = loss.gather(1, self.apply_leaf(x)[:, None])[:, 0]
        return -at_leaf - happened * (log_time + self.time_scale[:, 1:2].log())

    def survival_time(self, x: Tensor, level: float, path: str = "hbp") -> Tensor:
        """Smallest time with S(t | x) <= level, (M, N); ``inf`` where S stays above."""
        return self.time_of_hazard(x, math.log(-math.log(level)) if level < 1 else -math.inf, path)

    def time_of_hazard(self, x: Tensor, log_hazard: FloatArray | float, path: str = "hbp") -> Tensor:
        """Smallest time at which log H(t | x) is ``log_hazard``, of each row (N,) or of all, (M, N); or ``inf``."""
        shape = self.n_trees, x.shape[-2]
        bounds = (bound[:, None].expand(shape).double().cpu().numpy().ravel() for bound in self._log_time_bounds())
        reaches, level = self._log_hazard_of(x, path), np.broadcast_to(log_hazard, shape).ravel()

        def above(log_time: FloatArray) -> FloatArray:
            """By how much log H is above the level, (M N,), at a log time for each row."""
            found = reaches(torch.as_tensor(log_time).to(self.leaves).view(shape))
            return above_level(found.detach().double().cpu().numpy().ravel(), level)

        return torch.as_tensor(time_of_root(above, *bounds)).view(shape).to(self.leaves)

    def effects_in_leaves(self, x: Tensor | Design) -> Tensor:
        """The part of every leaf's linear predictor that does not depend on time, (M, L, N)."""
        return linear(self.leaves[..., : self.n_features + 1], self.design(x))

    def hazard_in_leaves(self, effects: Tensor, log_time: Tensor) -> Tensor:
        """Cumulative hazard of every leaf at one log time for each row: log_time (M, N) to (M, L, N).

        ``effects`` are those of :meth:`effects_in_leaves`. A search for a time computes them only once.
        """
        return self.family.link.cumulative_hazard(effects + self._baseline_at(log_time)[0])[0]

    def hazard_in_leaf(self, effects: Tensor, leaf: Tensor, log_time: Tensor) -> Tensor:
        """Cumulative hazard of each row (N,) in its leaf (N,) of the first tree, at one log time for each leaf (L,).

        ``effects`` (N,) are those of :meth:`effects_in_leaves` in the row's leaf.
        """
        rise = self._baseline_at(log_time.expand(len(self.leaves), -1))[0][0].diagonal()
        return self.family.link.cumulative_hazard(effects + rise[leaf])[0]

    def collapse_empty(self, x: Tensor | Design) -> None:
        """Replace, in place, each branch node that does not divide the rows of x by one that sends all rows that way.

        HBP predictions for x stay as they are, and a reader no longer meets a split that nothing uses.
        """
        with torch.no_grad():
            left = self._split(x) >= 0  # (M, B, N)
            reached = torch.ones_like(left[:, :1]) if self.depth else left
            for level in range(self.depth):
                nodes = level_slice(level)
                goes_left, goes_right = reached & left[:, nodes], reached & ~left[:, nodes]
                some_left, some_right = goes_left.any(-1), goes_right.any(-1)  # (M, S)
                sure = SURE * (some_left.to(self.leaves) - some_right.to(self.leaves))  # 0 where no row comes
                constant = torch.cat([sure[..., None], torch.zeros_like(self.routing[:, nodes, 1:])], -1)
                splits = (some_left & some_right)[..., None]
                self.routing[:, nodes] = torch.where(splits, self.routing[:, nodes], constant.to(self.routing))
                reached = torch.stack([goes_left, goes_right], 2).flatten(1, 2)

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        """The mixture's survival function (M, N, T), differentiable in every parameter."""
        return self.survival_function(x, times, path="soft")

    def design(self, x: Tensor | Design) -> Tensor:  # (1 or M, N, P + 1)
        """Features with a leading column of ones."""
        x = x.to(self.leaves.dtype)
        found = x.table if isinstance(x, Design) else with_intercept(x)
        return found[None] if found.dim() == 2 else found

    def _split(self, x: Tensor | Design) -> Tensor:  # (M, B, N)
        return linear(self.routing, self.design(x))

    def _log_time_bounds(self) -> tuple[Tensor, Tensor]:
        """Log times far outside the data, (M,) each; no float may hold the times themselves."""
        centre, scale = self.time_scale[:, 0], self.time_scale[:, 1]
        return centre - 60 * scale - 10, centre + 60 * scale + 10

    def _leaf_values(self, x: Tensor, log_time: Tensor) -> tuple[Tensor, Tensor]:
        """Linear predictor and log dz/dy of every leaf at one time for each row: log_time (M, N) to (M, L, N)."""
        value, log_slope = self._baseline_at(log_time)
        return self.effects_in_leaves(x) + value, log_slope

    def _baseline_at(self, log_time: Tensor) -> tuple[Tensor, Tensor]:
        """Both parts of every leaf's baseline at log times (M, N), (M, L, N) each."""
        features = self.family.time_features(log_time, self.time_scale)
        return self.family.baseline(self.leaves[..., self.n_features + 1 :], features)

    def _log_hazard_of(self, x: Tensor, path: str) -> Callable[[Tensor], Tensor]:
        """Log H of rows that are routed once, as a function of one time for each: log times (M, N) to (M, N)."""
        effects = self.effects_in_leaves(x)
        if path != "hbp":
            share = self.leaf_probability(x).unbind(2)  # L times (M, N)
            return lambda log_time: log_hazard_of_mixture(self.hazard_in_leaves(effects, log_time).unbind(1), share)
        leaf = self.apply_leaf(x)[:, None]

        def in_own_leaf(log_time: Tensor) -> Tensor:
            z = (effects + self._baseline_at(log_time)[0]).gather(1, leaf)[:, 0]
            return self.family.link.log_cumulative_hazard(z)

        return in_own_leaf

    def baseline(self, times: Tensor) -> Tensor:
        """What every leaf's linear predictor gains by each time, (M, L, T); times (T,) > 0."""
        return self._baseline(times)[0]

    def _baseline(self, times: Tensor) -> tuple[Tensor, Tensor]:  # both (M, L, T)
        return self._baseline_at(times.to(self.leaves.dtype).log().expand(self.n_trees, -1))


def joined(trees: Sequence[SoftTree]) -> SoftTree:
    """One stack of the trees of several stacks that have the same depth, leaf family and number of features."""
    first = trees[0]
    stack = SoftTree(first.depth, first.n_features, first.family, 1, first.leaves.dtype)
    stack.routing, stack.leaves = (
        nn.Parameter(torch.cat([getattr(tree, name).detach() for tree in trees])) for name in ("routing", "leaves")
    )
    stack.time_scale = torch.cat([tree.time_scale for tree in trees])
    return stack
