"""How long a prediction takes, of one row as a service asks for it and of many, beside models of scikit-survival.

Run from the repository root:

    OMP_NUM_THREADS=1 python scripts/bench_predict.py --table scripts/tables/predict.md

Trees are fitted on the training part of GBSG2; the rows are those of its test part, over and over. Times are the least
wall-clock milliseconds of `REPEATS` calls, as called: a frame goes in, an array comes out. A model that has no such
method is left out of its column.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, write_page
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.tree import SurvivalTree

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.data.preprocess import Preprocessor

REPEATS = 30
LONG = 2.0
"""Seconds after which a call is not repeated."""

TIMES = [365.0]

OURS: dict[str, Any] = {
    "optimal tree": OptimalSurvivalTree(),
    "soft tree, weibull leaves": SoftSurvivalTree(depth=2, leaf="weibull"),
    "soft tree, spline leaves": SoftSurvivalTree(depth=2, leaf="spline_po"),
}
PEERS: dict[str, Any] = {
    "scikit-survival's tree": SurvivalTree(min_samples_leaf=15, random_state=0),
    "scikit-survival's Cox model": CoxPHSurvivalAnalysis(alpha=1e-4),
    "scikit-survival's forest": RandomSurvivalForest(100, min_samples_leaf=15, random_state=0),
}


def least(call: Callable[[], Any]) -> str:
    """Milliseconds of the fastest call."""
    runs = list[float]()
    while len(runs) < REPEATS and sum(runs) < LONG:
        begin = time.perf_counter()
        call()
        runs.append(time.perf_counter() - begin)
    return f"{1e3 * min(runs):.3g}"


def calls(model: Any, X: Any) -> dict[str, Callable[[], Any]]:
    """What a service asks for, by name."""
    if type(model) in {type(one) for one in PEERS.values()}:
        return {
            "risk": lambda: model.predict(X),
            "survival at one time": lambda: [curve(TIMES) for curve in model.predict_survival_function(X)],
        }
    return {
        "leaf": lambda: model.apply(X),
        "risk": lambda: model.predict(X),
        "survival at one time": lambda: model.predict_survival_function(X, times=TIMES),
        "median": lambda: model.predict_median(X),
        "restricted mean": lambda: model.predict_expectation(X),
    } | ({"explain": lambda: model.explain(X)} if len(X) == 1 else {})


def main() -> None:
    """Fit the models, time their predictions and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 10_000])
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    train, test = load_dataset("gbsg2").split(seed=0)
    prepare = Preprocessor().fit(train.X)
    models = {name: model.fit(train.X, train.y) for name, model in OURS.items()}
    models |= {name: model.fit(prepare.transform(train.X), train.y) for name, model in PEERS.items()}
    lines = list[dict[str, Any]]()
    for n in options.rows:
        X = test.X.iloc[np.arange(n) % test.n].reset_index(drop=True)
        for name, model in models.items():
            asked = calls(model, X if name in OURS else prepare.transform(X))
            lines.append({"rows": n, "model": name} | {what: least(call) for what, call in asked.items()})
            print(lines[-1], flush=True)
    frame = pd.DataFrame(lines).fillna("")
    print(as_markdown(frame))
    if options.table is not None:
        note = "Milliseconds. The peers get rows that are encoded already; ours take the raw table."
        write_page(options.table, "bench_predict.py", "Time of a prediction", note, frame.to_dict("records"))


if __name__ == "__main__":
    main()
