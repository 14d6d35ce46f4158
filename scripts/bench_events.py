"""Trees of competing risks beside cause-specific Cox regression, boosting and a forest, on mgus2 and pbc.

Run from the repository root, one thread, with the data sets' folder:

    OMP_NUM_THREADS=1 SOFTSURV_DATA=... python scripts/bench_events.py                # all models that are installed
    OMP_NUM_THREADS=1 SOFTSURV_DATA=... python scripts/bench_events.py soft cox       # some of them

The folder ``event-history`` of SOFTSURV_DATA holds complete rows with their five folds, and the scores that R's
riskRegression gave cause-specific Cox (CSC) and Fine-Gray regression (FGR) on them. Measured is the incidence
of cause 1 (malignancy; death): Brier score and AUC at three times, means over the folds, censoring weights of the test
rows as riskRegression has them. Its null model is fitted to the test rows, the model "null" here to the training rows.
The optimal tree is told that cause 1 is of interest; the soft tree is not.
Below the soft tree are other seeds of its inner folds, and the mean of all five.
SurvivalBoost is of the package hazardous, the forest of comprisk: both with their defaults, on encoded features.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _machine import as_markdown, machine_line

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.preprocess import Preprocessor
from softsurv.estimators.baselines import AalenJohansenBaseline, CauseSpecificCox
from softsurv.metrics import auc_incidence, brier_score_incidence
from softsurv.nonparametric import censoring_survival

SETS = {"mgus2": (60.0, 120.0, 240.0), "pbc": (1000.0, 2000.0, 3000.0)}
OUTCOME = ["time", "cause", "fold"]
Predict = Callable[[pd.DataFrame, pd.DataFrame, np.ndarray], np.ndarray]


def ours(model: Callable[[], Any]) -> Predict:
    """Fit one of softsurv's models to rows and predict others, (n, T)."""

    def predict(train: pd.DataFrame, test: pd.DataFrame, times: np.ndarray) -> np.ndarray:
        fitted = model().fit(train.drop(columns="fold").reset_index(drop=True), time="time", cause="cause")
        return fitted.predict_cumulative_incidence(test.drop(columns=OUTCOME), times, 1)

    return predict


def encoded(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Features as numbers, learned on the training rows."""
    encoder = Preprocessor().fit(train.drop(columns=OUTCOME))
    return tuple(encoder.transform(part.drop(columns=OUTCOME)).to_numpy(dtype=float) for part in (train, test))


def boost(train: pd.DataFrame, test: pd.DataFrame, times: np.ndarray) -> np.ndarray:
    """SurvivalBoost of hazardous."""
    from hazardous import SurvivalBoost

    x, new = encoded(train, test)
    outcome = pd.DataFrame({"event": train["cause"].to_numpy(), "duration": train["time"].to_numpy(dtype=float)})
    model = SurvivalBoost(show_progressbar=False, random_state=0).fit(x, outcome)
    return model.predict_cumulative_incidence(new, times=times)[:, 1]


def forest(train: pd.DataFrame, test: pd.DataFrame, times: np.ndarray) -> np.ndarray:
    """Competing risk forest of comprisk."""
    from comprisk import CompetingRiskForest

    x, new = encoded(train, test)
    model = CompetingRiskForest(random_state=0, n_jobs=1)
    model.fit(x, train["time"].to_numpy(dtype=float), train["cause"].to_numpy())
    return model.predict_cif(new, times=times)[:, 0]


MODELS: dict[str, Predict] = {
    "null": ours(AalenJohansenBaseline),
    "cox": ours(CauseSpecificCox),
    "boost": boost,
    "forest": forest,
    "optimal": ours(lambda: OptimalSurvivalTree(cause_weights=1)),
    "soft": ours(lambda: SoftSurvivalTree(random_state=0)),
} | {f"soft, seed {seed}": ours(partial(SoftSurvivalTree, random_state=seed)) for seed in range(1, 5)}
PACKAGES = {"boost": "hazardous", "forest": "comprisk"}


def measure(predict: Predict, rows: pd.DataFrame, times: np.ndarray) -> tuple[np.ndarray, float]:
    """Brier scores and AUCs (2, T), means over the folds, and CPU seconds of a fold's fit and prediction."""
    scores, begun = [], time.process_time()
    for fold in sorted(rows["fold"].unique()):
        train, test = rows[rows["fold"] != fold], rows[rows["fold"] == fold]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            risk = np.clip(predict(train, test, times), 0.0, 1.0)
        censoring = censoring_survival(test["time"], test["cause"] > 0)
        brier = brier_score_incidence(test["time"], test["cause"], risk, times, censoring)
        scores.append([brier, auc_incidence(test["time"], test["cause"], risk, times, censoring)[0]])
    return np.mean(scores, axis=0), (time.process_time() - begun) / len(scores)


def line(name: str, scores: np.ndarray, seconds: str) -> list[str]:
    """One row of the table."""
    shown = [["-" if np.isnan(v) else f"{v:.4f}" for v in part] for part in scores]
    return [name, *shown[0], f"{scores[0].mean():.6f}", *shown[1], seconds]


def table(name: str, folder: Path, models: list[str]) -> pd.DataFrame:
    """Scores of the models on one data set, below those of riskRegression."""
    times = np.array(SETS[name])
    rows = pd.read_csv(folder / f"{name}_complete_folds.csv")
    reference = pd.read_csv(folder / "reference_riskregression.csv").query("set == @name")
    columns = ["model", *(f"Brier {t:g}" for t in times), "mean", *(f"AUC {t:g}" for t in times), "CPU s a fold"]
    found = [
        line(f"{label} (R)", part.sort_values("times")[["Brier", "auc"]].to_numpy(dtype=float).T, "-")
        for label, part in reference.groupby("model", sort=False)
    ]
    of_soft = []
    for model in models:
        package = PACKAGES.get(model)
        try:
            label = model if package is None else f"{model} ({package} {version(package)})"
        except PackageNotFoundError:
            found.append([f"{model}: {package} is not installed", *[""] * (len(columns) - 1)])
            continue
        scores, seconds = measure(MODELS[model], rows, times)
        found.append(line(label, scores, f"{seconds:.1f}"))
        print(name, *found[-1], flush=True)
        of_soft += [scores] if model.startswith("soft") else []
    if len(of_soft) > 1:
        found.append(line(f"soft, mean of {len(of_soft)} seeds", np.mean(of_soft, axis=0), "-"))
    return pd.DataFrame(found, columns=columns)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tables" / "events.md")
    args = parser.parse_args()
    folder = Path(os.environ["SOFTSURV_DATA"]) / "event-history"
    parts = ["# Trees of competing risks\n\nBy `scripts/bench_events.py`; it says what is measured.", machine_line()]
    for name in SETS:
        parts.append(f"## {name}, cause 1\n\n{as_markdown(table(name, folder, args.models or list(MODELS)))}")
    args.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
