"""The STreeD paper's own experiments (van der Linden et al. 2023) on its own files, printed numbers beside ours.

The folder of the files is $SOFTSURV_DATA/streed: the folder `data` of AlgTUDelft/pystreed, commit 11cdc8d. Not there:
letter, bank and KDD (files that our copy of the repository lacks); COMPAS and Dutch, which it leaves out for their
licences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import table_of
from _results import Results, cpu
from _streed_printed import ACCURACY_SECONDS, COSTS, COSTS_BY_LEVEL, F1_SECONDS, FAIR_SECONDS, LEVELS, SIZES, WARFARIN

from softsurv.data.partition import stratified_folds
from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.policy import lost_rewards, treatment_scores
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts, paid
from softsurv.exact.tree import CodeTree

Rows = tuple[np.ndarray, np.ndarray]
"""0/1 columns (N, B) and class codes (N,)."""

DEPTH = 4
"""Largest depth of the cost-sensitive trees."""

FOLDS = 5

FEWER = {"krk": 3, "soybean": 5, "mushroom": 10}
"""Sets of which so many splits are taken, for the time they cost."""

FILES = {"Fico": "gosdt/fico/fico-binary.csv", "COMPAS": "gosdt/compas/binned.csv"}
"""Sets of Tables 7 and 10 that lie elsewhere."""


SHOWN = ("pystreed", "verdict", "ours (s)", "pystreed (s)", "speed-up")


# -- costs (Tables 2 and 3) ----------------------------------------------------------------------------------------
def costs(results: Results, splits: int) -> pd.DataFrame:
    """Test costs as shares of the standard costs (eq. 60), mean over splits: depth chosen on the training rows."""
    lines = []
    for name, printed in COSTS_BY_LEVEL.items():
        by_level = costs_of_set(results, name, splits)
        tuned = [100 * np.array([case["tuned"] for case in by_level[level]]) for level in LEVELS]
        full = [100 * np.mean([case["full"] for case in by_level[level]]) for level in LEVELS]
        cases = [case for level in LEVELS for case in by_level[level]]
        n_splits = len(by_level[LEVELS[0]])
        line = {"set": name, "rows": cases[0]["rows"], "columns": cases[0]["columns"], "splits": n_splits}
        for level, theirs, ours in zip(LEVELS, printed, tuned, strict=True):
            line |= {f"{level}, printed": theirs[0], f"{level}, ours": spread(ours)}
        line |= {"mean, TMDP": COSTS[name][0], "mean, printed": COSTS[name][1]}
        line |= {"mean, ours": f"{np.mean([values.mean() for values in tuned]):.1f}"}
        line |= {
            "mean, depth 4 untuned": f"{np.mean(full):.1f}",
            "s a split": f"{np.mean([case['seconds'] for case in cases]):.3f}",
        }
        lines.append(line)
    return pd.DataFrame(lines)


def costs_of_set(results: Results, name: str, splits: int) -> dict[str, list[dict[str, Any]]]:
    """The splits of a set by level of costs."""
    numbers = range(1, min(splits, FEWER.get(name, splits)) + 1)
    return {
        level: [
            results.get(f"costs {name} {level} {k}", lambda k=k, level=level: cost_case(name, level, k))
            for k in numbers
        ]
        for level in LEVELS
    }


def spread(values: np.ndarray) -> str:
    """Mean and its standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def cost_case(name: str, level: str, split: int) -> dict[str, Any]:
    """One split: the tree of the depth, of 0 to 4, with the least held-out cost in five folds, and that of depth 4."""
    folder = _tasks.folder_of("streed") / "cost-sensitive" / name
    train, test = (_tasks.costly_rows(folder / f"{name}-{part}-{split}.csv") for part in ("train", "test"))
    file = folder / f"{name}-{level}-costs.csv"

    def choose() -> tuple[CodeTree, CodeTree]:
        held_out = np.zeros(DEPTH + 1)
        for inside, outside in stratified_folds(train[1] == np.bincount(train[1]).argmax(), FOLDS, seed=split):
            parts = [(train[0][rows], train[1][rows]) for rows in (inside, outside)]
            held_out += [total_cost(tree, parts[1], file) for tree in trees(parts[0], file)]
        every = trees(train, file)
        return every[int(held_out.argmin())], every[-1]

    ready(label_costs.TASK)
    seconds, (tuned, full) = cpu(choose, repeats=1)
    standard = standard_cost(test, file) * len(test[1])
    shares = {"tuned": total_cost(tuned, test, file) / standard, "full": total_cost(full, test, file) / standard}
    rows = len(train[1]) + len(test[1])
    level_of = levels(tuned)
    asked = float(level_of[tuned.node_of(test[0].astype(np.int32), np.zeros(test[0].shape[1], bool))].mean())
    shares |= {"leaves": tuned.n_leaves, "depth": int(level_of.max()), "questions": asked}
    return shares | {"seconds": seconds, "rows": rows, "columns": train[0].shape[1]}


