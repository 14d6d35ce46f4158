"""The data of a stack of trees, laid out for training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.hazards.base import LeafFamily
from softsurv.hazards.likelihood import Slopes, general_loss, right_censored_loss
from softsurv.numerics import Design, with_intercept
from softsurv.soft.gram import WeightedGram, inverse_gram
from softsurv.soft.groups import Groups


@dataclass(frozen=True)
class Problem:
    """The rows, features and weights of M trees, in G groups that share features and times, such as folds.

    Attributes
    ----------
    family : LeafFamily
    design : Tensor (G, N, Q)
        Features with a leading column of ones.
    event : Tensor (G, 1, N)
        1.0 where the event was observed.
    features : Tensor (G, F, N)
        The family's time features at the observed times.
    weight : Tensor (M, 1, N)
        Sample weights, each tree's summing to one; zero leaves a row out (folds, padding).
    time_scale : Tensor (G, n_time_scale)
    entry_features, upper_features : Tensor (G, F, N), optional
        Time features at entry and at the upper end of an interval.
    truncated, interval, started : Tensor (G, 1, N) bool, optional
        Which rows have an entry time, an interval, and a time above zero.
    others : tuple of Problem
        Where events have causes, this object is the problem of the first cause and ``others`` are those of the other
        causes. All have the same family, rows, features and weights.
    count : float
        Factor of the loss of this problem's cause. With 0 the cause has no say in the routing.
    sizes : tuple of int (G,), optional
        Trees of each group; equally many by default.
    """

    family: LeafFamily
    design: Tensor
    event: Tensor
    features: Tensor
    weight: Tensor
    time_scale: Tensor
    entry_features: Tensor | None = None
    truncated: Tensor | None = None
    upper_features: Tensor | None = None
    interval: Tensor | None = None
    started: Tensor | None = None
    others: tuple[Problem, ...] = ()
    count: float = 1.0
    sizes: tuple[int, ...] | None = None

    @property
    def n_causes(self) -> int:
        """C; 1 where there is one kind of event."""
        return 1 + len(self.others)

    @property
    def of_causes(self) -> tuple[Problem, ...]:
        """The problem of each cause."""
        return (replace(self, others=()), *self.others)

    @property
    def counts(self) -> tuple[float, ...]:
        """The factor of each cause's loss."""
        return tuple(one.count for one in self.of_causes)

    def blocks(self, leaves: Tensor) -> tuple[Tensor, ...]:
        """The parameters (M, L, Q + K) of each cause out of those of the leaves (M, L, C (Q + K))."""
        size = leaves.shape[-1] // self.n_causes
        return tuple(leaves[..., k * size : (k + 1) * size] for k in range(self.n_causes))

    @property
    def n_trees(self) -> int:
        """M."""
        return self.weight.shape[0]

    @property
    def n_groups(self) -> int:
        """G."""
        return self.design.shape[0]

    @cached_property
    def groups(self) -> Groups:
        """Which trees share features and times."""
        return Groups.equal(self.n_trees, self.n_groups) if self.sizes is None else Groups(self.sizes)

    def per_tree(self, value: Tensor) -> Tensor:
        """A group's tensor (G, ...) repeated for each of its trees, as a view where G is 1: (M, ...)."""
        return self.groups.per_tree(value)

    def linear(self, coefficients: Tensor) -> Tensor:
        """Linear combinations (M, R, N) of the features, from rows of intercept and weights (M, R, Q)."""
        return self.groups.product(coefficients, self.design.mT)

    def pullback(self, grad: Tensor) -> Tensor:
        """Gradient (M, R, Q) over the coefficients of :meth:`linear`, from that over its values (M, R, N)."""
        return self.groups.product(grad, self.design)

    @cached_property
    def tree_features(self) -> Tensor:
        """:meth:`per_tree` of the time features, (M, F, N)."""
        return self.per_tree(self.features)

    @cached_property
    def even_event(self) -> Tensor:
        """The events of each group, (G, 1, N), or of each tree, (M, 1, N), where groups have other numbers of trees."""
        return self.groups.even(self.event)

    @cached_property
    def gram(self) -> WeightedGram:
        """Gram matrices of the features."""
        return WeightedGram(self.design)

    @cached_property
    def leaf_gram(self) -> WeightedGram:
        """Gram matrices of the features beside the first K time features, which the shapes' exponentials multiply."""
        return WeightedGram(torch.cat([self.design, self.features[:, : self.family.n_shape].mT], -1))

    @cached_property
    def inverse_gram(self) -> Tensor:
        """Inverse of each group's Gram matrix per row, (G, Q, Q), or of its diagonal, (G, Q)."""
        return inverse_gram(self.design)

    @property
    def right_censored(self) -> bool:
        """Whether rows have neither entry times nor intervals."""
        return self.entry_features is None and self.upper_features is None

    def losses(
        self,
        z: Tensor,  # (M, L, N) predictors at the observed times
        log_slope: Tensor,  # (M, L, N)
        z_at: Callable[[Tensor], Tensor],  # predictors (M, L, N) from time features (M, F, N)
    ) -> tuple[Tensor, Slopes]:
        """Loss of every row, (M, L, N), and its derivatives by the predictors."""
        link, event = self.family.link, self.per_tree(self.event)
        if self.right_censored:
            return right_censored_loss(link, z, log_slope, event)
        entry, upper = self.entry_features, self.upper_features
        started = torch.ones_like(self.event, dtype=torch.bool) if self.started is None else self.started
        return general_loss(
            link,
            z,
            log_slope,
            event,
            started=self.per_tree(started),
            z_entry=None if entry is None else z_at(self.per_tree(entry)),
            truncated=None if self.truncated is None else self.per_tree(self.truncated),
            z_upper=None if upper is None else z_at(self.per_tree(upper)),
            interval=None if self.interval is None else self.per_tree(self.interval),
        )

    def take(self, trees: Tensor) -> Problem:
        """The problem of some trees; their numbers (m,) are on the host."""
        if self.others:
            return with_others(*(one.take(trees) for one in self.of_causes))
        left, groups = self.groups.take(trees, self.design)
        weight, sizes = taken(self.weight, trees), None if left.alike else left.sizes
        if groups is None:
            part = replace(self, weight=weight, sizes=sizes)
            vars(part).update({name: found for name in _OF_DESIGN if (found := vars(self).get(name)) is not None})
            return part
        chosen = {name: taken(value, groups) for name in _GROUPED if (value := getattr(self, name)) is not None}
        part = replace(self, weight=weight, sizes=sizes, **chosen)  # type: ignore[arg-type]
        if (known := vars(self).get("inverse_gram")) is not None:
            vars(part)["inverse_gram"] = taken(known, groups)
        return part

    def of_rows(self, rows: Tensor) -> Problem:
        """The problem on some rows. Their weights no longer sum to one, so it serves for losses, not for training."""
        if self.others:
            return with_others(*(one.of_rows(rows) for one in self.of_causes))
        at = rows.to(self.design.device)
        chosen = {
            name: value.index_select(1 if name == "design" else -1, at)
            for name in (*_OF_ROWS, "weight")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, **chosen)

    def repeat(self, times: int) -> Problem:
        """The problem with that many copies of every tree, the copies of a tree side by side."""
        if self.others:
            return with_others(*(one.repeat(times) for one in self.of_causes))
        sizes = None if self.sizes is None else tuple(times * size for size in self.sizes)
        return replace(self, weight=self.weight.repeat_interleave(times, 0), sizes=sizes)

    def weighing(self, weight: Tensor) -> Problem:
        """The problem with other weights (M, 1, N), of every cause."""
        others = tuple(replace(one, weight=weight) for one in self.others)
        return replace(self, weight=weight, others=others)


