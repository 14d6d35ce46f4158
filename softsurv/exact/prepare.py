"""From training rows to the arrays of a search: equal rows merged, equal features dropped, what cancels taken out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray
from softsurv.errors import InvalidParameterError
from softsurv.exact import problem as arrays
from softsurv.exact.bounds import Bounds, interval_applies
from softsurv.exact.cuts.choice import cuts_pay, kind_of_search
from softsurv.exact.equal_rows import merge_equal_rows
from softsurv.exact.joint.scratch import joint_pays
from softsurv.exact.kernels.bit_columns import RowKinds
from softsurv.exact.nesting import Grouped, Splits, as_given, group_columns
from softsurv.exact.row_kinds import no_row_kinds, row_kinds_of
from softsurv.exact.split_costs import SplitCosts, no_prices
from softsurv.exact.task import Task

LANE_PAIRS = 2**24
"""Most sums over pairs of bins (128 MB) for the children of a node of depth three to be solved eight at a time."""

RELATIVE_TOLERANCE = 1e-10
"""Objectives closer than this times the root's cost are the same: costs carry rounding errors of about 1e-13."""

SIZE_TOLERANCE = 1e-12
"""Share of the least size of a leaf that rounding may take off a leaf's weight."""

LIGHTEST = 1e-14
"""Least share of the total weight that a row may have: sums are rounded at 1e-16 of the total."""

LARGEST = 1e150
"""Largest sum of statistics: its square is still finite."""

SHARED_SPLITS = 2048
"""With more splits than this, what pairs of them share takes too much memory to keep for every level; with fewer the
memory limit decides (`memory.py`)."""


def _nothing(sums: FloatArray, n: int, out: FloatArray) -> None:
    out[:n] = 0.0


GIVEN = Task("given", None, _nothing, superadditive=False)
"""Stands in for the task while the rows are prepared: their costs come with the weights."""


def check_weights(weight: FloatArray) -> None:
    """Refuse weights (N,) of which the lightest would be lost beside the sum of all."""
    with np.errstate(over="ignore"):
        light, total = float(weight[weight > 0].min(initial=np.inf)), float(weight.sum())
    if not np.isfinite(total) or light < LIGHTEST * total:
        raise InvalidParameterError(
            f"weights must not differ by more than a factor of {1 / LIGHTEST:g}, got {light:g} beside a total of "
            f"{total:g}; leave out the rows that weigh next to nothing"
        )


def check_sums(statistics: FloatArray) -> None:
    """Refuse statistics (N, K) whose sums cannot be squared."""
    with np.errstate(over="ignore"):
        totals = arrays.column_sums(np.abs(statistics))
    if (totals > LARGEST).any():
        raise InvalidParameterError(
            f"statistics must add up to at most {LARGEST:g}, got {totals.max():g}; divide the weights or the targets"
        )


def check_arrays(task: Task, codes: NDArray[np.integer], n_codes: NDArray[np.integer], statistics: FloatArray) -> None:
    """Refuse codes beyond their number, and statistics that the task does not read or whose sums are too large."""
    if codes.size and (codes.min() < 0 or (codes.max(axis=0) >= n_codes).any()):
        raise InvalidParameterError(
            f"codes must lie in 0 .. n_codes - 1, got {codes.min()} to {codes.max()}; code the features first"
        )
    if task.n_statistics not in (None, statistics.shape[1]):
        raise InvalidParameterError(
            f"statistics must have the {task.n_statistics} columns of task {task.name!r}, got {statistics.shape[1]}"
        )
    check_sums(statistics)


def as_size(min_leaf: float, size: FloatArray | None, n: int) -> tuple[float, FloatArray | None]:
    """The least size of a leaf and the size of each row (n,); no sizes where there is nothing to limit."""
    if size is None and min_leaf > 1:
        min_leaf, size = math.ceil(min_leaf), np.ones(n)
    if size is not None and min_leaf > math.fsum(size):
        raise InvalidParameterError(
            f"the least size of a leaf must be at most the total, {math.fsum(size):g}, got {min_leaf:g}"
        )
    return min_leaf, size


