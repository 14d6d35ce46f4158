"""The experiments of the OSST paper (Zhang et al. 2024) with our trees, the printed numbers beside ours.

Run from the repository root; the folder of the paper's binarised data (last two columns: event, time) is given by
--data or by $SOFTSURV_DATA/osst. Every case is written to --out as soon as it ends and skipped in a later run, so an
interrupted run goes on where it stopped.

    python scripts/reproduce_osst.py times       # Table 1, Appendix H: seconds by depth, mean over complexities
    python scripts/reproduce_osst.py frontier    # Figure 1, Appendix E: training ratio against leaves
    python scripts/reproduce_osst.py folds       # Appendix F: five folds
    python scripts/reproduce_osst.py models      # Tables 6 and 7: Cox, forest, boosting
    python scripts/reproduce_osst.py guess       # Appendix J: reference-model bounds
    python scripts/reproduce_osst.py leaves      # ours: Kaplan-Meier against score-minimising leaf curves, five folds
    python scripts/reproduce_osst.py all --quick --time-limit 10   # three complexities, an hour

Every part prints a Markdown table. Seconds are CPU seconds of the process, which takes one thread.

IBS ratio = 1 - IBS(tree) / IBS(one Kaplan-Meier curve) (eq. 14). On test rows G and all curves are those of training.
Where the paper gives no seed, folds and halves are ours. `greedy` stands in for RPART: the same splitting rule
(exponential deviance of LeBlanc and Crowley), grown best first, at least 7 rows a leaf. The paper's index column in
the synthetic files is dropped.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from sklearn.model_selection import StratifiedKFold, train_test_split
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from softsurv.exact.ibs_solve import assign_leaves, solve_ibs
from softsurv.exact.tasks.ibs import IbsScore
from softsurv.nonparametric import nelson_aalen

MIN_ROWS = 7
COMPLEXITIES = (0.1, 0.05, 0.01, 0.005, 0.0025, 0.001, 0.0005, 0.00025, 0.0001, 0.00005, 0.000025, 0.00001)
FOLD_SETS = ("churn", "credit", "employee", "maintenance", "servo")

# Seconds of OSST by depth 2 to 6, Tables 3 to 5. The forest's bound was used for the second group.
PRINTED_TIMES = {
    "aids": (0.011, 0.083, 0.457, 2.215, 8.650),
    "aids_death": (0.011, 0.083, 0.457, 2.215, 8.650),
    "gbsg2": (0.003, 0.019, 0.078, 0.264, 0.667),
    "maintenance": (0.033, 0.141, 0.390, 0.950, 2.400),
    "veterans": (0.007, 0.024, 0.095, 0.380, 1.270),
    "whas500": (0.006, 0.007, 0.690, 6.040, 37.01),
    "uissurv": (0.006, 0.058, 0.410, 2.680, 13.88),
    "churn": (0.138, 0.880, 11.67, 125.2, 1197.0),
    "credit": (0.056, 1.473, 33.06, 610.9, 930.8),
    "employee": (0.226, 2.090, 16.20, 101.8, 538.3),
    "airfoil": (38.12, 32.00, 31.90, 31.97, 31.98),
    "insurance": (0.083, 0.083, 0.084, 0.084, 0.084),
    "real-estate": (0.824, 100.3, 285.3, 290.4, 289.4),
    "sync": (1.920, 2.120, 3.788, 3.804, 3.785),
    "servo": (0.075, 6.100, 227.4, 428.4, 2192.0),
    "flchain": (0.481, 0.336, 0.419, 1.264, 7.024),
}
# Training and test IBS ratio, Tables 6 and 7, with the printed settings.
PRINTED_MODELS = {
    "churn": {"tree": (0.602, 0.470), "cox": (0.571, 0.495), "forest": (0.533, 0.398), "boosting": (0.677, 0.561)},
    "credit": {"tree": (0.199, 0.170), "cox": (0.323, 0.135), "forest": (0.221, 0.154), "boosting": (0.309, 0.209)},
    "employee": {"tree": (0.691, 0.634), "cox": (0.441, 0.376), "forest": (0.676, 0.616), "boosting": (0.784, 0.625)},
    "maintenance": {
        "tree": (0.985, 0.983),
        "cox": (0.901, 0.898),
        "forest": (0.565, 0.545),
        "boosting": (0.880, 0.866),
    },
    "servo": {"tree": (0.544, 0.360), "cox": (0.624, 0.487), "forest": (0.360, 0.260), "boosting": (0.803, 0.499)},
}
SETTINGS = {  # tree: (complexity, depth); cox: ridge; forest and boosting: features, estimators, depth
    "churn": {"tree": (0.001, 5), "cox": 1.0, "forest": ("sqrt", 200, 9), "boosting": ("log2", 500, 3)},
    "credit": {"tree": (0.0025, 5), "cox": 1.0, "forest": ("sqrt", 100, 5), "boosting": ("sqrt", 100, 3)},
    "employee": {"tree": (0.0005, 5), "cox": 5.0, "forest": ("log2", 50, 8), "boosting": ("log2", 500, 12)},
    "maintenance": {"tree": (0.0001, 5), "cox": 1.0, "forest": ("log2", 50, 3), "boosting": ("log2", 500, 3)},
    "servo": {"tree": (0.01, 4), "cox": 1.0, "forest": ("log2", 500, 3), "boosting": ("log2", 200, 6)},
}
PEER_TREES = ("scikit-survival", "greedy (RPART's rule)")
GUESSED = {"churn": (6, 0.0025), "employee": (6, 0.01), "servo": (5, 0.01), "sync": (5, 0.01)}

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Binary features (N, P), times (N,), events (N,)."""


