"""Optimal trees from ``fit`` to ``fit`` beside pystreed 1.4.0: what a user waits for, on the same table of 0/1 columns.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/bench_optimal_fit.py --table scripts/tables/optimal_fit.md
    OMP_NUM_THREADS=1 python scripts/bench_optimal_fit.py --part survival --depths 3 4 --repeats 3

Both sides get the same pandas frame of 0/1 columns, the same depth and leaves of any size; everything else is at its
default. Survival sets are cut as in paper `surtree`; the eight sets of classes come with paper `streed`. Times are the
least CPU seconds of interleaved repeats, fewer where they are long (`LONG`), with compiled kernels; ``overhead`` is
what a fit of ours takes beside its search. Each tree is scored by our objective: neither may be worse. Part
``overhead`` fits trees of depth two time and again: least and median CPU time of all but the search, the least of all
but compiled code, and beside them a millisecond and a hundredth more for each 0/1 column that the table is coded as, or
for each column that it has.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _exact_data import Coded, coded, fit_pystreed, objective_of, pystreed_leaves
from _machine import as_markdown, machine_line

from softsurv import OptimalClassificationTree, OptimalSurvivalTree, load_dataset
from softsurv.exact.entries import Entry
from softsurv.exact.search import Search

SURVIVAL = ("veteran", "whas500", "GBSG2", "uis", "Aids2", "UnempDur", "Framingham")

OVERHEAD_REPEATS = 200

LONG = 15.0
"""CPU seconds after which a case is not repeated."""


class SearchTime:
    """CPU seconds that searches took since the last reset, and those of them inside compiled code."""

    def __init__(self) -> None:
        self.seconds = self.compiled = 0.0
        solve, call = Search.solve, Entry.__call__

        def timed_call(entry: Entry, *args: Any) -> Any:
            begin = time.process_time()
            try:
                return call(entry, *args)
            finally:
                self.compiled += time.process_time() - begin

        def timed(search: Search, *args: Any, **how: Any) -> Any:
            begin = time.process_time()
            try:
                return solve(search, *args, **how)
            finally:
                self.seconds += time.process_time() - begin

        Search.solve, Entry.__call__ = timed, timed_call  # type: ignore[method-assign]


def least(ours: Callable[[], Any], peer: Callable[[], Any], repeats: int, clock: SearchTime) -> dict[str, Any]:
    """Least CPU seconds of both sides over interleaved repeats, what ours took beside the search, and both models."""
    runs: list[tuple[float, float, float]] = []
    while len(runs) < repeats and sum(own + theirs for own, _, theirs in runs) < LONG:
        clock.seconds, begin = 0.0, time.process_time()
        tree = ours()
        middle = time.process_time()
        model = peer()
        runs.append((middle - begin, middle - begin - clock.seconds, time.process_time() - middle))
    best = np.min(runs, axis=0)
    return {"ours": best[0], "overhead": best[1], "pystreed": best[2], "trees": (tree, model)}


def frame_of(binary: np.ndarray) -> pd.DataFrame:
    """The 0/1 columns as a table with names."""
    return pd.DataFrame(binary, columns=[f"c{k}" for k in range(binary.shape[1])])


def survival_case(data: Coded, depth: int, repeats: int, clock: SearchTime) -> dict[str, Any]:
    """A relative-risk tree of one set."""
    X, y = frame_of(data.binary), (data.event, data.time)
    ours = OptimalSurvivalTree(max_depth=depth, min_samples_leaf=1, time_limit=600)
    run = least(lambda: ours.fit(X, y), lambda: fit_pystreed(data, depth), repeats, clock)
    tree, model = run.pop("trees")
    scores = (objective_of(data, tree.apply(X)), objective_of(data, pystreed_leaves(data, model)))
    return {"set": data.name, "rows": len(X), "columns": X.shape[1], "depth": depth, **run, "scores": scores}


def class_case(name: str, binary: np.ndarray, label: np.ndarray, depth: int, repeats: int, clock: SearchTime) -> Any:
    """A classifier of one set."""
    from pystreed import STreeDClassifier

    X = frame_of(binary)
    ours = OptimalClassificationTree(max_depth=depth, time_limit=600)
    peer = STreeDClassifier("accuracy", max_depth=depth, time_limit=600)
    run = least(lambda: ours.fit(X, label), lambda: peer.fit(binary, label), repeats, clock)
    run.pop("trees")
    scores = (int((ours.predict(X) != label).sum()), int((peer.predict(binary) != label).sum()))
    return {"set": name, "rows": len(X), "columns": X.shape[1], "depth": depth, **run, "scores": scores}


def overhead_case(name: str, X: pd.DataFrame, fit: Callable[[], Any], clock: SearchTime) -> dict[str, Any]:
    """What fits of depth two take beside their search."""
    times, outside = [], []
    coded_columns = len(fit().binarizer_.splits)
    for _ in range(OVERHEAD_REPEATS):
        clock.seconds, clock.compiled, begin = 0.0, 0.0, time.process_time()
        fit()
        whole = time.process_time() - begin
        times.append(1e3 * (whole - clock.seconds))
        outside.append(1e3 * (whole - clock.compiled))
    row = {
        "fit": name,
        "rows": len(X),
        "columns": X.shape[1],
        "coded columns": coded_columns,
        "least (ms)": min(times),
        "median (ms)": np.median(times),
    }
    row |= {"outside compiled code (ms)": min(outside), "asked (ms)": 1 + 0.01 * coded_columns}
    return row | {"asked by the table's own columns (ms)": 1 + 0.01 * X.shape[1]}


def overheads(clock: SearchTime) -> str:
    """A table of what fits take beside their search, on 0/1 columns, on raw ones and on measurements."""
    runs = []
    for name in ("veteran", "whas500", "GBSG2"):
        data = coded(name)
        for what, X in (("0/1", frame_of(data.binary)), ("raw", load_dataset(f"survset:{name}").X)):
            tree, y = OptimalSurvivalTree(max_depth=2, min_samples_leaf=1), (data.event, data.time)
            runs.append(overhead_case(f"{name}, {what}", X, partial(tree.fit, X, y), clock))
    rng = np.random.default_rng(0)
    for n_columns in (5, 10, 20):
        X = pd.DataFrame(rng.normal(size=(500, n_columns)), columns=[f"c{k}" for k in range(n_columns)])
        tree, y = OptimalSurvivalTree(max_depth=2), (rng.random(500) < 0.6, rng.exponential(size=500))
        runs.append(overhead_case("floats, a frame", X, partial(tree.fit, X, y), clock))
        runs.append(overhead_case("floats, an array", X, partial(tree.fit, X.to_numpy(), y), clock))
    for name in ("hepatitis", "heart-cleveland", "german-credit"):
        binary, label = _tasks.classification_sets()[name]
        X = frame_of(binary)
        fit = partial(OptimalClassificationTree(max_depth=2).fit, X, label)
        runs.append(overhead_case(f"{name}, classes", X, fit, clock))
    return as_markdown(pd.DataFrame(runs).round(2))


def shown(runs: list[dict[str, Any]]) -> str:
    """A table of runs with the geometric means by depth and over all, and the worst case."""
    frame = pd.DataFrame(runs)
    table = frame[["set", "rows", "columns", "depth"]].copy()
    for side in ("ours", "overhead", "pystreed"):
        table[f"{side} (ms)"] = [f"{1e3 * value:.2f}" for value in frame[side]]
    ratio = frame["pystreed"] / frame["ours"]
    table["speed-up"] = ratio.round(2)
    table["objective, ours"] = [f"{ours:.6g}" for ours, _ in frame["scores"]]
    table["pystreed's"] = [f"{peer:.6g}" for _, peer in frame["scores"]]
    means = np.exp(np.log(ratio).groupby(frame["depth"]).mean()).round(2)
    by_depth = "; ".join(f"depth {depth}: {mean}" for depth, mean in means.items())
    deep = ratio[frame["depth"] > 2]
    worst = 1e3 * float((frame["ours"] - frame["pystreed"])[deep.index].max())
    return (
        f"{as_markdown(table)}\n\nGeometric mean of the speed-up from depth 3 on {np.exp(np.log(deep).mean()):.2f} "
        f"({by_depth}); "
        f"worst case {worst:+.1f} ms."
    )


def main() -> None:
    """Time every case and show the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["survival", "classes", "overhead", "all"], default="all")
    parser.add_argument("--depths", nargs="+", type=int, default=[3, 4, 5])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", type=Path, help="where to write the tables too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    clock, parts = SearchTime(), []
    if args.part in ("survival", "all"):
        sets = [coded(name) for name in args.sets or SURVIVAL]
        runs = [survival_case(data, depth, args.repeats, clock) for depth in args.depths for data in sets]
        parts.append("## Survival trees, relative risk\n\n" + shown(runs))
    if args.part in ("classes", "all"):
        known = sorted(file.stem for file in (_tasks.folder() / "classification").glob("*.csv"))
        classes = {name: _tasks.classification_sets()[name] for name in args.sets or known}
        runs = [
            class_case(name, *classes[name], depth, args.repeats, clock)
            for depth in [2, *args.depths]
            for name in classes
        ]
        parts.append("## Classifiers, accuracy\n\n" + shown(runs))
    if args.part in ("overhead", "all"):
        parts.append("## All but the search, trees of depth two\n\n" + overheads(clock))
    lines = __doc__.splitlines()
    text = "\n\n".join([f"# {lines[0]}", "\n".join(lines[7:]).strip(), machine_line(), *parts]) + "\n"
    print(text)
    if args.table:
        args.table.write_text(text)


if __name__ == "__main__":
    main()
