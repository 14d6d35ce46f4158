"""The tables of paper `sst`: 15 data sets, 5 folds, soft survival trees beside Cox, forest and greedy tree.

    SOFTSURV_DATA=folder python scripts/reproduce_sst.py                       # default design and the benchmarks
    python scripts/reproduce_sst.py --methods paper:loglogistic:2 --variant paper
    python scripts/reproduce_sst.py --seeds 0 1 2 --methods default cox

Methods: ``default`` (SoftSurvivalTree() as it is), ``cox``, ``forest`` (scikit-survival's random survival forest, 100
trees), ``tree5`` (its survival tree of depth 5), ``km``, and ``paper:LEAF:DEPTH[:kmeans]`` (NODEC-DR with the published
settings, 20 starts; measures are means over the starts, as printed). Every finished fold is a line of the result
file; the same command goes on where it stopped. ``--jobs`` folds run at a time, by ``--backend`` loky on this machine,
or dask or ray on a cluster (packages of their own; dask's scheduler by DASK_SCHEDULER_ADDRESS, ray's by RAY_ADDRESS).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from _machine import as_markdown, machine_line
from _sst_printed import PRINTED, SETS
from tqdm import tqdm

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.partition import stratified_folds
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import SoftsurvWarning
from softsurv.estimators.soft_parameters import choose_device
from softsurv.hazards import get_family
from softsurv.metrics.evaluate import evaluate
from softsurv.nonparametric import kaplan_meier
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.nodec import NodecSettings, nodec
from softsurv.soft.objective import Objective
from softsurv.soft.parallel import one_core_each
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.starts import initial_leaves, start_routing
from softsurv.trees.soft_tree import SoftTree

BENCHMARKS = ("default", "cox", "forest", "tree5", "km")
MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")
PRINTED_AS = {"loglogistic": "Llog", "exponential": "Exp", "weibull": "W", "spline_po": "PO", "spline_ph": "PH"}
"""Leaf family -> column of the printed tables; NODEC-DR of depth 2 from random starts."""

TINY = 1e-12
"""Cumulative hazard where a step estimate is 0: ranks by the model, which is 0 only before its first step."""

Curves = Callable[[np.ndarray], np.ndarray]


def measures_of(train: SurvivalData, test: SurvivalData, curves: Curves) -> dict[str, float]:
    """The four measures, and the two readings of the printed ones: tied events counted, log-time Brier integral."""
    ends = [np.asarray(v) for v in (train.time, train.event, test.time, test.event)]
    plain = evaluate(*ends, curves)
    lower, upper = plain["range"]
    positive = np.linspace(lower if lower > 0 else ends[2][ends[2] > 0].min(), upper, 100)  # log time has no 0
    printed = evaluate(*ends, curves, tied_event_times="count", scale="log", times=positive)
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

    tree = SurvivalTree(max_depth=5, random_state=seed).fit(x, y)
    return steps(tree.unique_times_, tree.predict_cumulative_hazard_function(x_test, return_array=True))


def paper_trees(leaf: str, depth: int, start: str, train: SurvivalData, seed: int) -> list[SoftTree]:
    """20 starts of NODEC-DR with the published settings, trained as one stack."""
    starts = 20
    family = get_family(leaf)
    problem = make_problem(train, family, n_trees=starts, device=choose_device("auto"))
    free = no_penalties(starts, problem.design.shape[-1] + family.n_shape, problem.design)
    ridge = torch.full_like(free.l2, 4.0 / train.n)
    objective = Objective(problem, depth, free.__class__(**(vars(free) | {"l2_all": ridge})))
    seeds = [seed * 1000 + k for k in range(starts)]
    routing = start_routing([start] * starts, train, depth, seeds).to(problem.design)
    leaves = initial_leaves(fit_single_leaf(problem, l2_all=ridge).point[0], depth, seeds)
    done = nodec(objective, routing, leaves, NodecSettings(max_sweeps=10, patience=10))
    routing, leaves, time_scale = done.routing.cpu(), done.leaves.cpu(), problem.time_scale.cpu()
    trees = []
    for k in range(starts):
        tree = SoftTree(depth, train.x.shape[1], family)
        tree.load_state_dict({"routing": routing[k : k + 1], "leaves": leaves[k : k + 1], "time_scale": time_scale})
        trees.append(tree)
    return trees


def soft_curves(tree: SoftTree, train: SurvivalData, test: SurvivalData) -> Curves:
    """Log H of one soft tree; time 0 is read at half the smallest positive training time."""
    floor = float(train.time[train.time > 0].min()) / 2

    def curves(at: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return tree.log_cumulative_hazard(test.x, torch.as_tensor(np.maximum(at, floor)))[0].numpy()

    return curves


def run_fold(name: str, variant: str | None, seed: int, fold: int, method: str) -> dict[str, Any]:
    """One line of the result file."""
    warnings.simplefilter("ignore", SoftsurvWarning)
    data = load_dataset(name, variant)
    fit, held = stratified_folds(data.event.numpy(), 5, seed)[fold]
    raw_train, raw_test = data.take(fit), data.take(held)
    began, cpu = time.perf_counter(), time.process_time()
    extra: dict[str, Any] = {}
    if method == "default":
        tree = SoftSurvivalTree(random_state=seed).fit(raw_train)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        prepared = tree._prepare(raw_test.X)
        result = measures_of(raw_train, raw_test, lambda at: tree._log_cumulative_hazard(prepared, at))
        extra = {"candidate": vars(tree.candidate_)}
    else:
        encoder = Preprocessor().fit(raw_train.X)
        train, test = (part.with_features(encoder.transform(part.X)) for part in (raw_train, raw_test))
        if method.startswith("paper:"):
            _, leaf, depth, *start = method.split(":")
            with one_core_each():
                trees = paper_trees(leaf, int(depth), start[0] if start else "random", train, seed * 5 + fold)
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
            all_starts = pd.DataFrame([measures_of(train, test, soft_curves(t, train, test)) for t in trees])
            result = all_starts.mean().to_dict()
        else:
            curves = benchmark_curves(method, train, test, seed)
            seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
            result = measures_of(train, test, curves)
    key = {"set": name, "variant": variant or "default", "seed": seed, "fold": fold, "method": method}
    return key | result | {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)} | extra


def finished(path: Path) -> pd.DataFrame:
    """Lines of an earlier run."""
    lines = path.read_text().splitlines() if path.exists() else []
    return pd.DataFrame([json.loads(line) for line in lines])


def findings(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean distance over the sets from the printed figures, under either reading of them, for depth 2."""
    rows = []
    for leaf, printed in PRINTED_AS.items():
        ours = frame[(frame["method"] == f"paper:{leaf}:2") & (frame["variant"] == "default") & (frame["seed"] == 0)]
        means = ours.groupby("set")[["harrell_c", "harrell_c_ties", "ibs", "ibs_log"]].mean()
        means = means.drop(index="flchain", errors="ignore")  # printed with the cause of death
        if means.empty:
            continue
        row = {"leaf": leaf, "sets": len(means)}
        for reading, measure in (
            ("harrell_c", "harrell_c"),
            ("harrell_c_ties", "harrell_c"),
            ("ibs", "ibs"),
            ("ibs_log", "ibs"),
        ):
            gap = means[reading] - pd.Series(PRINTED[measure][printed])
            row[f"{reading}: mean distance"] = gap.abs().mean().round(4)
        rows.append(row)
    return pd.DataFrame(rows)


