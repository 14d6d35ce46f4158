"""A small soft tree to be streamed."""

from __future__ import annotations

from softsurv import SoftSurvivalTree

ARGUMENTS = {"depth": 2, "leaf": "weibull", "l2": 1.0, "shrinkage": 30.0, "routing_l2": 1.0, "n_restarts": 1}


def tree(**changes):
    return SoftSurvivalTree(**(ARGUMENTS | changes))
