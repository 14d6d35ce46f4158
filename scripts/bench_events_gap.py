"""How far apart the default soft tree and cause-specific Cox regression are on the folds of bench_events, and how sure.

Run from the repository root, one thread, with the data sets' folder:

    OMP_NUM_THREADS=1 SOFTSURV_DATA=... python scripts/bench_events_gap.py

The rows, folds and measures are those of `bench_events.py`. A gap is the tree's score less that of Cox regression,
the mean over the folds. Its standard error is that of a bootstrap of the test rows within each fold, the models and
censoring weights as they are: it does not know that other training rows would make other models.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line
from bench_events import MODELS, SETS

from softsurv.arrays import FloatArray
from softsurv.metrics import auc_incidence, brier_score_incidence
from softsurv.nonparametric import StepFunction, censoring_survival

DRAWS = 400


def scores(test: pd.DataFrame, risk: FloatArray, times: FloatArray, censoring: StepFunction) -> FloatArray:
    """Brier scores, their mean and AUCs, (2 T + 1,)."""
    told = test["time"], test["cause"], risk, times, censoring
    brier = brier_score_incidence(*told)
    return np.concatenate([brier, [brier.mean()], auc_incidence(*told)[0]])


def gaps(name: str, folder: Path) -> pd.DataFrame:
    """The gap of each score and its standard error."""
    rows, times = pd.read_csv(folder / f"{name}_complete_folds.csv"), np.array(SETS[name])
    rng, found = np.random.default_rng(0), []
    for fold in sorted(rows["fold"].unique()):
        train, test = rows[rows["fold"] != fold], rows[rows["fold"] == fold]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            soft, cox = (np.clip(MODELS[model](train, test, times), 0.0, 1.0) for model in ("soft", "cox"))
        censoring = censoring_survival(test["time"], test["cause"] > 0)

        draws = [np.arange(len(test)), *rng.integers(0, len(test), (DRAWS, len(test)))]
        parts = [[scores(test.iloc[k], risk[k], times, censoring) for risk in (soft, cox)] for k in draws]
        found.append([tree - regression for tree, regression in parts])
    mean = np.nanmean(found, 0)  # (1 + DRAWS, 2 T + 1); without an early event in a draw of a fold there is no AUC
    columns = [*(f"Brier {t:g}" for t in times), "mean", *(f"AUC {t:g}" for t in times)]
    values = mean[0], mean[1:].std(0, ddof=1)
    table = pd.DataFrame(np.round(values, 5), columns=columns)
    table.insert(0, "soft tree less Cox", ["gap", "standard error"])
    return table


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tables" / "events_gap.md")
    args = parser.parse_args()
    folder = Path(os.environ["SOFTSURV_DATA"]) / "event-history"
    parts = ["# The soft tree beside Cox regression", "By `scripts/bench_events_gap.py`; it says what is measured."]
    parts.append(machine_line())
    for name in SETS:
        parts.append(f"## {name}, cause 1\n\n{as_markdown(gaps(name, folder))}")
    args.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
