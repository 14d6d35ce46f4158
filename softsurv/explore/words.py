"""A prediction in words: the path of a row, what decided at every turn, and what its curve says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.columns import is_arrow
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.frames import as_frame
from softsurv.data.kinds import level_text
from softsurv.data.rules import level_words, number_text, rounded_text
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, unsaid
from softsurv.estimators.shared.checks import whole
from softsurv.estimators.shared.training_rows import FAR_VALUES, Ranges, outside
from softsurv.explore.curves import distinguishing
from softsurv.explore.splits import LinearSplit, QuestionSplit, pushes_of
from softsurv.explore.style import unit_of, with_unit
from softsurv.explore.view import TreeView, ViewNode, tree_view

FIRM, NARROW = 0.9, 0.6
"""A routing probability from FIRM on is called clear, one below NARROW narrow."""


@dataclass(frozen=True)
class Step:
    """A turn on a row's path.

    Attributes
    ----------
    rule : str
        In the data's own units.
    left : bool
        Whether the rule holds for the row.
    probability : float or None
        Probability of the side taken; None at a hard split.
    reasons : tuple of (str, float)
        Features of the row that decided, strongest first on either side, and how much they push towards the left.
    """

    rule: str
    left: bool
    probability: float | None
    reasons: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Explanation:
    """Path and curve of a row, as values and in words (``str``)."""

    leaf: int
    steps: tuple[Step, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def explain(tree: Any, row: Any, *, time_unit: str | None = None, n_reasons: int = 3) -> Explanation:
    """The path of one row in words.

    Parameters
    ----------
    tree : fitted tree
        Soft or optimal.
    row : DataFrame of one row, Series, dict or SurvivalData of one row
        Features by their names.
    time_unit : str, optional
        For the times in the text.
    n_reasons : int
        Features named at every turn.

    Returns
    -------
    Explanation
        ``str()`` of it is the text; ``leaf`` and ``steps`` hold the values.

    Raises
    ------
    InvalidParameterError
        If there is not exactly one row.

    Notes
    -----
    At a soft turn a feature's push is its part of the log-odds, against that of a typical row: the training means
    and most frequent levels. At a rule only the features that it asks for are named. Values that were imputed and
    levels that training did not show are marked.

    Examples
    --------
    >>> print(explain(tree, test.X.iloc[[0]]))                  # doctest: +SKIP
    """
    whole("n_reasons", n_reasons, 0)
    with unsaid(FAR_VALUES):
        return _explained(tree, row, time_unit, n_reasons)


def _explained(tree: Any, row: Any, time_unit: str | None, n_reasons: int) -> Explanation:
    frame = one_row(row)
    view = tree_view(tree)
    leaf = int(tree.apply(frame)[0])
    encoded = view.encode(frame)[0]
    told = _told(view, frame, encoded)
    steps = tuple(_step(tree, view, node, left, frame, encoded, told, n_reasons) for node, left in view.path(leaf))
    unit = unit_of(row if isinstance(row, SurvivalData) else None, time_unit)
    lines = [_step_line(k, step) for k, step in enumerate(steps, 1)]
    lines += _outside_lines(frame, getattr(tree, "ranges_", {}))
    lines += [*_leaf_lines(tree, view, leaf, encoded, told, n_reasons, unit), *_curve_lines(tree, frame, unit)]
    return Explanation(leaf, steps, "\n".join(lines))


def one_row(row: Any) -> pd.DataFrame:
    """A single row as a frame."""
    if isinstance(row, SurvivalData):
        row = row.X
    if isinstance(row, pd.Series):
        row = row.to_frame().T.infer_objects()
    elif isinstance(row, Mapping):
        row = pd.DataFrame([dict(row)])
    elif is_arrow(row):
        row = as_frame(row)
    frame = row if isinstance(row, pd.DataFrame) else None
    if frame is None or len(frame) != 1:
        got = type(row).__name__ if frame is None else f"{len(frame)} rows"
        raise InvalidParameterError(f"row must be one row as a frame, a Series or a dict, got {got}")
    return frame


def value_words(column: OutputColumn, encoded: float) -> str:
    """An encoded value in the data's own terms."""
    if column.kind == "missing":
        return f"{column.source} is {'missing' if encoded else 'known'}"
    if column.kind == "level":
        return f"{column.source} {'=' if encoded else 'is not'} {level_words(str(column.level))}"
    return f"{column.source} = {rounded_text(column.to_units(encoded))}"


