"""The tables of paper `sst`: 15 data sets, 5 folds, soft survival trees beside Cox, forest and greedy tree.

    SOFTSURV_DATA=folder python scripts/reproduce_sst.py                       # default design and the benchmarks
    python scripts/reproduce_sst.py --methods paper:loglogistic:2 --variant paper
    python scripts/reproduce_sst.py --methods paper:loglogistic:2:kmeans paper:spline_po:1 --starts 20 --training-scores
    python scripts/reproduce_sst.py --seeds 0 1 2 --methods default cox

Methods: ``default`` (SoftSurvivalTree() as it is), ``single`` (depth 0), those of `_sst_benchmarks.py` (``km``,
``cox``, ``forest``, ``tree2`` to ``tree5``, ``rpart2`` to ``rpart5``, ``ctree2`` to ``ctree5``), and
``paper:LEAF:DEPTH[:kmeans]`` (NODEC-DR with the published settings: measures are means over ``--starts`` starts, as
printed, and beside them those of the start with the lowest training objective); ``twin:loglogistic:DEPTH`` is a plain
program of the paper (`_slow_twin.py`) from the same starts. ``--thresholds`` is the order of the two thresholds of the
reassignment. Every finished fold is a line of the result file; the same command goes on where it stopped, and one with
more ``--starts`` runs the folds again that had fewer. ``--jobs`` folds run at a time, by ``--backend`` loky on this
machine, or dask or ray on a cluster (packages of their own; dask's scheduler by DASK_SCHEDULER_ADDRESS, ray's by
RAY_ADDRESS).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from _sst_benchmarks import Curves, fitted_curves
from _sst_printed import SETS
from _sst_report import KEYS, finished, report, training_report
from _sst_tables import MEASURES
from _sst_twin import twin_starts
from tqdm import tqdm

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import SoftsurvWarning
from softsurv.estimators.soft.devices import choose_device
from softsurv.hazards import get_family
from softsurv.metrics.evaluate import evaluate, outcome
from softsurv.soft import paper
from softsurv.soft.fit import FittedStarts, fit_starts
from softsurv.soft.parallel import Machine, one_core_each
from softsurv.soft.problem import floor_times, time_floor
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.trees.soft_tree import SoftTree

BENCHMARKS = ("default", "cox", "forest", "tree5", "km")


def measures_of(train: SurvivalData, test: SurvivalData, curves: Curves, *, readings: bool = True) -> dict[str, float]:
    """The four measures, and the two readings of the printed ones: tied events counted, log-time Brier integral."""
    floored = outcome(test, time_floor(train.time))["time"]  # zeros, as training takes them
    ends = [np.asarray(v) for v in (floor_times(train.time), train.event, floored, test.event)]
    plain = evaluate(*ends, curves)
    if not readings:
        return {k: float(plain[k]) for k in MEASURES}
    lower, upper = plain["range"]
    printed = evaluate(*ends, curves, tied_event_times="count", scale="log", times=np.linspace(lower, upper, 100))
    extra = {"harrell_c_ties": printed["harrell_c"], "ibs_log": printed["ibs"]}
    return {k: float(plain[k]) for k in MEASURES} | {k: float(v) for k, v in extra.items()}


@dataclass(frozen=True)
class Asked:
    """What is asked of every fold."""

    thresholds: paper.Thresholds = "printed"
    starts: int = paper.RESTARTS
    training_scores: bool = False


def paper_recipe(leaf: str, depth: int, init: str = "random", asked: Asked | None = None) -> Recipe:
    """NODEC-DR with the published settings."""
    asked, family = asked or Asked(), get_family(leaf)
    training = paper.training(leaf, init, thresholds=asked.thresholds)
    return Recipe(family, Candidate(family.name, depth, 0.0), (init,) * asked.starts, training, paper.L2)


def paper_starts(leaf: str, depth: int, init: str, train: SurvivalData, seed: int, asked: Asked) -> FittedStarts:
    """The starts of NODEC-DR with the published settings, trained as one stack; ``train`` is encoded."""
    recipe = replace(paper_recipe(leaf, depth, init, asked), seed=1000 * seed)
    with one_core_each() as workers:
        return fit_starts(train, recipe, Machine(choose_device("auto"), workers=workers))


def soft_curves(tree: SoftTree, train: SurvivalData, test: SurvivalData) -> Curves:
    """Log H of one soft tree; time 0 is read at half the smallest positive training time."""
    floor = time_floor(train.time)

    def curves(at: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return tree.log_cumulative_hazard(test.x, torch.as_tensor(np.maximum(at, floor)))[0].numpy()

    return curves


def tree_curves(tree: SoftSurvivalTree, part: SurvivalData) -> Curves:
    """Log H of a fitted estimator."""
    prepared = tree._prepare(part.X)
    return lambda at: tree._log_cumulative_hazard(prepared, at)


def training_scores(train: SurvivalData, curves: Curves) -> dict[str, float]:
    """The four measures on the training rows themselves."""
    return {f"train {name}": v for name, v in measures_of(train, train, curves, readings=False).items()}


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
        spent, result = taken(), measures_of(raw_train, raw_test, tree_curves(tree, raw_test))
        if asked.training_scores:
            result |= training_scores(raw_train, tree_curves(tree, raw_train))
        result |= {"candidate": vars(tree.candidate_), "leaves": len(tree.leaf_table_.n)}
    elif method.startswith("paper:"):
        _, leaf, depth, *init = method.split(":")
        starts = paper_starts(leaf, int(depth), init[0] if init else "random", train, seed * 5 + fold, asked)
        trees = [tree.cpu() for tree in starts.trees]
        spent, result = taken(), scores_of_starts(trees, starts.objectives, train, test, asked.training_scores)
    elif method.startswith("twin:"):
        seeds = [1000 * (seed * 5 + fold) + k for k in range(asked.starts)]
        trees, objectives = twin_starts(train, int(method.split(":")[2]), seeds)
        spent, result = taken(), scores_of_starts(trees, objectives, train, test, asked.training_scores)
    else:
        of_train, of_test = fitted_curves(method, train, test, seed)
        spent, result = taken(), measures_of(train, test, of_test)
        if asked.training_scores:
            result |= training_scores(train, of_train)
    if method.startswith("paper:") and asked.thresholds != "printed":
        method = f"{method} (thresholds of the text)"
    key = {"set": name, "variant": variant or "default", "seed": seed, "fold": fold, "method": method}
    return key | result | spent


def scores_of_starts(
    trees: list[SoftTree], objectives: Sequence[float], train: SurvivalData, test: SurvivalData, on_training: bool
) -> dict[str, Any]:
    """Means over the starts, the scores of each, and those of the start with the lowest training objective."""
    each = pd.DataFrame([measures_of(train, test, soft_curves(tree, train, test)) for tree in trees])
    result: dict[str, Any] = each.mean().to_dict() | {"starts": each.to_dict("list")}
    best = int(np.argmin(objectives))
    result |= {f"best {name}": value for name, value in each.loc[best].to_dict().items()}
    if on_training:
        own = pd.DataFrame([training_scores(train, soft_curves(tree, train, train)) for tree in trees])
        result |= own.mean().to_dict()
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


def starts_done(frame: pd.DataFrame) -> dict[tuple, int]:
    """Starts of every finished fold, 1 for a method without any."""
    lines = frame.to_dict("records")
    return {tuple(v[k] for k in KEYS): len(s["ibs"]) if isinstance(s := v.get("starts"), dict) else 1 for v in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--methods", nargs="*", default=list(BENCHMARKS), help="none: the tables of what is finished")
    parser.add_argument("--variant", default=None, help='"paper": data as in the paper, leaks included')
    parser.add_argument("--thresholds", choices=paper.THRESHOLDS, default="printed")
    parser.add_argument("--starts", type=int, default=paper.RESTARTS)
    parser.add_argument("--training-scores", action="store_true", help="measures on training rows, too")
    parser.add_argument("--jobs", type=int, default=1, help="folds at a time")
    parser.add_argument("--backend", choices=("loky", "dask", "ray"), default="loky", help="joblib's")
    parser.add_argument("--out", type=Path, default=Path("results/sst.jsonl"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = starts_done(finished(args.out))
    asked = Asked(args.thresholds, args.starts, args.training_scores)
    written = " (thresholds of the text)" if args.thresholds == "text" else ""

    def is_done(name: str, seed: int, method: str, fold: int) -> bool:
        of_starts = method.startswith(("paper:", "twin:"))
        told = method + written * method.startswith("paper:")
        return done.get((name, args.variant or "default", seed, fold, told), 0) >= (args.starts if of_starts else 1)

    todo = [
        (name, args.variant, seed, fold, method, asked)
        for seed in args.seeds
        for method in args.methods
        for name in args.sets
        for fold in args.folds
        if not is_done(name, seed, method, fold)
    ]
    with args.out.open("a") as file:
        for line in tqdm(spread(todo, args.jobs, args.backend), total=len(todo), unit="fold"):
            file.write(json.dumps(line) + "\n")
            file.flush()
    frame = finished(args.out)
    text = report(frame)
    args.out.with_suffix(".md").write_text(text)
    args.out.with_name(f"{args.out.stem}_training.md").write_text(training_report(frame))
    print(text)


if __name__ == "__main__":
    main()