class Results:
    """Finished cases, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.done = {line["case"]: line for line in map(json.loads, lines)}

    def get(self, case: str, work: Callable[[], dict]) -> dict:
        """The case's numbers, computed if they are not there yet."""
        if case not in self.done:
            self.done[case] = {"case": case, **work()}
            with self.path.open("a") as file:
                file.write(json.dumps(self.done[case]) + "\n")
        return self.done[case]


def load(folder: Path, name: str) -> Data:
    """One of the paper's files."""
    table = pd.read_csv(folder / f"{name}.csv")
    table = table[[column for column in table.columns if not column.startswith("Unnamed")]]
    return table.iloc[:, :-2].to_numpy(np.uint8), table.iloc[:, -1].to_numpy(float), table.iloc[:, -2].to_numpy(bool)


def rows(data: Data, index: np.ndarray) -> Data:
    return data[0][index], data[1][index], data[2][index]


def test_score(train: Data, test: Data) -> IbsScore:
    """The score of test rows with G of the training rows."""
    censoring = IbsScore.from_columns(train[1], train[2]).censoring
    return IbsScore(test[1], test[2], np.ones(test[1].size), censoring_curve=censoring)


def ratio(train: Data, test: Data, survival: np.ndarray) -> float:
    """IBS ratio of curves (N, T) at the distinct times of the test rows, against training's Kaplan-Meier curve."""
    score = test_score(train, test)
    one = IbsScore.from_columns(train[1], train[2])
    at = np.searchsorted(one.grid().times, score.grid().times, side="right")
    curve = np.concatenate([[1.0], one.curve(np.arange(train[1].size))])[at]
    base = score.row_losses(np.tile(curve, (test[1].size, 1))).sum()
    return float(1.0 - score.row_losses(survival).sum() / base)


def ratio_of_leaves(train: Data, test: Data, leaf_train: np.ndarray, leaf_test: np.ndarray, leaf: str = "km") -> float:
    """IBS ratio of a tree from its leaves, with curves of the training rows."""
    score, times = IbsScore.from_columns(train[1], train[2]), np.unique(test[1])
    at = np.searchsorted(score.grid().times, times, side="right")
    curves = {
        k: np.concatenate([[1.0], score.curve(np.flatnonzero(leaf_train == k), leaf, monotone=True)])[at]
        for k in np.unique(leaf_train)
    }
    return ratio(train, test, np.array([curves[k] for k in leaf_test]))


def our_tree(train: Data, test: Data, depth: int | None, complexity: float, limit: float, leaf: str = "km") -> dict:
    """An optimal tree: leaves, status, seconds, ratios."""
    start = time.process_time()
    solution = solve_ibs(
        *train, complexity=complexity, max_depth=depth, min_samples_leaf=MIN_ROWS, time_limit=limit, leaf=leaf
    )
    seconds = time.process_time() - start
    leaf_test = assign_leaves(solution.plan, test[0])
    return {
        "leaves": len(solution.survival),
        "status": solution.report.status.value,
        "seconds": seconds,
        "gap": float(solution.report.gap),
        "objective": float(solution.report.objective),
        "train": ratio_of_leaves(train, train, solution.leaf_of_row, solution.leaf_of_row, leaf),
        "test": ratio_of_leaves(train, test, solution.leaf_of_row, leaf_test, leaf),
    }


def sksurv_tree(train: Data, test: Data, depth: int, leaves: int) -> dict:
    """scikit-survival's tree: log-rank splits."""
    tree = SurvivalTree(max_depth=depth, max_leaf_nodes=leaves, min_samples_leaf=MIN_ROWS, random_state=2023)
    tree.fit(train[0], Surv.from_arrays(train[2], train[1]))
    leaf_train, leaf_test = (tree.tree_.apply(part[0].astype(np.float32)) for part in (train, test))
    return {
        "leaves": int(np.unique(leaf_train).size),
        "train": ratio_of_leaves(train, train, leaf_train, leaf_train),
        "test": ratio_of_leaves(train, test, leaf_train, leaf_test),
    }


