"""Exact trees of event histories: what a second cause costs, and a million rows of subjects whose covariates change.

Run from the repository root, one thread:

    OMP_NUM_THREADS=1 python scripts/bench_events_exact.py   # writes scripts/tables/events_exact.md

First a fit of 100,000 subjects in 1,000,000 rows at depth 3, then the search with one, two and three causes at depth 4.
Data are simulated, so that anyone can run it. Times are CPU seconds, which other work on the machine raises a little.
Of the searches the least of interleaved runs counts. Of the fit it is the call of ``fit`` after a small one that
compiles, and the most memory that the process ever held, its table included.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import OptimalSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning
from softsurv.exact.compile import ready
from softsurv.exact.objectives import relative_risk
from softsurv.exact.search import Search

SIZES = ((1_000, 6), (4_000, 10))
CUTS, DEPTH, RUNS = 10, 4, 5


def causes() -> pd.DataFrame:
    """Seconds of the same search with the statistics of one, two and three causes."""
    ready(relative_risk.TASK)
    found = []
    for n, p in SIZES:
        rng = np.random.default_rng(n)
        codes = rng.integers(0, CUTS + 1, (n, p)).astype(np.int32)
        cause = rng.integers(0, 4, n)
        hazard = rng.exponential(size=n)
        columns = [relative_risk.statistics(cause == k, hazard) for k in (1, 2, 3)]
        least = dict.fromkeys((1, 2, 3), np.inf)
        for _ in range(RUNS):
            for count in least:
                search = Search(
                    relative_risk.TASK, codes, np.full(p, CUTS + 1), np.zeros(p, bool), np.hstack(columns[:count])
                )
                start = time.process_time()
                search.solve(DEPTH)
                least[count] = min(least[count], time.process_time() - start)
        ratios = {f"{count} causes / 1": least[count] / least[1] for count in (2, 3)}
        found.append({"rows": n, "features": p, **{f"{c} (s)": s for c, s in least.items()}, **ratios})
    return pd.DataFrame(found)


def rows(n_subjects: int = 100_000, visits: int = 10, p: int = 10) -> pd.DataFrame:
    """One fit of subjects with several rows each."""
    rng = np.random.default_rng(0)
    n = n_subjects * visits
    X = pd.DataFrame(rng.normal(size=(n, p)).round(2), columns=[f"x{k}" for k in range(p)])
    start = np.tile(np.arange(visits, dtype=float), n_subjects)
    event = np.zeros(n, dtype=bool)
    event[visits - 1 :: visits] = rng.random(n_subjects) < 1 / (1 + np.exp(-X["x0"].to_numpy()[visits - 1 :: visits]))
    stop = start + 1.0
    stop[visits - 1 :: visits] -= rng.random(n_subjects).round(3) * 0.9
    OptimalSurvivalTree(max_depth=3).fit(X[:2000], start=start[:2000], stop=stop[:2000], event=event[:2000])  # compiles
    before = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = survival_data(X, start=start, stop=stop, event=event, id=np.repeat(np.arange(n_subjects), visits))
    read = time.process_time() - before
    tree = OptimalSurvivalTree(max_depth=3, tune=None).fit(data)
    return pd.DataFrame(
        {
            "rows": [n],
            "subjects": [n_subjects],
            "read (s)": [read],
            "read and fit (s)": [time.process_time() - before],
            "status": [str(tree.status_)],
            "memory (GB)": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6],
        }
    )


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tables" / "events_exact.md")
    args = parser.parse_args()
    million, several = rows(), causes()  # the memory is that of the fit alone
    parts = [
        "# Exact trees of event histories",
        "By `scripts/bench_events_exact.py`; it says what is measured.",
        machine_line(),
        f"## Search with several causes, depth {DEPTH}, ten cuts a feature, CPU seconds",
        as_markdown(several.round(3)),
        "## Subjects with ten rows each, ten features, depth 3, CPU seconds",
        as_markdown(million.round(2)),
    ]
    args.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
