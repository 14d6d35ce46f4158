"""A fit of a few rows before the clock starts: what it compiles is said, and is no part of a time limit."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from softsurv.data.survival_data import SurvivalData
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.estimators.soft.training import Order, dense_tree, rule_tree
from softsurv.exact.jit import is_on_disk, without_garbage_collection
from softsurv.soft import row_kernels, step_kernels
from softsurv.soft.parallel import Machine
from softsurv.sparse import cut_kernels, fit_kernels, kernels, leaf_kernels
from softsurv.stopping import StopSignal

logger = logging.getLogger("softsurv")

DENSE = (
    row_kernels.leaves_and_routing,
    row_kernels.leaves_alone,
    row_kernels.losses,
    step_kernels.descend,
    step_kernels.move,
)
RULES = (
    leaf_kernels.rows_in_leaves,
    fit_kernels.fit_rounds,
    kernels.best_trees,
    cut_kernels.best_cuts,
    cut_kernels.cut_gains,
    cut_kernels.best_pair,
)
"""What a fit calls of compiled code; of rules also what dense trees call, as they are compared with one."""

SMALL: dict[str, Any] = {
    "depth": 1,
    "leaf": "loglogistic",
    "prefer": "tree",
    "solver": "lbfgs",
    "n_restarts": 1,
    "init": "auto",
    "l2": 0.1,
    "shrinkage": 10.0,
    "slope_shrinkage": None,
    "routing_l2": None,
    "fairness": 0.0,
    "l1": 0.0,
    "max_iter": None,
    "preset": None,
    "time_limit": None,
    "preprocess": False,
    "progress": False,
    "cause_weights": None,
}
"""Arguments of a fit that takes no time once it is compiled."""

ROWS = 64


_called: set[bool] = set()
"""Whether rules: what this process asked for already."""


def ready(parameters: SoftParameters) -> None:
    """Compile what a fit with these arguments calls; nothing where an earlier process kept it on disk."""
    rules = parameters.has_rules
    if rules in _called:
        return
    if not all(map(is_on_disk, (*DENSE, *RULES) if rules else DENSE)):
        logger.warning("compiling the training of soft trees, once on this machine")
        _compile(parameters, rules)
    _called.add(rules)


def _compile(parameters: SoftParameters, rules: bool) -> None:
    """Fit a few rows. The signal is not open, so that a Ctrl-C interrupts at once."""
    small = replace(
        parameters, **(SMALL if rules else SMALL | {"max_terms": None, "routing_l2": 0.1, "shrinkage": None})
    )
    with without_garbage_collection():
        machine = Machine(torch.device("cpu"), torch.float64, StopSignal())
        (rule_tree if rules else dense_tree)(Order(small, _few_rows(), None, ("0", "1"), None, machine))


def _few_rows() -> SurvivalData:
    """Rows of which one feature says nearly everything, so that a tree comes out."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.arange(ROWS) % 2, rng.random(ROWS)])
    time = rng.weibull(3, ROWS) * (1 + 9 * x[:, 0]) + 0.01
    return SurvivalData(pd.DataFrame(x, columns=["0", "1"]), torch.from_numpy(time), torch.arange(ROWS) % 8 > 0)
