"""One order of rows and columns for one table, however it was handed over: the same seed then gives the same fit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import BoolArray, FloatArray, IntArray
from softsurv.data.blocks import NumberBlock, in_blocks
from softsurv.data.encoding import labels, numbers, read_columns
from softsurv.data.kinds import is_text
from softsurv.data.sorting import break_ties, fields_order, order_in_runs, tied_places

if TYPE_CHECKING:
    import pandas as pd

    from softsurv.data.survival_data import SurvivalData

BITS = 52
"""Columns of zeros and ones that make one whole number, exact in float64."""

OUTCOME = ("time", "event", "cause", "entry", "upper")
"""Fields of `SurvivalData` that order the rows before the features do."""

BESIDE = ("weight", "group", "subject")
"""Fields that tell rows of one outcome apart."""

AT_A_TIME = 64
"""Columns that are read together to tell rows of one outcome apart: more are seldom needed."""

FEW_CELLS = 1 << 18
"""Cells of tied rows that are read together in any case: two megabytes."""

CELLS_AT_ONCE = 1 << 20
"""Cells of a table that are hashed together: the codes of all cells would take more memory than the table."""

FEW_SPANS = 64
"""Up to so many runs of rows with one outcome are sorted run by run: sorting numbers is ten times as fast as sorting
their places."""

FEW_KEYS = 16
"""A small table with so few groups of columns is sorted by all of them at once."""


HEAD = 128
"""The first so many rows tell most columns of measurements apart."""


def row_order(data: SurvivalData, columns: Sequence[str]) -> IntArray:
    """Rows (N,) by their outcome, those of one outcome by their features; only equal rows keep the order given.

    Parameters
    ----------
    data : SurvivalData
    columns : sequence of str
        Features, in the order in which they are compared (see :func:`column_order`).
    """
    kept, same = _by_outcome(data, OUTCOME + BESIDE)
    order, tied = kept.copy(), tied_places(same)
    if not tied.size:
        return order
    if data.n * len(columns) <= FEW_CELLS:
        block = data.number_block()
        groups = _groups(columns, block)
        if len(groups) <= FEW_KEYS:
            rows, outcome = order[tied], np.cumsum(~same[:-1])[tied]
            keys = [_key(one, data.X, block)[rows] for one in reversed(groups)]
            order[tied] = rows[np.lexsort([*keys, outcome])]
            return order
    _by_features(order, same.copy(), data.X, columns)
    return order


def _by_features(order: IntArray, same: BoolArray, X: pd.DataFrame, columns: Sequence[str]) -> None:
    """Order the rows of one outcome by their features, in place."""
    tied, first = tied_places(same), 0
    while first < len(columns) and tied.size:
        some = list(columns[first : first + max(AT_A_TIME, FEW_CELLS // tied.size)])
        first += len(some)
        part = (X if len(some) == X.shape[1] else X[some]).iloc[order[tied]]
        block, rows = read_columns(part), np.arange(tied.size)  # rows: of the part, one for each tied place
        groups = _groups(some, block)
        at, many = 0, 1  # one group at first, then twice as many each time: equal rows stay tied to the end
        while at < len(groups) and tied.size:
            keys = [_key(names, part, block)[rows] for names in groups[at : at + many]]
            rows = rows[break_ties(order, same, tied, keys)]
            still = same[tied] | same[tied + 1]
            tied, rows = tied[still], rows[still]
            at, many = at + many, 2 * many


def _by_outcome(data: SurvivalData, names: Sequence[str]) -> tuple[IntArray, BoolArray]:
    """The rows in the order of some fields; and which have the same fields as the row before them there, (N + 1,).

    Both are kept beside the data, since the orders of columns and of rows need them.
    """
    known = tuple(name for name in names if getattr(data, name) is not None)
    kept = vars(data).setdefault("_orders", {})
    if known not in kept:
        kept[known] = fields_order(_fields(data, known))
    found: tuple[IntArray, BoolArray] = kept[known]
    return found


def _groups(names: Sequence[str], block: NumberBlock) -> list[list[str]]:
    """The columns in their order, neighbours of zeros and ones together: they are compared as one whole number."""
    if block.are_yes_no.all() and len(names) == len(block.place):
        return [list(names[first : first + BITS]) for first in range(0, len(names), BITS)]
    yes_no = dict(zip(block.place, block.are_yes_no.tolist(), strict=True))
    groups: list[list[str]] = []
    for name in names:
        if groups and len(groups[-1]) < BITS and yes_no.get(name) and yes_no.get(groups[-1][0]):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _key(names: Sequence[str], part: pd.DataFrame, block: NumberBlock) -> NDArray[Any]:
    """Numbers (n,) that order rows as a group of columns does."""
    if len(names) == 1 and (labels := block.labels.get(names[0])) is not None:
        if list(labels.texts) == sorted(labels.texts):
            return labels.code.view(np.uint64)  # a missing one, -1, is the largest
        order = {text: float(k) for k, text in enumerate(sorted(labels.texts))}
        return labels.of_each([order[text] for text in labels.texts], np.inf)
    if len(names) == 1:
        return _comparable(block.column(names[0])) if names[0] in block.place else _sortable(part[names[0]])
    powers = 2.0 ** np.arange(len(names))[::-1]
    if not block.are_yes_no.all():
        return np.asarray(powers @ block.rows_of(names))
    of_all = np.zeros(len(block.values))  # instead of a copy of the columns
    of_all[[block.place[name] for name in names]] = powers
    return np.asarray(of_all @ block.values)


def column_order(X: pd.DataFrame, data: SurvivalData | None = None) -> list[str]:
    """Names of the features in one order: alphabetical, or by content where the names are those of places in an array.

    Parameters
    ----------
    X : DataFrame (N, P)
    data : SurvivalData, optional
        The outcome of each row, which tells columns of an array with the same values apart. Columns that stay equal
        keep the order given.

    Notes
    -----
    Content is the values in the order of the outcomes. Without an outcome it is the set of values, so that a row of
    weight two orders as two equal rows do.
    """
    names = [str(name) for name in X.columns.tolist()]
    if "x0" not in names or set(names) != {f"x{k}" for k in range(len(names))}:
        return sorted(names)
    if data is None:
        by_outcome, same = np.arange(len(X)), np.array([False, *[True] * (len(X) - 1), False])
    else:
        by_outcome, same = _by_outcome(data, OUTCOME)
    begins, ends = np.flatnonzero(same[1:] & ~same[:-1]), np.flatnonzero(same[:-1] & ~same[1:]) + 1
    spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
    few = len(spans) <= FEW_SPANS
    if data is not None and few and len(data.number_block().place) == len(names):
        return sorted(names, key=_contents(data.number_block(), by_outcome, spans).__getitem__)
    block = NumberBlock.of(X.set_axis(names, axis="columns"))
    run = np.cumsum(~same[:-1])

    def digest(name: str) -> bytes:
        """Digest of the values by outcome and size; without an outcome, of the distinct values."""
        values = _comparable(block.column(name)) if name in block.place else _sortable(X[name])
        value = values[by_outcome]
        if not few:
            value = value[order_in_runs(run, [value])]
        for begin, end in spans if few else []:
            value[begin:end].sort()
        new = np.r_[True, (value[1:] != value[:-1]) | (data is not None)]
        return hashlib.blake2b(value[new].tobytes()).digest()

    return sorted(names, key=digest)


def _contents(block: NumberBlock, by_outcome: IntArray, spans: Sequence[tuple[int, int]]) -> dict[str, bytes]:
    """What orders the columns: their first values in order of outcome, or a digest of all where these are not enough.

    Values of a span of rows are in the order of their size.
    """
    head = next((end for begin, end in spans if begin < HEAD < end), HEAD)
    found: dict[str, bytes] = {}
    for some in in_blocks(list(block.place), len(by_outcome)):
        values = _in_spans(block.rows_of(some), by_outcome[:head], spans)
        found |= {name: row.tobytes() for name, row in zip(some, values, strict=True)}
    if len(set(found.values())) == len(found) or len(by_outcome) <= head:
        return found
    for some in in_blocks(list(block.place), len(by_outcome)):
        values = _in_spans(block.rows_of(some), by_outcome, spans)
        found |= {name: hashlib.blake2b(row).digest() for name, row in zip(some, values, strict=True)}
    return found


def _in_spans(values: FloatArray, rows: IntArray, spans: Sequence[tuple[int, int]]) -> FloatArray:
    """Some rows of columns (Q, N), as (Q, R); the values of a span are sorted."""
    values = _comparable(values.take(rows, axis=1))
    for begin, end in spans:
        values[:, begin:end].sort(axis=1)
    return values


def _fields(data: SurvivalData, names: Sequence[str]) -> list[FloatArray]:
    """What is known of each row beside its features."""
    found = ((name, getattr(data, name)) for name in names)
    fields = {name: values.cpu().numpy().astype(np.float64) for name, values in found if values is not None}
    if "cause" in fields:
        code = fields["cause"].astype(int)
        fields["cause"] = _places_of_causes(code, data)[code]
    return list(fields.values())


def _places_of_causes(code: IntArray, data: SurvivalData) -> FloatArray:
    """Place of each code 0..K: causes are in order of their number of events, then of their times, and of their names.

    Codes and names may change, and the same events remain.
    """
    time, counts = data.time.cpu().numpy(), np.bincount(code, minlength=len(data.cause_names) + 1)[1:].tolist()

    def content(k: int) -> tuple[int, list[float], str]:
        """What orders the cause of code k + 1; its times are looked at where another one has as many events."""
        times = np.sort(time[code == k + 1]).tolist() if counts.count(counts[k]) > 1 else []
        return counts[k], times, data.cause_names[k]

    places = np.zeros(len(data.cause_names) + 1)
    places[1 + np.array(sorted(range(len(data.cause_names)), key=content))] = np.arange(1, len(places))
    return places


def distinct_rows(x: FloatArray) -> tuple[IntArray, IntArray]:
    """One of each kind of equal rows of a complete table (N, P), and the place (N,) of every row among these.

    The order of the kinds depends on their content alone.
    """
    import pandas as pd

    if not x.size:
        return np.zeros(min(len(x), 1), dtype=np.int64), np.zeros(len(x), dtype=np.int64)
    plain = x + 0.0  # no negative zero
    factor, size = pd.util.hash_array(np.arange(plain.shape[1])) | 1, max(CELLS_AT_ONCE // plain.shape[1], 1)
    parts = (plain[first : first + size] for first in range(0, len(plain), size))
    codes = np.concatenate([pd.util.hash_array(part.ravel()).reshape(part.shape) @ factor for part in parts])
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    if not np.array_equal(plain[first][place], plain):  # two kinds have one code
        _, first, place = np.unique(plain, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _comparable(values: FloatArray) -> FloatArray:
    """Numbers with the missing ones last and no negative zero."""
    return np.where(np.isnan(values), np.inf, values) + 0.0


def _sortable(column: pd.Series) -> FloatArray:
    """A column as numbers that sort as its values do, missing ones last."""
    name = str(column.name)
    if not is_text(column) and column.dtype.kind in "biuf":
        return _comparable(numbers(column, name))
    text = labels(column, name).tolist()
    different = sorted(set(text) - {None})
    place: dict[str | None, int] = {label: k for k, label in enumerate([*different, None])}
    return np.array([place[label] for label in text], dtype=np.float64)
