"""Many soft trees of one data set: settings, folds and starts as few stacks, results as ordinary estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.base import clone

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft import SoftSurvivalTree
from softsurv.estimators.soft_inference import covariance_of_leaves
from softsurv.estimators.soft_making import Made, warn_of_what_did_not_converge
from softsurv.estimators.soft_parameters import SoftParameters, choose_device, torch_dtype
from softsurv.soft.cross_validation import folds_of_content
from softsurv.soft.many import OfMany, can_stack
from softsurv.soft.many import fit_many as fit_stacks
from softsurv.soft.parallel import Machine, one_core_each
from softsurv.soft.recipe import Recipe
from softsurv.soft.starts import TrainingRows

MEASURES = ("harrell_c", "uno_c", "cd_auc", "ibs")


@dataclass(frozen=True)
class ManyTrees:
    """What became of many settings.

    Attributes
    ----------
    settings : tuple of dict (S,)
        The arguments of each setting, as given.
    estimators : tuple (S,) of tuple (F,) of SoftSurvivalTree
        Of each setting the fitted estimator of each fold; of all rows, F = 1, where there are no folds.
    held_out : tuple (F,) of SurvivalData
        The rows that each fold's estimators have not seen; empty where there are no folds.
    together : tuple of int (S,)
        Trees that trained as one stack with a setting's, of all settings, folds and starts; 1 where its trees were
        fitted one after the other.
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
            held-out measures with their standard errors (``harrell_c_se``).
        """
        rows = []
        for setting, trees, together in zip(self.settings, self.estimators, self.together, strict=True):
            objective = pd.Series([tree.report_.objective for tree in trees]).mean()
            row = dict(setting) | {"objective": objective, "together": together}
            scores = [tree.evaluate(test) for tree, test in zip(trees, self.held_out, strict=False)]
            for name in MEASURES if scores else ():
                values = pd.Series([score[name] for score in scores], dtype=float)
                row |= {name: values.mean(), f"{name}_se": values.sem()}
            rows.append(row)
        return pd.DataFrame(rows)


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
    of rules, what has penalties to choose, ``l1``, a hard tree for ``init`` or a ``time_limit``, and rows with causes
    or with several rows a subject.
    :attr:`ManyTrees.together` says which settings these were.

    Parameters
    ----------
    X, y, **columns
        Rows and outcome as in :meth:`SoftSurvivalTree.fit`.
    settings : sequence of mapping
        Arguments of `SoftSurvivalTree`.
    n_folds : int, optional
        Fit on the training rows of as many folds, stratified by the event. By default on all rows.
    seed : int
        Of the folds.

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
    if not settings:
        raise InvalidParameterError("settings must hold at least one mapping of arguments, got none; name what to fit")
    models = [SoftSurvivalTree(**setting) for setting in settings]
    reader = SoftSurvivalTree()
    raw = reader._read(X, y, **{"weight" if name == "sample_weight" else name: v for name, v in columns.items()})
    folds = [] if n_folds is None else folds_of_content(raw, n_folds, seed)
    parts = [raw.take(train) for train, _ in folds] or [raw]
    one_event = raw.cause is None and raw.subject is None  # others are fitted one after the other
    found = {k: soft_setting(model) for k, model in enumerate(models) if one_event}
    recipes = {k: recipe for k, recipe in found.items() if recipe is not None}
    fitted = {
        k: (tuple(clone(model).fit(part) for part in parts), 1) for k, model in enumerate(models) if k not in recipes
    }
    for members in _alike(models, list(recipes)):
        fitted |= _stacked(models, members, recipes, parts)
    return ManyTrees(
        tuple(dict(setting) for setting in settings),
        tuple(_named_as(reader, fitted[k][0]) for k in range(len(models))),
        tuple(raw.take(test) for _, test in folds),
        tuple(fitted[k][1] for k in range(len(models))),
    )


def soft_setting(model: SoftSurvivalTree) -> Recipe | None:
    """How a setting's dense trees are made as part of a stack; None for rules, and where they cannot share one."""
    parameters = SoftParameters(**model.get_params(deep=False))
    one_regression = parameters.depth == 0 and parameters.l2 is not None  # of rules as of dense trees: nothing to split
    if parameters.has_rules and not one_regression:
        return None
    plain = isinstance(parameters.init, str) and not parameters.starts_exact and parameters.time_limit is None
    candidate = parameters.given(None) if plain else None
    recipe = None if candidate is None else parameters.recipe(candidate)
    return recipe if recipe is not None and can_stack(recipe) else None


def _alike(models: Sequence[SoftSurvivalTree], members: Sequence[int]) -> list[list[int]]:
    """Numbers of the models that share encoded rows and a machine."""
    groups: dict[Any, list[int]] = {}
    for k in members:
        groups.setdefault((models[k].preprocess, models[k].device, models[k].dtype), []).append(k)
    return list(groups.values())


def _stacked(
    models: Sequence[SoftSurvivalTree],
    members: Sequence[int],
    recipes: Mapping[int, Recipe],
    parts: Sequence[SurvivalData],
) -> dict[int, tuple[tuple[SoftSurvivalTree, ...], int]]:
    """The members' estimators of every part, and how many trees trained together."""
    first = models[members[0]]
    readers = [clone(first) for _ in parts]
    rows = [one._encoded_rows(part, None) for one, part in zip(readers, parts, strict=True)]
    with one_core_each() as workers:
        machine = Machine(choose_device(first.device), torch_dtype(first.dtype), workers=workers)
        training = [TrainingRows(encoded) for _, _, encoded in rows]
        found = fit_stacks(training, [recipes[k] for k in members], machine)
        fitted = {}
        for k, of_setting in zip(members, found, strict=True):
            trees = []
            for one, (raw, encoder, data), of_part in zip(readers, rows, of_setting, strict=True):
                tree = copy(one).set_params(**models[k].get_params(deep=False))
                trees.append(tree._take_over(raw, encoder, data, _made(of_part, recipes[k], data, tree)))
            fitted[k] = (tuple(trees), max(of_part.together for of_part in of_setting))
    return fitted


def _made(found: OfMany, recipe: Recipe, data: SurvivalData, tree: SoftSurvivalTree) -> Made:
    """A tree of a stack as one that was made alone."""
    warn_of_what_did_not_converge(found.report, recipe, tree.preprocess)
    covariance = None if recipe.fairness else covariance_of_leaves(found.tree, data, recipe)
    return Made((found.tree,), recipe.candidate, found.report, [], (covariance,))


def _named_as(reader: SoftSurvivalTree, trees: tuple[SoftSurvivalTree, ...]) -> tuple[SoftSurvivalTree, ...]:
    """The trees, with what the table as given says of names: the parts were no tables of the caller's."""
    for tree in trees:
        tree.outcome_columns_ = reader.outcome_columns_
        if not hasattr(reader, "feature_names_in_"):
            del tree.feature_names_in_
    return trees