_OF_ROWS = (
    "design", "event", "features", "entry_features", "truncated", "upper_features", "interval", "started",
)  # fmt: skip
_GROUPED = (*_OF_ROWS, "time_scale")


_OF_DESIGN = ("gram", "leaf_gram", "inverse_gram")
"""Cached properties that depend on the design alone: a part with the same design takes them over."""


def taken(value: Tensor, rows: Tensor) -> Tensor:
    """``value[rows]``, on whatever device the indices are."""
    return value.index_select(0, rows.to(value.device))


def with_others(first: Problem, *others: Problem) -> Problem:
    """One problem from those of all causes."""
    return replace(first, others=others)


def floor_times(time: Tensor) -> Tensor:
    """Times with zeros raised to half the smallest positive time, as log time needs."""
    return torch.where(time > 0, time, time_floor(time))


def time_floor(time: Tensor) -> float:
    """Half the smallest positive time, which stands for time 0; 1 where all are 0."""
    least = float(torch.where(time > 0, time, torch.inf).min()) if time.numel() else math.inf
    return least / 2 if least < math.inf else 1.0


def make_problem(
    data: SurvivalData,
    family: LeafFamily,
    *,
    weight: Tensor | None = None,  # (M, N), multiplied with the data's own weights
    n_trees: int = 1,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    design: Design | None = None,
) -> Problem:
    """Problem of M trees that share one data set (G = 1).

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    family : LeafFamily
    weight : Tensor (M, N), optional
        Weight of each row for each tree, zero for held-out rows; equal weights otherwise.
    n_trees : int
        M, where ``weight`` is not given.
    design : Design, optional
        That of the data, where it is there already.
    """
    design = Design(with_intercept(data.x)) if design is None else design
    time = floor_times(data.time)
    time_scale = family.fit_time_scale(*_known_times(data, time))
    row_weight = time.new_ones(time.shape, device=device) if data.weight is None else data.weight.to(device)
    table = row_weight.expand(n_trees, -1) if weight is None else weight.to(row_weight) * row_weight
    table = table / table.sum(1, keepdim=True)

    def place(value: Tensor) -> Tensor:
        return value.to(device=device, dtype=dtype)

    def features_at(at: Tensor) -> Tensor:
        return place(family.time_features(at.to(device).log()[None], time_scale[None].to(device)))

    extra: dict[str, Tensor] = {}
    if data.entry is not None:
        truncated = data.entry > 0
        extra["entry_features"] = features_at(torch.where(truncated, data.entry, time))
        extra["truncated"] = truncated[None, None].to(device)
    if data.upper is not None:
        interval = ~data.event & torch.isfinite(data.upper)
        extra["upper_features"] = features_at(torch.where(interval, data.upper, time))
        extra["interval"] = interval[None, None].to(device)
        extra["started"] = (data.time > 0)[None, None].to(device)
    return Problem(
        family=family,
        design=design.to(device, dtype).table[None],
        event=place(data.event[None, None]),
        features=features_at(time),
        weight=place(table)[:, None],
        time_scale=place(time_scale[None]),
        **extra,  # type: ignore[arg-type]  # tensors alone
    )


