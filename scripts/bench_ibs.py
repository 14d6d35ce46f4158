"""Speed, agreement and scale of the integrated-Brier-score trees, beside `osst` 0.1.8.

Run from the repository root, one thread, with the extra ``peers`` installed and the folder of the paper's binarised
data (last two columns: event, time) given by --data or by $SOFTSURV_DATA/osst:

    OMP_NUM_THREADS=1 python scripts/bench_ibs.py speed       # the 24 cases of the speed target
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py agreement   # 13 data sets, depths 2 to 5: same objective?
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py precision   # a single leaf: what the reference's floats are worth
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py scale       # 15 binary features, up to a million rows
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py ablation    # each bound off
    OMP_NUM_THREADS=1 python scripts/bench_ibs.py jobs        # two threads

`osst` counts a single leaf as depth 1, so its depth_budget is our depth + 1. It runs in a process that forks for every
fit, because a second fit in one process aborts; its import is not timed. Times are CPU seconds of the call of ``fit``
(data in, tree out), so that other work on the machine counts little; the least of interleaved runs. 'agreement' writes
every case to --out as soon as it ends and skips it in a later run.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _osst_models import MIN_ROWS, load
from _osst_reference import Reference
from _results import Results

from softsurv.exact.brier.bounds import IbsBounds
from softsurv.exact.brier.solve import IbsSolution, solve_ibs
from softsurv.exact.brier.warm_up import ready
from softsurv.exact.objectives.brier import IbsScore

SPEED_SETS = ("veterans", "gbsg2", "maintenance", "aids", "churn", "credit")
AGREED = 1e-5
"""Objectives closer than this agree: the reference computes in single precision."""

AGREEMENT_SETS = (
    "aids",
    "aids_death",
    "churn",
    "credit",
    "employee",
    "gbsg2",
    "maintenance",
    "veterans",
    "airfoil",
    "insurance",
    "real-estate",
    "servo",
    "sync",
)


def run_ours(data: tuple, depth: int | None, complexity: float, **options) -> tuple[IbsSolution, float]:
    """One fit of ours and its CPU seconds."""
    x, y, event = data
    start = time.process_time()
    solution = solve_ibs(x, y, event, complexity=complexity, max_depth=depth, min_samples_leaf=MIN_ROWS, **options)
    return solution, time.process_time() - start


def speed(folder: Path, options: argparse.Namespace) -> None:
    """The speed target: depths 3 and 4, complexity 0.01 and 0.0025; the least of some runs, interleaved."""
    table, faster, reference = [], [], Reference(folder)
    for name, depth, complexity in itertools.product(SPEED_SETS, (3, 4), (0.01, 0.0025)):
        data, ours, answers = load(folder, name), [], []
        for _ in range(options.repeats):
            answers.append(reference.fit(name, depth, complexity, options.time_limit))
            ours += [run_ours(data, depth, complexity) for _ in range(3)]
        answers = [answer for answer in answers if answer["end"] == "optimal"]
        row = {"set": name, "depth": depth, "lambda": complexity}
        if not answers:
            table.append(row | {"ours (s)": "the reference failed"})
            continue
        mine, theirs = min(seconds for _, seconds in ours), min(answer["cpu"] for answer in answers)
        objective = ours[0][0].report.objective
        faster.append((theirs / mine, mine - theirs))
        table.append(
            row
            | {"ours (s)": f"{mine:.4f}", "osst (s)": f"{theirs:.4f}"}
            | {"times faster": f"{theirs / mine:.1f}"}
            | {"objective": f"{objective:.7f}", "difference": f"{objective - answers[0]['upper']:+.1e}"}
        )
        print(table[-1], file=sys.stderr, flush=True)
    print(as_markdown(pd.DataFrame(table)))
    times, slower = zip(*faster, strict=True)
    print(f"\ngeometric mean speed-up {geometric_mean(times):.1f}; ", end="")
    print(f"worst case slower by {1e3 * max(slower):.1f} ms (negative: faster everywhere)")


def agreement(folder: Path, options: argparse.Namespace) -> None:
    """Objectives, losses and bounds of both, case by case; the reference is not tried where an easier case beat it."""
    results, reference, limit = Results(options.out), Reference(folder), options.time_limit
    cases = []
    for name in options.sets:
        data, beaten = load(folder, name), []
        for depth, complexity in itertools.product(options.depths, options.complexity):
            hopeless = any(depth >= d and complexity <= c for d, c in beaten)

            def work(name=name, data=data, depth=depth, complexity=complexity, hopeless=hopeless) -> dict:
                theirs = {"end": "not tried"} if hopeless else reference.fit(name, depth, complexity, limit)
                solution, seconds = run_ours(data, depth, complexity, time_limit=limit)
                report = solution.report
                ours = {"status": report.status.value, "upper": report.objective, "lower": report.lower_bound}
                ours |= {"leaves": report.details["n_leaves"], "cpu": seconds}
                return {"set": name, "depth": depth, "lambda": complexity, "ours": ours, "osst": theirs}

            case = results.get(f"agreement {name} {depth} {complexity:g} {limit:g}", work)
            print(case, file=sys.stderr, flush=True)
            if not _ended(case):
                beaten.append((depth, complexity))
            cases.append(case)
    _print_agreement(cases)


def _ended(case: dict) -> bool:
    return case["osst"]["end"] == "optimal"


def _print_agreement(cases: list[dict]) -> None:
    """Differences where both ended, our bounds where one did not."""
    table: dict[tuple, dict] = {}
    open_cases, objective, loss, bounds, better = [], [], [], [], 0
    for case in cases:
        ours, theirs, c = case["ours"], case["osst"], case["lambda"]
        row = table.setdefault((case["set"], case["depth"]), {"set": case["set"], "depth": case["depth"]})
        row[f"{c:g}"] = "open"
        if _ended(case) and ours["status"] == "optimal":
            objective.append(ours["upper"] - theirs["upper"])
            bounds.append(theirs["upper"] - theirs["lower"])
            if round((theirs["upper"] - theirs["loss"]) / c) == ours["leaves"]:
                loss.append(ours["upper"] - c * ours["leaves"] - theirs["loss"])
            row[f"{c:g}"] = f"{objective[-1]:+.0e}"
            better += objective[-1] < -AGREED
            continue
        line = {"set": case["set"], "depth": case["depth"], "lambda": c, "ours": f"{ours['upper']:.6f}"}
        line |= {"bound": f"{ours['lower']:.6f}", "status": ours["status"], "CPU (s)": f"{ours['cpu']:.1f}"}
        open_cases.append(line | {"osst": theirs["end"]})
    print(as_markdown(pd.DataFrame(list(table.values()))))
    print(f"\n{len(objective)} of {len(cases)} cases ended in both. Largest difference of objectives ", end="")
    print(
        f"{max(map(abs, objective)):.1e}, of losses {max(map(abs, loss)):.1e} ({len(loss)} cases with as many leaves),"
    )
    print(f"of the reference's bounds {max(map(abs, bounds)):.1e}; {better} better than the reference by {AGREED:g}.\n")
    if open_cases:
        print(as_markdown(pd.DataFrame(open_cases)))


def precision(folder: Path, options: argparse.Namespace) -> None:
    """Loss of a single leaf: ours, the reference's, and rows' losses added up one by one in single precision."""
    table, reference = [], Reference(folder)
    for name in options.sets:
        _, y, event = load(folder, name)
        score, rows = IbsScore.from_columns(y, event), np.arange(y.size)
        losses = score.row_losses(np.tile(score.curve(rows), (y.size, 1)))
        single = np.cumsum((losses * y.size).astype(np.float32), dtype=np.float32)[-1] / np.float32(y.size)
        theirs, ours = reference.fit(name, 1, 0.5, options.time_limit)["loss"], score.leaf_loss(rows)
        row = {"set": name, "rows": y.size, "ours": f"{ours:.8f}", "osst": f"{theirs:.8f}"}
        table.append(row | {"osst - ours": f"{theirs - ours:+.0e}", "single - ours": f"{single - ours:+.0e}"})
    print(as_markdown(pd.DataFrame(table)))


ABLATION = (("gbsg2", 5, 0.0025), ("aids", 4, 0.0025), ("credit", 4, 0.01), ("churn", 4, 0.0025))
ABLATION_ROWS = 100_000


def ablation(folder: Path) -> None:
    """What each bound is worth; many rows with as many times show what coarse bins are."""
    table, every = [], [field.name for field in fields(IbsBounds)]
    cases = [(name, load(folder, name), depth, c, every) for name, depth, c in ABLATION]
    cases.append((f"{ABLATION_ROWS} rows", synthetic_rows(ABLATION_ROWS, None), 5, 0.01, ["coarse_time"]))
    for name, data, depth, c, switches in cases:
        settings = {"everything on": IbsBounds()} | {f"no {one}": IbsBounds(**{one: False}) for one in switches}
        for label, bounds in settings.items():
            runs = [run_ours(data, depth, c, bounds=bounds, time_limit=300.0) for _ in range(2)]
            report = runs[0][0].report
            row = {"case": f"{name}, depth {depth}, lambda {c:g}", "switch": label}
            row |= {"CPU (s)": f"{min(seconds for _, seconds in runs):.3f}"}
            row |= {"subproblems": report.details["subproblems"]}
            table.append(row | {"status": report.status.value, "objective": f"{report.objective:.8f}"})
            print(table[-1], file=sys.stderr, flush=True)
    print(as_markdown(pd.DataFrame(table)))


def jobs(folder: Path, repeats: int) -> None:
    """One and two threads: wall-clock and CPU seconds."""
    table = []
    for name, depth, complexity in (("credit", 4, 0.0025), ("churn", 5, 0.0025)):
        data = load(folder, name)
        best = {1: [math.inf, math.inf], 2: [math.inf, math.inf]}
        plans = {}
        for _, n in itertools.product(range(repeats), (1, 2)):
            begin = time.perf_counter()
            solution, cpu = run_ours(data, depth, complexity, n_jobs=n)
            plans[n] = solution.plan
            best[n] = [min(best[n][0], time.perf_counter() - begin), min(best[n][1], cpu)]
        row = {"set": name, "depth": depth, "lambda": complexity}
        for n, (wall, cpu) in best.items():
            row |= {f"wall, {n} (s)": f"{wall:.3f}", f"CPU, {n} (s)": f"{cpu:.3f}"}
        table.append(row | {"speed-up": f"{best[1][0] / best[2][0]:.2f}", "same tree": plans[1] == plans[2]})
    print(as_markdown(pd.DataFrame(table)))


def synthetic_rows(n: int, n_times: int | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The shape of the paper's household data: 5 variables in 4 categories, 15 columns, 20 % censored at random."""
    rng = np.random.default_rng(seed)
    level = np.stack([rng.choice(4, n, p=rng.dirichlet(np.full(4, 4.0))) for _ in range(5)], axis=1)
    x = (level[:, :, None] == np.arange(1, 4)).reshape(n, 15).astype(np.uint8)
    risk = x @ rng.normal(0.0, 1.2, 15) + 2.0 * (x[:, 0] & x[:, 4]) - 1.5 * (x[:, 8] & (1 - x[:, 12]))
    y = rng.weibull(1.5, n) * np.exp(-risk / 1.5)
    y = (1.0 + np.argsort(np.argsort(y))) / n  # ranks: the score has something to explain over the whole range
    if n_times is not None:
        y = np.ceil(y * n_times)
    event = rng.random(n) > 0.2
    censored = y * rng.random(n)
    return x, np.where(event, y, np.ceil(censored) if n_times else censored), event


