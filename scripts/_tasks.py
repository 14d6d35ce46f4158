"""What the comparisons with pystreed and gosdt share: sets of 0/1 columns, and both sides of a task scored by one rule.

The folder of the data is the environment variable SOFTSURV_DATA.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _results import cpu, in_child

from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs, squared_error
from softsurv.exact.objectives.fairness import Fairness, difference, fair_search
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.objectives.policy import lost_rewards, treatment_scores
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts, paid
from softsurv.exact.task import Task
from softsurv.exact.tree import CodeTree, TreeBuilder
from softsurv.exact.vector_search import VectorSearch
from softsurv.exact.whole_trees.constraint import constrained_optimum
from softsurv.exact.whole_trees.measures import Best, f1, maximise
from softsurv.results import Status
from softsurv.stopping import StopSignal

LIMIT = 120.0
"""Seconds of wall clock that either side may take."""

GRACE = 60.0
"""Seconds after its limit at which a peer is stopped from outside."""

TOLERANCE = 0.01
"""Largest difference between groups, as in paper `streed`."""

POLICY = {"DM": "direct", "IPW": "ips", "DR": "doubly_robust"}
"""pystreed's names of the scores, and ours."""

FAIRNESS: dict[Fairness, str] = {
    "demographic_parity": "group-fairness",
    "equality_of_opportunity": "equality-of-opportunity",
}
"""Our names of the constraints, and pystreed's."""

Sets = dict[str, tuple[np.ndarray, np.ndarray]]
"""0/1 columns (N, B) and class codes or targets (N,) by name."""


# -- sets ----------------------------------------------------------------------------------------------------------
def folder() -> Path:
    """Where the data lie."""
    if "SOFTSURV_DATA" not in os.environ:
        raise SystemExit("set SOFTSURV_DATA to the folder of the data")
    return Path(os.environ["SOFTSURV_DATA"])


def folder_of(paper: str) -> Path:
    """Where the own sets of a paper lie."""
    found = folder() / paper
    if not found.is_dir():
        raise SystemExit(f"{found} is not there; scripts/_{paper}_paper.py says where its files come from")
    return found


def classification_sets() -> Sets:
    """Every set with classes."""
    files = sorted((folder() / "classification").glob("*.csv")) + sorted((folder() / "fairness").glob("*.csv"))
    files += sorted((folder() / "cost-sensitive").glob("*-train-1.csv"))
    out = {}
    for file in files:
        table = np.loadtxt(file).astype(int)
        out[file.stem] = table[:, 1:], np.unique(table[:, 0], return_inverse=True)[1]
    return out


def two_class_sets() -> Sets:
    """Those with two classes, scikit-learn's included."""
    return {n: (X, y) for n, (X, y) in (classification_sets() | sklearn_classes()).items() if y.max() == 1}


def regression_sets() -> Sets:
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


def sklearn_classes() -> Sets:
    """Iris, wine, breast cancer and digits, as scikit-learn brings them."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    loaders = {"iris": load_iris, "wine": load_wine, "breast-cancer": load_breast_cancer, "digits": load_digits}
    return {f"{name} (sklearn)": _at_quartiles(load) for name, load in loaders.items()}


def sklearn_targets() -> Sets:
    """Diabetes, as scikit-learn brings it."""
    from sklearn.datasets import load_diabetes

    return {"diabetes (sklearn)": _at_quartiles(load_diabetes)}


def _at_quartiles(load: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each feature is above each of its quartiles; constant and repeated columns once."""
    X, y = load(return_X_y=True)
    cuts = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    columns = np.hstack([(cut < X).astype(int) for cut in cuts])
    columns = columns[:, (columns.min(axis=0) < columns.max(axis=0))]
    return columns[:, np.sort(np.unique(columns, axis=1, return_index=True)[1])], y


# -- cases ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Solved:
    """What one side found: its tree scored by our rule, a bound where it states one, and the CPU seconds it took."""

    objective: float
    proven: bool
    seconds: float
    bound: float = np.nan


@dataclass(frozen=True)
class Case:
    """One problem for both sides, each to be called with its limit in seconds."""

    task: str
    name: str
    depth: int
    shape: tuple[int, int]
    ours: Callable[[float], Solved]
    peer: Callable[[float], Solved]


