"""What a search has at any time: the tree and the lower bound after .1, .3, 1 and 3 s, at half time and at the end.

    OMP_NUM_THREADS=1 python scripts/bench_anytime.py --out build/anytime.jsonl      # goes on where it stopped
    OMP_NUM_THREADS=1 python scripts/bench_anytime.py --only auc --draw docs/images/anytime.png
    OMP_NUM_THREADS=1 PYTHONPATH=OLD python scripts/bench_anytime.py --out build/before.jsonl
    python scripts/bench_anytime.py --out build/anytime.jsonl --before build/before.jsonl --table

Every line is one estimator on one set: fits with growing limits of time, from `fit` to `fit`, kernels loaded. Seconds
are CPU seconds of the process, as is the clock of `softsurv.stopping` here: other work on the machine does not count.
The last limit is ``--last``, or the search ends. "half" is a fit with half the seconds that the last one took,
"start" one with no time at all. A gap is (objective - bound) / |objective|. Asked: after 1 s the tree within 1 % of the
last one for sums over leaves, within 5 % for the others, and at half time half the gap of the start. The folder of the
data is the environment variable SOFTSURV_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results

import softsurv
from softsurv import load_dataset, stopping
from softsurv.results import Status

LIMITS = (0.1, 0.3, 1.0, 3.0)
SUMS = ("relative risk", "ibs", "accuracy", "squared error", "test costs", "policy")
"""Objectives that are sums over leaves."""


@dataclass(frozen=True)
class Case:
    """One estimator on one set, to be fitted with a limit of seconds."""

    objective: str
    name: str
    depth: int
    fit: Callable[[float], Any]


def cases() -> Iterator[Case]:
    """Every objective on some sets."""
    for name, depth in (("GBSG2", 5), ("whas500", 5), ("hdfail", 4)):
        yield survival("relative risk", name, depth, objective="relative_risk")
    for name, depth in (("GBSG2", 4), ("whas500", 4)):
        yield survival("ibs", name, depth, objective="ibs", complexity=0.002)
    sets = _tasks.classification_sets()
    for name, depth in (("german-credit", 5), ("yeast", 5), ("tic-tac-toe", 6)):
        yield classes("accuracy", name, *sets[name], depth, "accuracy")
    targets = _tasks.regression_sets() | _tasks.sklearn_targets()
    for name, depth in (("airfoil", 8), ("diabetes (sklearn)", 5)):
        yield regression(name, *targets[name], depth)
    yield test_costs(5)
    yield policy(6)
    for name in ("german-credit-binarized", "student-por-binarized"):
        yield fair(name, *sets[name], 5)
    yield capacity(5)
    for name, depth in (("GBSG2", 4), ("whas500", 3)):
        yield fair_survival(name, depth)
    for objective in ("mcc", "f1"):
        for name in ("german-credit", "yeast"):
            yield classes(objective, name, *sets[name], 5, objective)
    sets |= _tasks.sklearn_classes()
    for name, depth in (("breast-cancer (sklearn)", 4), ("heart-cleveland", 4)):
        yield classes("auc", name, *sets[name], depth, "auc")


def survival(label: str, name: str, depth: int, **how: Any) -> Case:
    """An optimal survival tree at ten cuts."""
    data = load_dataset(f"survset:{name}")

    def fit(limit: float) -> Any:
        return softsurv.OptimalSurvivalTree(max_depth=depth, time_limit=limit, **how).fit(data.X, data.y)

    return Case(label, name, depth, fit)


def classes(label: str, name: str, X: np.ndarray, y: np.ndarray, depth: int, objective: str) -> Case:
    """A classification tree."""
    return Case(
        label, name, depth,
        lambda limit: softsurv.OptimalClassificationTree(objective, max_depth=depth, time_limit=limit).fit(X, y),
    )  # fmt: skip


def regression(name: str, X: np.ndarray, y: np.ndarray, depth: int) -> Case:
    """A regression tree."""
    return Case(
        "squared error", name, depth,
        lambda limit: softsurv.OptimalRegressionTree(max_depth=depth, time_limit=limit).fit(X, y),
    )  # fmt: skip


def test_costs(depth: int) -> Case:
    """A tree that pays for tests."""
    X, y = _tasks.classification_sets()["heart-train-1"]
    price = {f"x{k}": 0.01 * (1 + k % 5) for k in range(X.shape[1])}

    def fit(limit: float) -> Any:
        return softsurv.OptimalCostSensitiveTree(feature_costs=price, max_depth=depth, time_limit=limit).fit(X, y)

    return Case("test costs", "heart-train-1", depth, fit)


def rewards() -> tuple[np.ndarray, np.ndarray]:
    """Columns and scores of three doses of warfarin."""
    table = np.loadtxt(_tasks.folder() / "policy" / "warfarin_train_rf_dt_0.11_0_0.csv")
    extra = table[:, 1:11]
    given = extra[:, 0].astype(int)
    scores = _tasks.treatment_scores("doubly_robust", extra[:, 1], given, 3, extra[:, 2], extra[:, 3:6])
    return table[:, 11:].astype(int), scores


def policy(depth: int) -> Case:
    """A policy tree."""
    X, scores = rewards()

    def fit(limit: float) -> Any:
        return softsurv.OptimalPolicyTree(max_depth=depth, time_limit=limit).fit(X, scores=scores)

    return Case("policy", "warfarin", depth, fit)


def capacity(depth: int) -> Case:
    """A policy tree that gives the first dose to a tenth at most."""
    X, scores = rewards()

    def fit(limit: float) -> Any:
        tree = softsurv.OptimalCapacityPolicyTree({0: 0.1, 2: 0.05}, max_depth=depth, time_limit=limit)
        return tree.fit(X, scores=scores)

    return Case("capacity", "warfarin", depth, fit)


def fair(name: str, X: np.ndarray, y: np.ndarray, depth: int) -> Case:
    """A classification tree under demographic parity; the group is the first column, and no feature."""

    def fit(limit: float) -> Any:
        tree = softsurv.OptimalFairClassificationTree(max_depth=depth, time_limit=limit)
        return tree.fit(X[:, 1:], y, group=X[:, 0])

    return Case("parity", name.removesuffix("-binarized"), depth, fit)


def fair_survival(name: str, depth: int) -> Case:
    """A survival tree fair between those older than the median and the others."""
    data = load_dataset(f"survset:{name}")
    age = data.X.select_dtypes("number").iloc[:, 0]
    horizon = float(np.median(data.time.numpy()))

    def fit(limit: float) -> Any:
        tree = softsurv.OptimalFairSurvivalTree(horizon, 0.005, max_depth=depth, time_limit=limit)
        return tree.fit(data.X, data.y, group=(age > age.median()).to_numpy())

    return Case("fair survival", name, depth, fit)


# -- measuring -----------------------------------------------------------------------------------------------------
def measure(case: Case, last: float) -> dict[str, Any]:
    """Objective, bound and seconds with each limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.fit(0.01)  # loads the kernels
        points = [one(case, 0.0)]
        for limit in (*LIMITS, last):
            points.append(one(case, limit))
            if points[-1]["proven"]:
                break
        half = one(case, points[-1]["seconds"] / 2)
    return {"objective": case.objective, "set": case.name, "depth": case.depth, "points": points, "half": half}


