"""The experiments of the OSST paper (Zhang et al. 2024) with our trees, the printed numbers beside ours.

Run from the repository root; the folder of the paper's binarised data (last two columns: event, time) is given by
--data or by $SOFTSURV_DATA/osst. Every case is written to --out as soon as it ends and skipped in a later run, so an
interrupted run goes on where it stopped.

    python scripts/reproduce_osst.py times       # Appendix H: seconds by depth, mean over the twelve complexities
    python scripts/reproduce_osst.py greedy      # Appendix H: seconds of CTree, RPART and scikit-survival
    python scripts/reproduce_osst.py summary     # Table 1: the same runs, mean over depths and complexities
    python scripts/reproduce_osst.py frontier    # Figure 1: training ratio against leaves, depth 5
    python scripts/reproduce_osst.py optimality --depths 8   # Appendix E, Figures 7 to 14: depths 2 to 9
    python scripts/reproduce_osst.py trees       # Figures 5, 6 and 34 to 38: trees whose training ratio is printed
    python scripts/reproduce_osst.py folds       # Appendix F: five folds
    python scripts/reproduce_osst.py models      # Tables 6 and 7: Cox, forest, boosting
    python scripts/reproduce_osst.py guess       # Appendix J: reference-model bounds
    python scripts/reproduce_osst.py household --time-limit 5    # Figures 4 and 32: seconds by rows
    python scripts/reproduce_osst.py leaves      # ours: Kaplan-Meier against score-minimising leaf curves, five folds
    python scripts/reproduce_osst.py all --quick --time-limit 10   # three complexities, an hour

Every part prints a Markdown table. Seconds are CPU seconds of the process, which takes one thread.

IBS ratio = 1 - IBS(tree) / IBS(one Kaplan-Meier curve) (eq. 14). On test rows G and all curves are those of training.
Where the paper gives no seed, folds and halves are ours. CTree and RPART are R's partykit and rpart; where there is no
R, or one of its packages is missing, a sentence says so and their columns are left out. The paper's index column in the
synthetic files is dropped.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _machine import as_markdown, machine_line, table_of
from _osst_beside import folds, frontier, optimality, trees
from _osst_greedy import greedy
from _osst_household import household
from _osst_models import MIN_ROWS, Data, curves, load, our_tree, peer, rows
from _osst_printed import FOREST, GUESSED, PRINTED_MODELS, PRINTED_SUMMARY, PRINTED_TIMES, SETTINGS
from _osst_r import why_not
from _osst_whole import FOLD_SETS, chosen, complexities, ended, five_folds, whole
from _results import Results
from sklearn.model_selection import train_test_split
from sksurv.ensemble import RandomSurvivalForest
from sksurv.util import Surv

from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.brier.warm_up import ready

SAME = 1e-4
"""Test ratios closer than this count as equal."""


def times(options, results: Results) -> list[dict]:
    """Appendix H without a reference model: mean seconds over the complexities, printed beside it."""
    table = []
    for name, printed in chosen(options, PRINTED_TIMES):
        data = load(options.data, name)
        for depth, seconds in zip(range(2, 2 + options.depths), printed, strict=False):
            cases = whole(options, results, name, depth)
            forest = depth >= FOREST.get(name, 99)
            row = {"set": name, "rows": len(data[1]), "columns": data[0].shape[1], "depth": depth}
            row |= {"printed (s)": seconds, "with a forest's bound": "yes" if forest else ""}
            row |= {"ours (s)": f"{np.mean([case['seconds'] for case in cases]):.3f}"}
            row |= {"ended": ended(cases)}
            gap = max(case["gap"] for case in cases)
            table.append(row | {"largest gap": f"{gap:.4f}" if gap else "0"})
    return table


def summary(options, results: Results) -> list[dict]:
    """Table 1: mean and standard deviation over depths and complexities."""
    table = []
    for name, printed in chosen(options, PRINTED_SUMMARY):
        cases = [case for depth in range(2, 2 + options.depths) for case in whole(options, results, name, depth)]
        seconds = np.array([case["seconds"] for case in cases])
        row = {"set": name, "printed (s)": printed, "ours (s)": f"{seconds.mean():.3f} ± {seconds.std():.3f}"}
        table.append(row | {"ended": ended(cases)})
    return table


def models(options, results: Results) -> list[dict]:
    """Tables 6 and 7: half the rows for training, the paper's settings."""
    table = []
    for name in options.sets or FOLD_SETS:
        data = load(options.data, name)
        a, b = train_test_split(np.arange(data[1].size), test_size=0.5, random_state=2023, stratify=data[2])
        train, test = rows(data, a), rows(data, b)
        for kind, setting in SETTINGS[name].items():
            if kind == "tree":
                c, depth = setting

                def work(train=train, test=test, depth=depth, c=c) -> dict:
                    return our_tree(train, test, depth, c, options.time_limit)
            else:

                def work(kind=kind, train=train, test=test, setting=setting) -> dict:
                    return peer(kind, train, test, setting)

            case = results.get(f"models {name} {kind} {options.time_limit:g}", work)
            row = {"set": name, "model": kind}
            for at, part in enumerate(("train", "test")):
                row |= {f"{part}, printed": PRINTED_MODELS[name][kind][at], f"{part}, here": f"{case[part]:.3f}"}
            table.append(row | {"seconds": f"{case['seconds']:.2f}", "status": case.get("status", "")})
    return table


