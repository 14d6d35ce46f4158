"""Do lower bounds and confidence bands hold? Simulated coverage.

Run from the repository root:

    OMP_NUM_THREADS=1 python scripts/bench_coverage.py bounds   # conformal lower bounds, in each leaf and overall
    OMP_NUM_THREADS=1 python scripts/bench_coverage.py bands    # confidence bands of predicted curves, one leaf
    OMP_NUM_THREADS=1 python scripts/bench_coverage.py leaves   # limits of the curves of an optimal tree's leaves
    OMP_NUM_THREADS=1 python scripts/bench_coverage.py quantiles  # limits of quantiles, of both

Bounds: in each repeat a tree of two leaves is fitted to 400 rows, calibrated on 400 others, and judged on 4,000 new
rows, whose times are known. Event times are Weibull of shape 1.5, with two kinds of rows and a linear effect within
each; censoring is exponential, with another rate for each kind of rows. The exponential soft tree has a wrong family on
purpose. The naive bound is the tree's own quantile at one minus the coverage.

Bands: a single Weibull leaf is fitted to 300 rows of a Weibull regression with independent censoring; the 95 % band of
three rows is compared with their true curve at the quartiles of the event times.

Leaves: an optimal tree parts two groups of 100 rows, whose Weibull times of shape 1.2 have the scales 2 and 8 (a hazard
ratio of 5.3), with independent censoring; the 95 % limits of each leaf are compared with its true curve. Curves that
borrow have no limits in softsurv. What limits of the same width around them would hold is measured beside.

Quantiles: the 95 % limits of B10 life, of the median and of the time by which three quarters have failed, for the rows
of "bands" and the leaves of "leaves".
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import DataWarning
from softsurv.greenwood import greenwood, log_log_limits
from softsurv.nonparametric import StepFunction, at_risk_table

COVERAGE, ROWS, JUDGED = 0.9, 400, 4000
RULES = {"depth": 1, "max_terms": 1, "l2": 1.0, "shrinkage": 1.0}
MODELS = {
    "optimal": lambda: OptimalSurvivalTree(max_depth=1),
    "optimal, 5 folds of the training rows": lambda: OptimalSurvivalTree(max_depth=1),
    "soft, Weibull": lambda: SoftSurvivalTree(leaf="weibull", **RULES),
    "soft, exponential": lambda: SoftSurvivalTree(leaf="exponential", **RULES),
}


def simulate(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, event times and censoring times."""
    X = pd.DataFrame({"x": rng.random(n), "z": rng.normal(size=n)})
    high = X["x"].to_numpy() > 0.5
    time = rng.weibull(1.5, n) * np.where(high, 2.0, 8.0) * np.exp(0.4 * X["z"].to_numpy())
    return X, time, rng.exponential(np.where(high, 4.0, 15.0))


def one_repeat(name: str, seed: int) -> dict[str, float]:
    """Coverage and mean length of the bounds of one tree."""
    rng = np.random.default_rng(seed)
    X, time, censored = simulate(ROWS, rng)
    y = (time <= censored, np.minimum(time, censored))
    tree = MODELS[name]().fit(X, y)
    folds = 5 if "folds" in name else None
    if folds is None:
        X, time, censored = simulate(ROWS, rng)
        y = (time <= censored, np.minimum(time, censored))
    tree.calibrate(X, y, coverage=COVERAGE, n_folds=folds)
    X, time, _ = simulate(JUDGED, rng)
    bound, naive, leaf = tree.predict_lower_bound(X), tree.predict_quantile(X, 1 - COVERAGE), tree.apply(X)
    held = time >= bound
    leaves = {f"leaf {k}": held[leaf == k].mean() for k in np.unique(leaf)}
    own = {"naive coverage": (time >= naive).mean(), "naive mean bound": naive.mean()}
    return {"coverage": held.mean(), **leaves, "mean bound": bound.mean(), **own}


def bounds(repeats: int) -> pd.DataFrame:
    """Coverage of the lower bounds of every model."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in MODELS:
            found = pd.DataFrame([one_repeat(name, seed) for seed in range(repeats)]).mean()
            rows.append({"tree": name, **{key: f"{value:.3f}" for key, value in found.items()}})
    return pd.DataFrame(rows)


ASK = pd.DataFrame({"a": [0.0, 1.0, -1.0], "b": [0.0, 1.0, 1.0]})
"""Rows of the Weibull regression whose curves are asked for."""


def scale_of(X: pd.DataFrame) -> np.ndarray:
    """Scale of the Weibull regression in each row; the shape is 1.5."""
    return 4.0 * np.exp(0.5 * X["a"].to_numpy() - 0.3 * X["b"].to_numpy())


def regression(seed: int) -> SoftSurvivalTree:
    """A Weibull leaf fitted to 300 rows of the regression."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    died, censored = rng.weibull(1.5, 300) * scale_of(X), rng.exponential(6.0, 300)
    return SoftSurvivalTree(depth=0, leaf="weibull", l2=1e-3).fit(X, (died <= censored, np.minimum(died, censored)))


