"""Survival trees that people can read: soft trees and provably optimal trees.

- `SoftSurvivalTree`: rules of few features, and a smooth survival model in every leaf. The printed rules are the model.
- `OptimalSurvivalTree`: one feature a split, proven optimal for its size, or the gap is stated.
- ``Optimal...Tree`` for classes, costs, treatments, numbers and fairness, on the same exact search.
- `CauseSpecificCox`, `AalenJohansenBaseline`: what trees of competing risks are to be compared with.
- `compare` puts any of these, and other libraries' models, on the same folds.
- `fit_many` fits soft trees of many settings and folds as one stack.
- `load_dataset`, `survival_data` and `SurvivalData` for rows, `load_model` for what a fitted tree's ``save`` wrote.

Pictures, words and reports are in `softsurv.explore`, measures in `softsurv.metrics`, parameter studies in
`softsurv.tune`, leaf families in `softsurv.hazards`. Public names load on first use, so that ``import softsurv`` stays
light.

>>> from softsurv import SoftSurvivalTree, load_dataset
>>> train, test = load_dataset("veterans").split(seed=0)
>>> tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(train.X, train.y)
>>> print(tree.export_text())
Karnofsky_score > 40
    yes: leaf 0: n 77, events 70, predicted median 82.2
    no:  leaf 1: n 33, events 32, predicted median 34.7
Within a leaf, a regression counts too, most of all on Karnofsky_score, Celltype: see summary().
>>> tree.predict_median(test.X).shape
(27,)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softsurv.estimators.names import HOME

if TYPE_CHECKING:
    from softsurv.data.datasets import load_dataset as load_dataset
    from softsurv.data.readers import survival_data as survival_data
    from softsurv.data.survival_data import SurvivalData as SurvivalData
    from softsurv.estimators.baselines import AalenJohansenBaseline as AalenJohansenBaseline
    from softsurv.estimators.baselines import CauseSpecificCox as CauseSpecificCox
    from softsurv.estimators.many import fit_many as fit_many
    from softsurv.estimators.model_tree import OptimalModelTree as OptimalModelTree
    from softsurv.estimators.optimal.tree import OptimalSurvivalTree as OptimalSurvivalTree
    from softsurv.estimators.saved import load_model as load_model
    from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree as OptimalCapacityPolicyTree
    from softsurv.estimators.separable.classification import OptimalClassificationTree as OptimalClassificationTree
    from softsurv.estimators.separable.cost_sensitive import OptimalCostSensitiveTree as OptimalCostSensitiveTree
    from softsurv.estimators.separable.fair import OptimalFairClassificationTree as OptimalFairClassificationTree
    from softsurv.estimators.separable.policy import OptimalPolicyTree as OptimalPolicyTree
    from softsurv.estimators.separable.regression import OptimalRegressionTree as OptimalRegressionTree
    from softsurv.estimators.soft.tree import SoftSurvivalTree as SoftSurvivalTree
    from softsurv.estimators.survival.fair import OptimalFairSurvivalTree as OptimalFairSurvivalTree
    from softsurv.estimators.survival.policy import OptimalSurvivalPolicyTree as OptimalSurvivalPolicyTree
    from softsurv.explore.comparison import compare as compare

__version__ = "0.1.0"

_HOME = {
    **HOME,
    "AalenJohansenBaseline": "softsurv.estimators.baselines",
    "CauseSpecificCox": "softsurv.estimators.baselines",
    "compare": "softsurv.explore.comparison",
    "fit_many": "softsurv.estimators.many",
    "SurvivalData": "softsurv.data.survival_data",
    "load_dataset": "softsurv.data.datasets",
    "survival_data": "softsurv.data.readers",
    "load_model": "softsurv.estimators.saved",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'softsurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
