"""Group fairness on the unemployment data (paper `sst`, section 5.4 and Appendix F).

    python scripts/reproduce_fairness.py [--folds 5] [--out results/fairness.md]

One soft tree of depth 2 with log-logistic leaves for each strength rho = k / (N_M N_F), k in 0, 1, 5, 10, 15, 20,
gender being the sensitive group and no feature. The paper sums the squared distance over the T observed training
times, softsurv integrates it in units of the time span, so that a penalty of rho is `fairness` = k T beside the mean
negative log-likelihood, as eq. 4 prints it (``--error mean``), or k T / N beside the summed one, to which the paper
adds its ridge (``--error sum``, the default). Beside the mean, every k from 1 on makes all curves one; beside the sum
there is a trade-off. Measured on training and test rows: normalised Gini impurity of gender in the leaves (simple and
weighted mean; 1 is an even mix), the penalty per pair of individuals, C, CD-AUC and IBS. `draw_sst.py` draws them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.errors import DataWarning
from softsurv.metrics.fairness import curve_gap, fairness_penalty, leaf_gini

STRENGTHS = (0, 1, 5, 10, 15, 20)
DECADES = (50, 200)
"""Two more, to show where the curves end."""


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


def run(folds: int, solver: str, error: str) -> pd.DataFrame:
    """One row for each fold, strength and part."""
    data = load_dataset("unemployment")
    rows: list[dict[str, Any]] = []
    for fold, (fit, held) in enumerate(stratified_folds(data.event.numpy(), 5, seed=0)[:folds]):
        train, test = data.take(fit), data.take(held)
        grid = np.unique(train.time.numpy())
        for k in (*STRENGTHS, *DECADES):
            strength = k * grid.size / (1 if error == "mean" else train.n)
            tree = SoftSurvivalTree(depth=2, l2=0.1, shrinkage=0.0, routing_l2=0.1, solver=solver, fairness=strength)
            tree.fit(train)
            for name, part in (("train", train), ("test", test)):
                rows.append({"fold": fold, "k": k, "fairness": strength, "part": name} | measure(tree, part, grid))
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--solver", default="lbfgs", choices=("lbfgs", "nodec"))
    parser.add_argument("--error", default="sum", choices=("sum", "mean"), help="what the penalty is added to")
    parser.add_argument("--out", type=Path, default=Path("results/fairness.md"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", DataWarning)
    frame = run(args.folds, args.solver, args.error)
    table = frame.drop(columns="fold").groupby(["part", "k"]).mean().round(4)
    asked = f"{args.folds} folds, solver {args.solver}, penalty added to the {args.error}"
    text = f"{machine_line()}\n{asked}\n\n{as_markdown(table.reset_index())}\n"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text)
    frame.to_csv(args.out.with_suffix(".csv"), index=False)
    print(text)


if __name__ == "__main__":
    main()