def additive(
    task: str, name: str, depth: int, X: np.ndarray, engine: Task, statistics: np.ndarray,
    fit: Callable[[float], Any], *, offset: np.ndarray | None = None, complexity: float = 0.0,
    split_costs: SplitCosts | None = None,
) -> Case:  # fmt: skip
    """A case whose objective is a sum over leaves, the same for both trees; ``fit(limit)`` is the peer's model."""

    def search() -> Search:
        return Search(
            engine, X.astype(np.int32), np.full(X.shape[1], 2), np.zeros(X.shape[1], bool), statistics, offset,
            complexity=complexity, split_costs=split_costs,
        )  # fmt: skip

    def score(tree: CodeTree) -> float:
        value = float(engine.costs(tree.sums[tree.leaves, : statistics.shape[1]]).sum()) + complexity * tree.n_leaves
        value += 0.0 if offset is None else float(offset.sum())
        return value + (0.0 if split_costs is None else paid(tree, split_costs, tree.sums[:, -1]))

    def ours(limit: float) -> Solved:
        ready(search().task)
        seconds, solution = cpu(lambda: search().solve(depth, time_limit=limit))
        report = solution.report
        return Solved(score(solution.tree), report.status == Status.OPTIMAL, seconds, float(report.lower_bound))

    def peer(limit: float) -> Solved:
        seconds, model = cpu(lambda: fit(limit))
        weight = [] if split_costs is None else [split_costs.weight]
        tree = peer_tree(model.tree_, X, np.column_stack([statistics, *weight]))
        return Solved(score(tree), bool(model.fit_result.is_optimal()), seconds)

    return Case(task, name, depth, X.shape, ours, peer)


def peer_tree(root: Any, X: np.ndarray, columns: np.ndarray) -> CodeTree:
    """A tree of pystreed as ours: its right child takes the rows with a 1."""
    builder = TreeBuilder()

    def grow(node: Any, rows: np.ndarray) -> int:
        sums = columns[rows].sum(axis=0)
        if node.is_leaf_node():
            return builder.add(sums)
        one = X[rows, node.feature] == 1
        at = builder.add(sums, node.feature, 0)
        builder.connect(at, grow(node.left_child, rows[~one]), grow(node.right_child, rows[one]))
        return at

    grow(root, np.arange(len(X)))
    return builder.tree()


def accuracy(name: str, X: np.ndarray, y: np.ndarray, depth: int, per_branch: float | None = None) -> Case:
    """Misclassified rows; with ``per_branch`` the share of rows that a branch node costs (cost-complex accuracy)."""
    from pystreed import STreeDClassifier

    def fit(limit: float) -> Any:
        task = "accuracy" if per_branch is None else "cost-complex-accuracy"
        model = STreeDClassifier(task, max_depth=depth, cost_complexity=per_branch or 0.0, time_limit=limit)
        return model.fit(X, y)

    task = "accuracy" if per_branch is None else f"cost-complex {per_branch:g}"
    statistics = label_costs.misclassification(y, int(y.max()) + 1)
    return additive(
        task, name, depth, X, label_costs.TASK, statistics, fit, complexity=(per_branch or 0.0) * len(y)
    )  # fmt: skip


def cost_sensitive(name: str, split: int, level: str, depth: int) -> Case:
    """Misclassification matrix, test costs and group discounts of a set of paper `streed`."""
    from pystreed import CostSpecifier, STreeDCostSensitiveClassifier

    file = folder() / "cost-sensitive" / f"{name}-{level}-costs.csv"
    X, y = costly_rows(folder() / "cost-sensitive" / f"{name}-train-{split}.csv")
    matrix, costs = costs_of(file, X.shape[1], len(y))

    def fit(limit: float) -> Any:
        return STreeDCostSensitiveClassifier(max_depth=depth, time_limit=limit).fit(
            X, y, CostSpecifier(str(file), len(matrix))
        )

    return additive(
        "cost-sensitive", f"{name}-{split} {level}", depth, X, label_costs.TASK,
        label_costs.from_matrix(y, matrix), fit, split_costs=costs,
    )  # fmt: skip