@dataclass(frozen=True)
class Prepared:
    """A training set as the search takes it.

    Attributes
    ----------
    task : Task
    base : str
        The base case that suits the data, a name of `compile.BASES`.
    problem : SearchArrays
    rows : (R,) int32
        Distinct rows that the search looks at; the others change no comparison.
    sums : (U, K)
        Statistics of the distinct rows as given, not rounded; where splits cost something, the last column is weight.
    offset : float
        Sum of the offsets.
    cancelled : float
        What every tree costs beyond the search's own objective and the offsets.
    splits : Splits
        Which split of the given features each global code of the problem is.
    similar : bool
        Whether the bound of similar support holds.
    by_cuts : bool
        Whether there are so many cuts that they are searched one by one (`cuts/node.py`).
    by_joint : bool
        Whether rows are so many that trees of depth three are compared by joint sums (`joint/kernels.py`).
    costs : callable
        Cost of each leaf (L,) from its ``sums`` (L, K).
    first_trees : bool
        Whether deep searches begin with trees by a rolling horizon (`first_trees.py`).
    """

    task: Task
    base: str
    problem: arrays.SearchArrays
    rows: NDArray[np.int32]
    sums: FloatArray
    offset: float
    cancelled: float
    splits: Splits
    similar: bool
    by_cuts: bool
    by_joint: bool
    costs: Callable[[FloatArray], FloatArray]
    first_trees: bool


def prepare(
    task: Task,
    codes: NDArray[np.integer],
    n_codes: NDArray[np.integer],
    nominal: BoolArray,
    statistics: FloatArray,
    offset: FloatArray | None,
    size: FloatArray | None,
    min_leaf: float,
    complexity: float,
    bounds: Bounds,
    split_costs: SplitCosts | None,
) -> Prepared:
    """The arrays of a search; arguments as `Search` has them."""
    features, first, group, grouped = _distinct(codes, n_codes, nominal, bounds.nesting, split_costs)
    codes, n_codes, nominal, width = grouped.codes, grouped.n_codes, grouped.nominal, statistics.shape[1]
    start = np.concatenate([[0], np.cumsum(n_codes)]).astype(np.int32)
    paying = [] if split_costs is None else [split_costs.weight]
    columns = np.column_stack([statistics, *paying, *([] if size is None else [size])])
    whole = arrays.sum_by_group(columns, group, len(first))
    cancels = task.linear and size is None and split_costs is None and bounds.cancel
    if cancels:
        columns = columns - arrays.row_minima(columns)[:, None]
    for part in (columns[:, :width], columns[:, width:]):
        part[:] = arrays.round_to_grid(part)
    paid, least, row_kinds = split_costs is not None, float(min_leaf) * (1.0 - SIZE_TOLERANCE), None
    in_lanes = bounds.lanes and bounds.base_case and not paid and int(start[-1]) ** 2 * columns.shape[1] <= LANE_PAIRS
    by_cuts = not paid and _by_cuts(task, bounds, codes, int(start[-1]), columns[:, :width], in_lanes, size is not None)
    if bounds.bits and bounds.base_case and not by_cuts:
        row_kinds = row_kinds_of(
            columns, group, codes, start, nominal, cancels, task.worst,
            linear=task.linear and not paid, least=least if size is not None else 0.0, in_lanes=in_lanes,
        )  # fmt: skip
    stats = _merged(columns, group, row_kinds, cancels, len(first))
    live = _live(stats, cancels)
    total_offset = 0.0 if offset is None else math.fsum(offset.tolist())
    problem = arrays.SearchArrays(
        gcode=np.ascontiguousarray(codes + start[:-1], dtype=np.int32),
        code_start=start,
        nominal=nominal.copy(),
        feature_of=np.repeat(np.arange(len(n_codes)), n_codes).astype(np.int32),
        stats=stats,
        row_kinds=no_row_kinds(columns.shape[1]) if row_kinds is None else row_kinds,
        calls=arrays.Calls(),
        prices=no_prices(len(n_codes)) if split_costs is None else split_costs.prices(features, width),
        floor=_floor(task, bounds, stats[:, :width], offset, group),
        keys=_keys(live),
        parameters=np.zeros(0),
        complexity=float(complexity),
        min_leaf=least,
        linear=task.linear,
        branching=paid,
        n_statistics=width,
        use_size=size is not None,
        tolerance=_tolerance(task, whole[:, :width], total_offset),
        use_lanes=in_lanes and row_kinds is None,
        **_uses(task, bounds, row_kinds, cancels, size is not None),
    )
    rows = _in_order(live, row_kinds)
    return Prepared(
        task,
        ("sums" if row_kinds is None else "bits") if bounds.base_case else "plain",
        problem,
        rows,
        np.ascontiguousarray(whole[:, : width + len(paying)]),
        total_offset,
        math.fsum((whole - stats)[:, 0].tolist()) if cancels else 0.0,
        replace(grouped.splits, feature=features[grouped.splits.feature]),
        bounds.similar and task.linear and bool((problem.stats[:, :width] >= 0.0).all()),
        by_cuts,
        bounds.joint and bounds.base_case and joint_pays(problem, rows),
        lambda sums: task.costs(sums[:, :width]),
        bounds.first_trees,
    )


