"""The experiments of the SurTree paper (Huisman et al. 2024) with our trees, the printed numbers beside ours.

Run from the repository root. Every case is written to --out as soon as it ends and skipped in a later run, so an
interrupted run goes on where it stopped.

    python scripts/reproduce_surtree.py real              # Table 1: 15 SurvSet sets, depth 3 (and 4), five folds, tuned
    python scripts/reproduce_surtree.py seconds           # run times on all sets: those fits, and pystreed beside ours
    python scripts/reproduce_surtree.py synthetic         # Figure 3: rows and censoring, depth 4, tuned
    python scripts/reproduce_surtree.py times             # Figures 4 and 5: seconds and training score by depth
    python scripts/reproduce_surtree.py real --quick      # six sets, two folds: a few minutes

As the paper: ten quantiles per number, ten levels per factor, levels and thresholds under one per cent left out; depth
and leaves tuned by cross-validation on the training part (event-stratified folds, held-out deviance); harrell_c of
theta; the integrated Brier score over the 10 % to 90 % quantiles of the test times, as 1 - IB / IB0 with IB0 that of
the Kaplan-Meier curve of all rows. The program of the authors takes these quantiles of the distinct test times, one
each, and IB0 of the training rows: column "IB, distinct" does so too. G is estimated on the training fold. The paper's
folds and seeds are not known. As that program does, rows with a missing value are left out, a time of 0 becomes 1e-6,
and of several rows per subject (Csl, Oldmort) each enters with the length of its interval. The paper's flchain holds
the chapter of the cause of death, which is known after the death alone; the row "no chapter" is without it.
Seconds are CPU seconds of one thread; `seconds` needs the extra ``peers``.
"""

from __future__ import annotations

import argparse
import json
import time as clock
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _exact_data import Coded, coded_rows, fit_pystreed, objective_of, pystreed_leaves
from _machine import as_markdown, machine_line
from _results import cpu, in_child
from _surtree_printed import FIGURE_4, LATER_TABLE, TABLE_1, TUNED_SECONDS
from _surtree_synthetic import synthetic
from scipy.stats import gmean

from softsurv import OptimalSurvivalTree
from softsurv.data.binarize import Binarizer
from softsurv.data.partition import stratified_folds
from softsurv.exact.compile import ready
from softsurv.exact.objectives import relative_risk
from softsurv.metrics.brier import relative_integrated_brier_score
from softsurv.metrics.concordance import harrell_c
from softsurv.nonparametric import censoring_survival, kaplan_meier

GRID = 200
"""Points of the integrated Brier score."""

EARLIEST = 1e-6
"""What a time of 0 becomes."""

NO_CHAPTER = "flchain, no chapter"
SETS = (*TABLE_1, NO_CHAPTER)
QUICK = ("Aids2", "UnempDur", "divorce", "acath", "nwtco", "rott2")

Rows = tuple[pd.DataFrame, np.ndarray, np.ndarray]
"""Features, events and times."""