def greedy_tree(train: Data, test: Data, depth: int, leaves: int) -> dict:
    """Best-first growth by exponential deviance, as RPART splits survival data."""
    x, y, event = train
    hazard = np.asarray(nelson_aalen(y, event)(y))
    leaf_train, leaf_test = np.zeros(y.size, int), np.zeros(test[1].size, int)
    queue: list[tuple[float, int, int, int]] = []

    def push(leaf: int, level: int) -> None:
        inside = leaf_train == leaf
        gain, split = best_split(x[inside], event[inside], hazard[inside])
        if level < depth and gain > 0.0:
            heapq.heappush(queue, (-gain, leaf, level, split))

    push(0, 0)
    count = 1
    while queue and count < leaves:
        _, leaf, level, split = heapq.heappop(queue)
        leaf_train[(leaf_train == leaf) & (x[:, split] == 1)] = count
        leaf_test[(leaf_test == leaf) & (test[0][:, split] == 1)] = count
        push(leaf, level + 1)
        push(count, level + 1)
        count += 1
    return {
        "leaves": count,
        "train": ratio_of_leaves(train, train, leaf_train, leaf_train),
        "test": ratio_of_leaves(train, test, leaf_train, leaf_test),
    }


def best_split(x: np.ndarray, event: np.ndarray, hazard: np.ndarray) -> tuple[float, int]:
    """Largest fall of -events log(events / hazard) by a split that leaves enough rows, and that split."""

    def cost(events: np.ndarray, total: np.ndarray) -> np.ndarray:
        positive = np.maximum(events, 1e-12)
        return np.where(events > 0, -events * np.log(positive / np.maximum(total, 1e-12)), 0.0)

    size, events, total = x.sum(0), event @ x, hazard @ x
    gain = cost(event.sum(), hazard.sum()) - cost(events, total) - cost(event.sum() - events, hazard.sum() - total)
    gain = np.where((size >= MIN_ROWS) & (len(x) - size >= MIN_ROWS), gain, -np.inf)
    return float(gain.max()), int(gain.argmax())


def peer(kind: str, train: Data, test: Data, setting) -> dict:
    """Cox, forest or boosting of scikit-survival: ratios."""
    if kind == "cox":
        model = CoxPHSurvivalAnalysis(alpha=setting)
    elif kind == "forest":
        features, trees, depth = setting
        model = RandomSurvivalForest(trees, max_depth=depth, max_features=features, random_state=2023)
    else:
        features, trees, depth = setting
        model = GradientBoostingSurvivalAnalysis(
            n_estimators=trees, max_depth=depth, max_features=features, random_state=2023
        )
    start = time.process_time()
    model.fit(train[0].astype(float), Surv.from_arrays(train[2], train[1]))
    seconds = time.process_time() - start
    on_train, on_test = (ratio(train, part, curves(model, part)) for part in (train, test))
    return {"seconds": seconds, "train": on_train, "test": on_test}


def curves(model, data: Data) -> np.ndarray:
    """Survival probabilities (N, T) of a scikit-survival model at the distinct times of some rows."""
    times = np.unique(data[1])
    functions = model.predict_survival_function(data[0].astype(float))
    low, high = functions[0].domain
    inside = np.clip(times, low, high)
    out = np.array([f(inside) for f in functions])
    out[:, times < functions[0].x[0]] = 1.0
    return np.clip(out, 0.0, 1.0)


def times(options, results: Results) -> list[dict]:
    """Appendix H without a reference model: mean seconds over the complexities, printed beside it."""
    table = []
    for name, printed in chosen(options, PRINTED_TIMES):
        data = load(options.data, name)
        for depth, seconds in zip(range(2, 2 + options.depths), printed, strict=False):
            cases = [
                results.get(
                    f"times {name} {depth} {c:g} {options.time_limit:g}",
                    lambda c=c, depth=depth, data=data: our_tree(data, data, depth, c, options.time_limit),
                )
                for c in complexities(options)
            ]
            ended = sum(case["status"] == "optimal" for case in cases)
            mean = np.mean([case["seconds"] for case in cases])
            row = {"set": name, "rows": len(data[1]), "columns": data[0].shape[1], "depth": depth}
            table.append(row | {"printed (s)": seconds, "ours (s)": f"{mean:.3f}", "ended": f"{ended} of {len(cases)}"})
    return table