def apart_words(view: TreeView, encoded: FloatArray, rows: IntArray, count: int = 6) -> pd.DataFrame:
    """What sets some rows apart, as text: means of numbers, percentages of levels, differences in deviations.

    The arguments are those of `distinguishing`.
    """
    found = distinguishing(view, encoded, rows).head(count)
    numbers = {column.name for column in view.columns if column.kind == "number"}

    def text(column: str) -> list[str]:
        return [rounded_text(float(v)) if name in numbers else f"{v:.0%}" for name, v in found[column].items()]

    return pd.DataFrame(
        {
            "here": text("here"),
            "elsewhere": text("elsewhere"),
            "difference": [f"{v:+.2f}" for v in found["difference"]],
        },
        index=found.index,
    )


def _step(
    tree: Any,
    view: TreeView,
    node: ViewNode,
    left: bool,
    frame: pd.DataFrame,
    encoded: FloatArray,
    told: dict[str, str],
    n_reasons: int,
) -> Step:
    assert node.split is not None
    if isinstance(node.split, QuestionSplit):
        return Step(node.split.text(), left, None, ((_answer(frame, node.split.source), 1.0 if left else -1.0),))
    assert isinstance(node.split, LinearSplit)
    p = float(tree.routing_probability(frame)[0, node.branch])
    asked = node.split.sources()
    pushes = _by_source(view, node.split.pushes(encoded, view.typical))
    if len(asked) == 1:  # one feature decides, whatever is typical
        pushes = {asked[0]: 1.0 if left else -1.0}
    kept = [one for sign in (1, -1) for one in [p for p in pushes.items() if p[1] * sign > 0][:n_reasons]]
    return Step(node.split.text(), left, p if left else 1 - p, tuple((told[name], value) for name, value in kept))


def _by_source(view: TreeView, pushes: dict[str, float]) -> dict[str, float]:
    """Pushes of encoded features summed by raw feature, strongest first."""
    source, total = {column.name: column.source for column in view.columns}, dict[str, float]()
    for name, value in pushes.items():
        total[source[name]] = total.get(source[name], 0.0) + value
    return dict(sorted(total.items(), key=lambda one: -abs(one[1])))


def _told(view: TreeView, frame: pd.DataFrame, encoded: FloatArray) -> dict[str, str]:
    """The row's value of each raw feature in words; imputed values and levels that were not seen are marked."""
    known, told = {source.name: source for source in view.sources}, dict[str, str]()
    for column, value in zip(view.columns, encoded, strict=True):
        source = known.get(column.source)
        if column.source in told:
            continue
        if source is None or source.name not in frame.columns:
            told[column.source] = value_words(column, value)
        else:
            told[column.source] = _value_told(frame[source.name].iloc[0], source)
    return told


def _value_told(value: Any, source: Source) -> str:
    if pd.isna(value):
        if source.fill is None:
            return f"{source.name} is missing"
        if isinstance(source.fill, str):
            return f"{source.name} = {level_words(source.fill)}, imputed"
        return f"{source.name} = {source.fill:.6g}, imputed"  # not rounded further: the next threshold may lie between
    if source.levels is not None:
        level = level_text(value)
        unseen = "" if level in source.levels else ", a level that was not seen in training"
        return f"{source.name} = {level_words(level)}{unseen}"
    return f"{source.name} = {_own_number(value)}"


def _own_number(value: Any) -> str:
    """A row's number, which may be text as in training."""
    number = float(value)
    return number_text(number) if number.is_integer() else f"{number:.6g}"


