"""An old commit beside this one: CPU seconds of the same searches, trainings and fits, run in turn.

    git worktree add --detach ../old 251ece9
    SOFTSURV_DATA=folder python scripts/bench_beside.py ../old --out scripts/tables/beside.md

The cases are those of `bench_exact.py`, `bench_ibs.py`, `bench_tasks.py` and `bench_soft.py`, F1, Matthews correlation
and fairness at depths 2 and 3, and fits of estimators on 0/1 columns. Each version runs in a process of its own, with
its own scripts. The least CPU seconds of interleaved turns count, one thread, everything compiled. A case is measured
again with more turns where the new version seems slower by more than 5 %.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from itertools import product  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from _machine import as_markdown, machine_line  # noqa: E402

HERE = Path(__file__).resolve().parent
ALLOWED = 1.05
"""Largest ratio of the new time to the old one that counts as equal."""

OTHERS = ("german-credit", "heart-cleveland", "breast-wisconsin", "yeast")
CLASSES = ("anneal", *OTHERS, "hepatitis", "tic-tac-toe", "vote")
FAIR = ("german-credit-binarized", "ricci-binarized", "student-mat-binarized", "student-por-binarized")
CASES = {
    "exact": [
        f"exact {name} {depth}"
        for name, depth in [
            *product(("veteran", "whas500", "GBSG2", "uis", "Aids2", "UnempDur", "Framingham"), (2, 3, 4)),
            *product(("veteran", "Aids2", "GBSG2"), (5,)),
        ]
    ],
    "ibs": [
        f"ibs {name} {depth} {complexity}"
        for name, depth, complexity in product(
            ("veterans", "gbsg2", "maintenance", "aids", "churn", "credit"), (3, 4), (0.01, 0.0025)
        )
    ],
    "tasks": [
        *(f"task accuracy {name} {depth}" for name, depth in product(CLASSES, (3, 4))),
        *(f"task cost-sensitive {name}:{level} 4" for name in ("car", "heart") for level in ("low", "middle", "high")),
        *(f"task policy {method} 4" for method in ("DM", "IPW", "DR")),
    ],
    "measures": [
        f"task {kind} {name} {depth}" for kind, name, depth in product(("f1", "matthews"), OTHERS, (2, 3))
    ],
    "fairness": [
        f"task {kind} {name} {depth}"
        for kind, name, depth in product(("demographic_parity", "equality_of_opportunity"), FAIR, (2, 3))
    ],
    "soft": [f"soft {name} {solver}" for name in ("gbsg2", "churn", "whas500") for solver in ("lbfgs", "nodec")],
    "fit": [
        *(f"fit accuracy {name} {depth}" for name, depth in product(OTHERS, (2, 3, 4))),
        *(f"fit relative_risk {name} {depth}" for name, depth in product(("veterans", "gbsg2", "churn"), (2, 3, 4))),
    ],
}  # fmt: skip


class Version:
    """A process that runs cases with one checkout."""

    def __init__(self, checkout: Path) -> None:
        program = [sys.executable, str(HERE / "_beside_run.py"), str(checkout.resolve())]
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=checkout,
            env={**os.environ, "PYTHONPATH": ""},
        )  # fmt: skip

    def run(self, case: str) -> dict[str, Any]:
        """The answer to one turn of a case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(case, file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@dataclass
class Pair:
    """What both versions took for one case."""

    case: str
    old: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    objective: tuple[float, float] = (np.nan, np.nan)
    error: str = ""

    @property
    def ratio(self) -> float:
        """Time of the new version over that of the old one."""
        return min(self.new) / min(self.old)

    def turns(self, old: Version, new: Version, repeats: int, most: float) -> None:
        """Take turns, at most so many and so many seconds of each."""
        for _ in range(repeats):
            answers = old.run(self.case), new.run(self.case)
            self.error = next((one["error"] for one in answers if "error" in one), "")
            if self.error:
                return
            self.old.append(answers[0]["seconds"])
            self.new.append(answers[1]["seconds"])
            self.objective = (answers[0]["objective"], answers[1]["objective"])
            if len(self.old) > 1 and sum(self.old) + sum(self.new) > most:
                return

    def row(self) -> dict[str, str]:
        """A line of the table."""
        if self.error:
            return {"case": self.case, "old (s)": self.error}
        old, new = self.objective
        return {
            "case": self.case,
            "old (s)": f"{min(self.old):.4f}",
            "new (s)": f"{min(self.new):.4f}",
            "new / old": f"{self.ratio:.2f}",
            "turns": str(len(self.old)),
            "objective": f"{new:.6g}",
            "new - old": f"{new - old:+.1e}",
        }


def report(pairs: dict[str, list[Pair]], commits: list[str]) -> str:
    """Tables by part, and what holds."""
    text = ["# An old commit beside this one", "", machine_line(), "", f"Old: {commits[0]}. New: {commits[1]}.", ""]
    for part, group in pairs.items():
        told = [one for one in group if not one.error]
        text += [f"## {part}", "", as_markdown(pd.DataFrame([one.row() for one in group]).fillna("")), ""]
        if told:
            ratios = np.array([one.ratio for one in told])
            slower = sum(ratio > ALLOWED for ratio in ratios)
            text += [
                f"New over old, geometric mean {np.exp(np.log(ratios).mean()):.2f}; {slower} of {len(told)} cases are "
                f"slower by more than 5 %, the worst {ratios.max():.2f} times.",
                "",
            ]  # fmt: skip
    return "\n".join(text)


def commit_of(checkout: Path) -> str:
    """Short name and title of the commit that is checked out."""
    shown = subprocess.run(
        ["git", "log", "-1", "--format=%h, %s"], cwd=checkout, capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout of the old commit")
    parser.add_argument("--parts", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--only", default="", help="only cases with this text")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=float, default=20.0, help="CPU seconds of turns for one case")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    checkouts = [options.old, HERE.parent]
    old, new = map(Version, checkouts)
    pairs: dict[str, list[Pair]] = {}
    for part in options.parts:
        for case in CASES[part]:
            if options.only not in case:
                continue
            pair = Pair(case)
            pair.turns(old, new, options.repeats, options.most)
            if not pair.error and pair.ratio > ALLOWED:
                pair.turns(old, new, 2 * options.repeats, 2 * options.most)
            pairs.setdefault(part, []).append(pair)
            print(pair.row(), file=sys.stderr, flush=True)
            if options.out:
                options.out.write_text(report(pairs, [commit_of(one) for one in checkouts]))
    print(report(pairs, [commit_of(one) for one in checkouts]))


if __name__ == "__main__":
    main()