def _known_times(data: SurvivalData, time: Tensor) -> tuple[Tensor, Tensor]:
    """Log times (N,) and events (N,) for the time scale, an event in an interval being put at its middle."""
    if data.upper is None:
        return time.log(), data.event
    interval = ~data.event & torch.isfinite(data.upper)
    upper = torch.where(interval, data.upper, time)
    middle = torch.where(data.time > 0, 0.5 * (time.log() + upper.log()), (0.5 * upper).log())
    return torch.where(interval, middle, time.log()), data.event | interval


def join_problems(problems: list[Problem]) -> Problem:
    """One problem of several groups of equally many trees.

    Groups with fewer rows are padded with rows whose weight and design are zero, groups with fewer columns with columns
    of zeros. Problems of causes are joined cause by cause.

    Raises
    ------
    InvalidParameterError
        If some have entry times or intervals and others do not, or other numbers of causes.
    """
    if len({p.n_causes for p in problems}) > 1:
        raise InvalidParameterError("problems must all have the same causes; give each data set the same ones")
    if problems[0].others:
        by_cause = zip(*(p.of_causes for p in problems), strict=True)
        return with_others(*(join_problems(list(of_cause)) for of_cause in by_cause))
    for name in _GROUPED:
        if len({getattr(p, name) is None for p in problems}) > 1:
            raise InvalidParameterError(f"problems must all have {name} or none; give each data set the same columns")
    longest, widest = (max(p.design.shape[k] for p in problems) for k in (1, 2))

    def pad(value: Tensor, axis: int) -> Tensor:
        """Pad along the axis to the rows of the longest group: the design with zeros, others with their last row."""
        missing = longest - value.shape[axis]
        if axis == 1:  # the design: zeros leave its Gram matrix as it is
            return torch.nn.functional.pad(value, (0, widest - value.shape[2], 0, missing))
        if missing == 0:
            return value
        filler = value.narrow(axis, value.shape[axis] - 1, 1)
        sizes = [missing if k == axis % value.dim() else -1 for k in range(value.dim())]
        return torch.cat([value, filler.expand(sizes)], axis)

    def join(name: str, axis: int) -> Tensor | None:
        parts = [getattr(p, name) for p in problems]
        return None if parts[0] is None else torch.cat([pad(v, axis) for v in parts])

    weights = []
    for p in problems:
        w = pad(p.weight, -1).clone()
        w[..., p.design.shape[1] :] = 0
        weights.append(w)
    joined = {name: join(name, 1 if name == "design" else -1) for name in _OF_ROWS}
    joined |= {"weight": torch.cat(weights), "time_scale": torch.cat([p.time_scale for p in problems])}
    return replace(problems[0], **joined)  # type: ignore[arg-type]