def costly_rows(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Columns and classes of the training or test rows of a split."""
    table = np.loadtxt(file, dtype=int)
    return table[:, 1:], table[:, 0]


def costs_of(file: Path, n_columns: int, n: int) -> tuple[np.ndarray, SplitCosts]:
    """Misclassification matrix (K, K) by class and label, and what the tests cost for n rows."""
    lines = file.read_text().splitlines()
    k = next(number for number, line in enumerate(lines) if line.startswith("Attribute-name"))
    matrix = np.array([[float(v) for v in line.split()] for line in lines[:k]])
    tests = [line.split() for line in lines[k + 1 :] if line.strip()]
    names = sorted({t[3] for t in tests} - {"x"})
    test_of = np.zeros(n_columns, int)
    for number, test in enumerate(tests):
        test_of[int(test[4]) : int(test[5]) + 1] = number
    return matrix, SplitCosts(
        np.array([float(t[1]) for t in tests]), test_of, np.ones(n), np.array([float(t[2]) for t in tests]),
        np.array([-1 if t[3] == "x" else names.index(t[3]) for t in tests]),
    )  # fmt: skip


def policy(method: str, depth: int) -> Case:
    """Warfarin dosing; the objective is the reward lost against the best treatment of every row."""
    from pystreed import STreeDPrescriptivePolicyGenerator

    table = np.loadtxt(folder() / "policy" / "warfarin_train_rf_dt_0.11_0_0.csv")
    X, extra = table[:, 11:].astype(int), table[:, 1:11]
    scores = treatment_scores(POLICY[method], extra[:, 1], extra[:, 0].astype(int), 3, extra[:, 2], extra[:, 3:6])

    def fit(limit: float) -> Any:
        model = STreeDPrescriptivePolicyGenerator(max_depth=depth, teacher_method=method, time_limit=limit)
        return model.fit(X, extra)

    statistics = lost_rewards(scores, np.ones(len(X)))
    return additive("policy", f"warfarin {method}", depth, X, label_costs.TASK, statistics, fit)


def regression(name: str, X: np.ndarray, y: np.ndarray, depth: int) -> Case:
    """Sum of squared errors, of a target scaled to mean 0 and standard deviation 1."""
    from pystreed import STreeDRegressor

    z = (y - y.mean()) / y.std()
    weight = np.ones(len(z))

    def fit(limit: float) -> Any:
        return STreeDRegressor("regression", max_depth=depth, time_limit=limit).fit(X, z)

    return additive(
        "regression", name, depth, X, squared_error.TASK, squared_error.statistics(z, weight), fit,
        offset=squared_error.offset(z, weight),
    )  # fmt: skip


def coded(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns as codes, numbers of codes and kinds."""
    return columns.astype(np.int32), np.full(columns.shape[1], 2), np.zeros(columns.shape[1], bool)


def error_search(label: np.ndarray, columns: np.ndarray, depth: int) -> VectorSearch:
    """The search over false negatives and false positives."""
    statistics = (np.arange(2) == label[:, None]).astype(float)
    return VectorSearch(ERRORS, *coded(columns), statistics, depth)


def best_measure(name: str, label: np.ndarray, columns: np.ndarray, depth: int, limit: float) -> Best:
    """Our best tree by a measure of the two error counts, "f1" or "mcc"."""
    return maximise(name, error_search(label, columns, depth), StopSignal(limit))


def f1_score(name: str, X: np.ndarray, y: np.ndarray, depth: int) -> Case:
    """One minus F1."""
    from pystreed import STreeDClassifier

    def loss(predicted: np.ndarray) -> float:
        errors = np.array([((y == 1) & (predicted == 0)).sum(), ((y == 0) & (predicted == 1)).sum()], float)
        return 1 - f1(errors, float(y.sum()), float((1 - y).sum()))

    def ours(limit: float) -> Solved:
        columns = X.astype(bool)
        best_measure("f1", y, columns[:, :1], min(depth, 2), limit)  # loads the kernels
        seconds, best = cpu(lambda: best_measure("f1", y, columns, depth, limit))
        own = loss(best.candidate.tree.label_of(*coded(columns)[::2]))
        return Solved(own, best.status == Status.OPTIMAL, seconds, 1 - best.bound)

    def peer(limit: float) -> Solved:
        model = STreeDClassifier("f1-score", max_depth=depth, max_num_nodes=2**depth - 1, time_limit=limit)
        seconds, _ = cpu(lambda: model.fit(X, y))
        return Solved(loss(model.predict(X)), bool(model.fit_result.is_optimal()), seconds)

    return Case("F1", name, depth, X.shape, ours, peer)


def fair(name: str, X: np.ndarray, y: np.ndarray, kind: Fairness, depth: int) -> Case:
    """Misclassified rows of trees whose groups differ by at most 0.01; the group, the first column, is no split."""
    from pystreed import STreeDGroupFairnessClassifier

    group, columns = X[:, 0], X[:, 1:].astype(bool)

    def errors(predicted: np.ndarray) -> float:
        kept = difference(predicted, y, group, kind) <= TOLERANCE + 1e-9
        return float((predicted != y).sum()) if kept else np.inf

    def solve(depth: int, limit: float) -> Any:
        return constrained_optimum(
            fair_search(*coded(columns), y, group, kind, TOLERANCE, depth), StopSignal(limit), unit=1.0
        )

    def ours(limit: float) -> Solved:
        solve(1, limit)  # loads the kernels
        seconds, state = cpu(lambda: solve(depth, limit))
        return Solved(
            errors(state.tree.label_of(*coded(columns)[::2])), state.status == Status.OPTIMAL, seconds, state.bound
        )

    def peer(limit: float) -> Solved:
        model = STreeDGroupFairnessClassifier(
            FAIRNESS[kind], max_depth=depth, max_num_nodes=2**depth - 1, discrimination_limit=TOLERANCE,
            time_limit=limit,
        )  # fmt: skip
        seconds, _ = cpu(lambda: model.fit(X, y))
        return Solved(errors(model.predict(X)), bool(model.fit_result.is_optimal()), seconds)

    return Case(kind.replace("_", " "), name.removesuffix("-binarized"), depth, X.shape, ours, peer)


# -- running -------------------------------------------------------------------------------------------------------
def compare(case: Case, limit: float = LIMIT) -> dict[str, Any]:
    """Both sides of a case: objectives by our rule, and CPU seconds.

    The peer runs in a process of its own. Where it was stopped, or ended without a tree, its numbers are missing.
    """

    def peer() -> Solved:
        warnings.simplefilter("ignore")
        return case.peer(limit)

    ours = case.ours(limit)
    out = {
        "task": case.task, "set": case.name, "depth": case.depth, "rows": case.shape[0], "columns": case.shape[1],
        "objective": ours.objective, "bound": ours.bound, "proven": ours.proven, "seconds": ours.seconds,
    }  # fmt: skip
    theirs = in_child(peer, limit + GRACE)
    if theirs is None:
        return out
    return out | {
        "peer_objective": theirs.objective, "peer_proven": theirs.proven, "peer_seconds": theirs.seconds,
    }  # fmt: skip


def row(case: dict[str, Any]) -> dict[str, Any]:
    """A line of a table: the verdict is "WORSE" where pystreed's tree is better than ours."""
    own = f"{case['objective']:.6g}" + ("" if case["proven"] else f" (at least {case['bound']:.6g})")
    out = {name: case[name] for name in ("task", "set", "rows", "columns", "depth")}
    if "peer_seconds" not in case:
        theirs, verdict, seconds, ratio = "no tree", "no comparison", "", ""
    else:
        theirs = f"{case['peer_objective']:.6g}" + ("" if case["peer_proven"] else " (unproven)")
        verdict = "better" if case["objective"] < case["peer_objective"] else "WORSE"
        if abs(case["objective"] - case["peer_objective"]) <= 1e-6 * max(1.0, abs(case["objective"])):
            verdict = "equal"
        seconds = f"{case['peer_seconds']:.3f}"
        ratio = f"{'' if case['peer_proven'] else '> '}{case['peer_seconds'] / case['seconds']:.2f}"
    return out | {
        "ours": own, "pystreed": theirs, "verdict": verdict,
        "ours (s)": f"{case['seconds']:.4f}", "pystreed (s)": seconds, "speed-up": ratio,
    }  # fmt: skip
