"""Lines of the package at equal function: what was there on 2026-11-22, and what can do more since then.

    python scripts/count_lines.py --out scripts/tables/lines.md

The package had 31,782 lines when it was to be renovated, and at least 2,500 fewer were asked for "at equal function".
Since then it learned to do more. `LATER` names what came, with the modules that serve that alone. Every other module
counts in full as equal function, though many of them also grew by what came: the number for equal function is an upper
bound. A pattern that fits no module, or a module that two functions claim, is an error.
"""

from __future__ import annotations

import argparse
import ast
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "softsurv"

BEFORE, ASKED = 31_782, 29_282
"""Lines of the package at commit 251ece9, and the most that were asked for at equal function."""

ROOMS = {
    "": 1_182, "commands": 1_106, "data": 2_539, "estimators": 5_481, "exact": 10_033, "explore": 3_812, "hazards": 606,
    "metrics": 1_420, "soft": 3_284, "trees": 1_119, "tune": 1_200,
}  # fmt: skip
"""Lines of each folder at that commit."""

LATER = {
    "Trees of rules of few terms": (
        "sparse/*", "trees/linear_rule.py", "trees/split_effects.py", "explore/stability.py",
    ),
    "Summaries with standard errors, bands of curves, soft trees in SQL": (
        "trees/leaf_effects.py", "trees/curve_bands.py", "estimators/soft/bands.py", "estimators/soft/summary.py",
        "estimators/soft/inference.py", "estimators/optimal/bands.py", "greenwood.py", "trees/typical_rows.py",
        "trees/soft_sql.py",
    ),
    "Competing causes, recurrent events, changing covariates, late entry in measures": (
        "aalen_johansen.py", "data/event_history.py", "data/event_sets.py", "data/histories.py", "data/spells.py",
        "metrics/competing.py", "metrics/histories.py", "metrics/entering.py", "estimators/baselines.py",
        "estimators/shared/competing.py", "estimators/shared/cause_weights.py", "soft/causes.py",
        "estimators/soft/causes.py", "trees/incidence.py", "explore/history_plot.py", "explore/incidence_plot.py",
        "explore/report_causes.py",
    ),
    "Lower bounds of survival times": ("metrics/conformal.py", "estimators/shared/lower_bounds.py"),
    "Leaves of optimal trees that borrow, sizes and costs on one path": (
        "estimators/optimal/shrinkage.py", "estimators/optimal/sizes.py",
    ),
    "Sets of levels, routed missing values, nested columns as one feature": (
        "estimators/optimal/level_order.py", "trees/missing_sides.py", "exact/nesting.py",
    ),
    "All trees near the optimum": (
        "exact/rashomon/*", "estimators/rashomon.py", "estimators/optimal/near_optimum.py", "explore/rashomon_plot.py",
    ),
    "Trees with a regression in each leaf": ("estimators/model_tree.py", "exact/objectives/corrections.py"),
    "Searches of very many cuts and very many rows": ("exact/cuts/*", "exact/joint/*", "exact/first_trees.py"),
    "Many fits as one stack, studies in batches": (
        "estimators/many.py", "soft/many.py", "soft/groups.py", "tune/batch.py",
    ),
    "Published settings of the soft-tree paper": (
        "soft/paper.py", "soft/bfgs.py", "soft/dense_kernels.py", "soft/logistic_kernels.py", "soft/nelder_mead.py",
        "soft/node_kernels.py", "soft/node_rounds.py", "soft/packed_rows.py", "soft/spline_start.py",
        "estimators/soft/starts.py",
    ),
    "Fairness of what is predicted": ("soft/fair_leaves.py",),
    "Soft trees in compiled code": (
        "soft/one_pass.py", "soft/row_kernels.py", "soft/step_kernels.py", "soft/vector_math.py", "float_bits.py",
    ),
    "First fits in half of the time, compiled before the clock starts": (
        "exact/helper.py", "exact/resolved.py", "kernel_parts.py", "loops.py", "exact/kernels/root.py", "soft/jit.py",
        "estimators/soft/warm_up.py",
    ),
    "Limits that hold in every phase, memory included": ("exact/memory.py", "data/in_time.py", "cox.py"),
    "Any table: numbers or categories, one order of rows, tens of thousands of columns": (
        "data/kinds.py", "data/canonical.py", "data/blocks.py",
    ),
    "Files, kernel caches and threads that survive accidents": (
        "files.py", "kernel_cache.py", "estimators/shared/one_fit.py",
    ),
    "Other models on the same folds": (
        "explore/comparison.py", "explore/rivals.py", "commands/compare.py", "metrics/predicted.py",
    ),
    "Large trees on paper, folded trees, paths, log-rank tests and numbers at risk": (
        "explore/parts_plot.py", "explore/tree_parts.py", "explore/folded.py", "explore/path_plot.py",
        "metrics/logrank.py",
    ),
    "What a model remembers of its table, hints at misspelt arguments": (
        "commands/_recorded.py", "estimators/shared/training_rows.py", "estimators/shared/arguments.py",
    ),
    "Imports without torch and numba": (
        "estimators/soft/torch_later.py", "soft/streaming/launched.py", "estimators/shared/on_demand.py",
        "estimators/optimal/on_demand.py",
    ),
}  # fmt: skip
"""What the package can do since then, and the modules that serve it alone."""


