"""How many trees train together: the processor's caches or the device's memory decide."""

from __future__ import annotations

import torch

from softsurv.soft.problem import Problem

MAX_CELLS = 400_000
"""Rows times leaves times trees that train together on a CPU: more spills out of the processor's caches."""

LIVE_TABLES = 16
"""Tables (L, N) per tree held at once while value and gradient of right-censored rows are computed."""

CENSORED_TABLES = 34
"""The same for rows with late entry or intervals."""

FAIR_TABLES = 15
"""Tables (L, N, T) per tree that the fairness penalty on a grid of T times adds."""

MEMORY_SHARE = 0.8
"""Share of the device's free memory that a stack may take; the allocator wastes the rest."""


def stack_size(
    n_rows: int,
    n_leaves: int,
    n_columns: int,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
    *,
    shared_design: bool = True,
    right_censored: bool = True,
    n_causes: int = 1,
    n_times: int = 0,
    free_bytes: int | None = None,
) -> int:
    """Largest number of trees to train as one stack, at least 1.

    Parameters
    ----------
    n_rows, n_leaves, n_columns : int
        N, L and Q of each tree.
    device : torch.device
        On a CPU a stack may fill the caches, on a GPU the free memory.
    dtype : torch.dtype
    shared_design : bool
        Whether the trees share their features; otherwise each brings its own (N, Q) table.
    right_censored : bool
        Whether no row has a late entry or an interval.
    n_causes : int
        C, each of which has tables of its own.
    n_times : int
        T of the fairness penalty, 0 without it.
    free_bytes : int, optional
        Memory to fill, instead of what the GPU has free.
    """
    if free_bytes is None and device.type != "cuda":
        return max(1, MAX_CELLS // (n_rows * n_leaves * n_causes))
    free = free_memory(device) if free_bytes is None else free_bytes
    tables = n_causes * (LIVE_TABLES if right_censored else CENSORED_TABLES) + n_times * FAIR_TABLES
    cells = n_rows * n_leaves * tables
    table = n_rows * n_columns
    per_tree = cells if shared_design else cells + table
    room = MEMORY_SHARE * free / dtype.itemsize - (table if shared_design else 0)
    return max(1, int(room // per_tree))


def stack_parts(
    problem: Problem,
    n_leaves: int,
    *,
    n_jobs: int,
    trees_per_job: int = 1,
    n_times: int = 0,
    free_bytes: int | None = None,
) -> list[slice]:
    """Consecutive parts of jobs that train together, sized by :func:`stack_size`.

    Parameters
    ----------
    problem : Problem
        The rows and features that the trees are trained on.
    n_leaves : int
        L.
    n_jobs, trees_per_job : int
        A job's trees stay together, however many they are.
    n_times, free_bytes : int
        As in :func:`stack_size`.
    """
    _, n_rows, n_columns = problem.design.shape
    size = stack_size(
        n_rows,
        n_leaves,
        n_columns,
        problem.design.device,
        problem.design.dtype,
        shared_design=problem.n_groups == 1,
        right_censored=problem.right_censored,
        n_causes=problem.n_causes,
        n_times=n_times,
        free_bytes=free_bytes,
    )
    together = max(1, size // trees_per_job)
    return [slice(first, min(first + together, n_jobs)) for first in range(0, n_jobs, together)]


def free_memory(device: torch.device) -> int:
    """Bytes that a CUDA device has free; 0 on others, which do not say."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
