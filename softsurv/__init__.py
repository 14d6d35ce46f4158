"""Survival trees that people can read: soft trees and provably optimal trees.

Public names load on first use, so that ``import softsurv`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softsurv.estimators.names import HOME

if TYPE_CHECKING:
    from softsurv.data.datasets import load_dataset as load_dataset
    from softsurv.data.survival_data import SurvivalData as SurvivalData
    from softsurv.estimators.optimal import OptimalSurvivalTree as OptimalSurvivalTree
    from softsurv.estimators.saved import load_model as load_model
    from softsurv.estimators.separable.capacity_policy import OptimalCapacityPolicyTree as OptimalCapacityPolicyTree
    from softsurv.estimators.separable.classification import OptimalClassificationTree as OptimalClassificationTree
    from softsurv.estimators.separable.cost_sensitive import OptimalCostSensitiveTree as OptimalCostSensitiveTree
    from softsurv.estimators.separable.fair import OptimalFairClassificationTree as OptimalFairClassificationTree
    from softsurv.estimators.separable.policy import OptimalPolicyTree as OptimalPolicyTree
    from softsurv.estimators.separable.regression import OptimalRegressionTree as OptimalRegressionTree
    from softsurv.estimators.soft import SoftSurvivalTree as SoftSurvivalTree
    from softsurv.estimators.survival.fair import OptimalFairSurvivalTree as OptimalFairSurvivalTree
    from softsurv.estimators.survival.policy import OptimalSurvivalPolicyTree as OptimalSurvivalPolicyTree

__version__ = "0.1.0"

_HOME = {
    **HOME,
    "SurvivalData": "softsurv.data.survival_data",
    "load_dataset": "softsurv.data.datasets",
    "load_model": "softsurv.estimators.saved",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'softsurv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
