"""Soft trees on tables larger than memory, by one process or by several that torchrun started."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.chunk_columns import fit_preprocessor
from softsurv.data.chunks import Chunk, Table, within_chunk
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, warn
from softsurv.estimators.column_names import time_names
from softsurv.estimators.shared.checks import grid_of, whole
from softsurv.estimators.shared.training_rows import warn_of_repeats
from softsurv.estimators.soft.devices import check_range_of_times, choose_device
from softsurv.estimators.soft.fitted import leaf_of
from softsurv.estimators.soft.parameters import PENALTIES, SoftParameters
from softsurv.estimators.soft.training import warn_of_the_last_sweep, warn_of_what_was_cut_off
from softsurv.estimators.soft.tree import SoftSurvivalTree
from softsurv.estimators.soft.warm_up import ready
from softsurv.estimators.stream_reading import CountedChunks, in_all
from softsurv.hazards.base import LeafFamily
from softsurv.metrics.ranges import default_grid
from softsurv.nonparametric import StepFunction, censoring_survival
from softsurv.soft.fit import build_tree
from softsurv.soft.fitted import FittedSoftTree
from softsurv.soft.parallel import one_core_each
from softsurv.soft.recipe import Candidate
from softsurv.soft.streaming.axis import Axis, make_axis
from softsurv.soft.streaming.distributed import Ranks, RunningSum, join
from softsurv.soft.streaming.fit import MOST_SWEEPS, Job, Sweeps, train_streamed
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkRows, ChunkStore, chosen, gather_outcomes, join_rows
from softsurv.stopping import StopSignal
from softsurv.trees.leaf_medians import medians_of_effects
from softsurv.trees.leaf_table import LeafTable, leaf_table
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.typical_rows import typical_row, typical_rows

logger = logging.getLogger(__name__)

SAMPLE_ROWS = 20_000
"""Rows of the sample on which the starts are trained: enough for a few hundred parameters."""

LEAST_SAMPLE_ROWS = 100
"""Smaller samples give starts from which a few sweeps over all rows do not recover."""

CURVE_POINTS = 20_000
"""Most steps of a saved curve; one of more steps is kept at this many of its times, evenly by rank."""


def fit_stream(
    model: SoftSurvivalTree,
    table: Table,
    *,
    memory: int | str = "1GB",
    sample_rows: int = SAMPLE_ROWS,
    checkpoint: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    max_sweeps: int = MOST_SWEEPS,
) -> SoftSurvivalTree:
    """Fit a soft tree on a table that need not fit in memory.

    The starts are trained on a random sample, the best of them is then trained on all rows. Under torchrun every
    process reads its share of the table, and all end with the same model.

    Parameters
    ----------
    model : SoftSurvivalTree
        Unfitted, with ``depth``, ``l2``, ``shrinkage`` and ``routing_l2`` given: nothing is chosen inside. Of the
        solvers "lbfgs" only; without ``l1``, ``fairness`` and ``preset``.
    table : Table
        Its rows of weight 0 are left out.
    memory : int or str
        Bytes, or text such as "2GB", that the encoded features of a process may take in memory; the others lie in
        a file. Beside them each row takes 150 bytes at the end, the process itself some 0.9 GB.
    sample_rows : int
        Rows of the sample, at least 100.
    checkpoint : path-like, optional
        File that is replaced after each sweep; the same call goes on from it.
    folder : path-like, optional
        Where the file of features goes.
    max_sweeps : int
        Sweeps of 20 quasi-Newton steps over all rows, at most. Most fits end after two to nine. One that needs more
        warns, and goes on from its checkpoint with a larger number.

    Returns
    -------
    SoftSurvivalTree
        The model, fitted. Its curves of more than 20,000 steps are thinned. ``report_.details`` holds the number of
        rows, passes and processes, and a fingerprint of the rows.

    Raises
    ------
    InvalidParameterError, InvalidSurvivalDataError
    SoftsurvError
        If another process of the job ends.
    """
    _check_arguments(model, table, sample_rows, max_sweeps, folder, checkpoint)
    parameters = SoftParameters(**model.get_params(deep=False))
    candidate = _streamable(parameters)
    ready(parameters)
    with (
        join(parameters.device) as ranks,
        one_core_each() as workers,
        ChunkStore(parse_bytes(memory), folder, parameters.torch_dtype) as store,
    ):
        budget = StopSignal(parameters.time_limit)  # not open before the training: of rows half read nothing is kept
        device = choose_device(parameters.device) if ranks.size == 1 else ranks.device
        stamp = table.stamp()
        counted = CountedChunks(table.chunks(ranks.rank, ranks.size))
        with budget.reading():
            encoder = fit_preprocessor(iter(counted), ranks.gather).alphabetical()
            total, repeats = sum(ranks.gather(counted.rows)), in_all(ranks.gather(counted.repeats))
            if total == 0:
                raise InvalidSurvivalDataError("weight must be > 0 in at least one row, got only zeros")
            again = counted.again(table.chunks(ranks.rank, ranks.size, says=False))
            sample, spread, fingerprint = _fill(store, again, encoder, ranks, parameters.seed, sample_rows / total)
        table.check_unchanged(stamp)
        time, event, weight = gather_outcomes(store, ranks)
        _check_outcomes(time, event)
        check_range_of_times(time, parameters.torch_dtype)
        warn_of_repeats(repeats if ranks.first else [], total)
        axis = make_axis(parameters.family, time, event, weight)
        sample.log_time = np.log(np.where(sample.log_time > 0, sample.log_time, axis.floor))
        identity = _identity(model, axis, fingerprint)
        job = Job(ranks, budget, workers if device.type == "cpu" else 1, checkpoint, identity)
        like = torch.zeros((), dtype=parameters.torch_dtype, device=device)
        recipe, sweeps = parameters.recipe(candidate), Sweeps(most=max_sweeps)
        with budget, PlacedChunks(store, axis, like) as chunks:
            routing, leaves, report, objective = train_streamed(chunks, sample, recipe, sweeps, job)
        rows, witnesses = _rows_in_leaves(objective, routing, leaves, ranks)
    warn_of_what_was_cut_off(report.status, "the training of the tree")
    if ranks.first:
        warn_of_the_last_sweep(report)
    seen = torch.from_numpy(witnesses)
    tree = build_tree(axis.family, candidate.depth, routing[0], leaves[0], axis.time_scale, seen)
    fitted = FittedSoftTree(
        tree,
        candidate,
        replace(report, details=report.details | {"fingerprint": fingerprint, "imputed": encoder.incomplete_}),
        _leaf_table(rows, tree, float(time.max())),
        spread,
        axis.floor,
        encoder,
        typical=_typical_rows(tree, sample, encoder),
    )
    censoring = _thinned(censoring_survival(time, event, weight))
    names = [str(name) for name in encoder.input_names_]
    return model._adopt_streamed(fitted, names, censoring, default_grid(time, event), float(time.max()))


def predict_stream(
    model: SoftSurvivalTree, table: Table | str | PathLike[str], times: ArrayLike | None = None
) -> Iterator[pd.DataFrame]:
    """Predictions of a table, chunk by chunk.

    Parameters
    ----------
    model : fitted estimator
    table : Table or path
    times : array_like (T,), optional
        Times at which survival is predicted.

    Yields
    ------
    DataFrame
        Columns ``risk`` and ``leaf``, and ``survival_<t>`` for each time, for the rows of one chunk.
    """
    rows = table if isinstance(table, Table) else Table(table, time="", event="")
    for place, frame in rows.frames():
        with within_chunk(place):
            found = {"risk": model.predict(frame), "leaf": model.apply(frame)}
            if times is not None:
                grid = grid_of(times)
                curves = model.predict_survival_function(frame, times=grid)
                found |= {f"survival_{name}": curves[:, k] for k, name in enumerate(time_names(grid))}
        yield pd.DataFrame(found)


def parse_bytes(memory: int | str) -> int:
    """A number of bytes from a number or from text such as "500MB" or "2GB".

    Examples
    --------
    >>> parse_bytes("1.5GB")
    1500000000
    """
    units = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    if isinstance(memory, int) and not isinstance(memory, bool) and memory >= 0:
        return memory
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B?)\s*", str(memory), re.IGNORECASE)
    if match is None or match[2].upper() not in units or isinstance(memory, bool):
        raise InvalidParameterError(f'memory must be bytes or text such as "2GB", got {memory!r}')
    return int(float(match[1]) * units[match[2].upper()])


def _check_arguments(model: Any, table: Any, sample_rows: Any, max_sweeps: Any, folder: Any, checkpoint: Any) -> None:
    """Refuse what would fail only after the table was read."""
    for name, value, wanted in (("model", model, SoftSurvivalTree), ("table", table, Table)):
        if not isinstance(value, wanted):
            raise InvalidParameterError(f"{name} must be a {wanted.__name__} to stream, got {type(value).__name__}")
    whole("sample_rows", sample_rows, LEAST_SAMPLE_ROWS)
    whole("max_sweeps", max_sweeps, 1)
    if folder is not None and not Path(folder).is_dir():
        raise InvalidParameterError(f"folder must be an existing folder, got {str(folder)!r}; make it first")
    if checkpoint is not None and Path(checkpoint).is_dir():
        raise InvalidParameterError(f"checkpoint must be a file, got the folder {str(checkpoint)!r}; add a file name")


def _streamable(p: SoftParameters) -> Candidate:
    """The setting; what only trees in memory can do is refused by name."""
    for name in ("depth", *PENALTIES):
        if getattr(p, name) is None and not (p.depth == 0 and name in ("shrinkage", "routing_l2")):
            raise InvalidParameterError(
                f"{name} must be given to stream, got None; choose it on a sample of the rows, with softsurv.tune say"
            )
    needed = {"solver": "lbfgs", "l1": 0, "fairness": 0, "preset": None, "preprocess": True}
    for name, value in needed.items():
        if getattr(p, name) != value:
            raise InvalidParameterError(f"{name} must be {value!r} to stream, got {getattr(p, name)!r}")
    if not isinstance(p.init, str) or p.starts_exact:
        got = "a tree" if not isinstance(p.init, str) else f"{p.init!r}, which needs all rows at once"
        raise InvalidParameterError(f"init must be the name of a start to stream, got {got}")
    candidate = p.given(None)
    assert candidate is not None
    return candidate


def _fill(
    store: ChunkStore, chunks: Iterator[Chunk], encoder: Preprocessor, ranks: Ranks, seed: int, share: float
) -> tuple[ChunkRows, FloatArray, str]:
    """Encode the table into the store; returns the sample, its times not yet logarithms, each column's spread, and a
    fingerprint of all rows."""
    picked: list[ChunkRows] = []
    digests: list[tuple[int, str]] = []
    mass, sums = 0.0, RunningSum(torch.zeros(2, len(encoder.columns_), dtype=torch.float64))
    for chunk in chunks:
        with within_chunk(chunk.place):
            x = np.asarray(encoder.transform(chunk.X), dtype=np.float64)
        store.append(x, chunk.time, chunk.event, chunk.weight)
        digests.append((chunk.first_row, _digest(x, chunk)))
        weight = np.ones_like(chunk.time) if chunk.weight is None else chunk.weight
        sums.add(torch.from_numpy(np.stack([weight @ x, weight @ np.square(x)])))
        keep = chosen(seed, chunk.first_row, len(x), share)
        design = np.hstack([np.ones((int(keep.sum()), 1)), x[keep]])
        number = chunk.first_row + np.flatnonzero(keep)
        picked.append(ChunkRows(design, chunk.time[keep], chunk.event[keep], weight[keep], number))
        mass += float(weight.sum())
    parts = [rows for part in ranks.gather(picked) for rows in part]
    mean, square = (ranks.total(sums) / sum(ranks.gather(mass))).numpy()
    n = sum(len(time) for time, _, _ in store.outcomes)
    logger.info("%d rows here: %d bytes in memory, %d on disk", n, store.in_memory, store.on_disk)
    columns = json.dumps(encoder.to_dict(), sort_keys=True)
    whole = json.dumps([columns, sorted(one for part in ranks.gather(digests) for one in part)])
    fingerprint = hashlib.sha256(whole.encode()).hexdigest()
    return join_rows(parts), np.sqrt(np.maximum(square - mean**2, 0.0)), fingerprint


def _digest(x: FloatArray, chunk: Chunk) -> str:
    """sha256 of a chunk's encoded features, outcomes and weights."""
    digest = hashlib.sha256(np.ascontiguousarray(x).data)
    for values in (chunk.time, chunk.event, chunk.weight):
        if values is not None:
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _check_outcomes(time: FloatArray, event: BoolArray) -> None:
    """What `SurvivalData` checks of all rows together."""
    if not time.any():
        raise InvalidSurvivalDataError("time must be > 0 in at least one row, got only zeros; check the column")
    if not event.any():
        raise InvalidSurvivalDataError(
            f"event must be True in at least one row, got none in {len(event)} rows; check which code marks an event"
        )
    zeros = int((time == 0).sum())
    if zeros:
        warn(f"time is 0 in {zeros} of {len(time)} rows; half the smallest positive time is taken instead", DataWarning)