def report(frame: pd.DataFrame) -> str:
    """Means by set and method beside the printed ones, then means over the sets, by seed."""
    parts = [machine_line(), ""]
    frame = frame.copy()
    frame["method"] = np.where(
        frame["variant"] == "default", frame["method"], frame["method"] + " (" + frame["variant"] + " data)"
    )
    complete = frame.groupby(["method", "seed"])["set"].nunique()
    for measure in (*MEASURES, "harrell_c_ties", "ibs_log", "seconds", "cpu_seconds"):
        table = frame.pivot_table(index="set", columns="method", values=measure, aggfunc="mean")
        if measure in PRINTED:
            table = table.join(pd.DataFrame(PRINTED[measure]).add_suffix(" (printed)"))
        table.loc["mean"] = table.mean()
        parts += [f"## {measure}", "", as_markdown(table.round(4).reset_index()), ""]
    by_seed = frame.groupby(["method", "seed"])[list(MEASURES)].mean().round(4).join(complete.rename("sets"))
    parts += ["## Means over the sets, by seed", "", as_markdown(by_seed.reset_index()), ""]
    if len(distance := findings(frame)):
        parts += ["## Distance from the printed figures, under either reading", "", as_markdown(distance)]
    return "\n".join(parts) + "\n"


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
    parser.add_argument("--jobs", type=int, default=1, help="folds at a time")
    parser.add_argument("--backend", choices=("loky", "dask", "ray"), default="loky", help="joblib's")
    parser.add_argument("--out", type=Path, default=Path("results/sst.jsonl"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    old = finished(args.out)
    keys = ["set", "variant", "seed", "fold", "method"]
    known = set(map(tuple, old[keys].to_numpy().tolist())) if len(old) else set()
    todo = [
        (name, args.variant, seed, fold, method)
        for seed in args.seeds
        for method in args.methods
        for name in args.sets
        for fold in args.folds
        if (name, args.variant or "default", seed, fold, method) not in known
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
