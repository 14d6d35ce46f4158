"""The tables of paper `sst`: 15 data sets, 5 folds, soft survival trees beside Cox, forest and greedy tree.

    SOFTSURV_DATA=folder python scripts/reproduce_sst.py                       # default design and the benchmarks
    python scripts/reproduce_sst.py --methods paper:loglogistic:2 --variant paper
    python scripts/reproduce_sst.py --methods paper:loglogistic:2:kmeans paper:spline_po:1 --starts 20 --training-scores
    python scripts/reproduce_sst.py --seeds 0 1 2 --methods default cox

Methods: ``default`` (SoftSurvivalTree() as it is), ``single`` (depth 0), ``cox``, ``forest`` (scikit-survival's random
survival forest, 100 trees), ``tree2`` to ``tree5`` (its survival tree of that depth), ``km``, and
``paper:LEAF:DEPTH[:kmeans]`` (NODEC-DR with the published settings: measures are means over ``--starts`` starts, as
printed, and beside them those of the start with the lowest training objective). ``--thresholds`` is the order of the
two thresholds of the reassignment. Every finished fold is a line of the result file; the same command goes on where it
stopped. ``--jobs`` folds run at a time, by ``--backend`` loky on this machine, or dask or ray on a cluster (packages of
their own; dask's scheduler by DASK_SCHEDULER_ADDRESS, ray's by RAY_ADDRESS).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from _sst_printed import SETS
from _sst_report import MEASURES, finished, report
from tqdm import tqdm

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import SoftsurvWarning
from softsurv.estimators.soft.parameters import choose_device
from softsurv.hazards import get_family
from softsurv.metrics.evaluate import evaluate, outcome
from softsurv.nonparametric import kaplan_meier
from softsurv.soft import paper
from softsurv.soft.fit import FittedStarts, fit_starts
from softsurv.soft.parallel import Machine, one_core_each
from softsurv.soft.problem import floor_times, time_floor
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.trees.soft_tree import SoftTree

BENCHMARKS = ("default", "cox", "forest", "tree5", "km")
TINY = 1e-12
"""Cumulative hazard where a step estimate is 0: ranks by the model, which is 0 only before its first step."""

Curves = Callable[[np.ndarray], np.ndarray]


def measures_of(train: SurvivalData, test: SurvivalData, curves: Curves) -> dict[str, float]:
    """The four measures, and the two readings of the printed ones: tied events counted, log-time Brier integral."""
    floored = outcome(test, time_floor(train.time))["time"]  # zeros, as training takes them
    ends = [np.asarray(v) for v in (floor_times(train.time), train.event, floored, test.event)]
    plain = evaluate(*ends, curves)
    lower, upper = plain["range"]
    printed = evaluate(*ends, curves, tied_event_times="count", scale="log", times=np.linspace(lower, upper, 100))
    extra = {"harrell_c_ties": printed["harrell_c"], "ibs_log": printed["ibs"]}
    return {k: float(plain[k]) for k in MEASURES} | {k: float(v) for k, v in extra.items()}


def steps(times: np.ndarray, hazard: np.ndarray) -> Curves:
    """Log H of step estimates: times (K,), hazard (n, K)."""

    def curves(at: np.ndarray) -> np.ndarray:
        position = np.searchsorted(times, at, side="right") - 1
        return np.log(np.where(position >= 0, np.maximum(hazard[:, np.maximum(position, 0)], TINY), TINY))

    return curves


def benchmark_curves(method: str, train: SurvivalData, test: SurvivalData, seed: int) -> Curves:
    """Fit one of the benchmark models on the encoded features."""
    x, x_test, y = train.x.numpy(), test.x.numpy(), train.y
    if method == "km":
        curve = kaplan_meier(train.time.numpy(), train.event.numpy())
        hazard = -np.log(np.maximum(curve.values, 1e-300))
        return steps(curve.times, np.tile(hazard, (test.n, 1)))
    if method == "cox":
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        model = CoxPHSurvivalAnalysis(alpha=0.1).fit(x, y)
        baseline, score = model.cum_baseline_hazard_, model.predict(x_test)
        log_baseline = steps(baseline.x, baseline.y[None])
        return lambda at: log_baseline(at) + score[:, None]
    if method == "forest":
        from sksurv.ensemble import RandomSurvivalForest

        forest = RandomSurvivalForest(n_estimators=100, min_samples_leaf=15, random_state=seed, n_jobs=1).fit(x, y)
        return steps(forest.unique_times_, forest.predict_cumulative_hazard_function(x_test, return_array=True))
    from sksurv.tree import SurvivalTree

    tree = SurvivalTree(max_depth=int(method.removeprefix("tree")), random_state=seed).fit(x, y)
    return steps(tree.unique_times_, tree.predict_cumulative_hazard_function(x_test, return_array=True))


@dataclass(frozen=True)
class Asked:
    """What is asked of every fold."""

    thresholds: paper.Thresholds = "printed"
    starts: int = paper.RESTARTS
    training_scores: bool = False


def paper_starts(leaf: str, depth: int, init: str, train: SurvivalData, seed: int, asked: Asked) -> FittedStarts:
    """The starts of NODEC-DR with the published settings, trained as one stack; ``train`` is encoded."""
    family = get_family(leaf)
    training = paper.training(leaf, init, thresholds=asked.thresholds)
    candidate = Candidate(family.name, depth, 0.0)
    recipe = Recipe(family, candidate, (init,) * asked.starts, training, paper.L2, seed=1000 * seed)
    with one_core_each() as workers:
        return fit_starts(train, recipe, Machine(choose_device("auto"), workers=workers))


def soft_curves(tree: SoftTree, train: SurvivalData, test: SurvivalData) -> Curves:
    """Log H of one soft tree; time 0 is read at half the smallest positive training time."""
    floor = time_floor(train.time)

    def curves(at: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return tree.log_cumulative_hazard(test.x, torch.as_tensor(np.maximum(at, floor)))[0].numpy()

    return curves


def run_fold(name: str, variant: str | None, seed: int, fold: int, method: str, asked: Asked) -> dict[str, Any]:
    """One line of the result file."""
    warnings.simplefilter("ignore", SoftsurvWarning)
    data = load_dataset(name, variant)
    fit, held = stratified_folds(data.event.numpy(), 5, seed)[fold]
    raw_train, raw_test = data.take(fit), data.take(held)
    encoder = Preprocessor().fit(raw_train.X)
    train, test = (part.with_features(encoder.transform(part.X)) for part in (raw_train, raw_test))
    began, cpu = time.perf_counter(), time.process_time()

    def taken() -> dict[str, float]:
        return {"seconds": round(time.perf_counter() - began, 3), "cpu_seconds": round(time.process_time() - cpu, 3)}

    if method in ("default", "single"):
        tree = SoftSurvivalTree(depth=0 if method == "single" else None, random_state=seed).fit(raw_train)
        spent, prepared = taken(), tree._prepare(raw_test.X)
        result = measures_of(raw_train, raw_test, lambda at: tree._log_cumulative_hazard(prepared, at))
        result |= {"candidate": vars(tree.candidate_), "leaves": len(tree.leaf_table_.n)}
    elif method.startswith("paper:"):
        _, leaf, depth, *init = method.split(":")
        starts = paper_starts(leaf, int(depth), init[0] if init else "random", train, seed * 5 + fold, asked)
        spent, result = taken(), scores_of_starts(starts, train, test, asked.training_scores)
    else:
        curves = benchmark_curves(method, train, test, seed)
        spent, result = taken(), measures_of(train, test, curves)
    if method.startswith("paper:") and asked.thresholds != "printed":
        method = f"{method} (thresholds of the text)"
    key = {"set": name, "variant": variant or "default", "seed": seed, "fold": fold, "method": method}
    return key | result | spent


def scores_of_starts(
    starts: FittedStarts, train: SurvivalData, test: SurvivalData, on_training: bool
) -> dict[str, Any]:
    """Means over the starts, the scores of each, and those of the start with the lowest training objective."""
    trees = [tree.cpu() for tree in starts.trees]
    each = pd.DataFrame([measures_of(train, test, soft_curves(tree, train, test)) for tree in trees])
    result: dict[str, Any] = each.mean().to_dict() | {"starts": each.to_dict("list")}
    best = int(np.argmin(starts.objectives))
    result |= {f"best {name}": value for name, value in each.loc[best].to_dict().items()}
    if on_training:
        own = pd.DataFrame([measures_of(train, train, soft_curves(tree, train, train)) for tree in trees])
        result |= {f"train {name}": value for name, value in own.mean().to_dict().items()}
    return result


def spread(todo: list[tuple], jobs: int, backend: str) -> Iterator[dict]:
    """Results of the folds as they end, from the processes or hosts of a joblib backend."""
    if backend == "dask":
        from distributed import Client

        Client(os.environ.get("DASK_SCHEDULER_ADDRESS"))
    elif backend == "ray":
        from ray.util.joblib import register_ray

        register_ray()
    # ray hands back whole lists only: short ones lose little to an interruption
    size, kind = (4 * jobs, "list") if backend == "ray" else (max(len(todo), 1), "generator_unordered")
    with joblib.parallel_config(backend=backend):
        for begin in range(0, len(todo), size):
            part = todo[begin : begin + size]
            yield from joblib.Parallel(n_jobs=jobs, return_as=kind)(joblib.delayed(run_fold)(*job) for job in part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--methods", nargs="+", default=list(BENCHMARKS))
    parser.add_argument("--variant", default=None, help='"paper": data as in the paper, leaks included')
    parser.add_argument("--thresholds", choices=paper.THRESHOLDS, default="printed")
    parser.add_argument("--starts", type=int, default=paper.RESTARTS)
    parser.add_argument("--training-scores", action="store_true", help="of the paper's trees, too")
    parser.add_argument("--jobs", type=int, default=1, help="folds at a time")
    parser.add_argument("--backend", choices=("loky", "dask", "ray"), default="loky", help="joblib's")
    parser.add_argument("--out", type=Path, default=Path("results/sst.jsonl"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    old = finished(args.out)
    keys = ["set", "variant", "seed", "fold", "method"]
    known = set(map(tuple, old[keys].to_numpy().tolist())) if len(old) else set()
    asked = Asked(args.thresholds, args.starts, args.training_scores)
    written = " (thresholds of the text)" if args.thresholds == "text" else ""
    todo = [
        (name, args.variant, seed, fold, method, asked)
        for seed in args.seeds
        for method in args.methods
        for name in args.sets
        for fold in args.folds
        if (name, args.variant or "default", seed, fold, method + written * method.startswith("paper:")) not in known
    ]
    with args.out.open("a") as file:
        for line in tqdm(spread(todo, args.jobs, args.backend), total=len(todo), unit="fold"):
            file.write(json.dumps(line) + "\n")
            file.flush()
    text = report(finished(args.out))
    args.out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