def guess(options, results: Results) -> list[dict]:
    """Appendix J: with and without a forest's bound (100 trees of depth 9)."""
    table = []
    for name, (depth, c) in chosen(options, GUESSED):
        data = load(options.data, name)
        key = f"guess {name} {depth} {c:g} {options.time_limit:g}"
        case = results.get(key, lambda d=data, depth=depth, c=c: guess_case(d, depth, c, options.time_limit))
        row = {"set": name, "depth": depth, "lambda": c}
        for kind in ("plain", "guessed"):
            row |= {
                f"{kind} (s)": f"{case[f'{kind}_seconds']:.2f}",
                f"{kind}, status": case[f"{kind}_status"],
                f"{kind}, objective": f"{case[f'{kind}_objective']:.6f}",
            }
        row |= {"forest (s)": f"{case['forest_seconds']:.2f}", "forest's loss": f"{case['reference_loss']:.6f}"}
        table.append(row | {"guaranteed distance": f"{case['guaranteed_distance']:.6f}"})
    return table


def guess_case(data: Data, depth: int, complexity: float, limit: float) -> dict:
    """One data set with and without the reference."""
    shared = {"complexity": complexity, "max_depth": depth, "min_samples_leaf": MIN_ROWS, "time_limit": limit}
    plain, plain_seconds = timed(lambda: solve_ibs(*data, **shared))

    def forest_curves() -> np.ndarray:
        forest = RandomSurvivalForest(100, max_depth=9, random_state=2023)
        return curves(forest.fit(data[0].astype(float), Surv.from_arrays(data[2], data[1])), data)

    reference, forest_seconds = timed(forest_curves)
    guessed, guessed_seconds = timed(lambda: solve_ibs(*data, reference=reference, **shared))
    return {
        "plain_seconds": plain_seconds,
        "plain_status": plain.report.status.value,
        "plain_objective": float(plain.report.objective),
        "forest_seconds": forest_seconds,
        "guessed_seconds": guessed_seconds,
        "guessed_status": guessed.report.status.value,
        "guessed_objective": float(guessed.report.objective),
        "guaranteed_distance": float(guessed.report.details["guaranteed_distance"]),
        "reference_loss": guessed.report.details["reference_loss"],
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds."""
    start = time.process_time()
    return work(), time.process_time() - start


def leaves(options, results: Results) -> list[dict]:
    """Which leaf curve generalises: Kaplan-Meier or the minimiser of the training score, medians of five folds."""
    table = []
    for name in options.sets or (*FOLD_SETS, "gbsg2", "veterans"):
        data = load(options.data, name)
        for c in complexities(options)[1:]:
            row, tests = {"set": name, "depth": 3, "lambda": c}, []
            for leaf, label in (("km", "Kaplan-Meier"), ("ipcw", "minimiser")):
                cases = [
                    results.get(
                        f"leaves {name} 3 {c:g} {leaf} {fold} {options.time_limit:g}",
                        lambda a=a, b=b, c=c, leaf=leaf: our_tree(a, b, 3, c, options.time_limit, leaf),
                    )
                    for fold, (a, b) in enumerate(five_folds(data))
                ]
                tests.append(np.array([case["test"] for case in cases]))
                row[f"{label}, leaves"] = round(float(np.median([case["leaves"] for case in cases])))
                row[f"{label}, test"] = f"{np.median(tests[-1]):.4f}"
            gain = tests[1] - tests[0]
            row |= {"gain, mean": f"{gain.mean():+.4f}", "better": int((gain > SAME).sum())}
            table.append(row | {"worse": int((gain < -SAME).sum())})
    return table


PARTS = {
    "times": times,
    "greedy": greedy,
    "summary": summary,
    "frontier": frontier,
    "optimality": optimality,
    "trees": trees,
    "folds": folds,
    "models": models,
    "guess": guess,
    "household": household,
    "leaves": leaves,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SOFTSURV_DATA", "data")) / "osst")
    parser.add_argument("--out", type=Path, default=Path("osst-results.jsonl"), help="finished cases, for resuming")
    parser.add_argument("--sets", nargs="+", help="data sets; all of the experiment's if absent")
    parser.add_argument("--depths", type=int, default=5, help="how many depths from 2 on")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per tree")
    parser.add_argument("--quick", action="store_true", help="three complexities")
    parser.add_argument("--complexity", type=float, nargs="+", help="complexities, the largest first")
    options = parser.parse_args()
    results = Results(options.out)
    print(machine_line(), flush=True)
    if why := why_not():
        print(f"\n{why}", flush=True)
    ready()
    for name in PARTS if options.part == "all" else [options.part]:
        what = (PARTS[name].__doc__ or "").splitlines()[0]
        table = PARTS[name](options, results)
        print(f"\n{what} At most {options.time_limit:g} s of wall-clock time per tree.\n")
        print(as_markdown(table_of(table)), flush=True)


if __name__ == "__main__":
    main()
