"""What the comparisons with pystreed and gosdt share: sets of 0/1 columns, both sides of a task, and re-scored trees.

The folder of the data is the environment variable SOFTSURV_DATA.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softsurv.exact.compile import ready
from softsurv.exact.search import Search
from softsurv.exact.tasks import label_costs, squared_error
from softsurv.exact.tasks.base import Task
from softsurv.exact.tasks.policy import lost_rewards, treatment_scores
from softsurv.exact.tolls import SplitCosts, paid
from softsurv.exact.tree import CodeTree, TreeBuilder

LIMIT = 60.0
"""Seconds that either side may take."""

POLICY = {"DM": "direct", "IPW": "ips", "DR": "doubly_robust"}
"""pystreed's names of the scores, and ours."""


def folder() -> Path:
    """Where the data lie."""
    return Path(os.environ["SOFTSURV_DATA"])


def classification_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every set with classes: 0/1 columns (N, B) and class codes (N,)."""
    files = sorted((folder() / "classification").glob("*.csv")) + sorted((folder() / "fairness").glob("*.csv"))
    files += sorted((folder() / "cost-sensitive").glob("*-train-1.csv"))
    out = {}
    for file in files:
        table = np.loadtxt(file).astype(int)
        out[file.stem] = table[:, 1:], np.unique(table[:, 0], return_inverse=True)[1]
    return out


def regression_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The sets of `osst` and the survival sets of `streed` with the observed time as target."""
    out = {}
    for file in sorted((folder() / "osst").glob("*.csv")):
        table = np.genfromtxt(file, delimiter=",", skip_header=1)
        if not file.open().readline().split(",")[0].strip():  # a column without a name counts the rows
            table = table[:, 1:]
        out[file.stem] = table[:, :-2].astype(int), table[:, -1]
    for file in sorted((folder() / "streed-survival").glob("*.txt")):
        table = np.loadtxt(file)
        out[file.stem] = table[:, 2:].astype(int), table[:, 0]
    return out


@dataclass(frozen=True)
class Case:
    """One problem for both sides.

    ``score`` is our objective of any tree, so that both trees are measured by one rule.
    """

    task: str
    name: str
    depth: int
    X: np.ndarray
    engine: Task
    statistics: np.ndarray
    peer: Callable[[], Any]
    offset: np.ndarray | None = None
    complexity: float = 0.0
    split_costs: SplitCosts | None = None

    def search(self) -> Search:
        """A fresh search."""
        return Search(
            self.engine, self.X.astype(np.int32), np.full(self.X.shape[1], 2), np.zeros(self.X.shape[1], bool),
            self.statistics, self.offset, complexity=self.complexity, split_costs=self.split_costs,
        )  # fmt: skip

    def score(self, tree: CodeTree) -> float:
        """Our objective of a tree."""
        width = self.statistics.shape[1]
        value = float(self.engine.costs(tree.sums[tree.leaves, :width]).sum()) + self.complexity * tree.n_leaves
        value += 0.0 if self.offset is None else float(self.offset.sum())
        return value + (0.0 if self.split_costs is None else paid(tree, self.split_costs, tree.sums[:, -1]))


def peer_tree(case: Case, root: Any) -> CodeTree:
    """A tree of pystreed as ours: its right child takes the rows with a 1."""
    builder = TreeBuilder()
    weight = [] if case.split_costs is None else [case.split_costs.weight]
    columns = np.column_stack([case.statistics, *weight])

    def grow(node: Any, rows: np.ndarray) -> int:
        sums = columns[rows].sum(axis=0)
        if node.is_leaf_node():
            return builder.add(sums)
        one = case.X[rows, node.feature] == 1
        at = builder.add(sums, node.feature, 0)
        builder.connect(at, grow(node.left_child, rows[~one]), grow(node.right_child, rows[one]))
        return at

    grow(root, np.arange(len(case.X)))
    return builder.tree()


# -- the tasks -----------------------------------------------------------------------------------------------------
def accuracy(name: str, X: np.ndarray, y: np.ndarray, depth: int, per_branch: float | None = None) -> Case:
    """Misclassified rows; with ``per_branch`` the share of rows that a branch node costs (cost-complex accuracy)."""
    from pystreed import STreeDClassifier

    def peer() -> Any:
        task = "accuracy" if per_branch is None else "cost-complex-accuracy"
        model = STreeDClassifier(task, max_depth=depth, cost_complexity=per_branch or 0.0, time_limit=LIMIT)
        return model.fit(X, y)

    statistics = label_costs.misclassification(y, int(y.max()) + 1)
    task = "accuracy" if per_branch is None else f"cost-complex {per_branch:g}"
    return Case(task, name, depth, X, label_costs.TASK, statistics, peer, complexity=(per_branch or 0.0) * len(y))


