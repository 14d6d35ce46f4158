"""Near-optimal trees: how many there are beside treefarms, and how long finding them takes.

    OMP_NUM_THREADS=1 python scripts/bench_rashomon.py --limit 60

needs SOFTSURV_DATA and, for the comparison, ``pip install treefarms``; it writes scripts/tables/rashomon.md. Accuracy:
the two-class sets of the folder `classification`, the same 0/1 columns for both, every tree within ``(1 + epsilon)``
times the least misclassified share plus cost per leaf, splits between leaves that improve nothing included. Relative
risk: survival sets with their default cuts, which no other package lists. Seconds are CPU seconds on one thread,
kernels compiled before; treefarms runs in a process that is stopped after twice ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results, cpu, in_child

from softsurv import OptimalSurvivalTree, load_dataset
from softsurv.exact.compile import ready
from softsurv.exact.objectives import label_costs
from softsurv.exact.rashomon.near_optimal import NearOptimal
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.results import Status
from softsurv.stopping import StopSignal

OUT = Path(__file__).parent / "tables" / "rashomon.md"
CASES = ((3, 0.02, 0.05), (3, 0.02, 0.2), (3, 0.01, 0.05), (4, 0.02, 0.05))
"""Depth, cost per leaf and epsilon."""

SURVIVAL = ("gbsg2", "veterans", "unemployment", "framingham", "aids2", "whas500")
EPSILONS = (0.005, 0.01, 0.02)


def ours(X: np.ndarray, y: np.ndarray, depth: int, cost: float, epsilon: float, limit: float) -> dict[str, Any]:
    """Our set."""

    def find() -> NearOptimal:
        n, p = X.shape
        problem = SearchProblem(
            label_costs.TASK,
            X.astype(np.int32),
            np.full(p, 2),
            np.zeros(p, bool),
            label_costs.misclassification(y, 2),
            complexity=cost * n,
        )
        near, stop = NearOptimal(problem, depth, None, with_idle=True), StopSignal(limit)
        near.find((1 + epsilon) * near.solve(stop).report.objective, stop)
        return near

    seconds, near = cpu(find)
    return {"rows": len(y), "columns": X.shape[1], "trees": sum(near.n_by_leaves), "s": seconds, "end": near.status}


def theirs(X: np.ndarray, y: np.ndarray, depth: int, cost: float, epsilon: float, limit: float) -> dict[str, Any]:
    """The set of treefarms; its ``depth_budget`` counts levels of nodes."""

    def find() -> tuple[float, int]:
        from treefarms import TREEFARMS

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # it prints every optimal tree
        how = {"regularization": cost, "rashomon_bound_multiplier": epsilon, "depth_budget": depth + 1}
        more = {"rashomon_ignore_trivial_extensions": False, "verbose": False, "worker_limit": 1}
        table = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
        seconds, model = cpu(lambda: TREEFARMS(how | more).fit(table, pd.Series(y, name="y")), repeats=1)
        return seconds, int(model.get_tree_count())

    seconds, trees = in_child(find, 2 * limit) or (None, None)
    return {"treefarms": trees, "treefarms_s": seconds}


def accuracy_row(case: str, found: dict[str, Any]) -> dict[str, Any]:
    """A line of the table of classification."""
    name, depth, cost, epsilon = case.rsplit(" ", 3)
    ended = found["treefarms"] is not None
    return {
        "set": name,
        "rows": found["rows"],
        "columns": found["columns"],
        "depth": depth,
        "cost per leaf": cost,
        "epsilon": epsilon,
        "trees": f"{found['trees']:,}" + ("" if found["end"] == Status.OPTIMAL else f" ({found['end']})"),
        "treefarms": f"{found['treefarms']:,}" if ended else "not ended",
        "equal": ("yes" if found["trees"] == found["treefarms"] else "NO") if ended else "",
        "s": f"{found['s']:.3f}",
        "treefarms s": f"{found['treefarms_s']:.2f}" if ended else "",
        "times faster": f"{found['treefarms_s'] / found['s']:.1f}" if ended else "",
    }


def survival_rows(depth: int, limit: float) -> list[dict[str, Any]]:
    """Our sets of survival trees."""
    rows = []
    for name in SURVIVAL:
        data = load_dataset(name)
        tree = OptimalSurvivalTree(max_depth=depth).fit(data)
        for epsilon in EPSILONS:
            seconds, near = cpu(lambda tree=tree, epsilon=epsilon: tree.rashomon_set(epsilon, time_limit=limit))
            rows.append(
                {
                    "set": name,
                    "rows": data.n,
                    "columns": data.X.shape[1],
                    "depth": depth,
                    "epsilon": epsilon,
                    "trees": f"{near.n_trees:,}",
                    "status": str(near.status),
                    "asked by every tree": ", ".join(near.needed_features),
                    "s": f"{seconds:.3f}",
                }
            )
    return rows


def summary(rows: pd.DataFrame) -> str:
    """What the table of classification says in a sentence."""
    ended = rows[rows["treefarms s"] != ""]
    ratio = ended["times faster"].astype(float)
    return (
        f"treefarms ended in {len(ended)} of {len(rows)} cases, with the same number of trees in "
        f"{int((ended['equal'] == 'yes').sum())}; ours is {np.exp(np.log(ratio).mean()):.0f} times faster there "
        f"(geometric mean), at least {ratio.min():.1f} times."
    )


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each side")
    parser.add_argument("--out", type=Path, default=Path("results/rashomon.jsonl"), help="finished cases, for resuming")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ready(label_costs.TASK, "bits")
    results, rows = Results(options.out), []
    sets = {path.stem for path in (_tasks.folder() / "classification").glob("*.csv")}
    for name, (X, y) in _tasks.two_class_sets().items():
        for depth, cost, epsilon in CASES if name in sets else ():

            def both(
                X: np.ndarray = X, y: np.ndarray = y, how: tuple[int, float, float] = (depth, cost, epsilon)
            ) -> dict:
                return ours(X, y, *how, options.limit) | theirs(X, y, *how, options.limit)

            case = f"{name} {depth} {cost:g} {epsilon:g}"
            rows.append(accuracy_row(case, results.get(case, both)))
            print(*rows[-1].values(), sep=" | ", flush=True)
    table = pd.DataFrame(rows)
    survival = pd.DataFrame([row for depth in (3, 4) for row in survival_rows(depth, options.limit)])
    lines = [f"# {__doc__.splitlines()[0]}", "", f"Made by `scripts/bench_rashomon.py --limit {options.limit:g}`.", ""]
    lines += [machine_line(), "", "## Accuracy, beside treefarms 0.2.4", "", summary(table), "", as_markdown(table), ""]
    lines += ["## Relative risk", "", as_markdown(survival), ""]
    OUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