def _distinct(
    codes: NDArray[np.integer],
    n_codes: NDArray[np.integer],
    nominal: BoolArray,
    nesting: bool,
    split_costs: SplitCosts | None,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Grouped]:
    """Columns that differ, one row of each kind, the kind of every row, and the columns in groups, over these rows."""
    test_of = np.zeros(codes.shape[1], int) if split_costs is None else split_costs.test_of
    n_codes, nominal = np.asarray(n_codes), np.asarray(nominal)
    small = np.uint8 if n_codes.max(initial=0) <= 256 else np.int32
    codes = codes.astype(small)
    columns: NDArray[np.integer] = np.ascontiguousarray(codes.T)  # (P, N)
    features = arrays.distinct_features(columns.T, nominal, test_of)
    if len(features) < len(columns):
        codes, columns = codes[:, features], columns[features]
        n_codes, nominal = n_codes[features], nominal[features]
    first, group = merge_equal_rows(codes)
    apart = split_costs is not None or not nesting  # a test is paid for by its own column
    grouped = (as_given if apart else group_columns)(columns.take(first, axis=1).T, n_codes, nominal)
    return features, first, group, grouped


def _uses(task: Task, bounds: Bounds, row_kinds: RowKinds | None, cancels: bool, sized: bool) -> dict[str, bool]:
    """What of the search is used for a problem: the switches of `SearchArrays`."""
    return {
        "use_interval": bounds.interval and interval_applies(task.superadditive, sized),
        "use_similar": bool(
            bounds.similar
            and cancels  # its proof needs rows that cost 0 under one label
            and row_kinds is not None
            and len(row_kinds.split_code) <= SHARED_SPLITS
        ),
        "use_look_ahead": bounds.look_ahead,
        "use_cache": bounds.cache,
    }


def _by_cuts(
    task: Task, bounds: Bounds, codes: NDArray[np.integer], n_codes: int, statistics: FloatArray, in_lanes: bool,
    limited: bool,
) -> bool:  # fmt: skip
    """Whether the search by cuts is right for the task and faster."""
    kind = "two counts" if statistics.shape[1] == 2 else "other"
    kind = kind if task.name == GIVEN.name else kind_of_search(task.linear, statistics, in_lanes)
    return bounds.cuts and bounds.interval and task.superadditive and cuts_pay(codes, n_codes, kind, limited)


def _in_order(live: BoolArray, row_kinds: RowKinds | None) -> NDArray[np.int32]:
    """The live rows, kind by kind: `bit_columns.pack` sorts them so, and a processor foresees what it does."""
    rows = np.flatnonzero(live)
    if row_kinds is not None:
        rows = rows[np.argsort(row_kinds.kind_count[rows].argmax(axis=1), kind="stable")]
    return rows.astype(np.int32)


def _merged(
    columns: FloatArray, group: NDArray[np.intp], row_kinds: RowKinds | None, cancels: bool, n_groups: int
) -> FloatArray:
    """Statistics of the distinct rows (U, W); where ``cancels``, without what costs the same under every label."""
    if row_kinds is not None:
        return row_kinds.kind_count @ row_kinds.kind_stats
    stats = arrays.sum_by_group(columns, group, n_groups)
    return arrays.round_to_grid(stats - arrays.row_minima(stats)[:, None]) if cancels else stats


def _live(stats: FloatArray, cancels: bool) -> BoolArray:
    """Distinct rows (U,) to look at: one that adds nothing to any sum is the same for all trees."""
    live: BoolArray = reduce(np.logical_or, stats.T != 0.0)
    return live if cancels and live.any() else np.ones(len(stats), np.bool_)


def _keys(live: BoolArray) -> NDArray[np.uint64]:
    """Random words of the rows (U, 2), 0 where a row is not live: subsets that differ in such rows alone are one."""
    keys = _random_words(1 << len(live).bit_length())[: len(live)].copy()
    keys[~live] = 0
    return keys


@lru_cache(maxsize=1)
def _random_words(n: int) -> NDArray[np.uint64]:
    """Random words (n, 2)."""
    return np.random.default_rng(0).integers(0, 2**64, (n, 2), dtype=np.uint64)


def _floor(
    task: Task, bounds: Bounds, stats: FloatArray, offset: FloatArray | None, group: NDArray[np.intp]
) -> FloatArray:
    """Least that each distinct row costs in any tree, (U,): the equivalent-points bound."""
    if bounds.equivalent_points and task.superadditive:
        return task.costs(stats)
    if offset is None:
        return np.zeros(len(stats))
    return arrays.sum_by_group(-offset[:, None], group, len(stats))[:, 0]


def _tolerance(task: Task, whole: FloatArray, offset: float) -> float:
    """Objectives closer than this are the same; in the objective's own units, however small."""
    total = abs(float(task.costs(arrays.column_sums(whole)[None])[0]))
    return RELATIVE_TOLERANCE * (max(total, abs(offset)) or 1.0)