def trees(rows: Rows, file: Any) -> list[CodeTree]:
    """Trees of least cost of depth 0 to 4."""
    X, y = rows
    matrix, price = _tasks.costs_of(file, X.shape[1], len(y))
    search = Search(label_costs.TASK, *_tasks.coded(X), label_costs.from_matrix(y, matrix), split_costs=price)
    return [search.solve(depth).tree for depth in range(DEPTH + 1)]


def levels(tree: CodeTree) -> np.ndarray:
    """Number of splits above every node."""
    level = np.zeros(len(tree.feature), int)
    for parent in np.flatnonzero(tree.feature >= 0):  # preorder: parents come first
        level[[tree.left[parent], tree.right[parent]]] = level[parent] + 1
    return level


def sizes(results: Results, splits: int) -> pd.DataFrame:
    """Table 4: depth, leaves and questions asked of a test row, mean over the sets that TMDP ended."""
    ended = [name for name, (tmdp, _) in COSTS.items() if tmdp != "-"]
    means: dict[str, list[float]] = {key: [] for key in SIZES}
    for name in ended:
        cases = [case for level in LEVELS for case in costs_of_set(results, name, splits)[level]]
        for key, values in means.items():
            values.append(float(np.mean([case[key] for case in cases])))
    lines = [
        {"": label, "TMDP, printed": tmdp, "STreeD, printed": streed, "ours": f"{np.mean(means[key]):.1f}"}
        for key, (label, tmdp, streed) in SIZES.items()
    ]
    return pd.DataFrame(lines).assign(sets=len(ended))


def total_cost(tree: CodeTree, rows: Rows, file: Any) -> float:
    """Misclassification and tests of new rows."""
    X, y = rows
    matrix, price = _tasks.costs_of(file, X.shape[1], len(y))
    label = label_costs.best_label(tree.sums[tree.leaves, : matrix.shape[1]])
    node = tree.node_of(X.astype(np.int32), np.zeros(X.shape[1], bool))
    inside = np.bincount(node, minlength=len(tree.feature)).astype(float)
    for parent in np.flatnonzero(tree.feature >= 0)[::-1]:  # preorder: children come later
        inside[parent] = inside[tree.left[parent]] + inside[tree.right[parent]]
    return float(matrix[y, label[np.searchsorted(tree.leaves, node)]].sum() + paid(tree, price, inside))


def standard_cost(rows: Rows, file: Any) -> float:
    """Standard cost of a row (eq. 60), with the shares of the classes among these rows."""
    X, y = rows
    matrix, price = _tasks.costs_of(file, X.shape[1], len(y))
    share = np.bincount(y, minlength=len(matrix)) / len(y)
    return float(full_price(price) + (1 - share).min() * matrix.max())


def full_price(price: SplitCosts) -> float:
    """What all tests cost a row together: of a group the first at its full price, the others at the lower one."""
    group = price.group
    assert group is not None
    assert price.reduced is not None
    first = np.array([one < 0 or one not in group[:at] for at, one in enumerate(group)])
    return float(np.where(first, price.full, price.reduced).sum())


