"""Look for wrong optima: random problems solved with every bound on and with every bound off, until time is up.

    .venv/bin/python scripts/fuzz_exact.py --seconds 300 --seed 1

The searches run to optimality, so any difference is an error. Each one is printed with the seed that repeats it and the
switches that make it go away; the exit status is the number of differences. The tests do the same on fewer problems.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pandas as pd

from softsurv.data.binarize import Binarizer
from softsurv.exact import search_state
from softsurv.exact.bounds import Bounds
from softsurv.exact.brier.bounds import IbsBounds
from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.objectives import impurity, label_costs, relative_risk, squared_error
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts
from softsurv.exact.task import Task

Solve = Callable[[Bounds | IbsBounds], float]
"""Objective of one random problem under some switches."""


def table(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (N, P), numbers of codes and kinds of a few features, with rows that repeat."""
    n, p = int(rng.integers(1, rng.choice([12, 40, 100]))), int(rng.integers(1, 6))
    n_codes = rng.integers(2, rng.choice([3, 4, 5]), p)
    codes = np.column_stack([rng.integers(0, m, n) for m in n_codes]).astype(np.int32)
    return codes, n_codes, rng.random(p) < rng.choice([0.0, 0.5])


def limits(rng: np.random.Generator) -> tuple[int, int]:
    """Depth and leaves."""
    return int(rng.integers(0, 5)), int(rng.integers(1, 14))


def costs_of_labels(rng: np.random.Generator, n: int) -> np.ndarray:
    """Costs (N, L): classes, weighted classes, whole numbers, or anything above or below 0."""
    n_labels = int(rng.integers(2, 5))
    label = rng.integers(0, n_labels, n)
    kind = rng.integers(5)
    if kind == 0:
        return label_costs.misclassification(label, n_labels)
    if kind == 1:
        return label_costs.misclassification(label, n_labels, rng.integers(1, 4, n) * 0.5)
    if kind == 2:
        return label_costs.from_matrix(label, rng.integers(0, 6, (n_labels, n_labels)).astype(float))
    return rng.integers(0, 5, (n, n_labels)).astype(float) if kind == 3 else rng.random((n, n_labels))


MANY_CUTS = 60
"""Cuts of a problem beyond which no tree of depth four is sought: without bounds a few such would take all the time."""


def units(rng: np.random.Generator, n: int) -> tuple[float, np.ndarray]:
    """The unit of all costs, 1 in half of the problems, and weights of rows (n,), now and then of many sizes."""
    weight = 10.0 ** rng.uniform(-4, 4, n) if rng.random() < 0.2 else np.ones(n)
    return float(rng.choice([1.0, 1.0, 1.0, 1e-12, 1e-9, 1e9])), weight / weight.mean()


@contextmanager
def taken_for_long() -> Iterator[None]:
    """Small problems begin as long searches do."""
    usual, search_state.LONG_WORK = search_state.LONG_WORK, 0.0
    try:
        yield
    finally:
        search_state.LONG_WORK = usual


def engine(
    rng: np.random.Generator, task: Task, data: tuple, limits: tuple[int, int], by_cuts: bool = False, **settings: Any
) -> Solve:
    """The general search over ``data``: codes, number of codes, kinds, statistics and perhaps an offset.

    The costs are told in a unit of their own; the objective comes back as a share of the root's cost, of which engines
    promise ten digits. ``by_cuts``: cut by cut also where there are few. Every second problem is taken for one of many
    rows.
    """
    codes, n_codes, nominal, statistics, *offset = data
    unit, weight = units(rng, len(codes))
    scaled = codes, n_codes, nominal, statistics * (unit * weight)[:, None], *(one * unit * weight for one in offset)
    root = max(abs(float(task.costs(scaled[3].sum(axis=0, keepdims=True))[0])), abs(float(np.sum(scaled[4:])))) or unit
    settings["complexity"] *= unit
    if "split_costs" in settings:
        paid = settings["split_costs"]
        settings["split_costs"] = dataclasses.replace(paid, full=paid.full * unit, reduced=paid.reduced * unit)

    first_trees, joint = bool(rng.integers(2)), bool(rng.integers(2))

    def solve(bounds: Bounds | IbsBounds) -> float:
        search = Search(task, *scaled, bounds=bounds, memory_limit=1e6, **settings)
        search.by_cuts = by_cuts and isinstance(bounds, Bounds) and bounds.cuts
        search.by_joint = joint and "split_costs" not in settings and isinstance(bounds, Bounds) and bounds.joint
        with taken_for_long() if first_trees else nullcontext():
            return search.solve(*limits).report.objective / root

    return solve


