"""Synthetic policies of the STreeD paper (Appendix D.4.1, Figures 2b and 5): how many are solved in so many seconds.

The paper draws 25 data sets for each of three numbers of features and teaches on each by 11 methods: 825 problems at
each of the depths 1 to 3. Its files are not kept. Its text is followed here, with seeds of ours; as in the program of
its authors every feature has nine cuts, at the deciles of its distribution.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import _tasks
import numpy as np
import pandas as pd
from _results import Results
from scipy.stats import norm
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.policy import lost_rewards, treatment_scores

FEATURES = (2, 10, 20)
BEST_GIVEN = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Probability that the past treatment of a row is its best one."""

DRAWS = 5
"""Of each of these."""

DEPTHS = (1, 2, 3)
ROWS = 500
CUTS = norm.ppf(np.arange(1, 10) / 10)
SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
TINY = 1e-9
"""Least loss for which a ratio is taken."""

LIMIT = 300.0
"""Seconds of wall clock, as in the paper."""


class Draw(NamedTuple):
    """Features (N, F), outcome of either treatment (N, 2), past treatment (N,), and its true propensity (N,)."""

    x: np.ndarray
    outcomes: np.ndarray
    given: np.ndarray
    propensity: np.ndarray


def effects(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean effect and treatment effect (Table 5)."""
    if x.shape[1] == 2:
        return 0.5 * x[:, 0] + x[:, 1], 0.5 * x[:, 0]
    some, more = (2, 6) if x.shape[1] == 10 else (4, 8)
    return 0.5 * x[:, :some].sum(1) + x[:, some:more].sum(1), np.maximum(x[:, :some], 0.0).sum(1)


def draw(rng: np.random.Generator, n: int, n_features: int, best_given: float) -> Draw:
    """Rows by eq. 65; a row with two equal outcomes counts treatment 0 as its best."""
    x = rng.normal(size=(n, n_features))
    mean, treatment = effects(x)
    noise = rng.normal(0.0, 0.1, n)
    outcomes = np.stack([mean - treatment / 2 + noise, mean + treatment / 2 + noise], axis=1)
    takes_best = rng.random(n) < best_given
    best = outcomes.argmax(1)
    return Draw(x, outcomes, np.where(takes_best, best, 1 - best), np.where(takes_best, best_given, 1 - best_given))


class Teacher(NamedTuple):
    """pystreed's name of the score, the propensity (N,) of the treatment given, and predicted outcomes (N, 2)."""

    method: str
    propensity: np.ndarray
    predicted: np.ndarray


def taught(rows: Draw) -> dict[str, Teacher]:
    """The 11 methods; a propensity of 1 and predictions of 0 stand where a method takes none."""
    n = np.arange(len(rows.x))
    outcome = rows.outcomes[n, rows.given]
    chances, predicted = {"true": rows.propensity}, {}
    for name, model in (("tree", DecisionTreeClassifier(random_state=0)), ("logistic", LogisticRegression())):
        chances[name] = model.fit(rows.x, rows.given).predict_proba(rows.x)[n, rows.given]
    for name, make in (("linear", LinearRegression), ("lasso", lambda: Lasso(alpha=0.08))):
        sides = [make().fit(rows.x[rows.given == k], outcome[rows.given == k]).predict(rows.x) for k in (0, 1)]
        predicted[name] = np.stack(sides, axis=1)
    none = np.zeros((len(n), 2))
    found = {f"IPW {name}": Teacher("IPW", chance, none) for name, chance in chances.items()}
    found |= {f"DM {name}": Teacher("DM", none[:, 0] + 1, outcomes) for name, outcomes in predicted.items()}
    return found | {
        f"DR {c} {o}": Teacher("DR", chance, outcomes)
        for c, chance in chances.items()
        for o, outcomes in predicted.items()
    }


def columns_of(x: np.ndarray) -> np.ndarray:
    """Nine 0/1 columns a feature, (N, 9 F)."""
    return (x[:, :, None] > CUTS).reshape(len(x), -1).astype(int)


def problem(name: str, X: np.ndarray, rows: Draw, teacher: Teacher, depth: int) -> _tasks.Case:
    """Reward lost against the best score of every row, for ours and for pystreed."""
    from pystreed import STreeDPrescriptivePolicyGenerator

    outcome = rows.outcomes[np.arange(len(X)), rows.given]
    scores = treatment_scores(
        _tasks.POLICY[teacher.method], outcome, rows.given, 2, teacher.propensity, teacher.predicted
    )
    best = rows.outcomes.argmax(1)
    extra = np.column_stack([rows.given, outcome, teacher.propensity, teacher.predicted, best, rows.outcomes])

    def fit(limit: float) -> Any:
        model = STreeDPrescriptivePolicyGenerator(max_depth=depth, teacher_method=teacher.method, time_limit=limit)
        return model.fit(X, extra)

    lost = lost_rewards(scores, np.ones(len(X)))
    return _tasks.additive("policy", name, depth, X, label_costs.TASK, lost, fit)


def synthetic(results: Results, draws: int) -> pd.DataFrame:
    """Figures 2b and 5: share of the problems solved within so many seconds, by columns, depth and side."""
    lines = []
    for n_features in FEATURES:
        cases: dict[int, list[dict[str, Any]]] = {depth: [] for depth in DEPTHS}
        for p, number in itertools.product(BEST_GIVEN, range(min(draws, DRAWS))):
            rows = draw(np.random.default_rng([n_features, int(100 * p), number]), ROWS, n_features, p)
            X = columns_of(rows.x)
            for (method, teacher), depth in itertools.product(taught(rows).items(), DEPTHS):
                key = f"synthetic {n_features} {p:g} {number} {method} {depth}"
                case = problem(key, X, rows, teacher, depth)
                cases[depth].append(results.get(key, lambda case=case: _tasks.compare(case, LIMIT)))
        lines += [line for depth in DEPTHS for line in summary(n_features, depth, cases[depth])]
    return pd.DataFrame(lines)


def summary(n_features: int, depth: int, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for either side."""
    verdicts = [_tasks.row(case)["verdict"] for case in cases]
    better = [case for case, verdict in zip(cases, verdicts, strict=True) if verdict == "better"]
    excess = [100 * (case["peer_objective"] / max(case["objective"], TINY) - 1) for case in better]
    shared: dict[str, Any] = {"equal": verdicts.count("equal"), "ours better": len(better)}
    shared["pystreed's loss above ours there, median (%)"] = f"{np.median(excess):.1f}" if excess else ""
    lines = []
    for side, label in (("seconds", "ours"), ("peer_seconds", "pystreed 1.4.0")):
        proven = "proven" if side == "seconds" else "peer_proven"
        taken = np.array([case[side] if case.get(proven) else np.inf for case in cases])
        line: dict[str, Any] = {"features": n_features, "columns": cases[0]["columns"], "depth": depth, "method": label}
        line |= {"problems": len(cases), "proven": int(np.isfinite(taken).sum())}
        line |= {f"within {limit:g} s (%)": f"{100 * (taken <= limit).mean():.0f}" for limit in SECONDS}
        line |= {"mean (s)": f"{taken.mean():.4f}", "longest (s)": f"{taken.max():.4f}"}
        lines.append(line | shared)
    return lines