def frontier(options, results: Results) -> list[dict]:
    """Figure 1: training ratio against leaves, depth 5; the others with as many leaves as ours."""
    table = []
    for name in options.sets or ("veterans", "aids_death", "uissurv"):
        data = load(options.data, name)
        shown = set()
        for c in complexities(options):
            key = f"frontier {name} {c:g} {options.time_limit:g}"
            ours = results.get(key, lambda c=c, data=data: our_tree(data, data, 5, c, options.time_limit))
            if ours["leaves"] == 1 or ours["leaves"] in shown:
                continue
            shown.add(ours["leaves"])
            other, greedy = (tree(data, data, 5, ours["leaves"]) for tree in (sksurv_tree, greedy_tree))
            row = {"set": name, "lambda": c, "leaves": ours["leaves"], "ours": f"{ours['train']:.4f}"}
            row |= {"status": ours["status"], "gap": f"{ours['gap']:.4f}"}
            row |= {
                label: f"{t['train']:.4f} ({t['leaves']})" for label, t in zip(PEER_TREES, (other, greedy), strict=True)
            }
            table.append(row)
    return table


def folds(options, results: Results) -> list[dict]:
    """Appendix F: five folds; medians of the test ratio by depth, each method with the same number of leaves."""
    table = []
    for name in options.sets or FOLD_SETS:
        data = load(options.data, name)
        for depth in range(2, 2 + min(options.depths, 4)):
            for c in complexities(options):
                cases = [
                    results.get(
                        f"folds {name} {depth} {c:g} {fold} {options.time_limit:g}",
                        lambda a=a, b=b, depth=depth, c=c: three_trees(a, b, depth, c, options.time_limit),
                    )
                    for fold, (a, b) in enumerate(five_folds(data))
                ]
                middle = {
                    k: float(np.median([case[k] for case in cases]))
                    for k in ("leaves", "train", "test", "sk", "greedy")
                }
                if middle["leaves"] == 1:
                    continue
                ended = sum(case["status"] == "optimal" for case in cases)
                row = {"set": name, "depth": depth, "lambda": c, "leaves": round(middle["leaves"])}
                row |= {f"ours, {part}": f"{middle[part]:.4f}" for part in ("train", "test")}
                row |= {
                    f"{label}, test": f"{middle[k]:.4f}" for label, k in zip(PEER_TREES, ("sk", "greedy"), strict=True)
                }
                table.append(row | {"ended": f"{ended} of {len(cases)}"})
    return table


def three_trees(train: Data, test: Data, depth: int, complexity: float, limit: float) -> dict:
    """Ours, and the greedy ones with as many leaves."""
    ours = our_tree(train, test, depth, complexity, limit)
    leaves = max(ours["leaves"], 2)
    others = {"sk": sksurv_tree, "greedy": greedy_tree}
    return ours | {name: tree(train, test, depth, leaves)["test"] for name, tree in others.items()}


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
            row = {"set": name, "depth": 3, "lambda": c}
            for leaf, label in (("km", "Kaplan-Meier"), ("ipcw", "minimiser")):
                cases = [
                    results.get(
                        f"leaves {name} 3 {c:g} {leaf} {fold} {options.time_limit:g}",
                        lambda a=a, b=b, c=c, leaf=leaf: our_tree(a, b, 3, c, options.time_limit, leaf),
                    )
                    for fold, (a, b) in enumerate(five_folds(data))
                ]
                row[f"{label}, leaves"] = round(float(np.median([case["leaves"] for case in cases])))
                row[f"{label}, test"] = f"{np.median([case['test'] for case in cases]):.4f}"
            table.append(row)
    return table


def five_folds(data: Data) -> Iterator[tuple[Data, Data]]:
    """Five seeded folds, stratified by event."""
    for a, b in StratifiedKFold(5, shuffle=True, random_state=2023).split(data[0], data[2]):
        yield rows(data, a), rows(data, b)


def chosen(options, table: dict) -> list:
    """The data sets asked for, of a table of printed numbers."""
    return [(name, printed) for name, printed in table.items() if not options.sets or name in options.sets]


def complexities(options) -> tuple[float, ...]:
    """Complexities asked for, the largest first."""
    return tuple(options.complexity or ((0.05, 0.01, 0.0025) if options.quick else COMPLEXITIES))


PARTS = {"times": times, "frontier": frontier, "folds": folds, "models": models, "guess": guess, "leaves": leaves}


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
    for name in PARTS if options.part == "all" else [options.part]:
        what = (PARTS[name].__doc__ or "").splitlines()[0]
        table = PARTS[name](options, results)
        print(f"\n{what} At most {options.time_limit:g} s of wall-clock time per tree.\n")
        print(as_markdown(pd.DataFrame(table)), flush=True)


if __name__ == "__main__":
    main()