class Results:
    """Finished cases, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = [json.loads(line) for line in lines]

    def have(self, **case: Any) -> bool:
        return any(all(row.get(k) == v for k, v in case.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def frame(self, part: str) -> pd.DataFrame:
        return pd.DataFrame([row for row in self.rows if row["part"] == part])


def load(name: str) -> Rows:
    """The complete rows of a SurvSet data set."""
    from SurvSet.data import SurvLoader

    table, _ = SurvLoader().load_dataset(ds_name=name.split(",")[0]).values()
    table = table.dropna().reset_index(drop=True)
    time = table["time2"] - table["time"] if "time2" in table else table["time"]
    names = [c for c in table.columns if c.startswith(("num_", "fac_")) and (name, c) != (NO_CHAPTER, "fac_chapter")]
    return table[names], table["event"].to_numpy(bool), np.maximum(time.to_numpy(float), EARLIEST)


def new_tree(depth: int, tune: str | None = "cv", **how: Any) -> OptimalSurvivalTree:
    return OptimalSurvivalTree(
        max_depth=depth, tune=tune, thresholds=10, max_levels=10, min_share=0.01, time_limit=600.0, **how
    )


def scores(tree: OptimalSurvivalTree, train: Rows, test: Rows, everyone: Rows) -> dict[str, float]:
    """harrell_c and the normalised integrated Brier scores of a fitted tree on test rows."""
    X, event, time = test
    censoring = censoring_survival(train[2], train[1])

    def share_removed(times: np.ndarray, common: Rows) -> float:
        grid = np.linspace(*np.quantile(times, [0.1, 0.9]), GRID)
        grid = np.unique(np.clip(grid, 0, train[2].max() * (1 - 1e-9)))
        grid = grid[censoring(grid) > 0]
        survival, curve = tree.predict_survival_function(X, grid), kaplan_meier(common[2], common[1])
        return relative_integrated_brier_score(time, event, survival, grid, censoring, curve)

    return {
        "harrell_c": harrell_c(time, event, tree.predict(X)),
        "IB": share_removed(time, everyone),
        "IB, distinct": share_removed(np.unique(time), train),
    }


def fit(tree: OptimalSurvivalTree, X: Any, event: np.ndarray, time: np.ndarray) -> float:
    """Fit, and return the CPU seconds it took."""
    begin = clock.process_time()
    tree.fit(X, (event, time))
    return clock.process_time() - begin


def real(results: Results, quick: bool, depths: tuple[int, ...]) -> None:
    """Five folds of every set."""
    for name in QUICK if quick else SETS:
        X, event, time = load(name)
        folds = stratified_folds(event, 5, seed=0)
        for depth in depths:
            for k, (train, test) in enumerate(folds[:2] if quick else folds):
                if results.have(part="real", set=name, depth=depth, fold=k):
                    continue
                tree = new_tree(depth)
                seconds = fit(tree, X.iloc[train], event[train], time[train])
                parts = [(X.iloc[rows], event[rows], time[rows]) for rows in (train, test)]
                row = scores(tree, parts[0], parts[1], (X, event, time))
                size = {"leaves": tree.tree_.n_leaves, "status": str(tree.status_), "seconds": seconds}
                size |= {"n": len(X), "censored": float(100 * (1 - event.mean())), "features": X.shape[1]}
                results.add({"part": "real", "set": name, "depth": depth, "fold": k, **row, **size})
    show_real(results)


def show_real(results: Results) -> None:
    """Ours beside print; at depth 4 beside the later table of the authors."""
    names = ["harrell_c", "IB", "IB, distinct", "leaves", "seconds"]
    frame = results.frame("real")
    table = frame.groupby(["set", "depth"], sort=False).agg(
        dict.fromkeys(names, "mean") | {"n": "first", "censored": "first", "features": "first", "fold": "count"}
    )
    lines = []
    for (name, depth), ours in table.iterrows():
        printed = TABLE_1.get(name)
        line = {"set": name, "depth": depth, "n": int(ours["n"]), "censored (%)": f"{ours['censored']:.1f}"}
        line |= {"features": int(ours["features"]), "folds": int(ours["fold"]), "leaves": f"{ours['leaves']:.1f}"}
        line |= {label: f"{ours[label]:.3f}" for label in ("harrell_c", "IB", "IB, distinct")}
        for at, label in enumerate(("CTree", "OST", "SurTree")):
            for kind in ("harrell_c", "ib"):
                value = getattr(printed, kind)[at] if printed and depth == 3 else None
                column = f"{'c' if kind == 'harrell_c' else 'IB'}: {label}"
                line[column] = None if value is None else f"{value:.2f}"
        if printed and depth == 4:
            line["c: SurTree"], line["IB: SurTree"] = (f"{value:.2f}" for value in LATER_TABLE[name])
        lines.append(line)
    out = pd.DataFrame(lines)
    for depth, group in out.groupby("depth"):
        print(f"\n### Depth {depth}\n")
        shown = group.drop(columns="depth").astype(object)
        shown = shown.dropna(axis=1, how="all")
        print(as_markdown(shown.where(shown.notna(), "")))
        known = group[group["c: SurTree"].notna()]
        text = [
            f"{label} {(known[ours].astype(float) - known[printed].astype(float)).mean():+.3f}"
            for label, ours, printed in (
                ("c", "harrell_c", "c: SurTree"),
                ("IB", "IB", "IB: SurTree"),
                ("IB, distinct", "IB, distinct", "IB: SurTree"),
            )
        ]
        print(f"\nmean difference to SurTree: {', '.join(text)}")
    print(f"\nnot proven: {int((frame['status'] != 'optimal').sum())} of {len(frame)} fits")


def seconds(results: Results, depths: tuple[int, ...], limit: float) -> None:
    """Run times on all sets: the tuned fits of `real`, and single searches beside pystreed on the same columns."""
    for name in SETS:
        X, event, time = load(name)
        data = coded_rows(name, X, event, time, Binarizer(10, 10, 0.01))
        for depth in depths:
            if results.have(part="seconds", set=name, depth=depth):
                continue
            row = beside_pystreed((X, event, time), data, depth, limit)
            results.add({"part": "seconds", "set": name, "depth": depth, **row})
    show_seconds(results)


def beside_pystreed(rows: Rows, data: Coded, depth: int, limit: float) -> dict[str, Any]:
    """CPU seconds and objectives of a fit of ours and of one of pystreed, on the same 0/1 columns."""
    tree = new_tree(depth, tune=None, min_samples_leaf=1)
    ours, _ = cpu(lambda: tree.fit(rows[0], rows[1:]))
    row = {"ours": ours, "objective": float(tree.objective_), "status": str(tree.status_)}
    peer = in_child(lambda: pystreed_case(data, depth, limit), 2 * limit + 30)
    return row | {"columns": data.binary.shape[1]} | (peer or {})


def pystreed_case(data: Coded, depth: int, limit: float) -> dict[str, Any]:
    """CPU seconds and objective of pystreed's tree, by our rule."""
    taken, model = cpu(lambda: fit_pystreed(data, depth, limit))
    found = objective_of(data, pystreed_leaves(data, model))
    return {"peer": taken, "peer objective": found, "peer proven": bool(model.fit_result.is_optimal())}


