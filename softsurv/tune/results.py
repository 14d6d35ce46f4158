"""The result of a study: its best trial, the table of all, and the best beside the default arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
import pandas as pd
from optuna.trial import FrozenTrial, TrialState

from softsurv.errors import SoftsurvError
from softsurv.tune.measures import DIRECTIONS


@dataclass(frozen=True)
class StudyResult:
    """The result of a study.

    Attributes
    ----------
    study : optuna.Study
    measures : tuple of str
    parameters : dict
        Arguments of the best trial's estimator. With several measures this is the trial of the Pareto front that is
        best by the first measure.
    model : estimator or None
        Fitted on all rows with these arguments; None while other workers are still running trials.
    default : dict or None
        For each measure, the folds' values of the estimator with its default arguments, on the same folds.
    default_is_due : bool
        Whether the time was up before the default arguments were measured.
    """

    study: optuna.Study
    measures: tuple[str, ...]
    parameters: dict[str, Any]
    model: Any = None
    default: dict[str, list[float | None]] | None = None
    default_is_due: bool = False

    @property
    def best(self) -> FrozenTrial:
        """The chosen trial."""
        return best_trial(self.study)

    def table(self) -> pd.DataFrame:
        """Every trial: number, state, measures, standard errors over folds, parameters; best first."""
        return trial_table(self.study, self.measures)

    def summary(self) -> str:
        """The study in words."""
        counts = pd.Series([t.state.name.lower() for t in self.study.get_trials(deepcopy=False)]).value_counts()
        states = ", ".join(f"{n} {state}" for state, n in counts.items())
        values = ", ".join(f"{m} {v:.4f}" for m, v in zip(self.measures, self.best.values, strict=True))
        chosen = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.parameters.items())
        words = f"study {self.study.study_name!r}: {states}\nbest: trial {self.best.number}, {values}\n{chosen}"
        if self.default_is_due:
            return (
                f"{words}\ndefault arguments: not measured, the time was up; the same call with more time measures them"
            )
        return words if self.default is None else f"{words}\n{self._against_default()}"

    def against_default(self) -> pd.DataFrame:
        """The best trial beside the default arguments on the same folds.

        Returns
        -------
        DataFrame, index measure
            ``best``, ``default``, their ``difference`` and its standard error ``se`` over the folds. The best of many
            trials on the same folds looks better than it is.
        """
        rows, found = {}, self.best.user_attrs["folds"]
        for name, values in (self.default or {}).items():
            best, default = (pd.Series(of_folds, dtype=float) for of_folds in (found[name], values))
            apart = best - default
            rows[name] = {"best": best.mean(), "default": default.mean(), "difference": apart.mean(), "se": apart.sem()}
        return pd.DataFrame(rows).T.rename_axis("measure")

    def _against_default(self) -> str:
        told = [
            f"{name} {row['default']:.4f} (best {row['difference']:+.4f} ± {row['se']:.4f})"
            for name, row in self.against_default().iterrows()
        ]
        return f"default arguments on the same folds: {', '.join(told)}"


def best_trial(study: optuna.Study) -> FrozenTrial:
    """The best trial of a ``study`` of optuna; with several measures, the one of the Pareto front best by the first.

    Raises
    ------
    SoftsurvError
        If no trial was completed.
    """
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
        usual = "every trial was stopped" if study.get_trials(deepcopy=False) else "none was begun"
        reason = next((t.user_attrs["error"] for t in failed if "error" in t.user_attrs), usual)
        raise SoftsurvError(
            f"the study has no completed trial ({reason}); allow more trials or time, or change the space"
        )
    sign = 1.0 if study.directions[0].name == "MINIMIZE" else -1.0
    return min(study.best_trials, key=lambda t: (sign * t.values[0], t.number))


def parameter_columns(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by their columns in the table of trials."""
    return {f"{name} (parameter)" if name in DIRECTIONS else name: value for name, value in parameters.items()}


def trial_table(study: optuna.Study, measures: Sequence[str]) -> pd.DataFrame:
    """Every trial of a ``study`` of optuna as a row, the best by the first of ``measures`` on top.

    The columns are number, state, means and standard errors of the measures, and parameters.
    A parameter that is called as a measure is, such as fairness, has the column ``fairness (parameter)``.
    """
    rows = []
    for trial in study.get_trials(deepcopy=False):
        folds = trial.user_attrs.get("folds", {})
        row: dict[str, Any] = {"trial": trial.number, "state": trial.state.name.lower()}
        for name in DIRECTIONS:
            if name in folds:
                values = pd.Series(folds[name], dtype=float)
                row |= {name: values.mean(), f"{name}_se": values.sem()}
        row |= {
            "seconds": folds.get("seconds"),
            "together": folds.get("together"),
            "folds": len(folds.get("harrell_c", [])) or None,
        }
        rows.append(row | parameter_columns(trial.params) | {"error": trial.user_attrs.get("error")})
    table = pd.DataFrame(rows)
    if measures[0] not in table:
        return table
    done = (table["state"] == "complete").astype(int)
    rising = DIRECTIONS[measures[0]] == "minimize"
    order = table.assign(done=done).sort_values(["done", measures[0], "trial"], ascending=[False, rising, True]).index
    return table.loc[order].reset_index(drop=True)