def labels(rng: np.random.Generator) -> Solve:
    """Cost of one label per leaf, sometimes with a least size of a leaf."""
    codes, n_codes, nominal = table(rng)
    statistics, (depth, leaves) = costs_of_labels(rng, len(codes)), limits(rng)
    complexity = float(rng.choice([0.0, 0.4, 1.0]))
    least = int(rng.integers(1, 4)) if rng.random() < 0.3 else 1
    data = (codes, n_codes, nominal, statistics)
    least = min(least, len(codes))
    return engine(rng, label_costs.TASK, data, (depth, leaves), complexity=complexity, min_leaf=least)


def impurities(rng: np.random.Generator) -> Solve:
    """Gini index, entropy or root Gini index of up to four classes, sometimes with a least size of a leaf."""
    codes, n_codes, nominal = table(rng)
    n, (depth, leaves) = len(codes), limits(rng)
    task = impurity.TASKS[str(rng.choice(sorted(impurity.TASKS)))]
    n_classes = int(rng.integers(2, 5))
    statistics = impurity.statistics(rng.integers(0, n_classes, n), n_classes, rng.integers(1, 6, n) / 2)
    complexity, least = float(rng.choice([0.0, 0.4, 1.0])), min(int(rng.integers(1, 4)), n)
    data = (codes, n_codes, nominal, statistics)
    return engine(rng, task, data, (depth, leaves), complexity=complexity, min_leaf=least)


def tests_paid(rng: np.random.Generator) -> Solve:
    """Cost of one label per leaf, and of each test along the path."""
    codes, n_codes, nominal = table(rng)
    statistics, (depth, leaves) = costs_of_labels(rng, len(codes)), limits(rng)
    p = codes.shape[1]
    full = rng.integers(0, 4, p) * 0.4
    test_of = rng.integers(0, p, p)
    costs = SplitCosts(full, test_of, rng.integers(1, 3, len(codes)).astype(float), full * rng.random(p),
                       rng.integers(-1, 2, p))  # fmt: skip
    complexity = float(rng.choice([0.0, 0.3]))
    data = (codes, n_codes, nominal, statistics)
    return engine(rng, label_costs.TASK, data, (depth, leaves), split_costs=costs, complexity=complexity)


def regression(rng: np.random.Generator) -> Solve:
    """Squared error."""
    codes, n_codes, nominal = table(rng)
    n, (depth, leaves) = len(codes), limits(rng)
    y, weight = rng.integers(0, 5, n) * rng.choice([1.0, 0.37]), rng.integers(1, 3, n).astype(float)
    statistics, offset = squared_error.statistics(y, weight), squared_error.offset(y, weight)
    complexity = float(rng.choice([0.0, 0.5]))
    data = (codes, n_codes, nominal, statistics, offset)
    return engine(rng, squared_error.TASK, data, (depth, leaves), complexity=complexity)


