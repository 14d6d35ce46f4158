"""How often bootstrap samples ask the same first question as the default soft tree.

    SOFTSURV_DATA=folder python scripts/bench_stability.py                  # writes scripts/tables/stability.md
    python scripts/bench_stability.py --sets gbsg2 veterans --samples 50 --table /tmp/stability.md

For each set of the collections ``new`` and ``paper`` of bench_survset.py, `SoftSurvivalTree` is fitted with its
defaults to all rows and `softsurv.explore.split_stability` grows its setting again on 20 bootstrap samples. Sets whose
default is one leaf have no first split; they are named below the table. A set takes up to some minutes; finished ones
are kept in the result file.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the code beside this script, whatever is installed

import pandas as pd
from _machine import as_markdown, machine_line
from _results import Results
from _survset_data import COLLECTIONS, load
from tqdm import tqdm

from softsurv import SoftSurvivalTree
from softsurv.explore.stability import split_stability

TABLE = Path(__file__).parent / "tables" / "stability.md"
ABOUT = """Made by `scripts/bench_stability.py`: the default `SoftSurvivalTree` of all rows, its setting grown again on
{n} bootstrap samples.

- `same feature`: share of the samples whose first split asks for the feature of the tree's first split.
- `asked anywhere`: share in which some split asks for it.
"""


def run(collection: str, name: str, n_samples: int) -> dict[str, Any]:
    """The first split of the default tree, and how many samples share it; no split where the default is one leaf."""
    warnings.simplefilter("ignore")
    data = load(collection, name)
    model = SoftSurvivalTree(random_state=0).fit(data.X, data.y)
    line = {"set": name, "leaves": int(model.candidate_.leaves), "same_feature": None}
    if line["leaves"] == 1 or not any(model.tree_.rules):
        return line
    table = split_stability(model, data, n=n_samples)
    first = table.loc["root"]
    shares = {key: float(first[key]) for key in ("same_feature", "asked_anywhere")}
    return line | {"rule": first["rule"]} | shares | {"samples": n_samples}


def report(lines: list[dict[str, Any]], n_samples: int) -> str:
    """The table, the median set, and the sets without a split."""
    trees = pd.DataFrame([line for line in lines if line["same_feature"] is not None])
    single = [line["set"] for line in lines if line["same_feature"] is None]
    parts = [f"# {__doc__.splitlines()[0].rstrip('.')}", "", ABOUT.format(n=n_samples), machine_line(), ""]
    if len(trees):
        shown = trees.rename(columns=lambda name: name.replace("_", " ")).drop(columns=["case", "samples"])
        shown = shown.rename(columns={"rule": "first split"}).sort_values("same feature", ascending=False)
        parts += [as_markdown(shown[["set", "leaves", "first split", "same feature", "asked anywhere"]]), ""]
        median, anywhere = (float(trees[key].median()) for key in ("same_feature", "asked_anywhere"))
        parts += [f"Median over the {len(trees)} sets: {median:.3g}; anywhere in the tree {anywhere:.3g}.", ""]
    if single:
        parts += [f"One leaf: {', '.join(single)}.", ""]
    return "\n".join(parts)


def main() -> None:
    """Measure what is asked for and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", nargs="+", choices=tuple(COLLECTIONS), default=["new", "paper"])
    parser.add_argument("--sets", nargs="+", help="of the collections; all by default")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/stability.jsonl"))
    parser.add_argument("--table", type=Path, default=TABLE)
    args = parser.parse_args()
    results = Results(args.out)
    asked = [(group, name) for group in args.collection for name in COLLECTIONS[group]]
    asked = [(group, name) for group, name in asked if args.sets is None or name in args.sets]
    lines = [
        results.get(f"{name} {args.samples}", lambda group=group, name=name: run(group, name, args.samples))
        for group, name in tqdm(asked)
    ]
    args.table.write_text(report(lines, args.samples))


if __name__ == "__main__":
    main()