def show_seconds(results: Results) -> None:
    """Tuned fits beside the seconds of the authors, then single searches beside pystreed."""
    tuned = results.frame("real").groupby(["set", "depth"], sort=False)
    lines = []
    for (name, depth), folds in tuned:
        printed = TUNED_SECONDS[depth].get(name, (np.nan,) * 3)
        line = {"set": name, "depth": depth, "n": int(folds["n"].iloc[0]), "folds": len(folds)}
        line |= {label: f"{value:.3f}" for label, value in zip(("CTree", "OST", "SurTree"), printed, strict=True)}
        lines.append(line | {"ours": f"{folds['seconds'].mean():.3f}"})
    table = pd.DataFrame(lines)
    print(as_markdown(table.replace("nan", "")))
    for depth, group in table[table["SurTree"] != "nan"].groupby("depth"):
        ours = group["ours"].astype(float)
        means = {
            label: round(float(gmean(group[label].astype(float) / ours)), 1) for label in ("CTree", "OST", "SurTree")
        }
        print(f"depth {depth}: {means} times the seconds of ours, geometric means of {len(group)} sets")
    frame = results.frame("seconds")
    if frame.empty:
        return
    frame["same"] = np.isclose(frame["objective"], frame["peer objective"], rtol=1e-6, atol=0)
    shown = pd.DataFrame(
        {
            "set": frame["set"],
            "columns": frame["columns"],
            "columns, printed": [TABLE_1[n].columns if n in TABLE_1 else "" for n in frame["set"]],
            "depth": frame["depth"],
            "ours (s)": frame["ours"].map("{:.3f}".format),
            "pystreed (s)": frame["peer"].map("{:.3f}".format),
            "times faster": (frame["peer"] / frame["ours"]).map("{:.1f}".format),
            "ours, status": frame["status"],
            "pystreed": np.where(frame["peer proven"] == True, "optimal", "stopped"),  # noqa: E712
            "objective": frame["objective"].map("{:.3f}".format),
            "pystreed's less ours": (frame["peer objective"] - frame["objective"]).map("{:+.1e}".format),
        }
    )
    print("\n" + as_markdown(shown))
    for depth, group in frame.groupby("depth"):
        ratio = group["peer"] / group["ours"]
        print(f"depth {depth}: {gmean(ratio):.1f} times faster (geometric mean), at least {ratio.min():.1f}")


