"""Exact trees over Weibull regressions beside R's partykit::mob at equal leaves, by held-out likelihood.

    OMP_NUM_THREADS=1 python scripts/bench_model_trees.py

needs SOFTSURV_DATA and R with survival and partykit; it writes scripts/tables/model_trees.md. Five folds a set, the
same imputed and one-hot encoded features for all, cut at ten quantiles. ``mob`` fits a Weibull regression of its own
in every leaf and stops by its tests; ``mob, 4 leaves`` splits to depth two without a test. ``ours`` has as many leaves
at most as that mob in the same fold, with shared slopes or with slopes of its own; ``ours, bic`` decides on the number
of leaves itself. ``one leaf`` is our regression without a tree. The mean log-likelihood of held-out rows, higher is
better, over the folds in which no leaf of mob degenerates; seconds are CPU seconds of a fit on one thread, kernels
compiled before. The first sets are simulated (`_survset_simulated.py`).
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from _results import cpu
from _survset_simulated import simulate

from softsurv import OptimalModelTree, SurvivalData, load_dataset
from softsurv.data.preprocess import Preprocessor

SETS = ("veterans", "gbsg2", "whas500", "uissurv")
TRUTHS = ("four_leaves", "crossing", "two_weibull")
LEAST_SCALE = 1e-3
"""Of log time: a Weibull regression of less is a point mass, and no likelihood can be compared with it."""
OUT = Path(__file__).parent / "tables" / "model_trees.md"
R_SCRIPT = Path(__file__).with_name("model_tree_peers.R")


def mob(train: SurvivalData, test: SurvivalData, leaves: int) -> dict[str, Any]:
    """partykit's tree: held-out log-likelihood, number of leaves, seconds."""
    encoder = Preprocessor().fit(train.X)
    design = encoder.transform(train.X).to_numpy(float)
    kept = independent(design)
    quantiles = np.quantile(design, np.arange(1, 11) / 11, axis=0)
    # mob stops where its tests choose a column without a split that leaves enough rows on both sides
    least, rare = 4 * (len(kept) + 2), np.array([np.unique(x, return_counts=True)[1].max() for x in design.T])
    splits = np.flatnonzero(len(design) - rare >= least)
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train", train), ("test", test)):
            x = encoder.transform(part.X).to_numpy(float)
            bins = {f"z{k}": np.searchsorted(quantiles[:, k], x[:, k]) for k in splits}
            table = pd.DataFrame({f"x{k}": x[:, k] for k in kept} | bins)
            table = table.assign(time=part.time.numpy(), event=part.event.numpy().astype(int))
            table.to_csv(Path(folder, f"{name}.csv"), index=False)
        done = subprocess.run(["Rscript", str(R_SCRIPT), folder, str(leaves)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found, facts = pd.read_csv(Path(folder, "mob.csv")), pd.read_csv(Path(folder, "facts.csv")).iloc[0]
    log_time, event = np.log(test.time.numpy()), test.event.numpy()
    z = (log_time - found["location"]) / found["scale"]
    value = event * (z - np.log(found["scale"]) - log_time) - np.exp(np.minimum(z, 30.0))
    failed = bool((found["scale"] < LEAST_SCALE).any())  # a leaf with hardly an event
    mean = np.nan if failed else float(value.mean())
    return {"value": mean, "leaves": int(facts["leaves"]), "s": float(facts["cpu"])}


def independent(design: np.ndarray) -> list[int]:
    """Columns (N, P) that no earlier ones and a constant add up to: mob's tests need a regular Hessian."""
    kept: list[int] = []
    for k in range(design.shape[1]):
        columns = np.column_stack([np.ones(len(design)), design[:, [*kept, k]]])
        if np.linalg.matrix_rank(columns) == columns.shape[1]:
            kept.append(k)
    return kept


def ours(train: SurvivalData, test: SurvivalData, **how: Any) -> dict[str, Any]:
    """Our tree: the same numbers."""
    seconds, tree = cpu(lambda: OptimalModelTree(**how).fit(train.X, train.y), repeats=1)
    value = tree.log_likelihood(test.X, test.y).mean()
    return {"value": float(value), "leaves": len(tree.tree_.used_leaves), "s": seconds}


def fold(train: SurvivalData, test: SurvivalData) -> dict[str, dict[str, Any]]:
    """Every model on one fold."""
    by_tests, four = mob(train, test, 0), mob(train, test, 4)
    found = {"mob": by_tests, "mob, 4 leaves": four, "one leaf": ours(train, test, max_depth=0)}
    found["ours, bic"] = ours(train, test)
    for name, peer in (("mob", by_tests), ("mob, 4 leaves", four)):
        most, depth = peer["leaves"], max(1, int(np.ceil(np.log2(max(peer["leaves"], 2)))))
        for slopes in ("shared", "own"):
            how = {"max_depth": depth, "max_leaves": most, "complexity": 0.0, "slopes": slopes}
            found[f"ours, leaves of {name}, {slopes} slopes"] = ours(train, test, **how)
    return found


def problems() -> Iterator[tuple[str, list[tuple[SurvivalData, SurvivalData]]]]:
    """Training and test rows of every fold, set by set; of a simulated truth five samples of 600 rows."""
    for truth in TRUTHS:
        samples = [simulate(truth, 600, repeat) for repeat in range(5)]
        yield truth, [(train.data, test.data) for train, test in samples]
    for name in SETS:
        data = load_dataset(name)
        yield name, [(data.take(train), data.take(test)) for train, test in data.folds(5, 0)]


def main() -> None:
    """Measure and write the table."""
    warnings.simplefilter("ignore")
    OptimalModelTree(max_depth=3).fit(load_dataset("veterans"))  # compiles
    rows, means = [], []
    for name, parts in problems():
        folds = [fold(train, test) for train, test in parts]
        for model in folds[0]:
            values = np.array([one[model]["value"] for one in folds])
            gap = values - np.array([one["one leaf"]["value"] for one in folds])
            known = np.isfinite(gap)
            row = {
                "set": name,
                "model": model,
                "leaves": np.mean([one[model]["leaves"] for one in folds]).round(1),
                "log-likelihood": f"{values[known].mean():.3f}" if known.any() else "",
                "against one leaf": f"{gap[known].mean():+.3f}" if known.any() else "",
                "folds": int(known.sum()),
                "s": f"{np.median([one[model]['s'] for one in folds]):.2f}",
            }
            rows.append(row)
            known_sets = "simulated" if name in TRUTHS else "real"
            mean = gap[known].mean() if known.any() else np.nan
            means.append({"sets": known_sets, "model": model, "gap": mean, "better": mean > 0})
            print(*row.values(), sep=" | ", flush=True)
        write(rows, means)


def write(rows: list[dict[str, Any]], means: list[dict[str, Any]]) -> None:
    """The table of the sets so far."""
    table = pd.DataFrame(
        [
            {
                "sets": f"{kind} ({len(some)})",
                "model": model,
                "mean gain over one leaf": f"{some['gap'].mean():+.3f}",
                "median": f"{some['gap'].median():+.3f}",
                "better than one leaf": int(some["better"].sum()),
            }
            for (kind, model), some in pd.DataFrame(means).groupby(["sets", "model"], sort=False)
        ]
    )
    lines = [f"# {__doc__.splitlines()[0]}", "", "Made by `scripts/bench_model_trees.py`: five folds a set.", ""]
    lines += [machine_line(), "", as_markdown(table), "", as_markdown(pd.DataFrame(rows)), ""]
    OUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
