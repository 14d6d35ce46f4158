"""The figures of paper `sst` from one place: box plots over starts, curves in the leaves, and the fairness experiment.

    python scripts/draw_sst.py --results results/sst.jsonl --fairness results/fairness.csv --only 4_uno_c 7

Figures 4, 5 and D.3 need the finished folds of `reproduce_sst.py` (``paper:loglogistic:2``, ``paper:spline_po:2`` and
``ctree5``, as printed, and further methods for figures of their own), 7 and 11 the table that `reproduce_fairness.py`
leaves beside its report; without the file they are left out. 6 and 10 (curves of all rows by leaf, one run of the first
fold) and 9 and 13 (the same with a fairness penalty) fit their own trees. ``--only`` names the figures that are wanted.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt
from _sst_report import finished
from _sst_tables import OTHER_DATA, scores
from reproduce_fairness import TREES, fair_tree

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.errors import SoftsurvWarning

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
BOXES = {
    "": {"paper:loglogistic:2": "Llog", "ctree5": "CTree", "paper:spline_po:2": "PO"},
    "_others": {
        "paper:loglogistic:2:kmeans": "Llog-init",
        "paper:exponential:2": "Exp",
        "paper:weibull:2": "W",
        "paper:spline_ph:2": "PH",
    },
}
"""Name that a figure ends in -> its methods, in the printed colours' order, and their labels."""

BOX_FIGURES = {"harrell_c": "d3_harrell_c", "uno_c": "4_uno_c", "cd_auc": "d3_cd_auc", "ibs": "5_ibs"}
CURVE_FIGURES = {
    "6": ("maintenance", "veterans", "churn"),
    "10": ("aids_death", "aids", "churn", "credit", "gbsg2", "whas500"),
}
PENALTIES = (0, 1, 5, 10, 15, 20)
SHORT_PENALTIES = (0, 5, 20)
LABELS = {"harrell_c": "$C_H$", "uno_c": "$C_U$", "cd_auc": "CD-AUC", "ibs": "IBS"}
PARTS = (("train", COLOURS[0], COLOURS[1], "o"), ("test", COLOURS[2], COLOURS[3], "s"))
"""Part, colours of its measure and of its penalty, marker."""

MOST_CURVES = 60
"""Curves drawn of each leaf, so that the others can be seen."""


def box_plots(frame: pd.DataFrame, measure: str, methods: dict[str, str], target: Path) -> None:
    """Scores of all folds and starts, one group of boxes a set; sets whose printed data we have not have a star."""
    frame = frame[(frame["variant"] == "default") & (frame["seed"] == 0) & frame["method"].isin(list(methods))]
    sets, width = sorted(frame["set"].unique()), 0.8 / len(methods)
    figure, axes = plt.subplots(figsize=(1.0 * len(sets) + 1.5, 3.6), layout="constrained")
    for number, (method, label) in enumerate(methods.items()):
        values = [scores(frame[(frame["set"] == name) & (frame["method"] == method)], measure) for name in sets]
        places = np.arange(len(sets)) + width * (number - (len(methods) - 1) / 2)
        drawn = axes.boxplot(
            values, positions=places, widths=0.85 * width, patch_artist=True,
            medianprops={"color": "black"}, flierprops={"markersize": 2},
        )  # fmt: skip
        for box in drawn["boxes"]:
            box.set_facecolor(COLOURS[number])
        axes.plot([], [], "s", color=COLOURS[number], label=label)
    names = [f"{name}*" if name in OTHER_DATA else name for name in sets]
    axes.set_xticks(np.arange(len(sets)), names, rotation=40, ha="right")
    axes.set_ylabel(LABELS[measure])
    axes.set_xlim(-0.6, len(sets) - 0.4)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(frameon=False, ncols=len(methods), loc="outside upper right")
    _save(figure, target)


def first_fold(name: str) -> tuple[SurvivalData, SurvivalData]:
    """Training and test part of a set's first fold."""
    data = load_dataset(name)
    fit, held = stratified_folds(data.event.numpy(), 5, seed=0)[0]
    return data.take(fit), data.take(held)


def draw_leaves(axes: plt.Axes, tree: SoftSurvivalTree, part: SurvivalData, times: np.ndarray) -> None:
    """Curves of the rows, one colour a leaf, its rows in shades by their risk."""
    survival, leaf = tree.predict_survival_function(part.X, times), tree.apply(part.X)
    for number in np.unique(leaf):
        curves = survival[leaf == number]
        curves = curves[np.argsort(curves.mean(1))]
        curves = curves[np.unique(np.linspace(0, len(curves) - 1, MOST_CURVES).round().astype(int))]
        for rank, curve in enumerate(curves):
            shade = 0.25 + 0.55 * rank / max(len(curves) - 1, 1)
            axes.plot(times, curve, color=COLOURS[number % 4], alpha=shade, linewidth=0.6)
        axes.plot([], [], color=COLOURS[number % 4], label=f"leaf {number + 1}\nn = {(leaf == number).sum()}")
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False)