def risk(rng: np.random.Generator) -> Solve:
    """Relative-risk deviance."""
    codes, n_codes, nominal = table(rng)
    n, (depth, leaves) = len(codes), limits(rng)
    event = (rng.random(n) < rng.choice([0.0, 0.4, 1.0])).astype(float)
    hazard = rng.integers(1, 6, n) * rng.choice([0.25, 0.31])
    statistics, offset = np.column_stack([event, hazard]), event * 10.0
    complexity = float(rng.choice([0.0, 0.2]))
    data = (codes, n_codes, nominal, statistics, offset)
    return engine(rng, relative_risk.TASK, data, (depth, leaves), complexity=complexity)


def cuts(rng: np.random.Generator) -> Solve:
    """Features with many codes, cut by cut: labels, squared error or relative risk, at several scales of the costs."""
    n, p = int(rng.integers(1, rng.choice([8, 30, 60]))), int(rng.integers(1, 6))
    codes = np.column_stack([rng.integers(0, rng.choice([2, 5, 60]), n) for _ in range(p)]).astype(np.int32)
    limits = int(rng.integers(0, 5)), int(rng.integers(1, 12))
    if codes.max(axis=0).sum() > MANY_CUTS:
        limits = min(limits[0], 3), limits[1]
    kind = rng.integers(3)
    offset, task = np.zeros(n), label_costs.TASK
    if kind == 0:
        statistics = costs_of_labels(rng, n)
    elif kind == 1:
        y, weight = rng.integers(0, 5, n) * 0.37, rng.integers(1, 3, n).astype(float)
        statistics, offset, task = (
            squared_error.statistics(y, weight),
            squared_error.offset(y, weight),
            squared_error.TASK,
        )
    else:
        causes = int(rng.integers(1, 3))
        event, hazard = (rng.random((causes, n)) < 0.5).astype(float), rng.integers(1, 6, (causes, n)) * 0.31
        statistics = np.stack([event, hazard], axis=1).reshape(-1, n).T.copy()
        offset, task = event.sum(axis=0) * 10.0, relative_risk.TASK
    data = (codes, codes.max(axis=0) + 1, rng.random(p) < rng.choice([0.0, 0.3]), statistics, offset)
    least = min(int(rng.integers(1, 4)) if rng.random() < 0.4 else 1, n)
    complexity = float(rng.choice([0.0, 0.3, 1.0]))
    return engine(rng, task, data, limits, True, complexity=complexity, min_leaf=least)


def missing(rng: np.random.Generator) -> Solve:
    """Columns with missing values that are routed; without bounds every question is a column of its own."""
    n = int(rng.integers(2, rng.choice([12, 40, 80])))
    table = {f"x{k}": rng.integers(0, rng.choice([2, 4, 9]), n).astype(float) for k in range(rng.integers(1, 3))}
    table |= {f"c{k}": rng.choice(list("abcd")[: rng.integers(2, 5)], n) for k in range(rng.integers(0, 3))}
    frame = pd.DataFrame(table).mask(rng.random((n, len(table))) < rng.choice([0.0, 0.1, 0.4]))
    binarizer = Binarizer("all", missing="route").fit(frame)
    asked = questions(frame)
    if not binarizer.columns_:
        return lambda bounds: float(len(asked))  # no question either
    codes, n_codes, nominal = binarizer.codes(frame), binarizer.n_codes, binarizer.nominal
    columns = np.column_stack(asked).astype(np.int32)
    twos, none = np.full(columns.shape[1], 2), np.zeros(columns.shape[1], np.bool_)
    statistics, (depth, leaves) = costs_of_labels(rng, n), limits(rng)
    settings = {"complexity": float(rng.choice([0.0, 0.4])), "min_leaf": int(rng.integers(1, min(4, n)))}
    by_cuts, seed = bool(rng.integers(2)), int(rng.integers(1 << 32))
    data = (codes, n_codes, nominal, statistics), (columns, twos, none, statistics)
    coded, plain = (  # in one unit, with the same weights
        engine(np.random.default_rng(seed), label_costs.TASK, own, (depth, leaves), by_cuts and k == 0, **settings)
        for k, own in enumerate(data)
    )
    return lambda bounds: plain(bounds) if bounds == all_off(bounds) else coded(bounds)


