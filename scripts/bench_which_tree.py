"""What each kind of tree costs in accuracy and time: our trees and others on the same folds.

    python scripts/bench_which_tree.py

writes scripts/tables/which_tree.md by `softsurv.compare`. ``soft`` and ``optimal`` are the estimators with their
defaults, ``dense`` is ``SoftSurvivalTree(max_terms=None)``; the others are those that `softsurv.compare` knows by name.
CPU seconds are those of fit and evaluation; kernels are compiled before.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, compare, load_dataset

SETS = ("gbsg2", "veterans", "unemployment")
MEASURES = ("harrell_c", "uno_c", "ibs", "cpu_seconds")
OUT = Path(__file__).parent / "tables" / "which_tree.md"


def models() -> dict:
    """Unfitted models by name."""
    dense = SoftSurvivalTree(max_terms=None)
    named = ("soft", "optimal", "cox", "forest", "boosting", "greedy_tree", "kaplan_meier")
    return {name: name for name in named[:2]} | {"dense": dense} | {name: name for name in named[2:]}


def main() -> None:
    """Measure and write the table."""
    warnings.simplefilter("ignore")
    OptimalSurvivalTree().fit(load_dataset("veterans"))  # compiles
    tables = {name: compare(models(), load_dataset(name)).table() for name in SETS}
    mean = sum(table[list(MEASURES)] for table in tables.values()) / len(tables)
    lines = [f"# {__doc__.splitlines()[0]}", "", "Made by `scripts/bench_which_tree.py`: five folds a set.", ""]
    lines += [machine_line(), "", f"## Means over {', '.join(SETS)}", "", as_markdown(mean.round(3).reset_index()), ""]
    for name, table in tables.items():
        shown = pd.DataFrame({m: table[m].round(3) for m in MEASURES})
        lines += [
            f"## {name}",
            "",
            as_markdown(shown.assign(harrell_c_se=table["harrell_c_se"].round(3)).reset_index()),
            "",
        ]
    OUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
