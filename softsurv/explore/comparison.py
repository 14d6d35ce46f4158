"""Several models on the same folds: their measures in a table, and in a picture."""

from __future__ import annotations

import logging
import textwrap
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, SoftsurvError
from softsurv.estimators.column_names import reader_columns
from softsurv.estimators.shared.checks import whole
from softsurv.estimators.shared.progress import progress_line
from softsurv.explore.rivals import made, measured, rows_of_a_fold
from softsurv.explore.style import literal_text, plain_axes, series_style
from softsurv.metrics.evaluate import warn_of_ignored
from softsurv.stopping import many_fits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logger = logging.getLogger(__name__)

MEASURES = {"harrell_c": "higher", "uno_c": "higher", "cd_auc": "higher", "ibs": "lower"}
"""Measures that are shown, and their better side."""

BY_CAUSE = {"concordance": "higher", "auc": "higher", "ibs": "lower"}
"""Measures of each cause: the column is called ``ibs of relapse``."""


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    folds : DataFrame
        Tidy: a row for each model and fold, with ``model``, ``fold``, the measures, ``n``, ``events``, ``seconds`` and
        ``cpu_seconds``. The measures are of all events; where events have causes, those of each follow:
        ``concordance of relapse``, ``auc of relapse``, ``ibs of relapse``.
    """

    folds: pd.DataFrame

    @property
    def measures(self) -> dict[str, str]:
        """The measures, and their better side."""
        known = {f"{name} of ": better for name, better in BY_CAUSE.items()}
        return MEASURES | {
            column: better
            for column in self.folds.columns
            for start, better in known.items()
            if column.startswith(start)
        }

    def table(self) -> pd.DataFrame:
        """Mean of each measure over the folds, its standard error, and the difference to the first model with its own.

        Returns
        -------
        DataFrame, index ``model``
            For each measure ``m`` the columns ``m``, ``m_se``, ``m_minus_first`` and ``m_minus_first_se``; and
            ``seconds`` and ``cpu_seconds``, the mean wall-clock time and CPU time of this process for fit and
            evaluation.
            The folds share training rows: the errors are too small to be taken for those of a test.
        """
        columns: dict[str, Any] = {}
        for name in self.measures:
            wide = self.folds.pivot(index="fold", columns="model", values=name)[self.models]
            apart = wide.sub(wide[self.models[0]], axis=0)
            columns |= {name: wide.mean(), f"{name}_se": wide.sem()}
            columns |= {f"{name}_minus_first": apart.mean(), f"{name}_minus_first_se": apart.sem()}
        spent = self.folds.groupby("model")[["seconds", "cpu_seconds"]].mean()
        return pd.DataFrame(columns).join(spent).rename_axis("model")

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order given."""
        return list(dict.fromkeys(self.folds["model"]))

    def plot(self, measures: Sequence[str] | None = None) -> Any:
        """A picture: see `plot_comparison`."""
        return plot_comparison(self, measures)

    def __str__(self) -> str:
        table, index = self.table(), pd.Index(self.models, name="model")
        blocks: dict[str, pd.DataFrame] = {}  # by cause: side by side they would be wider than a screen
        for name, better in self._shown().items():
            measure, _, cause = name.partition(" of ")
            shown = [f"{m:.3f} ± {s:.3f}" for m, s in zip(table[name], table[f"{name}_se"], strict=True)]
            lines = blocks.setdefault(cause, pd.DataFrame(index=index).rename_axis(columns=cause or None))
            lines[f"{measure} ({better})"] = [text if "nan" not in text else "-" for text in shown]
        lines["seconds"] = [f"{value:.1f}" for value in table["seconds"]]
        text, count = "\n".join(block.to_string() for block in blocks.values()), self.folds["fold"].nunique()
        return f"{text}\nMean and standard error over {count} folds, the same for every model."

    def _shown(self) -> dict[str, str]:
        """The measures of the causes alone, where there are causes."""
        return {k: v for k, v in self.measures.items() if k not in MEASURES} or MEASURES

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@many_fits()
def compare(
    models: Any,
    data: Any,
    y: Any = None,
    *,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    progress: bool | None = None,
    times: Any = None,
    **columns: Any,
) -> Comparison:
    """Fit and measure several models on the same folds.

    Parameters
    ----------
    models : mapping of name to model, or sequence of models
        softsurv's trees; estimators and pipelines of scikit-survival; regressions of lifelines; or names: "soft",
        "optimal", "cox", "forest", "boosting", "greedy_tree", "kaplan_meier". Copies of them are fitted. Where
        rows have causes, weights, late entry or several rows a subject, "cox" is `CauseSpecificCox` and "kaplan_meier"
        `AalenJohansenBaseline`; other libraries' models are refused.
    data, y, **columns
        Rows and outcome as in ``fit``: `SurvivalData`, or a table with ``y`` or with ``time=`` and ``event=``, also
        ``cause=``, ``start=``, ``stop=`` and ``id=``. Folds keep subjects whole.
    n_folds, n_repeats : int
        Folds of each repetition, which keep the share of events; repetitions with other folds.
    seed : int
        Seed of the folds.
    progress : bool, optional
        Show a progress line, which names the model that is fitted; by default on a terminal. Each fit is also logged
        at level INFO, as it begins.
    times : array_like, optional
        Grid of cd_auc and ibs; see `softsurv.metrics.evaluate`.

    Returns
    -------
    Comparison
        ``print`` shows the table, ``table()`` and ``folds`` hold it, ``plot()`` draws it.

    Raises
    ------
    SoftsurvError
        If a model fails on a fold; the sentence names both.

    Notes
    -----
    softsurv's trees and pipelines get the rows as they are. Other models get complete numbers, encoded as learned on
    the training rows of each fold. Warnings within the folds are not shown; that on intervals comes once. A model
    without survival curves, such as a survival support vector machine, has no Brier score. Censoring weights come
    from the training rows.

    Examples
    --------
    >>> from softsurv import compare, load_dataset
    >>> found = compare(["cox", "kaplan_meier"], load_dataset("veterans"))
    >>> found.table()["harrell_c"].round(1).tolist()
    [0.7, 0.5]
    """
    rows = survival_data(data, y, **reader_columns(compare, columns)).that_count().require_events()
    warn_of_ignored(rows.event, rows.upper)
    whole("seed", seed, 0)
    whole("n_folds", n_folds, 2)
    whole("n_repeats", n_repeats, 1)
    named = _named(models, rows, n_folds)
    options = {} if times is None else {"times": times}
    folds = [fold for k in range(n_repeats) for fold in rows.folds(n_folds, seed + k)]
    found: list[dict[str, Any]] = []
    total = len(named) * len(folds)
    with progress_line(progress, total, "comparing", " fits") as bar:
        for number, (train, test) in enumerate(folds):
            parts = rows.take(train), rows.take(test)
            for name, model in named.items():
                logger.info("fit %d of %d: %s on fold %d", len(found) + 1, total, name, number)
                bar.set_postfix_str(name)
                found.append({"model": name, "fold": number} | _one(name, model, number, *parts, **options))
                bar.update()
    return Comparison(pd.DataFrame(found))