def synthetic_data(results: Results, quick: bool) -> None:
    sizes = (100, 500, 2000) if quick else (100, 200, 500, 1000, 2000, 5000)
    for n in sizes:
        for share in (0.1, 0.5, 0.8):
            for seed in range(2 if quick else 5):
                if results.have(part="synthetic", n=n, censoring=share, seed=seed):
                    continue
                train, test = synthetic(n, share, seed)
                tree = new_tree(4)
                taken = fit(tree, *train)
                row = scores(tree, train, test, test)
                size = {"leaves": tree.tree_.n_leaves, "status": str(tree.status_), "seconds": taken}
                results.add({"part": "synthetic", "n": n, "censoring": share, "seed": seed, **row, **size})
    frame = results.frame("synthetic").groupby(["censoring", "n"])
    wanted = {"seed": "count", "harrell_c": "mean", "IB": "mean", "leaves": "mean", "seconds": "mean"}
    table = frame.agg(wanted).round(3).reset_index()
    print(as_markdown(table.rename(columns={"seed": "data sets", "seconds": "CPU (s)"})))


def times(results: Results, quick: bool) -> None:
    """Figures 4 and 5; the training score is 0 for a single leaf and 1 for no loss."""
    for copies in (1, 2):
        for depth in range(2, 5 if quick else 6):
            for seed in range(2 if quick else 5):
                if results.have(part="times", copies=copies, depth=depth, seed=seed):
                    continue
                (X, event, time), _ = synthetic(5000, 0.5, seed, copies, n_test=2)
                one = new_tree(0, tune=None, min_samples_leaf=1).fit(X, (event, time)).objective_
                tree = new_tree(depth, tune=None, min_samples_leaf=1)
                taken = fit(tree, X, event, time)
                found = {"columns": len(tree.binarizer_.splits), "seconds": taken, "status": str(tree.status_)}
                found["score"] = float(1 - tree.objective_ / one)
                results.add({"part": "times", "copies": copies, "depth": depth, "seed": seed, **found})
    frame = results.frame("times")
    table = frame.groupby(["copies", "depth"]).agg(
        {"seed": "count", "columns": "mean", "score": "mean", "seconds": "mean"}
    )
    table = table.round({"score": 3, "seconds": 3}).reset_index()
    for at, label in enumerate(("CTree", "OST", "SurTree", "SurTree, no depth-two algorithm")):
        values = [FIGURE_4[c][d][at] for c, d in zip(table["copies"], table["depth"], strict=True)]
        table[f"{label} (s)"] = ["over 600" if v is None else f"{v:.3f}" for v in values]
    names = {"seed": "data sets", "seconds": "ours, CPU (s)", "score": "training score"}
    print(as_markdown(table.rename(columns=names)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["real", "seconds", "synthetic", "times"])
    parser.add_argument("--quick", action="store_true", help="a few minutes")
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of wall clock of pystreed in `seconds`")
    parser.add_argument("--out", type=Path, default=Path("surtree-results.jsonl"), help="finished cases, for resuming")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine_line() + "\n", flush=True)
    ready(relative_risk.TASK)
    results = Results(options.out)
    if options.part == "real":
        real(results, options.quick, tuple(options.depths))
    elif options.part == "seconds":
        seconds(results, tuple(options.depths), options.limit)
    elif options.part == "synthetic":
        synthetic_data(results, options.quick)
    else:
        times(results, options.quick)


if __name__ == "__main__":
    main()