# -- policies (Table 6) --------------------------------------------------------------------------------------------
def warfarin(results: Results, splits: int) -> pd.DataFrame:
    """Warfarin: right treatments of new patients by depth, mean over the 75 files and three scores."""
    folder = _tasks.folder_of("streed") / "prescriptive-policy" / "warfarin"
    names = sorted(file.stem.removeprefix("train_") for file in folder.glob("train_*.csv"))
    if splits < len(names):
        names = names[:: -(-len(names) // splits)]
    lines = []
    for depth, printed in WARFARIN.items():
        cases = [
            results.get(
                f"warfarin {name} {method} {depth}",
                lambda name=name, method=method, depth=depth: policy_case(folder, name, method, depth),
            )
            for name in names
            for method in _tasks.POLICY
        ]
        seconds = np.array([case["seconds"] for case in cases])
        line = {"depth": depth, "trees": len(cases), "printed (%)": printed[0]}
        line["ours (%)"] = f"{100 * np.mean([case['right'] for case in cases]):.1f}"
        for method in _tasks.POLICY:
            part = [case["right"] for case in cases if case["method"] == method]
            line[f"{method} (%)"] = f"{100 * np.mean(part):.1f}"
        line |= {"printed (s)": printed[1], "ours (s)": f"{seconds.mean():.3f}", "longest (s)": f"{seconds.max():.3f}"}
        lines.append(line | {"proven": sum(case["proven"] for case in cases)})
    return pd.DataFrame(lines)


def policy_case(folder: Any, name: str, method: str, depth: int) -> dict[str, Any]:
    """Share of the test patients that get their best treatment."""
    train, test = (np.loadtxt(folder / f"{part}_{name}.csv") for part in ("train", "test"))
    X = train[:, 11:].astype(int)
    scores = treatment_scores(
        _tasks.POLICY[method], train[:, 2], train[:, 1].astype(int), 3, train[:, 3], train[:, 4:7]
    )
    lost = lost_rewards(scores, np.ones(len(X)))
    ready(label_costs.TASK)
    seconds, solution = cpu(lambda: Search(label_costs.TASK, *_tasks.coded(X), lost).solve(depth, time_limit=60.0))
    tree = solution.tree
    label = label_costs.best_label(tree.sums[tree.leaves, : lost.shape[1]])
    node = tree.node_of(test[:, 11:].astype(np.int32), np.zeros(X.shape[1], bool))
    given = label[np.searchsorted(tree.leaves, node)]
    right = float((given == test[:, 7].astype(int)).mean())
    return {"method": method, "right": right, "seconds": seconds, "proven": str(solution.report.status) == "optimal"}


# -- fairness (Tables 8 and 9) -------------------------------------------------------------------------------------
def groups(results: Results, limit: float) -> pd.DataFrame:
    """Fewest misclassified rows where groups differ by at most 1 %, beside pystreed, and the printed seconds."""
    lines = []
    for kind in _tasks.FAIRNESS:
        for name, printed in FAIR_SECONDS.items():
            file = _tasks.folder_of("streed") / "fairness" / f"{printed.file}-binarized.csv"
            for depth in (2, 3):
                theirs = (printed.parity if kind == "demographic_parity" else printed.opportunity)[depth - 2]
                line = {
                    "constraint": kind.replace("_", " "),
                    "set": name,
                    "depth": depth,
                    "STreeD, printed (s)": theirs,
                    "rows": "",
                    "columns": "",
                }
                if not printed.file or not file.exists():
                    lines.append(line | {"ours": "not to be had"})
                    continue
                case = results.get(
                    f"groups {kind} {name} {depth}",
                    lambda kind=kind, file=file, depth=depth: fair_case(kind, file, depth, limit),
                )
                row = _tasks.row(case)
                wanted = ("rows", "columns", "ours", "pystreed", "verdict", "ours (s)", "pystreed (s)")
                lines.append(line | {key: row[key] for key in wanted})
    return table_of(lines)


def fair_case(kind: Any, file: Any, depth: int, limit: float) -> dict[str, Any]:
    """Both sides on one set."""
    table = np.loadtxt(file, dtype=int)
    return _tasks.compare(_tasks.fair(file.stem, table[:, 1:], table[:, 0], kind, depth), limit)


# -- accuracy (Table 10) -------------------------------------------------------------------------------------------
def accuracy(results: Results, limit: float) -> pd.DataFrame:
    """Table 10: seconds to the proof, depths 4 and 5."""
    lines = []
    for name, printed in ACCURACY_SECONDS.items():
        for depth, theirs in zip((4, 5), printed.seconds, strict=True):
            line = {"set": name, "rows": printed.rows, "columns": printed.columns, "depth": depth}
            line |= dict(
                zip(("DL8.5, printed (s)", "MurTree, printed (s)", "STreeD, printed (s)"), theirs, strict=True)
            )
            file = file_of(name)
            if not file.exists():
                lines.append(line | {"ours (s)": "not to be had"})
                continue
            case = results.get(
                f"table 10 {name} {depth}", lambda file=file, depth=depth: accuracy_case(file, depth, limit)
            )
            assert (case["rows"], case["columns"]) == (printed.rows, printed.columns), name
            gap = case["objective"] - case["bound"]
            line |= {"ours (s)": f"{case['seconds']:.3f}", "status": case["status"]}
            lines.append(line | {"misclassified": f"{case['objective']:.0f}", "gap": f"{gap:.0f}"})
    return table_of(lines)


def accuracy_case(file: Any, depth: int, limit: float) -> dict[str, Any]:
    """Fewest misclassified rows."""
    X, y = rows_of(file)
    statistics = label_costs.misclassification(y, int(y.max()) + 1)
    ready(label_costs.TASK)
    seconds, solution = cpu(
        lambda: Search(label_costs.TASK, *_tasks.coded(X), statistics).solve(depth, time_limit=limit), repeats=1
    )
    report = solution.report
    found = {"objective": float(report.objective), "bound": float(report.lower_bound), "status": str(report.status)}
    return found | {"seconds": seconds, "rows": len(y), "columns": X.shape[1]}


def file_of(name: str) -> Path:
    """Where a set of Tables 7 and 10 lies, if it is there."""
    return _tasks.folder() / FILES.get(name, f"streed/classification/{name.lower()}.csv")


def rows_of(file: Path) -> Rows:
    """Columns and class codes of a set of Tables 7 and 10; in those of `gosdt` the class comes last."""
    if "gosdt" in file.parts:
        table = pd.read_csv(file).to_numpy(int)
        X, y = table[:, :-1], table[:, -1]
    else:
        table = np.loadtxt(file, dtype=int)
        X, y = table[:, 1:], table[:, 0]
    return X, np.unique(y, return_inverse=True)[1]


# -- F1 (Table 7) --------------------------------------------------------------------------------------------------
def f1(results: Results, limit: float) -> pd.DataFrame:
    """Table 7: the best F1 score, beside pystreed, and the printed seconds, depths 3 and 4."""
    lines = []
    for name, printed in F1_SECONDS.items():
        for depth, theirs in zip((3, 4), printed.seconds, strict=True):
            line = {"set": name, "depth": depth, "rows": printed.rows, "columns": printed.columns}
            line |= dict(zip(("MurTree, printed (s)", "STreeD, printed (s)"), theirs, strict=True))
            file = file_of(name)
            if not file.exists():
                lines.append(line | {"1 - F1, ours": "not to be had"})
                continue
            X, y = rows_of(file)
            assert (*X.shape, int(y.sum())) == (printed.rows, printed.columns, printed.positive), name
            case = results.get(
                f"table 7 {name} {depth}",
                lambda name=name, X=X, y=y, depth=depth: _tasks.compare(_tasks.f1_score(name, X, y, depth), limit),
            )
            row = _tasks.row(case)
            lines.append(line | {"1 - F1, ours": row["ours"]} | {key: row[key] for key in SHOWN})
    return table_of(lines)