def cost_sensitive(name: str, split: int, level: str, depth: int) -> Case:
    """Misclassification matrix, test costs and group discounts of a set of paper `streed`."""
    from pystreed import CostSpecifier, STreeDCostSensitiveClassifier

    table = np.loadtxt(folder() / "cost-sensitive" / f"{name}-train-{split}.csv").astype(int)
    file = folder() / "cost-sensitive" / f"{name}-{level}-costs.csv"
    X, y = table[:, 1:], table[:, 0]
    k = int(y.max()) + 1
    lines = file.read_text().splitlines()
    matrix = np.array([[float(v) for v in line.split()] for line in lines[:k]])
    tests = [line.split() for line in lines[k + 1 :] if line.strip()]
    names = sorted({t[3] for t in tests} - {"x"})
    test_of = np.zeros(X.shape[1], int)
    for number, test in enumerate(tests):
        test_of[int(test[4]) : int(test[5]) + 1] = number
    costs = SplitCosts(
        np.array([float(t[1]) for t in tests]), test_of, np.ones(len(y)), np.array([float(t[2]) for t in tests]),
        np.array([-1 if t[3] == "x" else names.index(t[3]) for t in tests]),
    )  # fmt: skip

    def peer() -> Any:
        model = STreeDCostSensitiveClassifier(max_depth=depth, time_limit=LIMIT)
        return model.fit(X, y, CostSpecifier(str(file), k))

    return Case(
        "cost-sensitive", f"{name}-{split} {level}", depth, X, label_costs.BRANCHING,
        label_costs.from_matrix(y, matrix), peer, split_costs=costs,
    )  # fmt: skip


def policy(method: str, depth: int) -> Case:
    """Warfarin dosing; the objective is the reward lost against the best treatment of every row."""
    from pystreed import STreeDPrescriptivePolicyGenerator

    table = np.loadtxt(folder() / "policy" / "warfarin_train_rf_dt_0.11_0_0.csv")
    X, extra = table[:, 11:].astype(int), table[:, 1:11]
    scores = treatment_scores(POLICY[method], extra[:, 1], extra[:, 0].astype(int), 3, extra[:, 2], extra[:, 3:6])

    def peer() -> Any:
        model = STreeDPrescriptivePolicyGenerator(max_depth=depth, teacher_method=method, time_limit=LIMIT)
        return model.fit(X, extra)

    return Case("policy", f"warfarin {method}", depth, X, label_costs.TASK, lost_rewards(scores, np.ones(len(X))), peer)


def regression(name: str, X: np.ndarray, y: np.ndarray, depth: int) -> Case:
    """Sum of squared errors, of a target scaled to mean 0 and standard deviation 1."""
    from pystreed import STreeDRegressor

    z = (y - y.mean()) / y.std()
    weight = np.ones(len(z))

    def peer() -> Any:
        return STreeDRegressor("regression", max_depth=depth, time_limit=LIMIT).fit(X, z)

    return Case(
        "regression", name, depth, X, squared_error.TASK, squared_error.statistics(z, weight), peer,
        squared_error.offset(z, weight),
    )  # fmt: skip


# -- running -------------------------------------------------------------------------------------------------------
def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the process, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def compare(case: Case, repeats: int = 1) -> dict[str, Any]:
    """One row: both objectives by our rule, least CPU seconds of interleaved repeats."""
    ready(case.search().task)
    ours, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            ours.append(cpu(lambda: case.search().solve(case.depth, time_limit=LIMIT)))
            theirs.append(cpu(case.peer))
    solution, model = ours[-1][1], theirs[-1][1]
    seconds, peer_seconds = min(t for t, _ in ours), min(t for t, _ in theirs)
    objective, rescored = case.score(solution.tree), case.score(peer_tree(case, model.tree_))
    proven = solution.report.status == "optimal", bool(model.fit_result.is_optimal())
    equal = abs(objective - rescored) <= 1e-6 * max(1.0, abs(objective))
    return {
        "task": case.task,
        "set": case.name,
        "rows": len(case.X),
        "columns": case.X.shape[1],
        "depth": case.depth,
        "objective": f"{objective:.6g}",
        "pystreed": f"{rescored:.6g}",
        "verdict": "equal" if equal else "better" if objective < rescored else "WORSE",
        "proven (ours, theirs)": f"{proven[0]}, {proven[1]}",
        "ours (s)": round(seconds, 4),
        "pystreed (s)": round(peer_seconds, 4),
        "speed-up": round(peer_seconds / seconds, 2),
    }