def _one(name: str, model: Any, number: int, train: SurvivalData, test: SurvivalData, **options: Any) -> dict[str, Any]:
    """Measures of one model on one fold."""
    started, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = measured(model, train, test, **options)
    except Exception as error:
        raise SoftsurvError(f"the model {name!r} failed on fold {number}: {error}; mend it or leave it out") from error
    values |= {f"{key} of {cause}": found[key] for cause, found in values.get("causes", {}).items() for key in BY_CAUSE}
    names = [name for name in values if name in (*MEASURES, "n", "events") or " of " in name]
    kept = {key: np.nan if values[key] is None else values[key] for key in names}
    return kept | {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}


def _named(models: Any, rows: SurvivalData, n_folds: int) -> dict[str, Any]:
    """Models by name; those of a list go by their class, numbered where a name comes twice."""
    training = rows_of_a_fold(rows, n_folds)
    if isinstance(models, Mapping):
        named = {str(name): made(model, rows, training) for name, model in models.items()}
    else:
        listed = [models] if isinstance(models, str) or hasattr(models, "fit") else list(models)
        named = {}
        for model in listed:
            stem = model if isinstance(model, str) else type(model).__name__
            count = sum(known == stem or known.startswith(f"{stem} ") for known in named)
            named[f"{stem} {count + 1}" if count else stem] = made(model, rows, training)
    if not named:
        raise InvalidParameterError("models must hold at least one model, got none")
    for name, model in named.items():
        if isinstance(model, type) or not hasattr(model, "fit"):
            raise InvalidParameterError(f"models must be estimators with fit, got {model!r} for {name!r}")
    return named


@literal_text
def plot_comparison(comparison: Comparison, measures: Sequence[str] | None = None) -> Axes:
    """Measures of the compared models: a dot for each fold, a mark for the mean, a bar for its standard error.

    Parameters
    ----------
    comparison : Comparison
    measures : sequence of str, optional
        Of ``comparison.measures``, one panel each; by default harrell_c and ibs, with causes the Brier score of each.

    Returns
    -------
    matplotlib axes
        The first panel; its ``figure`` holds all.

    Examples
    --------
    >>> compare(["soft", "cox"], data).plot().figure.savefig("compared.png")  # doctest: +SKIP
    """
    import matplotlib.pyplot as plt

    known = comparison.measures
    if measures is None:
        measures = [name for name in known if name.startswith("ibs of ")] or ["harrell_c", "ibs"]
    for name in measures:
        if name not in known:
            raise InvalidParameterError(f"measures must be of {', '.join(known)}, got {name!r}")
    table, names = comparison.table(), comparison.models
    labels = [textwrap.fill(f"{measure} ({known[measure]} is better)", 34) for measure in measures]
    more = max(label.count("\n") for label in labels)
    size = (1.6 + 3.2 * len(measures), 1.1 + 0.42 * len(names) + 0.17 * more)
    _, panels = plt.subplots(1, len(measures), figsize=size, sharey=True, squeeze=False, layout="constrained")
    places = {name: -k for k, name in enumerate(names)}
    for ax, measure, label in zip(panels[0], measures, labels, strict=True):
        at = comparison.folds["model"].map(places)
        plain_axes(ax).plot(comparison.folds[measure], at, "o", color="#9aa2ac", markersize=3.5, alpha=0.7)
        mean, error = table[measure], table[f"{measure}_se"]
        y = np.array([places[name] for name in names])
        ax.errorbar(mean, y, xerr=error, fmt="D", color=series_style(0).color, markersize=6, capsize=3)
        ax.set_xlabel(label)
        ax.locator_params(axis="x", nbins=5)
        ax.set_ylim(0.6 - len(names), 0.4)
    panels[0][0].set_yticks(list(places.values()), names)
    first: Axes = panels[0][0]
    return first
