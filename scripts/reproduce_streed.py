"""Optimal trees for additive objectives beside pystreed 1.4.0: the same optimum, and the time it took, in one run.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py accuracy --depths 2 3 4
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py cost-complex cost-sensitive policy regression

Both sides get the same 0/1 columns and one thread. Both trees are scored by our rule; "better" means that pystreed's
tree costs more. Times are CPU seconds of this process, compilation of ours apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import _tasks
import pandas as pd
from _machine import as_markdown, machine_line

TASKS = ("accuracy", "cost-complex", "cost-sensitive", "policy", "regression")


def cases(task: str, depths: list[int]) -> Iterator[_tasks.Case]:
    """Every set to which a task applies, depth by depth."""
    for depth in depths:
        if task == "accuracy":
            yield from (_tasks.accuracy(n, X, y, depth) for n, (X, y) in _tasks.classification_sets().items())
        elif task == "cost-complex":
            yield from (_tasks.accuracy(n, X, y, depth, 0.01) for n, (X, y) in _tasks.classification_sets().items())
        elif task == "cost-sensitive":
            yield from (
                _tasks.cost_sensitive(name, split, level, depth)
                for name in ("car", "heart")
                for split in (1, 2, 3)
                for level in ("low", "middle", "high")
            )
        elif task == "policy":
            yield from (_tasks.policy(method, depth) for method in _tasks.POLICY)
        else:
            yield from (_tasks.regression(n, X, y, depth) for n, (X, y) in _tasks.regression_sets().items())


def main() -> None:
    """Compare, print every row as it comes, then the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    print(machine_line())
    rows = []
    for task in options.tasks:
        for case in cases(task, options.depths):
            rows.append(_tasks.compare(case, options.repeats))
            print(*rows[-1].values(), sep=" | ", flush=True)
    frame = pd.DataFrame(rows)
    print(as_markdown(frame))
    print(as_markdown(frame.groupby(["task", "depth", "verdict"]).size().rename("sets").reset_index()))


if __name__ == "__main__":
    main()
