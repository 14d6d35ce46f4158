"""Optimal trees for other objectives beside pystreed 1.4.0: the same optimum, and the time it took, in one run.

Run from the repository root, with the extra ``peers`` installed and SOFTSURV_DATA set:

    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py                    # every task, depths 2, 3 and 4
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py accuracy f1 --depths 4
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py costs --splits 20      # Tables 2 and 3: costs of test rows
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py table-4 --splits 20    # Table 4: sizes of the same trees
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py warfarin               # Table 6: policies of new patients
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py groups --limit 30      # Tables 8 and 9: group fairness
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py table-10 --limit 10    # Table 10: accuracy at depths 4 and 5
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py table-7 --limit 10     # Table 7: F1 at depths 3 and 4
    OMP_NUM_THREADS=1 python scripts/reproduce_streed.py synthetic --splits 5   # Figures 2b and 5: synthetic policies
    python scripts/reproduce_streed.py --table                              # what is finished, without computing

Both sides get the same 0/1 columns and one thread, and 120 s of wall clock for a fit; a minute later pystreed is
stopped from outside. Both trees are scored by our rule: "better" means that pystreed's tree is worse. Times are CPU
seconds, compilation of ours apart, the least of up to three runs where a run is short. A case is written to ``--out``
as soon as it ends and skipped in a later run. The sets that scikit-learn brings are cut at their quartiles. Column
"printed" holds the seconds of STreeD in the paper, where it has the set: another machine, and for the fairness sets
and Warfarin averages over runs. The last eight are the paper's own experiments, on the files that `_streed_paper.py`
names; their cases are in ``--out`` too, and `--table` does not show them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _streed_paper
import _streed_synthetic
import _tasks
import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results
from _streed_printed import PRINTED_SECONDS

TASKS = ("accuracy", "cost-complex", "f1", "cost-sensitive", "policy", "fairness", "regression")
ORDER = (
    "accuracy", "cost-complex 0.01", "F1", "cost-sensitive", "policy", "demographic parity", "equality of opportunity",
    "regression",
)  # fmt: skip
COSTLY = ("car", "heart")
LEVELS = ("low", "middle", "high")
PAPER = {
    "costs": _streed_paper.costs,
    "table-4": _streed_paper.sizes,
    "warfarin": _streed_paper.warfarin,
    "groups": _streed_paper.groups,
    "table-10": _streed_paper.accuracy,
    "table-7": _streed_paper.f1,
    "synthetic": _streed_synthetic.synthetic,
}
"""Experiments as the paper has them, on the files of its authors."""

OWN = ("groups", "table 7", "synthetic")
"""How the cases of these begin in ``--out``, where they hold a comparison."""

LIMITED = ("groups", "table-10", "table-7")
"""Those that take seconds of wall clock; the others take a number of files."""


def cases(task: str, depth: int) -> Iterator[_tasks.Case]:
    """Every set to which a task applies."""
    if task in ("accuracy", "cost-complex"):
        sets = _tasks.classification_sets() | _tasks.sklearn_classes()
        yield from (_tasks.accuracy(n, *data, depth, 0.01 if task != "accuracy" else None) for n, data in sets.items())
    elif task == "f1":
        yield from (_tasks.f1_score(n, *data, depth) for n, data in _tasks.two_class_sets().items())
    elif task == "cost-sensitive":
        sets = [(name, split, level) for name in COSTLY for split in (1, 2, 3) for level in LEVELS]
        yield from (_tasks.cost_sensitive(*one, depth) for one in sets)
    elif task == "policy":
        yield from (_tasks.policy(method, depth) for method in _tasks.POLICY)
    elif task == "fairness":
        sets = {n: data for n, data in _tasks.classification_sets().items() if n.endswith("-binarized")}
        yield from (_tasks.fair(n, *data, kind, depth) for kind in _tasks.FAIRNESS for n, data in sets.items())
    else:
        sets = _tasks.regression_sets() | _tasks.sklearn_targets()
        yield from (_tasks.regression(n, *data, depth) for n, data in sets.items())


def summary(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """For each task and depth: verdicts, proofs, and the speed where both ended."""
    out = []
    for (task, depth), part in pd.DataFrame(rows).groupby(["task", "depth"], sort=False):
        both = part[(part["peer_proven"] == True) & part["proven"]]  # noqa: E712  (missing where pystreed has no tree)
        ratio = both["peer_seconds"] / both["seconds"]
        verdicts = [_tasks.row(case)["verdict"] for case in rows if (case["task"], case["depth"]) == (task, depth)]
        out.append(
            {
                "task": task,
                "depth": depth,
                "cases": len(part),
                "equal": verdicts.count("equal"),
                "ours better": verdicts.count("better"),
                "ours worse": verdicts.count("WORSE"),
                "ours proven": int(part["proven"].sum()),
                "pystreed proven": int((part["peer_proven"] == True).sum()),  # noqa: E712
                "speed-up, geometric mean": f"{np.exp(np.log(ratio).mean()):.2f}" if len(ratio) else "",
                "least": f"{ratio.min():.2f}" if len(ratio) else "",
                "slower": int((ratio < 1).sum()),
            }
        )
    return pd.DataFrame(out)


def main() -> None:
    """Compare, print every row as it comes, then the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--splits", type=int, default=100, help="files of `costs` and `warfarin`, draws of `synthetic`")
    parser.add_argument("--limit", type=float, default=_tasks.LIMIT, help="seconds of wall clock for each side")
    parser.add_argument("--out", type=Path, default=Path("results/streed.jsonl"), help="finished cases, for resuming")
    parser.add_argument("--table", action="store_true", help="print the finished cases of --out, compute nothing")
    options = parser.parse_args()
    results = Results(options.out)
    print(machine_line(), flush=True)
    if options.table:
        compared = [case for case in results.done.values() if "task" in case and not case["case"].startswith(OWN)]
        show(sorted(compared, key=lambda case: case["depth"]))
        return
    for name in PAPER:
        if name in options.tasks:
            table = PAPER[name](results, options.limit if name in LIMITED else options.splits)
            print(f"\n### {name}\n\n{as_markdown(table)}", flush=True)
    raw = []
    for task in options.tasks:
        for depth in options.depths if task in TASKS else ():
            for case in cases(task, depth):
                key = f"{case.task} {case.name} {case.depth}"
                raw.append(results.get(key, lambda case=case: _tasks.compare(case, options.limit)))
                print(*_tasks.row(raw[-1]).values(), sep=" | ", flush=True)
    show(raw)


def show(raw: list[dict[str, Any]]) -> None:
    """A table of every task, then the summary."""
    found = {case["task"] for case in raw}
    tasks = [task for task in ORDER if task in found]
    for task in tasks:
        print(f"\n### {task}\n\n{as_markdown(pd.DataFrame([line(one) for one in raw if one['task'] == task]))}")
    if raw:
        in_order = [case for task in tasks for case in raw if case["task"] == task]
        print(f"\n### All tasks\n\n{as_markdown(summary(in_order))}")


def line(case: dict[str, Any]) -> dict[str, Any]:
    """A row with the seconds that the paper prints, where it has the set."""
    row = _tasks.row(case)
    row.pop("task")
    printed = PRINTED_SECONDS.get((case["task"], case["depth"]), {})
    return row | {"printed (s)": printed.get(case["set"], "")} if _has_printed(case["task"]) else row


def _has_printed(task: str) -> bool:
    return any(task == one for one, _ in PRINTED_SECONDS)


if __name__ == "__main__":
    main()
