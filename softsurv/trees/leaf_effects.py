"""Tables of the leaves of a soft tree: typical curve and effect of each feature, with intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn, Source
from softsurv.data.rules import level_words, rounded_text
from softsurv.hazards.base import LeafFamily
from softsurv.trees.curve_bands import quantile_limits
from softsurv.trees.soft_tree import SoftTree

NORMAL_95 = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""

LOG_LINEAR = ("exponential", "weibull", "loglogistic", "lognormal")
"""Families whose log time is linear in the features: an effect is also a factor on time."""

MEASURES = {
    "proportional_hazards": "hazard ratio",
    "proportional_odds": "odds ratio of the event",
    "probit": "shift in standard deviations",
}
"""The measure of an effect, by the link of the family."""

UNITS = ("step", "unit", "sd")

LARGEST_RATE = 700.0
"""The exponential of more is beyond all floats."""


@dataclass(frozen=True)
class Contrast:
    """A difference of two rows in one feature.

    Attributes
    ----------
    feature : str
    words : str
        ``+10`` or ``III vs I``.
    encoded : ndarray (P,)
        The difference of the encoded features.
    """

    feature: str
    words: str
    encoded: FloatArray


def contrasts(
    columns: Sequence[OutputColumn],
    sources: Sequence[Source],
    spread: FloatArray,  # (P,) standard deviation of each encoded feature
    per: str = "step",
    whole: Collection[str] = (),
) -> list[Contrast]:
    """A contrast for each number, one for each level against the first, and one for missing values.

    Parameters
    ----------
    per : {"step", "unit", "sd"}
        Difference in a number: the power of ten next below its standard deviation, one unit of the data, or a
        standard deviation.
    whole : collection of str
        Raw features of whole numbers: their step is at least one.
    """
    found, levels = [], {source.name: source.levels for source in sources}
    for k, column in enumerate(columns):
        encoded = np.zeros(len(columns))
        if column.kind == "number":
            step = _step(column, float(spread[k]), per)
            step = max(step, 1.0) if per == "step" and column.source in whole else step
            encoded[k] = step / column.scale
            words = f"+{rounded_text(step)}" + (" (1 sd)" if per == "sd" else "")
            found.append(Contrast(column.source, words, encoded))
        elif column.kind == "missing":
            encoded[k] = 1.0
            found.append(Contrast(column.source, "missing vs known", encoded))
        else:
            first = (levels.get(column.source) or ("other",))[0]
            place = {c.level: j for j, c in enumerate(columns) if c.source == column.source and c.kind == "level"}
            level = column.level
            if level == first:
                hidden = hidden_level(columns, column.source, levels.get(column.source))
                if hidden is None:
                    continue
                level = hidden  # the first level has a column, and another one has none
            for name, sign in ((level, 1.0), (first, -1.0)):
                if name in place:
                    encoded[place[name]] = sign
            found.append(Contrast(column.source, f"{level_words(str(level))} vs {level_words(first)}", encoded))
    return found


def hidden_level(columns: Sequence[OutputColumn], source: str, levels: Sequence[str] | None) -> str | None:
    """The level of a category that has no column of its own: a row has it where all columns are 0."""
    shown = {column.level for column in columns if column.source == source}
    return next((level for level in levels or () if level not in shown), None)


def _step(column: OutputColumn, spread: float, per: str) -> float:
    """The difference in a number for which an effect is reported, in the data's units."""
    deviation = spread * column.scale
    if per == "unit" or deviation <= 0:
        return 1.0
    if per == "sd":
        return deviation
    if column.scale == 1.0 and deviation < 1:  # a range of one, such as 0 and 1, or no scaling
        return 1.0
    return 10.0 ** math.floor(math.log10(deviation))


def measure_of(family: LeafFamily, measure: str = "own") -> str:
    """The measure of an effect: the family's own one, or "time ratio"."""
    return "time ratio" if measure == "time" else MEASURES.get(family.link.name, "effect")


def shares_slopes(leaves: Tensor, n_features: int) -> bool:
    """Whether all leaves (L, P + 1 + K) have the same slopes; False for a single leaf."""
    slopes = leaves[:, 1 : n_features + 1]
    return len(leaves) > 1 and bool((slopes == slopes[:1]).all())