def _identity(model: SoftSurvivalTree, axis: Axis, fingerprint: str) -> dict[str, Any]:
    """What a checkpoint must agree with."""
    passing = ("device", "progress", "time_limit", "n_restarts", "preset")
    given = model.get_params(deep=False)
    if isinstance(family := given["leaf"], LeafFamily):  # whose repr is an address in memory
        given["leaf"] = f"{family.name} {family.settings()}"
    parameters = {k: str(v) for k, v in given.items() if k not in passing}
    return {"parameters": parameters, "rows": axis.n, "fingerprint": fingerprint}


class _Rows(NamedTuple):
    """All rows, once their features are not needed any more, (N,) each; ``at`` numbers all leaves of the tree."""

    at: IntArray
    effect: FloatArray
    time: FloatArray
    event: BoolArray
    weight: FloatArray


def _rows_in_leaves(
    objective: StreamedObjective, routing: torch.Tensor, leaves: torch.Tensor, ranks: Ranks
) -> tuple[_Rows, FloatArray]:
    """The rows of all processes in their leaves, and the features of one row of each leaf that has any."""
    found, witnesses = objective.rows_in_leaves(routing, leaves)
    objective.store.let_go()  # the curves of all rows take as much
    mine = [(*rows, *outcome) for rows, outcome in zip(found, objective.store.outcomes, strict=True)]
    parts = [part for own in ranks.gather(mine) for part in own]
    at, *others = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Rows(at.astype(np.int64), *others), witnesses