def curves_by_leaf(sets: tuple[str, ...], target: Path) -> None:
    """One row of pictures a set, depth 1 on the left and 2 on the right; one run of the first fold."""
    figure, grid = plt.subplots(len(sets), 2, figsize=(8, 2.3 * len(sets)), layout="constrained", sharey=True)
    for axes, name in zip(grid, sets, strict=True):
        train, _ = first_fold(name)
        times = np.linspace(0, float(train.time.max()), 200)
        for depth, at in zip((1, 2), axes, strict=True):
            draw_leaves(at, SoftSurvivalTree(depth=depth, preset="paper", random_state=0).fit(train), train, times)
            at.set_title(f"{name}, depth {depth}", fontsize=9)
    for at in grid[-1]:
        at.set_xlabel("time")
    figure.supylabel("survival", fontsize=10)
    _save(figure, target)


def curves_by_penalty(penalties: tuple[int, ...], trees: str, target: Path) -> None:
    """Training rows on the left, test rows on the right, one row of pictures a penalty."""
    train, test = first_fold("unemployment")
    times = np.linspace(0, float(train.time.max()), 200)
    figure, grid = plt.subplots(len(penalties), 2, figsize=(8, 2.1 * len(penalties)), layout="constrained", sharey=True)
    for axes, k in zip(grid, penalties, strict=True):
        tree = fair_tree(train, k, trees, "sum")
        for part, at, name in zip((train, test), axes, ("training", "test"), strict=True):
            draw_leaves(at, tree, part, times)
            at.set_title(f"k = {k}, {name} rows", fontsize=9)
    for at in grid[-1]:
        at.set_xlabel("weeks")
    figure.supylabel("survival", fontsize=10)
    _save(figure, target)


def trends(frame: pd.DataFrame, target: Path) -> None:
    """Figure 7: Gini indices of gender in the leaves and the penalty, on training and test rows."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for at, part in zip(axes, ("train", "test"), strict=True):
        means = frame[(frame["part"] == part) & frame["k"].isin(PENALTIES)].groupby("k").mean(numeric_only=True)
        at.plot(means.index, means["gini"], "o-", color=COLOURS[0], label="Gini, mean of leaves")
        at.plot(means.index, means["gini_weighted"], "o-", color=COLOURS[2], label="Gini, weighted")
        other = at.twinx()
        other.plot(means.index, means["penalty_per_pair"], "s--", color=COLOURS[1], label="penalty a pair (right)")
        other.set_ylim(bottom=0)
        at.set(title=f"{part} rows", xlabel="k", ylim=(0.8, 1.0))
        lines = [line for axis in (at, other) for line in axis.get_lines()]
    names = [str(line.get_label()) for line in lines]
    figure.legend(lines, names, frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    _save(figure, target)


def accuracies(frame: pd.DataFrame, target: Path) -> None:
    """Figure 11: the four measures and the penalty as the strength grows."""
    figure, grid = plt.subplots(2, 2, figsize=(8, 5.4), layout="constrained")
    frame = frame[frame["k"].isin(PENALTIES)]
    for at, (measure, label) in zip(grid.flat, LABELS.items(), strict=True):
        other = at.twinx()
        for part, colour, other_colour, marker in PARTS:
            means = frame[frame["part"] == part].groupby("k").mean(numeric_only=True)
            at.plot(means.index, means[measure], marker + "-", color=colour)
            other.plot(means.index, means["penalty_per_pair"], marker + ":", color=other_colour)
        other.set_ylim(bottom=0)
        other.set_ylabel("penalty a pair", fontsize=8)
        at.set(xlabel="k", ylabel=label)
    lines = [line for axis in (at, other) for line in axis.get_lines()]
    names = ["measure, training rows", "measure, test rows", "penalty, training rows", "penalty, test rows"]
    figure.legend(lines, names, frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    _save(figure, target)


def _save(figure: plt.Figure, target: Path) -> None:
    figure.savefig(target, dpi=130)
    plt.close(figure)


def figures(args: argparse.Namespace) -> dict[str, Callable[[Path], None]]:
    """Name of every figure that can be drawn -> what draws it to a file."""
    found: dict[str, Callable[[Path], None]] = {}
    if args.results.exists():
        frame = finished(args.results)
        for measure, name in BOX_FIGURES.items():
            for end, methods in BOXES.items():
                there = {m: label for m, label in methods.items() if (frame["method"] == m).any()}
                if there:
                    found[name + end] = partial(box_plots, frame, measure, there)
    if args.fairness.exists():
        table = pd.read_csv(args.fairness)
        table = table[table["trees"] == args.trees]
        found |= {"7": partial(trends, table), "11": partial(accuracies, table)}
    found |= {name: partial(curves_by_leaf, sets) for name, sets in CURVE_FIGURES.items()}
    found["9"] = partial(curves_by_penalty, SHORT_PENALTIES, args.trees)
    found["13"] = partial(curves_by_penalty, PENALTIES, args.trees)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results/sst.jsonl"))
    parser.add_argument("--fairness", type=Path, default=Path("results/fairness.csv"))
    parser.add_argument("--trees", default="paper", choices=tuple(TREES), help="of figures 7, 9, 11 and 13")
    parser.add_argument("--only", nargs="+", help="such as 4_uno_c 6 13")
    parser.add_argument("--out", type=Path, default=Path("results/figures"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", SoftsurvWarning)
    args.out.mkdir(parents=True, exist_ok=True)
    known = figures(args)
    if unknown := set(args.only or ()) - set(known):
        parser.error(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for name, draw in known.items():
        if not args.only or name in args.only:
            draw(args.out / f"figure_{name}.png")


if __name__ == "__main__":
    main()
