"""Time and peak memory of every measure on a large fold, each in a process of its own.

    python scripts/bench_metrics.py --rows 50000

The fold has non-proportional hazards, distinct times and about 58% events. "first" includes the
compilation or loading of the kernels, "median" is over --repeats further calls, in process CPU
seconds; memory is the peak of the process above its size before the first call.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time

import numpy as np
from sksurv.metrics import concordance_index_censored

from softsurv import metrics
from softsurv.metrics.histories import evaluate_causes
from softsurv.metrics.shifted_curves import ShiftedCurves
from softsurv.nonparametric import censoring_survival
from softsurv.trees.causes_in_leaves import CausesInLeaves, CountedIncidences
from softsurv.trees.incidence import log_lattice


class Fold:
    """A simulated test fold with the predictions of a soft tree, and of a tree with one curve per leaf."""

    def __init__(self, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.risk = rng.normal(size=n)
        self.leaf = rng.integers(0, 8, n)
        self.leaf_shapes = np.linspace(0.5, 2.0, 8)
        self.shape = self.leaf_shapes[self.leaf]
        event_time = rng.weibull(self.shape) * np.exp(-self.risk)
        censoring_time = rng.exponential(1.5, n)
        self.time = np.minimum(event_time, censoring_time)
        self.event = event_time <= censoring_time
        self.censoring = censoring_survival(self.time, self.event)
        self.offset = self.shape * self.risk
        self.weight = rng.uniform(0.5, 2.0, n)
        self.cause = np.where(self.event, rng.integers(1, 6, n), 0)

    def smooth(self, times: np.ndarray) -> np.ndarray:
        """Log cumulative hazard with an own curve for every subject, (N, T)."""
        return self.offset[:, None] + self.shape[:, None] * np.log(times)[None, :]

    def of_a_soft_tree(self) -> ShiftedCurves:
        """The same, told that subjects of a leaf keep their order."""
        return ShiftedCurves(
            self.leaf, lambda times: self.leaf_shapes[:, None] * np.log(times), 8, self.offset, self.smooth
        )

    def of_causes(self) -> CountedIncidences:
        """Incidences of five causes in the leaves of a soft tree, in compiled loops."""
        offset = np.stack([self.offset + k * self.weight for k in range(5)])  # (K, N)
        curves = CausesInLeaves.of(
            "proportional_hazards",
            self.leaf,
            offset - 3.0,
            lambda times: np.stack([(self.leaf_shapes[:, None] + 0.1 * k) * np.log(times) for k in range(5)]),
            lambda last: log_lattice(float(self.time.max()), last),
        )
        assert curves is not None
        return CountedIncidences(curves, lambda times: curves.incidences(times)[1])

    def leafwise(self, times: np.ndarray) -> np.ndarray:
        """Log cumulative hazard with one curve per leaf, (N, T)."""
        return (self.leaf_shapes[:, None] * np.log(times)[None, :])[self.leaf]

    def grid(self) -> np.ndarray:
        """A hundred times inside the fold, (T,)."""
        return metrics.evaluation_range(self.time, self.event, self.censoring).times

    def survival(self) -> np.ndarray:
        """Survival on the grid, (N, T)."""
        return metrics.survival_from_log_cumulative_hazard(self.smooth(self.grid()))


CASES = {
    "evaluating log H alone at the event times": lambda f: evaluate_only(f),
    "harrell_c, constant risk": lambda f: metrics.harrell_c(f.time, f.event, f.risk),
    "scikit-survival, constant risk": lambda f: concordance_index_censored(f.event, f.time, f.risk)[0],
    "harrell_c, smooth curves": lambda f: metrics.harrell_c(f.time, f.event, f.smooth),
    "harrell_c, smooth curves of a soft tree": lambda f: metrics.harrell_c(f.time, f.event, f.of_a_soft_tree()),
    "harrell_c, constant risk, weighted": lambda f: metrics.harrell_c(f.time, f.event, f.risk, weight=f.weight),
    "harrell_c, constant risk, late entry": lambda f: metrics.harrell_c(f.time, f.event, f.risk, entry=f.time / 3),
    "harrell_c, leaf curves": lambda f: metrics.harrell_c(f.time, f.event, f.leafwise),
    "harrell_c, smooth curves on 100 times": lambda f: metrics.harrell_c(f.time, f.event, f.smooth, times=f.grid()),
    "cumulative_dynamic_auc, 100 times": lambda f: metrics.cumulative_dynamic_auc(
        f.time, f.event, f.smooth(f.grid()), f.grid(), f.censoring
    )[1],
    "integrated_brier_score, 100 times": lambda f: metrics.integrated_brier_score(
        f.time, f.event, f.survival(), f.grid(), f.censoring
    ),
    "d_calibration": lambda f: metrics.d_calibration(f.time, f.event, f.survival()[:, 20]).statistic,
    "calibration_errors": lambda f: metrics.calibration_errors(f.time, f.event, f.survival()[:, 20], f.grid()[20]).mean,
    "fairness_penalty, 100 times": lambda f: metrics.fairness_penalty(
        f.survival(), f.grid(), f.leaf < 4, per_pair=True
    ),
    "evaluate_causes, five causes of a soft tree": lambda f: evaluate_causes(
        f.censoring, f.time, f.cause, f.of_causes(), list("abcde"), f.grid()
    )["a"]["concordance"],
    "evaluate, smooth curves": lambda f: metrics.evaluate(f.time, f.event, f.time, f.event, f.smooth)["ibs"],
}


def evaluate_only(fold: Fold) -> float:
    """The cost of the model itself in the widest concordance: all event times, in blocks."""
    times = np.unique(fold.time[fold.event])
    return float(sum(fold.smooth(times[i : i + 40])[0, 0] for i in range(0, times.size, 40)))


def measure(name: str, rows: int, repeats: int) -> tuple[float, float, float, float]:
    """Value, first and median CPU seconds, peak MiB above the start."""
    fold = Fold(rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        value = float(CASES[name](fold))
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return value, seconds[0], statistics.median(seconds[1:]), peak / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    fold = Fold(options.rows)
    print(f"{options.rows} rows, {fold.event.sum()} events, {np.unique(fold.time[fold.event]).size} event times")
    print(f"{'measure':44s} {'value':>10s} {'first s':>9s} {'median s':>9s} {'peak MiB':>9s}")
    context = multiprocessing.get_context("spawn")
    for name in CASES:
        with context.Pool(1) as pool:
            value, first, median, peak = pool.apply(measure, (name, options.rows, options.repeats))
        print(f"{name:44s} {value:10.5g} {first:9.3f} {median:9.3f} {peak:9.0f}", flush=True)


if __name__ == "__main__":
    main()