def bands(repeats: int) -> pd.DataFrame:
    """Coverage of the confidence bands of three rows at three times."""
    times = 4.0 * np.log([4 / 3, 2.0, 4.0]) ** (1 / 1.5)
    truth = np.exp(-((times / scale_of(ASK)[:, None]) ** 1.5))
    held = np.zeros(truth.shape)
    for seed in range(repeats):
        lower, upper = regression(seed).predict_survival_interval(ASK, times)
        held += (lower <= truth) & (truth <= upper)
    columns = [f"S = {1 - share:g} at the mean row" for share in (0.25, 0.5, 0.75)]
    table = pd.DataFrame(held / repeats, columns=columns).map("{:.3f}".format)
    table.insert(0, "row", [f"a = {a:g}, b = {b:g}" for a, b in ASK.to_numpy()])
    return table


SCALES = np.array([8.0, 2.0])
"""Scales of the two groups; their shape is 1.2."""


def two_groups(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, events and times of 100 rows of each group."""
    rng, group = np.random.default_rng(seed), np.arange(200) % 2
    died, censored = SCALES[group] * rng.weibull(1.2, 200), rng.exponential(12.0, 200)
    return pd.DataFrame({"group": group}), died <= censored, np.minimum(died, censored)


def optimal(leaf: str, shrinkage: float) -> OptimalSurvivalTree:
    """A tree that parts the two groups."""
    return OptimalSurvivalTree(max_depth=1, leaf=leaf, shrinkage=shrinkage, min_samples_leaf=20)


def leaves(repeats: int) -> pd.DataFrame:
    """Coverage of the limits of an optimal tree's two leaves at three times, which the same split parts every time."""
    times = np.array([1.0, 2.0, 4.0])
    truth = np.exp(-((times / SCALES[:, None]) ** 1.2))
    held = {(leaf, k): np.zeros(truth.shape) for leaf in ("km", "nelson_aalen") for k in (0.0, 10.0)}
    for seed in range(repeats):
        X, event, time = two_groups(seed)
        here = [X["group"].to_numpy() == g for g in (0, 1)]
        variance = np.array([variance_of_log(time[own], event[own])(times) for own in here])
        for leaf, k in held:
            tree = optimal(leaf, k).fit(X, (event, time))
            if (leaf, k) == ("km", 0.0):
                lower, upper = tree.predict_survival_interval(X.head(2), times)
            else:
                lower, upper = log_log_limits(tree.predict_survival_function(X.head(2), times), variance, 0.95)
            held[leaf, k] += (lower <= truth) & (truth <= upper)
    rows = [
        {"leaf": leaf, "shrinkage": f"{k:g}", "scale": f"{SCALES[g]:g}"}
        | {f"t = {time:g}": f"{share:.3f}" for time, share in zip(times, count[g] / repeats, strict=True)}
        for (leaf, k), count in held.items()
        for g in (0, 1)
    ]
    return pd.DataFrame(rows)


def variance_of_log(time: np.ndarray, event: np.ndarray) -> StepFunction:
    """Greenwood's variance of log S of some rows."""
    table = at_risk_table(time, event)
    return StepFunction(table.times, greenwood(table.events, table.at_risk), 0.0)


def quantiles(repeats: int) -> pd.DataFrame:
    """Coverage of the limits of three quantiles, in rows of a Weibull regression and in an optimal tree's leaves."""
    shares = {"B10 life": 0.1, "median": 0.5, "three quarters": 0.75}
    standard = -np.log1p(-np.array([*shares.values()]))
    truth = np.vstack([scale_of(ASK)[:, None] * standard ** (1 / 1.5), SCALES[:, None] * standard ** (1 / 1.2)])
    held = np.zeros(truth.shape)
    for seed in range(repeats):
        X, event, time = two_groups(seed)
        asked = (regression(seed), ASK), (optimal("km", 0.0).fit(X, (event, time)), X.head(2))
        for k, share in enumerate(shares.values()):
            found = [tree.predict_quantile_interval(rows, share) for tree, rows in asked]
            lower, upper = np.concatenate(found, axis=1)
            held[:, k] += (lower <= truth[:, k]) & (truth[:, k] <= upper)
    table = pd.DataFrame(held / repeats, columns=list(shares)).map("{:.3f}".format)
    rows = [f"Weibull, a = {a:g}, b = {b:g}" for a, b in ASK.to_numpy()]
    table.insert(0, "row", rows + [f"leaf of scale {scale:g}" for scale in SCALES])
    return table


WHAT = {"bounds": bounds, "bands": bands, "leaves": leaves, "quantiles": quantiles}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("--repeats", type=int, help="200 for bounds, 1,000 for the others by default")
    args = parser.parse_args()
    repeats = args.repeats or (200 if args.what == "bounds" else 1000)
    found = WHAT[args.what](repeats)
    nominal = COVERAGE if args.what == "bounds" else 0.95
    print(machine_line())
    print(f"\nNominal coverage {nominal}, {repeats} repeats\n")
    print(as_markdown(found))


if __name__ == "__main__":
    main()
