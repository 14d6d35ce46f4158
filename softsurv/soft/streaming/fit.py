"""A soft tree from streamed rows: starts on a random sample, then sweeps over all rows.

A sweep is a bounded number of quasi-Newton steps that begins without memory of the last sweep. So a run that continues
from the checkpoint after a sweep gives the same tree as one that never stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import NumericalError
from softsurv.results import FitReport, Status
from softsurv.soft.fit_stack import fit_anchors, fit_stack, make_stack, stack_penalties
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.parallel import Machine
from softsurv.soft.penalties import single_leaf_penalties
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import Problem
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import start_routing
from softsurv.soft.streaming.axis import Axis
from softsurv.soft.streaming.checkpoint import State, read_checkpoint, write_checkpoint
from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkRows
from softsurv.stopping import StopSignal

logger = logging.getLogger(__name__)

START_ROWS = 4_000
"""Rows of the sample that propose splits: the time of the log-rank tree grows with their square."""


MOST_SWEEPS = 20
"""Most sweeps by default. Fits end after two to nine as a rule; with small penalties, or starts from a sample of a few
hundred rows, some take fourteen to twenty-four."""


@dataclass(frozen=True)
class Sweeps:
    """Training over all rows.

    Attributes
    ----------
    steps : LbfgsSettings
        Quasi-Newton steps that make one sweep.
    most : int
    tolerance : float
        Training ends with a sweep that gains less, relative to max(1, objective).
    """

    steps: LbfgsSettings = field(default_factory=lambda: LbfgsSettings(max_iterations=20, ftol=1e-7))
    most: int = MOST_SWEEPS
    tolerance: float = 1e-6


@dataclass(frozen=True)
class Job:
    """Processes, time limit, threads, checkpoint and progress of a streamed fit."""

    ranks: Ranks
    budget: StopSignal
    workers: int = 1
    checkpoint: str | PathLike[str] | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    progress: Callable[[str, float], None] | None = None


def train_streamed(
    chunks: PlacedChunks, sample: ChunkRows, recipe: Recipe, sweeps: Sweeps, job: Job
) -> tuple[Tensor, Tensor, FitReport, StreamedObjective]:
    """Routing (1, B, Q), leaves (1, L, Q + K), the report and the objective of a streamed fit.

    Parameters
    ----------
    chunks : PlacedChunks
        The chunks of this process, on the device and in the precision of training.
    sample : ChunkRows
        The same random rows in every process.
    recipe : Recipe
        Its starts are trained on the sample.
    sweeps : Sweeps
    job : Job
    """
    depth, axis, like = recipe.candidate.depth, chunks.axis, chunks.like
    problem = sample.problem(axis.family, axis.time_scale, float(sample.weight.sum()), like)
    state = None if job.checkpoint is None else job.ranks.share(_read(job))
    if state is None:
        anchor = _single_leaf(chunks, problem, recipe, sweeps, job)
        routing, leaves = anchor[:, :0, : problem.design.shape[-1]], anchor
        if depth > 0:
            routing, leaves = job.ranks.share(_start(sample, problem, axis, recipe, anchor))
        state = State(
            {"anchor": anchor, "routing": routing, "leaves": leaves},
            {"trace": [], "passes": 0, "status": str(Status.ITERATION_LIMIT)},
        )
        if _cut_short(job):
            job = replace(job, checkpoint=None)  # the next run would be pulled towards half a single leaf
        _save(job, state)
    else:
        logger.info("going on from %s after %d sweeps", job.checkpoint, len(state.values["trace"]))
    state = State({name: value.to(like) for name, value in state.tensors.items()}, state.values)
    anchor = state.tensors["anchor"]
    penalties = stack_penalties([recipe.candidate], recipe.l2_all, _rows(axis, anchor), anchor[:, None])
    objective = StreamedObjective(chunks, depth, penalties, job.ranks, job.workers)
    metric = GramMetric(problem, 2**depth - 1, 2**depth)
    return *_finish(objective, metric, state, sweeps, job), objective


def _finish(
    objective: StreamedObjective, metric: GramMetric, state: State, sweeps: Sweeps, job: Job
) -> tuple[Tensor, Tensor, FitReport]:
    """Sweeps over all rows until they gain no more."""
    routing, leaves = state.tensors["routing"], state.tensors["leaves"]
    trace: list[float] = list(state.values["trace"])
    before = state.values["passes"]
    status = Status(state.values["status"])
    began = time.monotonic()
    while status != Status.CONVERGED and len(trace) < sweeps.most:
        routing, leaves, value = _sweep(objective, routing, leaves, sweeps.steps, job, metric)
        gain = (trace[-1] - value) if trace else float("inf")
        trace.append(value)
        logger.info("sweep %d: objective %.8f, %.0f s", len(trace), value, time.monotonic() - began)
        if job.progress is not None:
            job.progress("sweep", value)
        flat = gain <= sweeps.tolerance * max(1.0, abs(value))
        stopped = job.ranks.share(job.budget.status)
        status = Status.CONVERGED if flat and not _cut_short(job) else stopped or Status.ITERATION_LIMIT
        tensors = {"anchor": state.tensors["anchor"], "routing": routing, "leaves": leaves}
        _save(job, State(tensors, {"trace": trace, "passes": before + objective.passes, "status": str(status)}))
        if stopped is not None:
            break
    details = {"rows": objective.chunks.axis.n, "passes": before + objective.passes, "processes": job.ranks.size}
    report = FitReport(status, trace[-1], seconds=job.budget.seconds, trace=tuple(trace), details=details)
    return routing, leaves, report


def _sweep(
    objective: StreamedObjective, routing: Tensor, leaves: Tensor, steps: LbfgsSettings, job: Job, metric: GramMetric
) -> tuple[Tensor, Tensor, float]:
    """Some quasi-Newton steps over all rows."""
    budget = job.budget if job.ranks.size == 1 else None  # all processes must take the same steps
    end = minimise(objective, (routing, leaves), steps, metric, budget)
    if not bool(torch.isfinite(end.loss).all()):
        raise NumericalError("the fit left the finite numbers; rescale the features or the times")
    return end.point[0], end.point[1], float(end.loss)


def _cut_short(job: Job) -> bool:
    """Whether the last sweep ended before its steps were done: several processes finish theirs together."""
    return job.ranks.size == 1 and job.budget.status is not None


def _single_leaf(chunks: PlacedChunks, problem: Problem, recipe: Recipe, sweeps: Sweeps, job: Job) -> Tensor:
    """The single-leaf fit on all rows, (1, 1, Q + K), started from that on the sample."""
    n = _rows(chunks.axis, problem.weight)
    leaves = fit_anchors(problem, recipe, n).point[0][0]
    ridge = recipe.candidate.ridge / n
    penalties = single_leaf_penalties(ridge, 0 * ridge, leaves.shape[-1])
    objective = StreamedObjective(chunks, 0, penalties, job.ranks, job.workers)
    routing = leaves[:, :0, : problem.design.shape[-1]]
    _, leaves, value = _sweep(objective, routing, leaves, sweeps.steps, job, GramMetric(problem, 0, 1))
    logger.info("single leaf: objective %.8f after %d passes", value, objective.passes)
    return leaves


def _start(sample: ChunkRows, problem: Problem, axis: Axis, recipe: Recipe, anchor: Tensor) -> tuple[Tensor, Tensor]:
    """The best of several starts trained on the sample."""
    few = slice(0, START_ROWS)
    x, time_ = pd.DataFrame(sample.design[few, 1:].astype(float)), torch.from_numpy(np.exp(sample.log_time[few]))
    rows = SurvivalData(x, time_, torch.from_numpy(sample.event[few]))
    seeds = [recipe.seed + k for k in range(len(recipe.starts))]
    routing = start_routing(recipe.starts, rows, recipe.candidate.depth, seeds).to(anchor)
    stack = make_stack(problem, recipe, routing[None], anchor[None], _rows(axis, anchor))
    trained = fit_stack(stack, recipe.training, Machine(anchor.device, anchor.dtype))
    best = int(trained.objective.argmin())
    logger.info("starts on %d rows: objectives %s", len(sample.event), trained.objective.tolist())
    return trained.routing[best : best + 1], trained.leaves[best : best + 1]


def _rows(axis: Axis, like: Tensor) -> Tensor:
    """Number of rows, (1,)."""
    return like.new_full((1,), axis.n)


def _read(job: Job) -> State | None:
    """The checkpoint, read by the first process alone."""
    assert job.checkpoint is not None
    return read_checkpoint(job.checkpoint, job.identity) if job.ranks.first else None


def _save(job: Job, state: State) -> None:
    if job.checkpoint is not None and job.ranks.first:
        write_checkpoint(job.checkpoint, job.identity, state.tensors, state.values)
