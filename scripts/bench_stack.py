"""A study of dense trees beside another checkout, and the paper's grid: CPU seconds, alternated in one run.

    python scripts/bench_stack.py --old /path/to/other/checkout --markdown scripts/tables/stack.md
    python scripts/bench_stack.py --only single penalties

- study: 40 trials x 5 folds on gbsg2, dense trees (``max_terms=None``), parameters drawn at random, so that all run the
  same trials: the other checkout, this one, and this one with batches of 8.
- penalties: the same with leaf family, depth and solver fixed, so that all trials of a batch are one stack.
- single: one fit of a dense tree with given penalties, 5 starts, depth 2.
- grid: NODEC-DR as in the paper, 20 starts on a training part of four fifths, one family at depths 1 and 2, each on all
  15 data sets of the paper. ``--grid-folds 5`` runs all of the paper's 15,000 fits; one fold, the default, is a fifth.

Each figure is the least of the repeats. Each run is a process of its own with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
from _machine import as_markdown, machine_line
from reproduce_sst import SETS

HERE = Path(__file__).resolve().parents[1]

PRELUDE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
from softsurv import SoftSurvivalTree, load_dataset
"""

STUDY = """
from softsurv.tune import study
options = json.loads(sys.argv[1])
if "max_terms" not in SoftSurvivalTree().get_params():  # of a time when all trees were dense
    options["space"].pop("max_terms")
data = load_dataset("gbsg2")
study(data, n_trials=1, space=options["space"], refit=False, progress=False, sampler="random", seed=1)
began = time.process_time()
study(data, n_trials=40, refit=False, progress=False, sampler="random", **options)
print(time.process_time() - began)
"""

SINGLE = """
data = load_dataset("gbsg2")
def fit():
    began = time.process_time()
    SoftSurvivalTree(depth=2, leaf=json.loads(sys.argv[1])["leaf"], l2=1.0, shrinkage=3.0, routing_l2=1.0).fit(data)
    return time.process_time() - began
fit()
print(min(fit() for _ in range(5)))
"""

GRID = """
from importlib import import_module
from softsurv.data.preprocess import Preprocessor
reproduce_sst = import_module("reproduce_sst")
asked = [reproduce_sst.Asked()] if hasattr(reproduce_sst, "Asked") else []
train_stack = reproduce_sst.paper_starts if asked else reproduce_sst.paper_trees
options = json.loads(sys.argv[1])
def rows(name, fold=0):
    train, _ = load_dataset(name).split(seed=fold)
    return train.with_features(Preprocessor().fit(train.X).transform(train.X))
train_stack(options["leaf"], 1, "random", rows("veterans"), 1, *asked)
folds = [rows(name, fold) for name in options["names"] for fold in range(options["folds"])]
began = time.process_time()
for train in folds:
    for depth in (1, 2):
        train_stack(options["leaf"], depth, "random", train, 0, *asked)
print(time.process_time() - began)
"""

PARTS = ("single", "penalties", "study", "grid")
DENSE = {"max_terms": None}
ALIKE = DENSE | {"leaf": "loglogistic", "depth": 2, "solver": "lbfgs", "init": "random", "n_restarts": 4}
FAMILIES = ("exponential", "weibull", "loglogistic", "spline_po", "spline_ph")
FOLDS = 5
"""Of the paper: its grid is 15 data sets x 5 folds x 5 families x 2 depths x 20 starts."""


def seconds(checkout: Path, body: str, options: dict) -> float:
    """CPU seconds that a program prints, run on the code of a checkout."""
    environment = os.environ | {"PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'scripts'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PRELUDE + body, json.dumps(options)]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def measured(name: str, repeats: int, runs: dict[str, tuple[Path, str, dict]]) -> list[dict]:
    """The least seconds of each run, the runs taking turns; the first one is what the others are compared with."""
    found: dict[str, list[float]] = {label: [] for label in runs}
    for _ in range(repeats):
        for label, run in runs.items():
            found[label].append(seconds(*run))
            print(name, label, f"{found[label][-1]:.2f}", flush=True)
    first = min(next(iter(found.values())))
    return [
        {"what": name, "code": label, "CPU s": round(min(values), 2), "times faster": round(first / min(values), 2)}
        for label, values in found.items()
    ]


def studies(name: str, space: dict, old: Path | None, repeats: int) -> list[dict]:
    """A study by the other checkout and by this one, one by one and in batches."""
    runs = {} if old is None else {"other checkout": (old, STUDY, {"space": space})}
    runs |= {
        "this, one by one": (HERE, STUDY, {"space": space}),
        "this, batches of 8": (HERE, STUDY, {"space": space, "batch": 8}),
    }
    return measured(name, repeats, runs)


def both(name: str, body: str, options: dict, old: Path | None, repeats: int) -> list[dict]:
    """One program by the other checkout and by this one."""
    runs = {} if old is None else {"other checkout": (old, body, options)}
    return measured(name, repeats, runs | {"this": (HERE, body, options)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="another checkout, run in turn with this one")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--grid-repeats", type=int, default=1)
    parser.add_argument("--grid-folds", type=int, default=1, choices=range(1, FOLDS + 1), help="of five")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args()
    rows, grid = [], 0.0
    if "single" in options.only:
        for leaf in ("loglogistic", "lognormal"):
            rows += both(f"single fit, {leaf}", SINGLE, {"leaf": leaf}, options.old, options.repeats)
    if "study" in options.only:
        rows += studies("study, 40 trials x 5 folds", DENSE, options.old, options.repeats)
    if "penalties" in options.only:
        rows += studies("study of penalties, 40 trials x 5 folds", ALIKE, options.old, options.repeats)
    if "grid" in options.only:
        for leaf in FAMILIES:
            asked = {"leaf": leaf, "names": list(SETS), "folds": options.grid_folds}
            what = f"NODEC-DR, {options.grid_folds} of {FOLDS} folds of {len(SETS)} sets, {leaf}"
            rows += both(what, GRID, asked, options.old, options.grid_repeats)
            grid += rows[-1]["CPU s"] * FOLDS / options.grid_folds
    lines = [
        "# Stacks of many settings beside an earlier commit",
        "",
        f"`scripts/bench_stack.py --only {' '.join(options.only)}`",
        "",
    ]
    lines += [machine_line(), "", as_markdown(pd.DataFrame(rows))]
    if grid:
        pace = "" if options.grid_folds == FOLDS else " at this pace"
        lines += [
            "",
            f"The paper's 15,000 fits{pace}: {grid / 60:.1f} minutes of CPU, half of it on two cores.",
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
