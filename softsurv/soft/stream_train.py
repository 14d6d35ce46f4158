"""A soft tree from streamed rows: starts on a random sample, then sweeps over all rows.

A sweep is a bounded number of quasi-Newton steps that begins without memory of the last one, so a run that goes on
from a checkpoint after a sweep equals one that never stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.budget import Budget
from softsurv.errors import NumericalError
from softsurv.results import FitReport, Status
from softsurv.soft.checkpoint import State, read_checkpoint, write_checkpoint
from softsurv.soft.distributed import Ranks
from softsurv.soft.objective import Objective, Penalties, no_penalties
from softsurv.soft.optimise import Settings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import Problem
from softsurv.soft.selection import Candidate
from softsurv.soft.streaming import Axis, ChunkStore, Rows, StreamedObjective
from softsurv.soft.train import TrainSettings, fit_single_leaf, start_leaves, start_routing, train

logger = logging.getLogger(__name__)

START_ROWS = 4_000
"""Rows of the sample that propose splits: the time of the log-rank tree grows with their square."""


@dataclass(frozen=True)
class StreamSettings:
    """How a streamed tree is trained.

    Attributes
    ----------
    candidate : Candidate
        Depth, family and penalties, the latter in units of 1 / N.
    starts : tuple of str
        Kinds of the starts that are tried on the sample.
    sample_training : TrainSettings
        Training of the starts.
    sweep : Settings
        Quasi-Newton steps over all rows that make one sweep.
    max_sweeps : int
    tolerance : float
        Training ends with a sweep that gains less, relative to max(1, objective).
    seed : int
    """

    candidate: Candidate
    starts: tuple[str, ...] = ("logrank", "random", "random")
    sample_training: TrainSettings = field(default_factory=TrainSettings)
    sweep: Settings = field(default_factory=lambda: Settings(max_iterations=20, ftol=1e-7))
    max_sweeps: int = 5
    tolerance: float = 1e-6
    seed: int = 0


@dataclass(frozen=True)
class Job:
    """Where a streamed tree is trained, and what keeps it safe."""

    ranks: Ranks
    budget: Budget
    workers: int = 1
    checkpoint: str | PathLike[str] | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    progress: Callable[[str, float], None] | None = None


def train_streamed(
    store: ChunkStore, sample: Rows, axis: Axis, settings: StreamSettings, job: Job, like: Tensor
) -> tuple[Tensor, Tensor, FitReport, StreamedObjective]:
    """Routing (1, B, Q), leaves (1, L, Q + K), the report and the objective of a streamed fit.

    Parameters
    ----------
    store : ChunkStore
        This process's chunks.
    sample : Rows
        The same random rows in every process.
    axis : Axis
    settings : StreamSettings
    job : Job
    like : Tensor
        Of the device and the precision to train in.
    """
    depth = settings.candidate.depth
    problem = sample.problem(axis.family, axis.clock, float(sample.weight.sum()), like)
    state = None if job.checkpoint is None else job.ranks.share(_read(job))
    if state is None:
        anchor = _single_leaf(store, problem, axis, settings, job)
        routing, leaves = anchor[:, :0, : problem.design.shape[-1]], anchor
        if depth > 0:
            routing, leaves = job.ranks.share(_start(sample, problem, axis, settings, anchor))
        state = State(
            {"anchor": anchor, "routing": routing, "leaves": leaves},
            {"trace": [], "passes": 0, "status": str(Status.ITERATION_LIMIT)},
        )
        _save(job, state)
    else:
        logger.info("going on from %s after %d sweeps", job.checkpoint, len(state.values["trace"]))
    state = State({name: value.to(like) for name, value in state.tensors.items()}, state.values)
    penalties = _penalties(settings.candidate, axis.n, state.tensors["anchor"])
    objective = StreamedObjective(store, axis, depth, penalties, job.ranks, job.workers)
    metric = GramMetric(problem, 2**depth - 1, 2**depth)
    return *_finish(objective, metric, state, settings, job), objective


def _finish(
    objective: StreamedObjective, metric: GramMetric, state: State, settings: StreamSettings, job: Job
) -> tuple[Tensor, Tensor, FitReport]:
    """Sweeps over all rows until they gain no more."""
    routing, leaves = state.tensors["routing"], state.tensors["leaves"]
    trace: list[float] = list(state.values["trace"])
    before = state.values["passes"]
    status = Status(state.values["status"])
    began = time.monotonic()
    while status != Status.CONVERGED and len(trace) < settings.max_sweeps:
        routing, leaves, value = _sweep(objective, routing, leaves, settings.sweep, job, metric)
        gain = (trace[-1] - value) if trace else float("inf")
        trace.append(value)
        logger.info("sweep %d: objective %.8f, %.0f s", len(trace), value, time.monotonic() - began)
        if job.progress is not None:
            job.progress("sweep", value)
        flat = gain <= settings.tolerance * max(1.0, abs(value))
        stopped = job.ranks.share(job.budget.status)
        status = Status.CONVERGED if flat else stopped or Status.ITERATION_LIMIT
        tensors = {"anchor": state.tensors["anchor"], "routing": routing, "leaves": leaves}
        _save(job, State(tensors, {"trace": trace, "passes": before + objective.passes, "status": str(status)}))
        if stopped is not None:
            break
    details = {"rows": objective.axis.n, "passes": before + objective.passes, "processes": job.ranks.size}
    report = FitReport(status, trace[-1], seconds=job.budget.seconds, trace=tuple(trace), details=details)
    return routing, leaves, report


def _sweep(
    objective: StreamedObjective, routing: Tensor, leaves: Tensor, settings: Settings, job: Job, metric: GramMetric
) -> tuple[Tensor, Tensor, float]:
    """Some quasi-Newton steps over all rows."""
    cut = routing.numel()

    def function(x: Tensor, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        r, b = x[:, :cut].view_as(routing), x[:, cut:].view_as(leaves)
        value, d_routing, d_leaves = objective.value_and_gradient(r, b)
        return value, torch.cat([d_routing.flatten(1), d_leaves.flatten(1)], 1)

    start = torch.cat([routing.flatten(1), leaves.flatten(1)], 1)
    budget = job.budget if job.ranks.size == 1 else None  # all processes must take the same steps
    x, value = minimise(function, start, settings, budget=budget, metric=metric)
    if not bool(torch.isfinite(value).all()):
        raise NumericalError("the fit left the finite numbers; rescale the features or the times")
    return x[:, :cut].view_as(routing), x[:, cut:].view_as(leaves), float(value)


def _single_leaf(store: ChunkStore, problem: Problem, axis: Axis, settings: StreamSettings, job: Job) -> Tensor:
    """The single-leaf fit on all rows, (1, 1, Q + K), begun on the sample."""
    ridge = problem.weight.new_full((1,), settings.candidate.ridge / axis.n)
    leaves = fit_single_leaf(problem, l2=ridge)
    free = no_penalties(1, leaves.shape[-1], leaves)
    penalties = Penalties(ridge, free.shrinkage, free.routing_l2, free.anchor, free.l2_all)
    objective = StreamedObjective(store, axis, 0, penalties, job.ranks, job.workers)
    routing = leaves[:, :0, : problem.design.shape[-1]]
    _, leaves, value = _sweep(objective, routing, leaves, settings.sweep, job, GramMetric(problem, 0, 1))
    logger.info("single leaf: objective %.8f after %d passes", value, objective.passes)
    return leaves


def _start(
    sample: Rows, problem: Problem, axis: Axis, settings: StreamSettings, anchor: Tensor
) -> tuple[Tensor, Tensor]:
    """The best of several starts trained on the sample."""
    candidate, n = settings.candidate, len(settings.starts)
    seeds = [settings.seed + k for k in range(n)]
    stack = Problem(**{**vars(problem), "weight": problem.weight.expand(n, -1, -1).contiguous()})
    penalties = _penalties(candidate, axis.n, anchor.expand(n, -1, -1).contiguous())
    objective = Objective(stack, candidate.depth, penalties)
    few = slice(0, START_ROWS)
    x, time_ = sample.design[few, 1:].astype(float), np.exp(sample.log_time[few])
    routing = start_routing(settings.starts, x, time_, sample.event[few], candidate.depth, seeds).to(anchor)
    leaves = start_leaves(objective, routing, penalties.anchor, seeds)
    trained = train(objective, routing, leaves, settings.sample_training)
    best = int(trained.objective.argmin())
    logger.info("starts on %d rows: objectives %s", len(sample.event), trained.objective.tolist())
    return trained.routing[best : best + 1], trained.leaves[best : best + 1]


def _penalties(candidate: Candidate, n: int, anchor: Tensor) -> Penalties:
    one = anchor.new_full((len(anchor),), 1 / n)
    ridge = 0.0 if candidate.shrinkage > 0 else candidate.ridge
    return Penalties(ridge * one, candidate.shrinkage * one, candidate.routing_l2 * one, anchor, 0 * one)


def _read(job: Job) -> State | None:
    """The checkpoint, read by the first process alone."""
    assert job.checkpoint is not None
    return read_checkpoint(job.checkpoint, job.identity) if job.ranks.first else None


def _save(job: Job, state: State) -> None:
    if job.checkpoint is not None and job.ranks.first:
        write_checkpoint(job.checkpoint, job.identity, state.tensors, state.values)
