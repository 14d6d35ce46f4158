"""The Pareto front of false negatives and false positives of two-class trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from softsurv.arrays import IntArray
from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.class_objectives import ClassObjective, ClassOptions
from softsurv.estimators.separable.classification import OptimalClassificationTree
from softsurv.estimators.separable.classifier import Classes
from softsurv.estimators.separable.measures import error_search
from softsurv.estimators.separable.tree import in_data_units
from softsurv.exact.whole_trees.measures import f1, matthews, pareto_front
from softsurv.results import Status
from softsurv.trees.hard_tree import HardTree

WITHOUT_MEANING = {"objective", "class_weight", "false_positive_rate", "complexity", "path"}
"""Arguments of `OptimalClassificationTree` that choose among the trees of a front."""


@dataclass(frozen=True)
class MisclassificationFront:
    """Trees that no other one dominates by false negatives and false positives.

    Attributes
    ----------
    table : DataFrame
        Columns false_negatives, false_positives, f1, mcc; one row per tree, by false negatives.
    trees : tuple of HardTree
        Splits in the data's units, with the share of each class in each leaf.
    labels : tuple of ndarray
        Class of each leaf of each tree, as a place in ``classes``.
    classes : ndarray (2,)
    status : Status
        OPTIMAL where the whole front was found; else the limit that cut it short.
    """

    table: pd.DataFrame
    trees: tuple[HardTree, ...]
    labels: tuple[IntArray, ...]
    classes: NDArray[Any]
    status: Status


def misclassification_front(
    X: Any, y: Any, *, max_depth: int = 2, sample_weight: Any = None, time_limit: float | None = 60.0, **options: Any
) -> MisclassificationFront:
    """Every nondominated pair of error counts that a tree within limits can have (paper `streed`, section 4.4).

    Parameters
    ----------
    X, y, sample_weight
        As in `OptimalClassificationTree.fit`, with two classes; the second in sorted order is the positive one.
    max_depth : int
    time_limit : float, optional
        Seconds.
    **options
        ``max_leaves``, ``min_samples_leaf``, ``thresholds`` and further limits of `OptimalClassificationTree`.

    Returns
    -------
    MisclassificationFront

    Raises
    ------
    InvalidParameterError
        An argument is out of range, or there are not two classes.
    InvalidSurvivalDataError
        A column has the wrong length, or holds missing or infinite values where none may be.

    Examples
    --------
    >>> import numpy as np
    >>> from softsurv.estimators.separable.front import misclassification_front
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> front = misclassification_front(X, X[:, 0] & X[:, 1], max_depth=1)
    >>> front.table[["false_negatives", "false_positives"]].to_numpy().tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    for name in WITHOUT_MEANING & options.keys():
        raise InvalidParameterError(f"{name} must be left out for a front of two errors, got {options[name]!r}")
    model = OptimalClassificationTree("f1", max_depth, time_limit=time_limit, **options)
    training = model._training(X, sample_weight, y=y)
    classes = Classes.read(y, training)
    if classes.k != 2:
        raise InvalidParameterError(f"y must have two classes for a front of two errors, got {classes.k}")
    limits = training.limits
    search = error_search(training.rows, classes.label, limits, count=limits.limits_leaves)
    negatives, positives = search.totals
    with limits.stop as stop:
        front = pareto_front(search, stop, limits.most_leaves if limits.limits_leaves else None)
    objective = ClassObjective("f1", classes, ClassOptions())
    read = [in_data_units(training, objective, one.tree.tree, one.tree.label) for one in front.trees]
    table = pd.DataFrame(
        {
            "false_negatives": [one.v[0] for one in front.trees],
            "false_positives": [one.v[1] for one in front.trees],
            "f1": [f1(one.v, positives, negatives) for one in front.trees],
            "mcc": [matthews(one.v, positives, negatives) for one in front.trees],
        }
    )
    return MisclassificationFront(
        table, tuple(tree for tree, *_ in read), tuple(label for _, label, _ in read), classes.names, front.status
    )
