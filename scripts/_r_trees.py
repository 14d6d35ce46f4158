"""Trees of R on encoded features, by `survset_peers.R`: rpart and ctree, with Kaplan-Meier curves in the leaves."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsurv import SurvivalData
from softsurv.nonparametric import kaplan_meier

_R = ("survival", "partykit", "rpart")
R_PACKAGES = {"rpart": _R, "rpart_min": _R, "ctree": (*_R, "coin")}
"""What survset_peers.R needs; partykit takes the scores of its log-rank test from coin."""

R_SCRIPT = Path(__file__).with_name("survset_peers.R")
Curves = Callable[[NDArray], NDArray]


@dataclass(frozen=True)
class GrownTree:
    """Leaf of every training and test row, and what R told of the tree."""

    leaf_train: NDArray
    leaf_test: NDArray
    facts: dict[str, float]


@lru_cache
def missing_r(method: str) -> str | None:
    """Why a tree of R cannot be had here, in a sentence; None where it can."""
    if shutil.which("Rscript") is None:
        return f"{method} is left out: there is no Rscript; install R."
    tests = ", ".join(f'requireNamespace("{package}")' for package in R_PACKAGES[method])
    if subprocess.run(["Rscript", "-e", f"stopifnot({tests})"], capture_output=True).returncode:
        return f"{method} is left out: R lacks one of its packages {', '.join(R_PACKAGES[method])}; install them."
    return None


def grow(method: str, train: SurvivalData, test: SurvivalData, seed: int, depth: int | None = None) -> GrownTree:
    """A tree of R; with a depth, the method's defaults up to that depth, without pruning."""
    time = train.time.numpy()
    names = [f"f{k}" for k in range(train.X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        frame = train.X.set_axis(names, axis=1)
        frame.insert(0, "time", above_zero(time))
        frame.insert(1, "event", train.event.numpy().astype(int))
        frame.to_csv(at / "train.csv", index=False)
        test.X.set_axis(names, axis=1).to_csv(at / "test.csv", index=False)
        run_r(R_SCRIPT, method, folder, str(seed), *([str(depth)] if depth else []))
        leaves = (pd.read_csv(at / f"leaf_{part}.csv")["leaf"].to_numpy() for part in ("train", "test"))
        return GrownTree(*leaves, pd.read_csv(at / "facts.csv").iloc[0].to_dict())


def run_r(script: Path, *arguments: str) -> None:
    """Run a script of R to its end."""
    done = subprocess.run(["Rscript", str(script), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Rscript ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def above_zero(time: NDArray) -> NDArray:
    """Times (N,) with half the least positive one for 0, which rpart refuses."""
    return np.where(time > 0, time, time[time > 0].min() / 2)


def kaplan_meier_curves(train: SurvivalData, leaf_train: NDArray, leaf_rows: NDArray) -> Curves:
    """Log H of rows by the Kaplan-Meier curve of their leaf's training rows."""
    time, event = train.time.numpy(), train.event.numpy()
    leaves, place = np.unique(leaf_rows, return_inverse=True)
    by_leaf = [kaplan_meier(time[leaf_train == leaf], event[leaf_train == leaf]) for leaf in leaves]
    return lambda at: log_hazard(np.stack([curve(at) for curve in by_leaf]))[place]


def log_hazard(survival: NDArray) -> NDArray:
    """Log H of survival probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(-np.log(np.clip(survival, 1e-300, 1.0)))