def one(case: Case, limit: float) -> dict[str, Any]:
    """One fit."""
    begin = time.process_time()
    tree = case.fit(limit)
    return {
        "limit": limit, "seconds": time.process_time() - begin, "value": float(tree.objective_),
        "bound": float(tree.lower_bound_), "proven": tree.status_ == Status.OPTIMAL,
    }  # fmt: skip


def gap(point: dict[str, Any]) -> float:
    """Gap as a share of the objective."""
    return (point["value"] - point["bound"]) / max(abs(point["value"]), 1e-12)


def excess(line: dict[str, Any], seconds: float) -> float:
    """By how much the tree after so many seconds is worse than the last one, as a share of that."""
    last = line["points"][-1]["value"]
    known = [p["value"] for p in line["points"] if p["limit"] <= seconds] or [line["points"][0]["value"]]
    return (known[-1] - last) / max(abs(last), 1e-12)


def row(line: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """A line of the table."""
    first, last = line["points"][0], line["points"][-1]
    out = {
        "objective": line["objective"], "set": line["set"], "depth": line["depth"], "last": f"{last['value']:.6g}",
        "proven after (s)": f"{last['seconds']:.2f}" if last["proven"] else "-",
    }  # fmt: skip
    for limit in LIMITS:
        out[f"over it at {limit:g} s"] = f"{excess(line, limit):.1%}"
    if before is not None:
        out["at 1 s before"] = f"{excess(before, 1.0):.1%}"
    allowed = 0.01 if line["objective"] in SUMS else 0.05
    out |= {"gap: start": f"{gap(first):.0%}", "half": f"{gap(line['half']):.0%}", "end": f"{gap(last):.1%}"}
    if before is not None:
        out["half before"] = f"{gap(before['half']):.0%}"
    out["tree at 1 s"] = "yes" if excess(line, 1.0) <= allowed else "NO"
    out["gap halved"] = "yes" if gap(line["half"]) <= gap(first) / 2 else "NO"
    return out


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Tree and bound over time, one picture for each objective."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(line["objective"] for line in lines))
    longest, columns = max(line["points"][-1]["seconds"] for line in lines), 4
    figure, axes = pyplot.subplots(-(-len(names) // columns), columns, figsize=(13, 3 * -(-len(names) // columns)))
    for axis, name in zip(axes.flat, names, strict=False):
        for k, line in enumerate(one for one in lines if one["objective"] == name):
            points = line["points"]
            at = [max(p["seconds"], 0.02) for p in points]
            last = max(abs(points[-1]["value"]), 1e-12)
            low = [max((p["bound"] - points[-1]["value"]) / last, -1.0) for p in points]
            high = [min((p["value"] - points[-1]["value"]) / last, 1.0) for p in points]
            label = f"{line['set'].removesuffix(' (sklearn)')}, depth {line['depth']}"
            axis.plot(at, high, color=f"C{k}", marker="o", markersize=3, label=label, drawstyle="steps-post")
            axis.plot(at, low, color=f"C{k}", marker="o", markersize=3, linestyle="--", drawstyle="steps-post")
        axis.set(title=name, xscale="log", xlim=(0.015, 1.5 * longest), ylim=(-1.05, 1.05))
        axis.axhline(0.0, color="grey", linewidth=0.5)
        axis.legend(fontsize=7)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    figure.supxlabel("seconds from fit to fit")
    figure.supylabel("tree (full) and bound (dashed) over the last tree, as a share of it")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main() -> None:
    stopping.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[assignment]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/anytime.jsonl"))
    parser.add_argument("--before", type=Path, help="the same of another commit")
    parser.add_argument("--only", help="an objective, or a part of its name")
    parser.add_argument("--last", type=float, default=30.0, help="seconds of the last fit (default: 30)")
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    results = Results(options.out)
    if not options.table:
        for case in cases():
            if options.only is None or options.only in case.objective:
                results.get(f"{case.objective} {case.name} {case.depth}", lambda case=case: measure(case, options.last))
    lines = list(results.done.values())
    before = {} if options.before is None else Results(options.before).done
    print(machine_line() + "\n")
    print(as_markdown(pd.DataFrame([row(line, before.get(line["case"])) for line in lines])))
    if options.draw is not None:
        draw(lines, options.draw)


if __name__ == "__main__":
    main()