def lines_of(module: str) -> tuple[int, int]:
    """Lines of a module, and those of its docstrings."""
    text = (PACKAGE / module).read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            docs += (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return text.count("\n"), docs


def functions_of(modules: list[str]) -> dict[str, str]:
    """What each module that came later serves."""
    served: dict[str, str] = {}
    for function, patterns in LATER.items():
        for pattern in patterns:
            found = [module for module in modules if fnmatch(module, pattern)]
            if not found or any(module in served for module in found):
                raise SystemExit(f"{pattern}: no module, or claimed twice")
            served |= dict.fromkeys(found, function)
    return served


def rooms_of(equal: list[str], size: dict[str, tuple[int, int]]) -> list[str]:
    """Rows of the table of folders: lines before, and those of equal function now."""
    now = dict.fromkeys(ROOMS, 0)
    for module in equal:
        room, _, rest = module.partition("/")
        now[room if rest else ""] += size[module][0]
    return [f"| {room or 'beside the folders'} | {ROOMS[room]:,} | {lines:,} |" for room, lines in now.items()]


def report() -> str:
    """The table."""
    modules = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))
    served, size = functions_of(modules), {module: lines_of(module) for module in modules}
    groups = {function: [m for m in modules if served.get(m) == function] for function in LATER}
    groups["Equal function, and what it grew by"] = [m for m in modules if m not in served]
    rows = [(name, len(group), *(sum(size[m][k] for m in group) for k in (0, 1))) for name, group in groups.items()]
    total, equal = sum(row[2] for row in rows), rows[-1][2]
    verdict = "holds" if equal <= ASKED else "does not hold"
    table = [f"| {name} | {count} | {lines:,} | {docs:,} |" for name, count, lines, docs in rows]
    return "\n".join(
        [
            "# Lines of the package at equal function",
            "",
            f"{date.today().isoformat()}. {total:,} lines in {len(modules)} modules; {BEFORE:,} at commit 251ece9.",
            "Modules that serve only what came later stand by what they do; a module that serves both counts as equal",
            f"function in full. At most {ASKED:,} lines were asked for at equal function: that {verdict} ({equal:,}).",
            "",
            "| function | modules | lines | of them docstrings |",
            "| --- | --- | --- | --- |",
            *table,
            "",
            "Where equal function, and what it grew by, lies:",
            "",
            "| folder | lines at 251ece9 | lines now |",
            "| --- | --- | --- |",
            *rooms_of(groups["Equal function, and what it grew by"], size),
            "",
        ]
    )


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = report()
    if options.out:
        options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
