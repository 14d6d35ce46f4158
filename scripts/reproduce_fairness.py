"""Group fairness on the unemployment data (paper `sst`, section 5.4 and Appendix F).

    python scripts/reproduce_fairness.py [--folds 5] [--trees paper ridge] [--out results/fairness.jsonl]

One soft tree of depth 2 with log-logistic leaves for each strength rho = k / (N_M N_F), k in 0, 1, 5, 10, 15, 20,
gender being the sensitive group and no feature. The paper sums the squared distance over the T observed training
times, softsurv integrates it in units of the time span, so that a penalty of rho is `fairness` = k T beside the mean
negative log-likelihood, as eq. 4 prints it (``--error mean``), or k T / N beside the summed one, to which the paper
adds its ridge (``--error sum``, the default). Beside the mean, every k from 1 on makes all curves one; beside the sum
there is a trade-off. Measured on training and test rows: normalised Gini impurity of gender in the leaves (simple and
weighted mean; 1 is an even mix), the penalty per pair of individuals, C, CD-AUC and IBS. ``--trees paper`` trains with
the published settings (NODEC-DR, 20 starts), ``ridge`` jointly with a small ridge on leaves and routing. Every finished
fit is a line of the result file. `draw_sst.py` draws them.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.errors import SoftsurvWarning
from softsurv.metrics.fairness import curve_gap, fairness_penalty, leaf_gini

STRENGTHS = (0, 1, 5, 10, 15, 20)
DECADES = (50, 200)
"""Two more, to show where the curves end."""

TREES: dict[str, dict[str, Any]] = {
    "paper": {"preset": "paper", "random_state": 0},
    "ridge": {"l2": 0.1, "shrinkage": 0.0, "routing_l2": 0.1},
}


def measure(tree: SoftSurvivalTree, part: SurvivalData, grid: np.ndarray) -> dict[str, float]:
    """Fairness and quality of a fitted tree on one part of the data."""
    assert part.group is not None
    group = part.group.numpy() == int(part.group.max())
    curves = tree.predict_survival_function(part.X, grid)
    gini = leaf_gini(tree.apply(part.X), group)
    quality = tree.evaluate(part.X, part.y)
    return {
        "gini": gini.mean,
        "gini_weighted": gini.weighted,
        "penalty_per_pair": fairness_penalty(curves, grid, group, per_pair=True) / (grid[-1] - grid[0]),
        "mean_curve_gap": curve_gap(curves, grid, group).mean,
        **{k: quality[k] for k in ("harrell_c", "uno_c", "cd_auc", "ibs")},
    }


def strength(k: float, train: SurvivalData, error: str) -> float:
    """The printed k in the units of ``fairness``, beside the summed or the mean negative log-likelihood."""
    distinct = len(np.unique(train.time.numpy()))
    return k * distinct / (1 if error == "mean" else train.n)


def fair_tree(train: SurvivalData, k: float, trees: str, error: str) -> SoftSurvivalTree:
    """A tree of depth 2 at one strength."""
    settings: dict[str, Any] = TREES[trees]
    return SoftSurvivalTree(depth=2, leaf="loglogistic", fairness=strength(k, train, error), **settings).fit(train)


def run_fit(fold: int, k: float, trees: str, error: str) -> dict[str, Any]:
    """Measures of one fit on its training and test rows."""
    data = load_dataset("unemployment")
    train, test = (data.take(rows) for rows in stratified_folds(data.event.numpy(), 5, seed=0)[fold])
    tree, grid = fair_tree(train, k, trees, error), np.unique(train.time.numpy())
    parts = {name: measure(tree, part, grid) for name, part in (("train", train), ("test", test))}
    return {"fairness": strength(k, train, error)} | parts


def run(results: Results, folds: int, trees: str, error: str) -> pd.DataFrame:
    """One row for each fold, strength and part."""
    rows: list[dict[str, Any]] = []
    for fold in range(folds):
        for k in (*STRENGTHS, *DECADES):
            case = f"{trees}/{error}/{fold}/{k}"
            work: Callable[[], dict[str, Any]] = lambda at=(fold, k, trees, error): run_fit(*at)  # noqa: E731
            done = results.get(case, work)
            for part in ("train", "test"):
                rows.append({"fold": fold, "k": k, "fairness": done["fairness"], "part": part} | done[part])
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--trees", nargs="+", default=list(TREES), choices=tuple(TREES), help="how they are trained")
    parser.add_argument("--error", default="sum", choices=("sum", "mean"), help="what the penalty is added to")
    parser.add_argument("--out", type=Path, default=Path("results/fairness.jsonl"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", SoftsurvWarning)
    parts, frames = [machine_line()], []
    for trees in args.trees:
        frame = run(Results(args.out), args.folds, trees, args.error)
        table = frame.drop(columns="fold").groupby(["part", "k"]).mean().round(4)
        asked = f"Trees: {trees}; {args.folds} folds, penalty added to the {args.error}"
        parts.append(f"## {asked}\n\n{as_markdown(table.reset_index())}")
        frames.append(frame.assign(trees=trees))
    args.out.with_suffix(".md").write_text("\n\n".join(parts) + "\n")
    pd.concat(frames).to_csv(args.out.with_suffix(".csv"), index=False)
    print(*parts, sep="\n\n")


if __name__ == "__main__":
    main()
