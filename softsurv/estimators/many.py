"""Many soft trees of one data set: settings, folds and starts as few stacks, results as ordinary estimators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from torch import Tensor

from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.column_names import reader_columns
from softsurv.estimators.shared.checks import whole
from softsurv.estimators.soft.devices import check_range_of_times, machine_of
from softsurv.estimators.soft.inference import covariance_of_leaves
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.estimators.soft.training import Made, warn_of_what_did_not_converge
from softsurv.estimators.soft.tree import SoftSurvivalTree
from softsurv.estimators.soft.warm_up import ready
from softsurv.metrics.evaluate import MEASURES
from softsurv.soft.cross_validation import folds_of_content
from softsurv.soft.held_out import HeldOut, TrainingTimes, measure_stacks
from softsurv.soft.many import OfMany, can_stack
from softsurv.soft.many import fit_many as fit_stacks
from softsurv.soft.one_pass import by_operators
from softsurv.soft.parallel import one_core_each
from softsurv.soft.problem import time_floor
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import TrainingRows
from softsurv.stopping import many_fits


@dataclass(frozen=True)
class ManyTrees:
    """What became of many settings.

    Attributes
    ----------
    settings : tuple of dict (S,)
        The arguments of each setting, as given.
    estimators : tuple (S,) of tuple (F,) of SoftSurvivalTree
        The fitted estimators of each setting: one for each fold, or one of all rows (F = 1) without folds.
    held_out : tuple (F,) of SurvivalData
        The rows that each fold's estimators have not seen; empty where there are no folds.
    together : tuple of int (S,)
        How many trees trained as one stack with those of a setting, over all settings, folds and starts; 1 where they
        were fitted one after the other.
    """

    settings: tuple[dict[str, Any], ...]
    estimators: tuple[tuple[SoftSurvivalTree, ...], ...]
    held_out: tuple[SurvivalData, ...]
    together: tuple[int, ...]

    def table(self) -> pd.DataFrame:
        """One row for each setting.

        Returns
        -------
        DataFrame (S rows)
            The arguments, the mean training ``objective`` (nats per row), ``together``, and with folds the mean of the
            held-out measures with their standard errors (``harrell_c_se``). Trees on a device are measured there, all
            settings that are alike together; those on a CPU one by one.
        """
        scores = self._scores()
        rows = []
        for k, (setting, trees, together) in enumerate(zip(self.settings, self.estimators, self.together, strict=True)):
            objective = pd.Series([tree.report_.objective for tree in trees]).mean()
            row = dict(setting) | {"objective": objective, "together": together}
            for name in MEASURES if self.held_out else ():
                values = pd.Series([score[name] for score in scores[k]], dtype=float)
                row |= {name: values.mean(), f"{name}_se": values.sem()}
            rows.append(row)
        return pd.DataFrame(rows)

    def _scores(self) -> list[list[dict[str, Any]]]:
        """Held-out measures of each setting (S) in every fold (F): on a device those of all settings together."""
        found: dict[int, list[dict[str, Any]]] = {}
        groups: dict[Hashable, list[int]] = {}
        for k, (first, *_) in enumerate(self.estimators if self.held_out else ()):
            like = first.tree_.leaves
            if by_operators(like.device):
                groups.setdefault((first.preprocess, like.device, like.dtype), []).append(k)
            else:
                found[k] = [tree.evaluate(test) for tree, test in zip(self.estimators[k], self.held_out, strict=True)]
        for members in groups.values():
            folds = [test.joined() for test in self.held_out]
            rows = [_placed(tree, test) for tree, test in zip(self.estimators[members[0]], folds, strict=True)]
            trees = [[tree._trees for tree in self.estimators[k]] for k in members]
            found |= dict(zip(members, measure_stacks(rows, trees), strict=True))
        return [found[k] for k in sorted(found)]


def _placed(tree: SoftSurvivalTree, test: SurvivalData) -> HeldOut:
    """Held-out rows on the device of a tree, for all trees that were fitted to the same rows."""
    known = TrainingTimes(tree.censoring_, tree.time_floor_, tree.horizon_, float(tree.unique_times_[0]))
    return HeldOut(test, tree._prepare(test.X).x, known, tree.tree_.leaves, by_cause=False)


@many_fits()
def fit_many(
    X: Any,
    y: Any = None,
    *,
    settings: Sequence[Mapping[str, Any]],
    n_folds: int | None = None,
    seed: int = 0,
    **columns: Any,
) -> ManyTrees:
    """Fit `SoftSurvivalTree` with many settings, on all rows or on every fold.

    Settings of dense trees (``max_terms=None``) with their penalties given train as one stack where leaf family, depth,
    solver and rounds are equal: all settings, folds and starts at once, each tree with its own penalties. This takes
    less time than fits one after the other, most of all on a GPU. Other settings are fitted one after the other: trees
    of rules, what has penalties to choose, ``l1``, a hard tree for ``init`` or a ``time_limit``.
    :attr:`ManyTrees.together` says which settings these were.

    Parameters
    ----------
    X, y, **columns
        Rows and outcome as in :meth:`SoftSurvivalTree.fit`.
    settings : sequence of mapping
        Arguments of `SoftSurvivalTree`.
    n_folds : int, optional
        Fit on the training rows of so many folds, stratified by the event. By default on all rows.
    seed : int
        Seed of the folds.

    Returns
    -------
    ManyTrees
        Each estimator is what ``SoftSurvivalTree(**setting).fit`` gives on the same rows, up to rounding. Training
        that is cut off early can multiply the rounding.

    Raises
    ------
    InvalidParameterError
        If there is no setting, or one is not understood.
    InvalidSurvivalDataError
    NumericalError
        If a fit leaves the finite numbers.

    Examples
    --------
    >>> from softsurv import fit_many, load_dataset
    >>> data = load_dataset("veterans")
    >>> dense = {"max_terms": None, "leaf": "weibull", "depth": 1, "l2": 1.0, "routing_l2": 1.0, "n_restarts": 2}
    >>> many = fit_many(data, settings=[dense | {"shrinkage": s} for s in (1.0, 10.0, 100.0)], n_folds=2)
    >>> many.table()["together"].tolist()  # 3 settings x 2 folds x 2 starts
    [12, 12, 12]
    """
    settings = _checked_settings(settings)
    if n_folds is not None:
        whole("n_folds", n_folds, 2)
    models = [_model(setting) for setting in settings]
    reader = SoftSurvivalTree()
    raw = reader._read(X, y, **reader_columns(fit_many, columns))
    folds = [] if n_folds is None else folds_of_content(raw, n_folds, seed)
    parts = [raw.take(train) for train, _ in folds] or [raw]
    found = {k: soft_setting(model, raw.cause_names) for k, model in enumerate(models)}
    recipes = {k: recipe for k, recipe in found.items() if recipe is not None and can_share(parts)}
    fitted = {
        k: (tuple(clone(model).fit(part) for part in parts), 1) for k, model in enumerate(models) if k not in recipes
    }
    for members in _alike(models, list(recipes)):
        own = [models[k] for k in members]
        found_ = fit_stacked(own, [recipes[k] for k in members], StackedRows.of(own[0], parts))
        fitted |= dict(zip(members, found_, strict=True))
    return ManyTrees(
        tuple(dict(setting) for setting in settings),
        tuple(_named_as(reader, fitted[k][0]) for k in range(len(models))),
        tuple(raw.take(test) for _, test in folds),
        tuple(fitted[k][1] for k in range(len(models))),
    )


def _checked_settings(settings: Any) -> tuple[Mapping[str, Any], ...]:
    """Mappings of arguments, one at least."""
    if isinstance(settings, str | Mapping) or not isinstance(settings, Iterable):
        raise InvalidParameterError(f"settings must be a list of mappings of arguments, got {settings!r}")
    given = tuple(settings)
    for setting in given:
        if not isinstance(setting, Mapping):
            raise InvalidParameterError(f"settings must hold mappings of arguments, got {setting!r} among them")
    if not given:
        raise InvalidParameterError("settings must hold at least one mapping of arguments, got none; name what to fit")
    return given


def _model(setting: Mapping[str, Any]) -> SoftSurvivalTree:
    """The unfitted tree of a setting."""
    try:
        return SoftSurvivalTree(**setting)
    except TypeError as error:  # a name that is no argument, or no text
        raise InvalidParameterError(f"settings must hold arguments of SoftSurvivalTree; {error}") from None


def can_share(parts: Sequence[SurvivalData]) -> bool:
    """Whether trees of these sets can share a stack: once histories are joined, all sets have entry times or none."""
    return len({part.joined().entry is None for part in parts}) == 1


def soft_setting(model: SoftSurvivalTree, causes: tuple[str, ...] = ()) -> Recipe | None:
    """How a setting's dense trees are made as part of a stack; None for rules, and where they cannot share one.

    ``model`` has the setting as its arguments; ``causes`` are the names of the causes of the rows.
    """
    parameters = SoftParameters(**model.get_params(deep=False))
    nothing_open = parameters.depth == 0 and parameters.l2 is not None
    one_regression = nothing_open and not causes  # of rules as of dense trees: nothing to split
    if parameters.has_rules and not one_regression:
        return None
    plain = isinstance(parameters.init, str) and not parameters.starts_exact and parameters.time_limit is None
    candidate = parameters.given(None) if plain else None
    recipe = None if candidate is None else parameters.recipe(candidate, causes=causes)
    return recipe if recipe is not None and can_stack(recipe) else None


def _alike(models: Sequence[SoftSurvivalTree], members: Sequence[int]) -> list[list[int]]:
    """Numbers of the models that share encoded rows and a machine."""
    groups: dict[Any, list[int]] = {}
    for k in members:
        groups.setdefault((models[k].preprocess, models[k].device, models[k].dtype), []).append(k)
    return list(groups.values())


@dataclass(frozen=True)
class StackedRows:
    """Sets of rows that settings of one ``preprocess`` are fitted on, read and encoded once.

    Attributes
    ----------
    readers : tuple (F,) of SoftSurvivalTree
        Know names, times and censoring of their rows.
    rows : tuple (F,) of (SurvivalData, Preprocessor or None, SurvivalData)
        Raw rows, what encodes them, and encoded rows.
    training : tuple (F,) of TrainingRows
        With the starts that they proposed so far.
    """

    readers: tuple[SoftSurvivalTree, ...]
    rows: tuple[tuple[SurvivalData, Preprocessor | None, SurvivalData], ...]
    training: tuple[TrainingRows, ...]

    @classmethod
    def of(cls, model: SoftSurvivalTree, parts: Sequence[SurvivalData]) -> StackedRows:
        """These parts, encoded as the model asks."""
        readers = tuple(clone(model) for _ in parts)
        rows = tuple(one._encoded_rows(part, None) for one, part in zip(readers, parts, strict=True))
        return cls(readers, rows, tuple(TrainingRows(encoded) for _, _, encoded in rows))

    def some(self, part: slice) -> StackedRows:
        """Some of the sets."""
        return StackedRows(self.readers[part], self.rows[part], self.training[part])

    def held_out(self, number: int, rows: SurvivalData, like: Tensor) -> HeldOut:
        """Rows that are not of a set, encoded by it and placed on a device, to measure stacks of trees fitted to it."""
        reader, (raw, encoder, _), rows = self.readers[number], self.rows[number], rows.joined()
        x = rows.x if encoder is None else torch.tensor(np.asarray(encoder.transform(rows.X), dtype=np.float64))
        ends = reader.horizon_, float(reader.unique_times_[0])
        return HeldOut(rows, x, TrainingTimes(reader.censoring_, time_floor(raw.time), *ends), like)


def fit_stacked(
    models: Sequence[SoftSurvivalTree], recipes: Sequence[Recipe], sets: StackedRows
) -> list[tuple[tuple[SoftSurvivalTree, ...], int]]:
    """For each model its estimators on every set of rows, and how many trees trained together.

    The models have one ``preprocess``, device and dtype; ``recipes`` are theirs.
    """
    first = models[0]
    ready(*(SoftParameters(**model.get_params(deep=False)) for model in models))
    with one_core_each() as workers:
        machine = machine_of(first, recipes, sum(rows.data.n for rows in sets.training), workers)
        for _, _, data in sets.rows:
            check_range_of_times(data.time, machine.dtype)
        fitted = []
        for model, recipe, of_model in zip(models, recipes, fit_stacks(sets.training, recipes, machine), strict=True):
            trees = []
            for reader, (raw, encoder, data), found in zip(sets.readers, sets.rows, of_model, strict=True):
                tree = copy(reader).set_params(**model.get_params(deep=False))
                trees.append(tree._take_over(raw, encoder, data, _made(found, recipe, data, tree)))
            fitted.append((tuple(trees), max(found.together for found in of_model)))
    return fitted


def _made(found: OfMany, recipe: Recipe, data: SurvivalData, tree: SoftSurvivalTree) -> Made:
    """A tree of a stack as one that was made alone."""
    warn_of_what_did_not_converge(found.report, recipe, tree.preprocess)
    covariances = tuple(
        None if recipe.fairness else covariance_of_leaves(of_cause, part, recipe)
        for of_cause, part in zip(found.of_causes, data.by_cause(), strict=True)
    )
    return Made(found.of_causes, recipe.candidate, found.report, [], covariances)


def _named_as(reader: SoftSurvivalTree, trees: tuple[SoftSurvivalTree, ...]) -> tuple[SoftSurvivalTree, ...]:
    """The trees with the names of the caller's table: they were fitted on parts of it, which do not hold these."""
    for tree in trees:
        tree.outcome_columns_ = reader.outcome_columns_
        if not hasattr(reader, "feature_names_in_"):
            del tree.feature_names_in_
    return trees
