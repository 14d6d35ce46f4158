"""What each deviation from the printed NODEC-DR does (paper `sst`, section 4): objective and test measures.

    SOFTSURV_DATA=folder python scripts/bench_nodec.py [--sets gbsg2 churn whas500] [--starts 20]

Log-logistic leaves, depth 2, 5 folds; each row changes one thing of softsurv's NODEC-DR. Objective: mean training
objective over folds and starts. The test measures are means over the same trees.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from _machine import as_markdown, machine_line
from reproduce_sst import measures_of, soft_curves

from softsurv import SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import SoftsurvWarning
from softsurv.hazards import get_family
from softsurv.soft import nodec as algorithm
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.nodec import Balance, NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.starts import initial_leaves, start_routing
from softsurv.trees.soft_tree import SoftTree

LONG = LbfgsSettings(max_iterations=200, ftol=1e-9)
SHORT = LbfgsSettings(max_iterations=20, ftol=1e-6)
PLAIN = NodecSettings(max_sweeps=10, patience=10)


@dataclass(frozen=True)
class Variant:
    """One way to run the decomposition."""

    settings: NodecSettings = PLAIN
    random_leaves: bool = False
    ridge_on_all: bool = False
    class_ridge: float = algorithm.CLASS_RIDGE


VARIANTS = {
    "softsurv (coefficients penalised, 4/N; leaves start at the single-leaf fit)": Variant(),
    "thresholds as printed: moderate 0.1, high 0.3": Variant(replace(PLAIN, balance=Balance(0.1, 0.3, 0.4))),
    "no reassignment": Variant(replace(PLAIN, balance=Balance(0.0, 0.0, 0.0))),
    "random leaf parameters at the start, as printed": Variant(random_leaves=True),
    "penalty on every leaf parameter, as printed": Variant(ridge_on_all=True),
    "subproblems by 20 rounds of L-BFGS": Variant(replace(PLAIN, branch=SHORT, leaf=SHORT)),
    "subproblems solved to the end": Variant(replace(PLAIN, branch=LONG, leaf=LONG)),
    "class ridge 1e-6 instead of 1e-3": Variant(class_ridge=1e-6),
    "stop after 3 sweeps without gain, not 10": Variant(NodecSettings(max_sweeps=10, patience=3)),
}


def train(data: SurvivalData, variant: Variant, starts: int, seed: int) -> tuple[list[SoftTree], torch.Tensor]:
    """All starts of one fold as one stack; trees and their objectives."""
    family = get_family("loglogistic")
    problem = make_problem(data, family, n_trees=starts)
    free = no_penalties(starts, problem.design.shape[-1] + family.n_shape, problem.design)
    ridge = torch.full_like(free.l2, 4.0 / data.n)
    penalties = replace(free, **({"l2_all": ridge} if variant.ridge_on_all else {"l2": ridge}))
    objective = Objective(problem, 2, penalties)
    seeds = [seed * 1000 + k for k in range(starts)]
    routing = start_routing(["random"] * starts, data, 2, seeds)
    single = fit_single_leaf(problem, penalties.l2, penalties.l2_all).point[0]
    leaves = initial_leaves(torch.zeros_like(single) if variant.random_leaves else single, 2, seeds)
    if variant.random_leaves:
        leaves = 10 * leaves  # standard normal
    kept, algorithm.CLASS_RIDGE = algorithm.CLASS_RIDGE, variant.class_ridge
    try:
        done = nodec(objective, routing, leaves, variant.settings)
    finally:
        algorithm.CLASS_RIDGE = kept
    trees = []
    for k in range(starts):
        tree = SoftTree(2, data.x.shape[1], family)
        state = {"routing": done.routing[k : k + 1], "leaves": done.leaves[k : k + 1], "time_scale": problem.time_scale}
        tree.load_state_dict(state)
        trees.append(tree)
    return trees, done.objective


def folds_of(name: str) -> list[tuple[SurvivalData, SurvivalData]]:
    """Encoded training and test parts."""
    data = load_dataset(name)
    parts = []
    for fit, held in stratified_folds(data.event.numpy(), 5, 0):
        encoder = Preprocessor().fit(data.take(fit).X)
        encode: Callable[[SurvivalData], SurvivalData] = lambda p, e=encoder: p.with_features(e.transform(p.X))  # noqa: E731
        parts.append((encode(data.take(fit)), encode(data.take(held))))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["gbsg2", "churn", "whas500"])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/nodec.md"))
    args = parser.parse_args()
    warnings.simplefilter("ignore", SoftsurvWarning)
    torch.set_num_threads(1)
    rows = []
    for name in args.sets:
        folds = folds_of(name)
        for label, variant in VARIANTS.items():
            objectives, scores = [], []
            for fold, (fit, held) in enumerate(folds):
                trees, objective = train(fit, variant, args.starts, fold)
                objectives.append(float(objective.mean()))
                scores += [measures_of(fit, held, soft_curves(tree, fit, held)) for tree in trees]
            mean = pd.DataFrame(scores).mean()
            row = {"set": name, "variant": label, "objective": np.mean(objectives)}
            rows.append(row | {k: mean[k] for k in ("harrell_c", "ibs")})
    frame = pd.DataFrame(rows).round(4)
    text = f"{machine_line()}\n{args.starts} starts, 5 folds\n\n{as_markdown(frame)}\n"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
