"""How often a default tree splits where there is nothing to find, and how often it finds one group at higher risk.

Run from the repository root; rpart and ctree need R, and are left out with a sentence without it:

    OMP_NUM_THREADS=1 python scripts/bench_noise.py --table scripts/tables/noise.md
    OMP_NUM_THREADS=1 python scripts/bench_noise.py --models optimal --seeds 5

Tables have eight features: seven normal ones and ``sex``. The half of the rows with x0 > 0 has ``hazard ratio`` times
the hazard of the other half; with a ratio of 1 nothing has an effect. Times are exponential and all rows are followed
until the same number of events has been seen. A tree counts as split where two of 500 new rows are in different leaves.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import write_page
from _survset_models import fit_ours
from _survset_peers import PEERS, fit_peer, missing

from softsurv import SurvivalData

SIZES = ((1000, 10), (1000, 30), (1000, 100), (1000, 500), (200, 30), (200, 100))
"""Rows and events."""

RATIOS = (1.0, 2.0, 3.0)
NEW = 500


def simulate(n: int, events: int, ratio: float, seed: int) -> tuple[SurvivalData, SurvivalData]:
    """Training rows, and new ones."""
    rng = np.random.default_rng([n, events, int(10 * ratio), seed])
    X = pd.DataFrame(rng.normal(size=(n + NEW, 7))).add_prefix("x")
    X["sex"] = rng.choice(np.array(["f", "m"], dtype=object), n + NEW)
    time = rng.exponential(1 / ratio ** (X["x0"] > 0).to_numpy())
    end = np.sort(time[:n])[events - 1]
    data = SurvivalData(X, time=np.minimum(time, end), event=time <= end)
    return data.take(np.arange(n)), data.take(np.arange(n, n + NEW))


def share(model: str, n: int, events: int, ratio: float, seeds: int) -> str:
    """Split trees of all, as text."""
    split = 0
    for seed in range(seeds):
        train, new = simulate(n, events, ratio, seed)
        fitted = (fit_peer if model in PEERS else fit_ours)(model, train, new, seed)
        assert fitted.leaf is not None
        split += len(np.unique(fitted.leaf)) > 1
    return f"{split} of {seeds}"


def main() -> None:
    """Fit every case and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["optimal", "ctree", "rpart"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for why in filter(None, map(missing, options.models)):
        print(why)
    models = [model for model in options.models if missing(model) is None]
    lines = list[dict[str, Any]]()
    for ratio in RATIOS:
        for n, events in SIZES:
            line = {"hazard ratio": ratio, "rows": n, "events": events}
            lines.append(line | {model: share(model, n, events, ratio, options.seeds) for model in models})
            print(lines[-1], flush=True)
    if options.table is not None:
        note = "Trees with more than one leaf; with a hazard ratio of 1 each of them is of noise."
        write_page(options.table, "bench_noise.py", "Trees in noise, and one group at higher risk", note, lines)


if __name__ == "__main__":
    main()
