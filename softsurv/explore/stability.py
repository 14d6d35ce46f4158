"""How steady the splits of a tree of rules are: the same setting fitted again to bootstrap samples."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, SoftsurvError
from softsurv.explore.splits import LinearSplit
from softsurv.explore.style import INK, MUTED, RULE_FILL, literal_text, new_axes, read_data, series_style, shorten
from softsurv.explore.view import TreeView, ViewNode, tree_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_SAMPLES = 2
NAME_LIMIT = 34


def split_stability(tree: Any, data: Any, n: int = 20, seed: int = 0) -> pd.DataFrame:
    """How often each split asks for the same feature in bootstrap samples, and how far its threshold moves.

    Parameters
    ----------
    tree : fitted SoftSurvivalTree
        A tree of rules.
    data : SurvivalData or (X, y)
        Its training rows.
    n : int
        Samples of the rows, drawn with replacement.
    seed : int
        Same seed, same samples.

    Returns
    -------
    DataFrame, index ``place`` (the answers that lead to the split)
        ``rule``; ``feature``, the strongest of the rule; ``same_feature``, the share of the samples in which that
        feature is the strongest at this place; ``asked_anywhere``, the share in which some split asks for it;
        ``threshold`` of the feature, where it is a number and the rule's other features are typical, with the 5th and
        95th centile ``lower`` and ``upper`` over the samples with the same feature. ``attrs["thresholds"]`` holds the
        thresholds of all samples, ``attrs["features"]`` how often each feature stood there.

    Raises
    ------
    InvalidParameterError
        For a tree without rules, or fewer than two samples.

    Notes
    -----
    Only the chosen setting is fitted again: depth, family, penalties and numbers of terms stay. The places are those
    of the tree; where a sample's tree has no split there, no feature counts.

    Examples
    --------
    >>> split_stability(tree, train, n=20)                      # doctest: +SKIP
    """
    view = tree_view(tree)
    if not getattr(tree.tree_, "rules", ()):
        raise InvalidParameterError("tree must have rules to measure their stability, got none; use a tree of rules")
    if isinstance(n, bool) or not isinstance(n, int) or n < LEAST_SAMPLES:
        raise InvalidParameterError(f"n must be an integer >= {LEAST_SAMPLES}, got {n!r}")
    read = read_data(data)
    again = [tree_view(one) for one in _refitted(tree, read, n, seed)]
    rows, thresholds, features = [], {}, {}
    for node in view.branches:
        place, (feature, threshold) = view.place_words(node), leading(view, node)
        found = [leading(other, same) for other in again if (same := _at(other, place)) is not None]
        own = np.array([value for name, value in found if name == feature])
        known = own[~np.isnan(own)]
        limits = np.quantile(known, [0.05, 0.95]) if known.size else [np.nan, np.nan]
        anywhere = sum(any(feature in _sources(other, k) for k in other.branches) for other in again)
        assert node.split is not None
        rows.append((place, node.split.text(), feature, own.size / n, anywhere / n, threshold, *map(float, limits)))
        thresholds[place] = known.tolist()
        features[place] = pd.Series([name for name, _ in found], dtype=object).value_counts().to_dict()
    names = ["place", "rule", "feature", "same_feature", "asked_anywhere", "threshold", "lower", "upper"]
    table = pd.DataFrame(rows, columns=names).set_index("place")
    table.attrs = {"thresholds": thresholds, "features": features, "samples": n}
    return table


def leading(view: TreeView, node: ViewNode) -> tuple[str, float]:
    """The strongest raw feature of a rule, and where it turns if the others are typical; nan for a category."""
    assert isinstance(node.split, LinearSplit)
    strongest = next(iter(node.split.strengths()))
    source = next(column.source for column in view.columns if column.name == strongest)
    edges = node.split.boundaries(view.columns, view.typical, source)
    return source, edges[0] if edges else float("nan")


def _sources(view: TreeView, node: ViewNode) -> tuple[str, ...]:
    assert isinstance(node.split, LinearSplit)
    return node.split.sources()


def _at(view: TreeView, place: str) -> ViewNode | None:
    """The branch node of a tree at some place."""
    return next((node for node in view.branches if view.place_words(node) == place), None)


def _refitted(tree: Any, data: SurvivalData, n: int, seed: int) -> list[Any]:
    """Trees of the chosen setting on bootstrap samples; a sample that no tree can be fitted to is left out."""
    chosen = tree.candidate_
    model = clone(tree).set_params(
        depth=chosen.depth, leaf=tree.tree_.family, l2=chosen.ridge, shrinkage=chosen.shrinkage,
        slope_shrinkage=chosen.slope_shrinkage, max_terms=chosen.max_terms, progress=False,
    )  # fmt: skip
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        rows = data.take(np.sort(rng.integers(0, data.n, data.n)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(model.refit_setting(rows, chosen))
            except SoftsurvError:
                continue
    return found


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
            ax.barh(k, share, left=at, color=series_style(0).color if own else "#b9c0c8", edgecolor="white", height=0.46)
            if share >= 0.12:
                words = shorten(str(name), max(4, int(60 * share)))
                ax.text(at + share / 2, k, words, ha="center", va="center", fontsize=8, color="white" if own else INK)
            at += share
        ax.text(0, k - 0.33, f"{place}: {shorten(str(row['rule']), 60)}{_moves(row)}", fontsize=8, color=INK, va="bottom")
    ax.set(xlim=(0, 1), ylim=(len(stability) - 0.6, -0.75), yticks=[])
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel(f"Strongest feature at this place, in {samples} bootstrap samples")
    ax.tick_params(colors=MUTED)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _moves(row: Any) -> str:
    """How far a threshold moves, in words."""
    if np.isnan(row["lower"]) or np.isnan(row["threshold"]):
        return ""
    return f"   (threshold {row['threshold']:.4g}: 90 % within {row['lower']:.4g} to {row['upper']:.4g})"