def questions(frame: pd.DataFrame) -> list[np.ndarray]:
    """Answers (N,) to every question that divides the rows: cuts and levels, missing values on either side."""
    found = []
    for name in frame:
        column, gone = frame[name], frame[name].isna().to_numpy()
        known = sorted(set(column[~gone]))
        one = [column == v for v in known] if column.dtype == object else [column <= v for v in known]
        found += [np.where(gone, side, yes.to_numpy()) for yes in one for side in (False, True)] + [gone]
    return [yes for yes in found if 0 < yes.sum() < len(yes)]


def brier(rng: np.random.Generator) -> Solve:
    """Integrated Brier score."""
    n, p = int(rng.integers(2, rng.choice([12, 60, 200]))), int(rng.integers(1, 7))
    x = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(np.uint8)
    time_ = np.ceil(rng.choice([3, 20, 500]) * rng.random(n) * np.exp(0.4 * x @ rng.normal(0, 1, p)))
    event = rng.random(n) < rng.choice([0.0, 0.5, 0.8, 1.0])
    depth, leaves = int(rng.integers(0, 5)), int(rng.integers(1, 10))
    settings = {
        "complexity": float(rng.choice([0.0, 0.001, 0.01])),
        "max_depth": depth,
        "max_leaves": leaves if rng.random() < 0.3 else None,
        "min_samples_leaf": int(rng.integers(1, 5)),
        "leaf": str(rng.choice(["km", "ipcw"])),
        "weight": rng.integers(1, 4, n) * units(rng, 1)[0] if rng.random() < 0.3 else None,
    }
    return lambda bounds: solve_ibs(x, time_, event, bounds=bounds, **settings).report.objective


TARGETS = {
    "labels": labels,
    "impurities": impurities,
    "tests_paid": tests_paid,
    "regression": regression,
    "risk": risk,
    "cuts": cuts,
    "missing": missing,
    "brier": brier,
}


def all_off(switches: Bounds | IbsBounds) -> Bounds | IbsBounds:
    """Every switch turned off."""
    return dataclasses.replace(switches, **{f.name: False for f in dataclasses.fields(switches)})


def differ(a: float, b: float) -> bool:
    """Whether two objectives, as shares of the root's cost, are not the same but for rounding."""
    return abs(a - b) > 1e-8 * max(1.0, abs(a), abs(b))


def trial(target: str, seed: int) -> str:
    """What is wrong with the answer to one random problem; empty where nothing is."""
    solve = TARGETS[target](np.random.default_rng(seed))
    switches: Bounds | IbsBounds = IbsBounds() if target == "brier" else Bounds()
    try:
        found, right = solve(switches), solve(all_off(switches))
    except Exception as error:  # a search that fails is as wrong as one that errs
        return repr(error)
    if not differ(found, right):
        return ""
    fields = [field.name for field in dataclasses.fields(switches)]
    mending = [one for one in fields if not differ(solve(dataclasses.replace(switches, **{one: False})), right)]
    return f"{found!r}, without bounds {right!r}; mended without {mending}"


def main() -> int:
    """Run until time is up; the number of differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the next ones count up")
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    arguments = parser.parse_args()
    end, seed, wrong = time.perf_counter() + arguments.seconds, arguments.seed, 0
    count = dict.fromkeys(arguments.targets, 0)
    while time.perf_counter() < end:
        for target in arguments.targets:
            message = trial(target, seed)
            count[target] += 1
            if message:
                wrong += 1
                print(f"{target} --seed {seed}: {message}", flush=True)
        seed += 1
    print(f"{wrong} differences in", ", ".join(f"{n} {target}" for target, n in count.items()))
    return min(wrong, 100)


if __name__ == "__main__":
    sys.exit(main())