def _leaf_table(rows: _Rows, tree: SoftTree, longest: float) -> LeafTable:
    """Numbers of all rows in each leaf that they reach; ``longest`` is the largest time."""
    table = leaf_table(rows.at, rows.time, rows.event, 2**tree.depth, rows.weight).take(tree.used_leaves)
    device, leaf = tree.leaves.device, np.searchsorted(tree.used_leaves, rows.at)
    at, effect = torch.from_numpy(rows.at).to(device), torch.from_numpy(rows.effect).to(device)
    predicted = medians_of_effects([tree], [effect], at, leaf, len(tree.used_leaves), longest, rows.weight)
    return replace(table, curves=tuple(_thinned(curve) for curve in table.curves), predicted=predicted)


def _typical_rows(tree: SoftTree, sample: ChunkRows, encoder: Preprocessor) -> FloatArray:
    """Typical row of each leaf (L, P), by the rows of the sample."""
    x, columns, sources = sample.design[:, 1:].astype(np.float64), encoder.columns_, encoder.sources_
    leaf, usual = leaf_of(tree, torch.from_numpy(x)), typical_row(columns, sources, None)
    return typical_rows(x, leaf, sample.weight, columns, sources, usual, len(tree.used_leaves))


def _thinned(curve: StepFunction) -> StepFunction:
    """The curve at no more than :data:`CURVE_POINTS` of its times, the last one kept."""
    if curve.times.size <= CURVE_POINTS:
        return curve
    keep = np.unique(np.linspace(0, curve.times.size - 1, CURVE_POINTS).round().astype(int))
    return StepFunction(curve.times[keep], curve.values[keep], curve.initial)
