"""How steady the splits of a tree of rules are: the same setting fitted again to bootstrap samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.cause_weights import cause_weights
from softsurv.estimators.shared.progress import progress_line
from softsurv.estimators.soft.tree import SoftSurvivalTree
from softsurv.explore.incidence_plot import need_same_causes
from softsurv.explore.style import (
    INK,
    MUTED,
    RULE_FILL,
    literal_text,
    new_axes,
    read_data,
    series_style,
    shorten,
    takes_tables,
)
from softsurv.explore.view import TreeView, tree_view
from softsurv.sparse.again import rules_again
from softsurv.stopping import many_fits
from softsurv.trees.linear_rule import LinearRule, Rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_SAMPLES = 2
OTHER = "#b9c0c8"
"""Colour of features other than the rule's own."""


@takes_tables
@many_fits()
def split_stability(tree: Any, data: Any, n: int = 20, seed: int = 0, *, progress: bool | None = None) -> pd.DataFrame:
    """How often each split asks for the same feature in bootstrap samples, and how far its threshold moves.

    Parameters
    ----------
    tree : fitted SoftSurvivalTree
        A tree of rules.
    data : SurvivalData, (X, y), or a table with ``time=`` and ``event=``
        Its training rows.
    n : int
        Samples of the rows, drawn with replacement.
    seed : int
        Same seed, same samples.
    progress : bool, optional
        Show a progress line of the samples; by default on a terminal.

    Returns
    -------
    DataFrame, index ``place`` (the answers that lead to the split)
        ``rule``; ``feature``, the strongest of the rule; ``same_feature``, the share of the samples in which that
        feature is the strongest at this place; ``asked_anywhere``, the share in which some split asks for it;
        ``threshold`` of the feature, where it is a number and the rule's other features are typical, with the 5th and
        95th centile ``lower`` and ``upper`` over the samples with the same feature, nan where that is one sample.
        ``attrs["thresholds"]`` holds the thresholds of all samples, ``attrs["features"]`` how often each feature stood
        there.

    Raises
    ------
    InvalidParameterError
        For a tree without rules, fewer than two samples, or data with other causes than the tree's.

    Notes
    -----
    Only the chosen setting is fitted again: depth, family, penalties and numbers of terms stay. The places are those
    of the tree; where a sample's tree has no split there, no feature counts. A rule that a sample's tree asks the
    other way round is turned before places are compared.

    Examples
    --------
    >>> split_stability(tree, train, n=20)                      # doctest: +SKIP
    """
    view = tree_view(tree)
    if not is_of_rules(tree):
        raise InvalidParameterError(
            "tree must have rules to measure their stability, got none; use a SoftSurvivalTree of rules"
        )
    if isinstance(n, bool) or not isinstance(n, int) or n < LEAST_SAMPLES:
        raise InvalidParameterError(f"n must be an integer >= {LEAST_SAMPLES}, got {n!r}")
    scale = _Scale(view.columns, view.typical, tree.spread_)
    own, read = placed(tree.tree_.rules, scale), read_data(data)
    need_same_causes(tree, read)
    samples = [placed(rules, scale, own) for rules in _again(tree, view, read, n, seed, progress)]
    rows, thresholds, features = [], {}, {}
    for place, rule in own.items():
        feature, threshold = scale.leading(rule)
        found = [scale.leading(sample[place]) for sample in samples if place in sample]
        same = np.array([value for name, value in found if name == feature])
        known = same[~np.isnan(same)]
        limits = np.quantile(known, [0.05, 0.95]) if known.size > 1 else [np.nan, np.nan]
        anywhere = np.mean([any(feature in r.sources(view.columns) for r in sample.values()) for sample in samples])
        shares = same.size / n, float(anywhere)
        rows.append((place, rule.text(view.columns), feature, *shares, threshold, *map(float, limits)))
        thresholds[place] = known.tolist()
        features[place] = {name: sum(name == other for other, _ in found) for name in dict(found)}
    names = ["place", "rule", "feature", "same_feature", "asked_anywhere", "threshold", "lower", "upper"]
    table = pd.DataFrame(rows, columns=names).set_index("place")
    table.attrs = {"thresholds": thresholds, "features": features, "samples": n}
    return table


def is_of_rules(tree: Any) -> bool:
    """Whether a fitted tree's splits are rules that can be found again; those of an `OptimalModelTree` are not."""
    return isinstance(tree, SoftSurvivalTree) and bool(tree.tree_.rules)