def scale(sizes: list[int]) -> None:
    """Seconds and peak memory against rows, for few, many and all-distinct times; depth 5, complexity 0.01."""
    table = []
    for n, n_times in cases_of(sizes):
        x, y, event = synthetic_rows(n, n_times)
        begin = time.perf_counter()
        solution, cpu = run_ours((x, y, event), 5, 0.01)
        wall = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        report = solution.report
        row = {"rows": n, "distinct times": np.unique(y).size, "status": report.status.value}
        row |= {"wall (s)": f"{wall:.2f}", "CPU (s)": f"{cpu:.2f}", "objective": f"{report.objective:.6f}"}
        table.append(row | {"leaves": report.details["n_leaves"], "peak of the process so far (GiB)": f"{peak:.2f}"})
        print(table[-1], file=sys.stderr, flush=True)
    print(as_markdown(pd.DataFrame(table)))


def cases_of(sizes: list[int]) -> Iterator[tuple[int, int | None]]:
    """Rows and number of times."""
    for n in sizes:
        for n_times in (50, 4000, None):
            yield n, n_times


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "agreement", "precision", "scale", "ablation", "jobs"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SOFTSURV_DATA", "data")) / "osst")
    parser.add_argument("--out", type=Path, default=Path("osst-results.jsonl"), help="finished cases, for resuming")
    parser.add_argument("--repeats", type=int, default=2, help="runs of the reference per case")
    parser.add_argument("--time-limit", type=float, default=60.0, help="CPU seconds per fit of the reference")
    parser.add_argument("--complexity", type=float, nargs="+", default=[0.1, 0.05, 0.01, 0.0025, 0.001])
    parser.add_argument("--sets", nargs="+", default=list(AGREEMENT_SETS), help="data sets of 'agreement'")
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    print(machine_line() + "\n", flush=True)
    ready()
    if options.what == "speed":
        speed(options.data, options)
    elif options.what == "agreement":
        agreement(options.data, options)
    elif options.what == "precision":
        precision(options.data, options)
    elif options.what == "scale":
        scale(options.rows)
    elif options.what == "ablation":
        ablation(options.data)
    else:
        jobs(options.data, options.repeats)


if __name__ == "__main__":
    main()