def effect_table(
    tree: SoftTree,
    used: IntArray,  # (L,) leaves of the tree that rows reach
    covariance: FloatArray | None,  # (L, D, D)
    asked: Sequence[Contrast],
    measure: str = "own",
) -> pd.DataFrame:
    """The effect of each contrast in each leaf, with its standard error and 95 % interval.

    Returns
    -------
    DataFrame, index (leaf, feature, contrast)
        ``effect``, ``lower``, ``upper``; ``coefficient`` and ``standard_error`` on the log scale (a shift has no other
        scale than its own). The leaf is "all" where the leaves share their slopes. Standard errors are nan without a
        covariance.
    """
    leaves = tree.leaves[0].detach().double().cpu()[torch.as_tensor(used)]
    p, in_time = tree.n_features, measure == "time"
    once = shares_slopes(leaves, p) and not in_time
    rows = []
    for k in range(1 if once else len(leaves)):
        for one in asked:
            weights, value = np.zeros(leaves.shape[1]), float(one.encoded @ leaves[k, 1 : p + 1].numpy())
            weights[1 : p + 1] = one.encoded
            if in_time:  # log time falls by the slope over the family's own slope in log time
                scale = _log_time_per_unit(tree, int(used[k]))
                weights[p + 1 :] = -value
                weights, value = -scale * weights, -scale * value
            error = np.nan if covariance is None else math.sqrt(max(float(weights @ covariance[k] @ weights), 0.0))
            ends = [value, value - NORMAL_95 * error, value + NORMAL_95 * error]
            if tree.family.link.name != "probit" or in_time:
                with np.errstate(over="ignore"):
                    ends = [float(np.exp(v)) for v in ends]
            rows.append(("all" if once else k, one.feature, one.words, *ends, value, error))
    names = ["leaf", "feature", "contrast", "effect", "lower", "upper", "coefficient", "standard_error"]
    return pd.DataFrame(rows, columns=names).set_index(names[:3])


def _log_time_per_unit(tree: SoftTree, leaf: int) -> float:
    """By how much log time rises while the predictor rises by one, in a leaf whose baseline is linear in log time."""
    scale = tree.time_scale[:1].double()
    features = tree.family.time_features(scale[:, :1], scale)  # at any time: the slope is the same at all
    shape = tree.leaves[:1, leaf : leaf + 1, tree.n_features + 1 :].detach().double()
    _, log_slope = tree.family.baseline(shape, features)
    return float(scale[0, 1] * torch.exp(-log_slope))


def baseline_table(
    tree: SoftTree,
    used: IntArray,  # (L,)
    covariance: FloatArray | None,  # (L, D, D)
    typical: FloatArray,  # (L, P) encoded, or (P,) for one row in every leaf
) -> pd.DataFrame:
    """The curve of the typical row of each leaf: its median time with a 95 % interval, and its shape.

    Returns
    -------
    DataFrame, index ``leaf``
        ``median`` of the curve, ``median_lower``, ``median_upper``, and ``shape`` in the words of the family.
    """
    leaves = tree.leaves[0].detach()[torch.as_tensor(used)]
    alone = SoftTree(0, tree.n_features, tree.family, len(leaves), leaves.dtype).to(leaves.device)
    scale = tree.time_scale.expand(len(leaves), -1)
    alone.load_state_dict({"routing": alone.routing, "leaves": leaves[:, None], "time_scale": scale})
    x = torch.as_tensor(np.broadcast_to(typical, (len(leaves), tree.n_features)).copy()).to(leaves)[:, None]
    with torch.no_grad():
        median = alone.survival_time(x, 0.5)[:, 0].double().cpu().numpy()
    limits = np.full((2, len(median)), np.nan)
    for k, own in enumerate(() if covariance is None else covariance):
        limits[:, k : k + 1] = quantile_limits(tree, int(used[k]), own, x[k], median[k : k + 1], 0.95)
    rows = {
        "median": median,
        "median_lower": limits[0],
        "median_upper": limits[1],
        "shape": [shape_words(tree, int(leaf)) for leaf in used],
    }
    return pd.DataFrame(rows, index=pd.RangeIndex(len(used), name="leaf"))


def shape_words(tree: SoftTree, leaf: int) -> str:
    """The shape of a leaf's curve in the words of its family."""
    family = tree.family
    own = tree.leaves[0, leaf, tree.n_features + 1 :].detach().double().cpu()
    centre, scale = (float(v) for v in tree.time_scale[0, :2])
    known: dict[str, Any] = {
        "exponential": lambda: "constant hazard",
        "weibull": lambda: f"Weibull shape {math.exp(own[0]) / scale:.3g}",
        "loglogistic": lambda: f"log-logistic shape {math.exp(own[0]) / scale:.3g}",
        "lognormal": lambda: f"log-normal sigma {scale / math.exp(own[0]):.3g}",
        "gompertz": lambda: f"hazard grows by {_growth(float(own[0]) / math.exp(centre))} a unit of time",
        "spline_ph": lambda: f"spline of log hazard, {len(own) - 1} inner knots",
        "spline_po": lambda: f"spline of log odds, {len(own) - 1} inner knots",
    }
    return str(known[family.name]()) if family.name in known else f"{family.name} shape {_numbers(own)}"


def _growth(rate: float) -> str:
    """``exp(rate) - 1`` in three digits; in a unit that is long beside the times, no float may hold it."""
    if rate < LARGEST_RATE:
        return f"{math.expm1(rate):.3g}"
    exponent = rate / math.log(10.0)
    power = math.floor(exponent - math.log10(9.995)) + 1  # 9.995 rounds to 10.00
    return f"{10.0 ** (exponent - power):.2f}e+{power}"


def _numbers(values: Tensor) -> str:
    return ", ".join(f"{float(v):.3g}" for v in values)