@dataclass(frozen=True)
class _Scale:
    """What compares the features of a rule: their columns, a typical row and their spreads, encoded (P,)."""

    columns: tuple[OutputColumn, ...]
    typical: FloatArray
    spread: FloatArray

    def leading(self, rule: LinearRule) -> tuple[str, float]:
        """The strongest raw feature of a rule, and where it turns if the others are typical; nan for a category."""
        k = self.strongest(rule)
        column = self.columns[rule.columns[k]]
        if column.kind != "number":
            return column.source, float("nan")
        others = sum(
            coefficient * self.columns[at].to_units(float(self.typical[at]))
            for at, coefficient in zip(rule.columns, rule.coefficients, strict=True)
            if at != rule.columns[k]
        )
        return column.source, (rule.threshold - others) / rule.coefficients[k]

    def strongest(self, rule: LinearRule) -> int:
        """Place in the rule of the term that varies most."""
        sizes = [
            abs(coefficient) * self.columns[at].scale * self.spread[at]
            for at, coefficient in zip(rule.columns, rule.coefficients, strict=True)
        ]
        return int(np.argmax(sizes))

    def turned(self, rule: LinearRule, other: LinearRule | None) -> bool:
        """Whether two rules with the same leading number send its large values to different sides."""
        if other is None or self.leading(rule)[0] != self.leading(other)[0]:
            return False
        return rule.coefficients[self.strongest(rule)] * other.coefficients[self.strongest(other)] < 0


def placed(rules: Rules, scale: _Scale, like: Mapping[str, LinearRule] | None = None) -> dict[str, LinearRule]:
    """Rules by the answers that lead to them, root first; a rule turned round against ``like`` answers as that one."""
    found: dict[str, LinearRule] = {}
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while waiting:
        node, answers = waiting.pop(0)
        if node >= len(rules):
            continue
        rule = rules[node]
        if rule is None:  # all rows go left
            waiting.append((2 * node + 1, answers))
            continue
        place = ", ".join(answers) or "root"
        found[place] = rule
        turned = scale.turned(rule, None if like is None else like.get(place))
        words = ("no", "yes") if turned else ("yes", "no")
        waiting += [(2 * node + 1 + side, (*answers, words[side])) for side in (0, 1)]
    return found


def _again(tree: Any, view: TreeView, data: SurvivalData, n: int, seed: int, progress: bool | None) -> list[Rules]:
    """The rules of the chosen setting on bootstrap samples."""
    encoded, rng = data.with_features(pd.DataFrame(view.encode(data.X))), np.random.default_rng(seed)
    families = [one.family for one in tree.cause_trees_ or (tree.tree_,)]
    counts = cause_weights(tree.cause_weights, tree.cause_names_)
    known = (view.columns, families, tree.candidate_, counts)
    with progress_line(progress, n, "splits again", " samples") as bar:
        found = []
        for _ in range(n):
            found.append(rules_again(encoded.take(_sample(data, rng)), *known))
            bar.update()
    return found


def _sample(data: SurvivalData, rng: np.random.Generator) -> IntArray:
    """Rows of a bootstrap sample: of subjects, where they have several rows."""
    if data.subject is None:
        return np.sort(rng.integers(0, data.n, data.n))
    _, subject = np.unique(data.subject.cpu().numpy(), return_inverse=True)
    drawn = np.bincount(rng.integers(0, data.n_subjects, data.n_subjects), minlength=data.n_subjects)
    return np.repeat(np.arange(data.n), drawn[subject])


@literal_text
def plot_split_stability(stability: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The table of :func:`split_stability`: bars of the features that stood at each split, and its thresholds.

    Parameters
    ----------
    stability : DataFrame
        From :func:`split_stability`.
    ax : matplotlib axes, optional

    Examples
    --------
    >>> ax = plot_split_stability(split_stability(tree, train))  # doctest: +SKIP
    """
    ax = new_axes(ax, 6.4, 1.0 + 0.62 * len(stability))
    samples = stability.attrs["samples"]
    for k, (place, row) in enumerate(stability.iterrows()):
        at = 0.0
        ax.barh(k, 1.0, color=RULE_FILL, height=0.46)
        counts = stability.attrs["features"][place]
        for name, count in sorted(counts.items(), key=lambda one: (one[0] != row["feature"], -one[1])):
            own = name == row["feature"]
            share = count / samples
            color = series_style(0).color if own else OTHER
            ax.barh(k, share, left=at, color=color, edgecolor="white", height=0.46)
            if share >= 0.12:
                words = shorten(str(name), max(4, int(60 * share)))
                ax.text(at + share / 2, k, words, ha="center", va="center", fontsize=8, color="white" if own else INK)
            at += share
        words = f"{place}: {shorten(str(row['rule']), 60)}{_moves(row, stability.attrs['thresholds'][place])}"
        ax.text(0, k - 0.27, words, fontsize=8, color=INK, va="bottom")
    ax.set(xlim=(0, 1), ylim=(len(stability) - 0.6, -0.75), yticks=[])
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel(f"Strongest feature at this place, in {samples} bootstrap samples")
    ax.tick_params(colors=MUTED)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _moves(row: Any, found: list[float]) -> str:
    """How far a threshold moves in the samples with the same feature, whose thresholds are ``found``, in words."""
    if not found or np.isnan(row["threshold"]):
        return ""
    if len(found) == 1:
        return f"   (threshold {row['threshold']:.4g}: {found[0]:.4g} in the one sample with this feature)"
    limits = f"{row['lower']:.4g} to {row['upper']:.4g}"
    return f"   (threshold {row['threshold']:.4g}: 90 % of {len(found)} samples within {limits})"
