"""A tree and some rows as plain JSON values, enough to repeat its arithmetic elsewhere."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import torch

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn, labels
from softsurv.data.survival_data import SurvivalData
from softsurv.explore.curves import default_times, leaf_kaplan_meier, leaf_looks, steps
from softsurv.explore.splits import QuestionSplit
from softsurv.explore.style import NO_ROWS, unit_of, with_unit
from softsurv.explore.tree_layout import wrapped
from softsurv.explore.view import TreeView, tree_view
from softsurv.explore.words import apart_words
from softsurv.metrics.ranges import survival_from_log_cumulative_hazard
from softsurv.nonparametric import median
from softsurv.trees.soft_tree import SoftTree

BEYOND = 0.01
"""Share of a range by which values beyond a question's threshold are taken to occur."""

EARLIEST = 1e-6
"""Share of the time axis from which on medians are read off the grid to about a hundredth."""

USUAL_ROWS, USUAL_CELLS = 1000, 500_000
"""Rows of a page, and rows x features, where the user asks for no number: a page of some 10 MB at most."""

LINE = 40
"""Characters of a line of a rule."""


def explorer_payload(
    tree: Any, data: SurvivalData, max_rows: int | None = None, n_times: int = 80, time_unit: str | None = None
) -> dict[str, Any]:
    """Everything the interactive view needs; rows beyond ``max_rows`` are thinned evenly."""
    view, unit = tree_view(tree), unit_of(data, time_unit)
    times = _times(tree, view, n_times)
    if max_rows is None:
        max_rows = max(1, min(USUAL_ROWS, USUAL_CELLS // max(data.X.shape[1], 1)))
    kept = np.arange(data.n)
    if data.n > max_rows:
        kept = np.unique(np.linspace(0, data.n - 1, max_rows).round().astype(int))
    shown = data.take(kept)
    encoded = view.encode(data.X)
    spread = np.fmax.reduce(encoded) - np.fmin.reduce(encoded)  # missing values that are routed stay so
    spread[np.isnan(spread)] = 1.0  # no value is known
    columns = [
        column._asdict() | {"scale": column.scale or 1.0, "spread": float(wide) or 1.0}
        for column, wide in zip(view.columns, spread, strict=True)
    ]
    sources = sources_of(view, data.X)
    return {
        "soft": view.soft,
        "depth": view.depth,
        "unit": unit,
        "link": tree.tree_.family.link.name if view.soft else None,
        "causes": _causes(tree, view, times),
        "times": times.tolist(),
        "ticks": _ticks(times[-1]),
        "columns": columns,
        "fills": fills_of(view),
        "sources": sources,
        "nodes": nodes_of(view),
        "leaves": _leaves(tree, view, data, encoded, times, unit),
        "rows": rows_of(shown.X, sources),
        "labels": [str(label) for label in shown.X.index],
        "outcome": _outcomes(shown),
        "strongest": _strongest(view, [s["name"] for s in sources]),
    }


def _times(tree: Any, view: TreeView, n_times: int) -> FloatArray:
    """The grid (T,); for smooth curves also denser near 0, or an early median would be read off a first long step."""
    times = default_times(tree, n_times)
    return np.union1d(times, np.geomspace(EARLIEST * times[-1], times[-1], n_times)) if view.soft else times


def nodes_of(view: TreeView) -> list[dict[str, Any]]:
    """Nodes with their splits, lines of their rules, and places."""
    places, heights = view.centres(), view.heights()
    return [
        {
            "left": node.left,
            "right": node.right,
            "parent": node.parent,
            "level": node.level,
            "leaf": node.leaf,
            "centre": places[node.index],
            "height": heights[node.index],
            "lines": [] if node.split is None else wrapped(node.split.text(name_limit=LINE - 8), LINE),
            "split": None if node.split is None else node.split.plain(),
        }
        for node in view.nodes
    ]


def sources_of(view: TreeView, X: pd.DataFrame) -> list[dict[str, Any]]:
    """Raw features with their range over training and these rows, or their levels."""
    found, encoded = [], defaultdict(list)
    for column in view.columns:
        encoded[column.source].append(column)
    for name in X.columns:
        own = encoded.get(name, [])
        if not own:
            continue
        if all(column.kind != "number" for column in own):
            levels = view.levels(name) or tuple(sorted({str(v) for v in labels(X[name], name) if v is not None}))
            found.append({"name": name, "levels": list(levels), "low": 0, "high": 1})
            continue
        values = X[name].astype(float)
        low, high = _range(view, name, own, np.asarray(values, dtype=np.float64))
        step = 1 if bool((values.dropna() % 1 == 0).all()) else (high - low) / 200
        numeric = {"low": low, "high": high, "step": step, "whole": name in view.whole}
        found.append({"name": name, "levels": None, **numeric})
    return found


def _range(
    view: TreeView,
    source: str,
    encoded: list[OutputColumn],  # of this source
    values: FloatArray,  # (n,) raw
) -> tuple[float, float]:
    """Range of a number over these rows and what the tree knows of training: its scale, or the questions it asks."""
    if view.preprocessor is not None:
        known = [column.to_units(v) for column in encoded if column.kind == "number" for v in (0.0, 1.0)]
    else:
        splits = [node.split for node in view.branches if isinstance(node.split, QuestionSplit)]
        known = [cut for s in splits for cut in s.boundaries(view.columns, np.zeros(0), source)]
    both = np.append(values, known)
    both = both[~np.isnan(both)]
    if not both.size:  # no value is known, and no question asks for one: any range will do
        return 0.0, 1.0
    low, high = float(both.min()), float(both.max())
    if view.preprocessor is None and known:  # both answers to a question were given in training
        beyond = BEYOND * (high - low or 1.0)
        low, high = min(low, min(known) - beyond), max(high, max(known) + beyond)
    return low, high


def fills_of(view: TreeView) -> dict[str, Any]:
    """What a missing value counts as; None where it is routed."""
    return {source.name: source.fill for source in view.sources}


def rows_of(X: pd.DataFrame, sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Raw rows as numbers, text and None."""
    table: dict[str, list[Any]] = {}
    for source in sources:
        column = X[source["name"]]
        if source["levels"] is not None:
            table[source["name"]] = list(labels(column, source["name"]))
        else:
            values = column.astype(float).to_numpy(dtype=np.float64, na_value=np.nan)
            table[source["name"]] = [None if value != value else value for value in values.tolist()]
    return [{name: values[k] for name, values in table.items()} for k in range(len(X))]


def _outcomes(data: SurvivalData) -> list[list[Any]]:
    """Time, whether there was an event, and its cause or None, of each row."""
    known = [None] * data.n
    if data.cause is not None:
        names = (None, *data.cause_names)
        known = [names[code] for code in data.cause.tolist()]
    return [[float(t), bool(e), name] for t, e, name in zip(data.time, data.failed, known, strict=True)]


def _causes(tree: Any, view: TreeView, times: FloatArray) -> dict[str, Any] | None:
    """Names of the causes, and for a soft tree the links and the grid of its incidences; None for one kind of event."""
    if not tree.cause_names_:
        return None
    if not view.soft:
        return {"names": list(tree.cause_names_)}
    lattice, place = lattice_of(tree, times)
    links = [module.family.link.name for module in tree.cause_trees_]
    return {"names": list(tree.cause_names_), "links": links, "steps": len(lattice), "place": place.tolist()}


def lattice_of(tree: Any, times: FloatArray) -> tuple[FloatArray, IntArray]:
    """The grid (G,) over which a soft tree adds up incidences, and how many of its points are not after each time."""
    lattice = tree._hazard_grid(float(times[-1]))
    return lattice, np.searchsorted(lattice, times, side="right")


def leaf_arithmetic(tree: Any, view: TreeView, times: FloatArray) -> list[dict[str, Any]]:
    """What gives the curves of each leaf.

    For a soft tree, weights, and the baseline on the times. With causes, the same for each cause, with the baseline on
    the grid of the incidences and then on the times. For an optimal tree, survival, its median (None where it is not
    reached) and the incidence of each cause.
    """
    if not view.soft:
        leaves = np.arange(len(tree.leaf_table_.n))
        log_hazard = tree.curves_.log_cumulative_hazard(leaves, times)
        medians = [value if np.isfinite(value) else None for value in tree.curves_.quantile(leaves, 0.5).tolist()]
        survival = survival_from_log_cumulative_hazard(log_hazard).tolist()
        found = [{"survival": row, "half": half} for row, half in zip(survival, medians, strict=True)]
        if not tree.cause_names_:
            return found
        risen = tree.curves_.incidence(leaves, times)  # (L, T, K)
        return [own | {"incidences": of_leaf.T.tolist()} for own, of_leaf in zip(found, risen, strict=True)]
    if not tree.cause_trees_:
        return module_arithmetic(tree.tree_, times)
    all_times = np.concatenate([lattice_of(tree, times)[0], times])
    by_cause = [module_arithmetic(module, all_times) for module in tree.cause_trees_]
    return [{"causes": list(of_leaf)} for of_leaf in zip(*by_cause, strict=True)]


def module_arithmetic(module: SoftTree, times: FloatArray) -> list[dict[str, Any]]:
    """Weights of each leaf, and its baseline on the times: None at time 0."""
    positive = times[times > 0]
    with torch.no_grad():
        log_time = torch.as_tensor(positive).to(module.leaves).log()[None]
        features = module.family.time_features(log_time, module.time_scale)
        leaves = module.leaves[:, torch.as_tensor(module.used_leaves)]
        baseline, _ = module.family.baseline(leaves[..., module.n_features + 1 :], features)
    weights = leaves[0, :, : module.n_features + 1].double().cpu().numpy()
    values = baseline[0].expand(len(weights), -1).double().cpu().numpy()
    place = np.cumsum(times > 0) - 1
    return [
        {
            "weights": own.tolist(),
            "baseline": [float(curve[k]) if t > 0 else None for k, t in zip(place, times, strict=True)],
        }
        for own, curve in zip(weights, values, strict=True)
    ]


def _leaves(
    tree: Any, view: TreeView, data: SurvivalData, encoded: FloatArray, times: FloatArray, unit: str
) -> list[dict[str, Any]]:
    leaf, looks = tree.apply(data.X), leaf_looks(tree)
    found = []
    for number, arithmetic in enumerate(leaf_arithmetic(tree, view, times)):
        rows = np.flatnonzero(leaf == number)
        own: dict[str, Any] = {
            "n": int(rows.size),
            "events": int(data.failed[rows].sum()),
            "by_cause": _by_cause(data, rows),
            "color": looks.get(number, NO_ROWS).color,
            "rule": view.path_words(number),
            "median": "no rows",
            "km": {"times": [], "values": []},
            "apart": [list(row) for row in apart_words(view, encoded, rows).itertuples()],
        }
        if rows.size:
            curve = leaf_kaplan_meier(data, rows)
            at, values = steps(curve, float(times[-1]))
            own["median"] = f"observed median {with_unit(median(curve), unit)}"
            own["km"] = {"times": at.tolist(), "values": values.tolist()}
        found.append(own | arithmetic)
    return found


def _by_cause(data: SurvivalData, rows: IntArray) -> list[list[Any]]:
    """Each cause with its events among some rows."""
    if data.cause is None:
        return []
    codes = data.cause.numpy()[rows]
    return [[name, int((codes == k).sum())] for k, name in enumerate(data.cause_names, 1)]


def _strongest(view: TreeView, names: list[str], count: int = 3) -> list[str]:
    """Raw features that decide most over all leaves."""
    source = {column.name: column.source for column in view.columns}
    total = dict.fromkeys(names, 0.0)
    for leaf in view.leaves:
        for rank, feature in enumerate(view.top_features(leaf, 5)):
            total[source.get(feature, feature)] += 1.0 / (1 + rank)
    return sorted(names, key=lambda name: -total[name])[:count]


def _ticks(end: float) -> list[float]:
    """Four to eight round times from 0 to the end."""
    raw = end / 5
    base = 10.0 ** np.floor(np.log10(raw))
    step = min((m * base for m in (1, 2, 2.5, 5, 10)), key=lambda v: abs(v - raw))
    return [float(v) for v in np.arange(0, end * (1 + 1e-9), step)]