def _answer(frame: pd.DataFrame, source: Source) -> str:
    """A row's own value of a raw feature, in words."""
    value = frame[source.name].iloc[0]
    if pd.isna(value):
        filled = level_words(source.fill) if isinstance(source.fill, str) else source.fill
        return f"{source.name} is missing" + ("" if source.fill is None else f" and counts as {filled}")
    told = _own_number(value) if source.levels is None else level_words(level_text(value))
    return f"{source.name} = {told}"


def _step_line(number: int, step: Step) -> str:
    firm = ""
    if step.probability is not None:
        firm = ", clearly" if step.probability >= FIRM else ", narrowly" if step.probability < NARROW else ""
    verdict = f"{number}. {step.rule}: {'yes' if step.left else 'no'}{firm}"
    if step.probability is not None:
        verdict += f" (probability {step.probability:.2f})" if step.probability < 0.995 else " (probability > 0.99)"
    towards = [words for words, value in step.reasons if (value > 0) == step.left]
    against = [words for words, value in step.reasons if (value > 0) != step.left]
    if towards:
        verdict += f"; because of {', '.join(towards)}"
    return verdict + (f"; against it {', '.join(against)}" if against else "")


def _leaf_lines(
    tree: Any, view: TreeView, leaf: int, encoded: FloatArray, told: dict[str, str], n_reasons: int, unit: str
) -> list[str]:
    table = tree.leaf_table_
    size = f"Leaf {leaf}: {table.n[leaf]} training rows, {table.events[leaf]} events"
    if table.predicted is None:  # the median is that of the leaf's one curve, which the next line tells
        ranked = tree.ranked_by()
        lines = [f"{size}, {ranked[leaf]}. {tree.ranking_note()}" if ranked else f"{size}."]
    else:
        lines = [f"{size}, observed median {with_unit(float(table.median[leaf]), unit)}."]
    if table.n[leaf] == 0:
        lines = [f"Leaf {leaf}: no training rows, so that its curve rests on the penalties alone."]
    effects = [(own.cause, own.weights) for own in view.cause_weights]
    if view.leaf_weights is not None:
        effects = [("event", view.leaf_weights)]
    for event, weights in effects if view.names else []:
        pushes = _by_source(view, pushes_of(view.names, weights[leaf], encoded, view.typical))
        for sign, when in ((1, "Earlier"), (-1, "Later")):
            found = [told[name] for name, value in pushes.items() if value * sign > 0][:n_reasons]
            if found:
                lines.append(f"{when} {event} than a typical row through {', '.join(found)}.")
    return lines


def _outside_lines(frame: pd.DataFrame, ranges: Ranges) -> list[str]:
    """Values that no training row had, where the tree extrapolates."""
    told = [
        f"{name} = {number_text(float(frame[name].iloc[0]))} (trained on {ranges[name][0]:g} to {ranges[name][1]:g})"
        for name in outside(frame, ranges)
    ]
    return [f"Outside the training range, so that this is a guess: {', '.join(told)}."] if told else []


def _curve_lines(tree: Any, frame: pd.DataFrame, unit: str) -> list[str]:
    times = np.unique(np.quantile(tree.unique_times_, [0.25, 0.5, 0.75]))
    if tree.recurrent_:
        counts = zip(times, tree.predict_mean_count(frame, times)[0], strict=True)
        return [f"Events to be expected: {', '.join(f'{one:.2f} by {with_unit(t, unit)}' for t, one in counts)}."]
    survival = tree.predict_survival_function(frame, times=times)[0]
    shares = ", ".join(f"{s:.0%} beyond {with_unit(t, unit)}" for t, s in zip(times, survival, strict=True))
    median, last = float(tree.predict_median(frame)[0]), float(tree.horizon_)
    middle = (
        with_unit(median, unit) if median <= last else f"not reached within the follow-up of {with_unit(last, unit)}"
    )
    lines = [f"Its curve: median {middle}; {shares}."]
    if not tree.cause_names_:
        return lines
    at = times[len(times) // 2]
    found = tree.predict_cumulative_incidence(frame, times=[at])[0, 0]
    by_cause = ", ".join(f"{name} {share:.0%}" for name, share in zip(tree.cause_names_, found, strict=True))
    return [*lines, f"The curve is that of no event at all. By {with_unit(at, unit)}: {by_cause}."]
