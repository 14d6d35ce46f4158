"""A fit of a few rows before the time limit starts, so that compilation is logged and takes no time of the limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from softsurv.data.survival_data import SurvivalData
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.estimators.soft.training import Order, dense_tree, rule_tree
from softsurv.exact.helper import Helper
from softsurv.exact.jit import is_on_disk, without_garbage_collection
from softsurv.exact.resolved import resolved_once
from softsurv.soft import row_kernels, step_kernels
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import make_problem
from softsurv.sparse import cut_kernels, fit_kernels, kernels, leaf_kernels
from softsurv.sparse.causes import fit_causes
from softsurv.sparse.fit import split_data
from softsurv.sparse.folds import Grid, make_folds
from softsurv.sparse.train import corrections, penalties_of, polish, start_rules
from softsurv.stopping import StopSignal
from softsurv.trees.soft_text import encoded_columns

logger = logging.getLogger("softsurv")

LEAVES = (leaf_kernels.rows_in_leaves, step_kernels.descend, fit_kernels.fit_rounds)
"""Compiled functions that fit leaves."""

SEARCHES = (kernels.best_trees, cut_kernels.best_cuts, cut_kernels.cut_gains, cut_kernels.best_pair)
"""Compiled functions that search for rules."""

DENSE = (
    row_kernels.leaves_and_routing,
    row_kernels.leaves_alone,
    row_kernels.losses,
    step_kernels.descend,
    step_kernels.move,
)
"""Compiled functions of a dense tree. A tree of rules needs all, as it is compared with a dense one."""

RULES = SoftParameters(
    depth=1, leaf="loglogistic", max_terms="auto", prefer="tree", n_knots=4, solver="lbfgs", n_restarts=1, init="auto",
    l2=0.1, shrinkage=10.0, slope_shrinkage=None, routing_l2=None, fairness=0.0, l1=0.0, max_iter=None, preset=None,
    time_limit=None, device="cpu", dtype="float64", random_state=0, preprocess=False, progress=False,
    choice_rows=None,
)  # fmt: skip
"""Arguments of a fit of a tree of rules that takes almost no time once its functions are compiled."""

WEIGHED = replace(RULES, max_terms=None, routing_l2=0.1, shrinkage=None)
"""The same for a dense tree."""

ROWS = 64
NAMES = ("0", "1")

_called: set[str] = set()
"""Names of what this process has made ready."""


def ready(parameters: SoftParameters) -> None:
    """Compile the functions that a fit with these arguments calls, unless an earlier process left them on disk."""
    rules = parameters.has_rules
    functions = (*LEAVES, *SEARCHES, *DENSE) if rules else DENSE
    _ready("rules" if rules else "dense", functions, "the training of soft trees", tree_of_rules if rules else dense)


def ready_to_fit_leaves() -> None:
    """Compile the functions that fit the leaves of a tree whose rules come from another search."""
    _ready("leaves", LEAVES, "the fit of leaves", leaves)


def _ready(name: str, functions: Iterable[Any], what: str, compiling: Callable[[], None]) -> None:
    if name in _called:
        return
    if not all(map(is_on_disk, functions)):
        logger.warning("compiling %s, once on this machine", what)
        with without_garbage_collection(), resolved_once():
            compiling()
    _called.add(name)


def tree_of_rules() -> None:
    """Fit a tree of rules, a part of which a second process compiles meanwhile."""
    with Helper(PARTS if fit_kernels.fit_rounds.stats.cache_path is not None else ()) as helper:
        for place in helper.in_turn(PARTS, str):
            helper.wait_for(place)
            PARTS[place]()
    rule_tree(_order(RULES))


def leaves() -> None:
    """Fit one leaf."""
    rows = _few_rows()
    penalties = penalties_of(np.array([float(rows.n)]), RULES.l2, 0.0, None)
    fit_causes((make_problem(rows, RULES.family),), torch.zeros(1, rows.n, dtype=torch.int64), 1, penalties)


def searches() -> None:
    """Search for rules at a single leaf that was not fitted."""
    data = _few_rows()
    split = split_data(data.x.numpy(), encoded_columns(None, NAMES))
    rows = make_folds(data, split, Grid(n_folds=1, least_events=1.0), 0).rows
    problem = make_problem(data, RULES.family)
    model = torch.zeros(1, 1, problem.design.shape[-1] + problem.family.n_shape, dtype=torch.float64)
    table = corrections((problem,), (model,), rows)
    (rules,) = start_rules((problem,), rows, [0], (model,), 1)
    polish(rules[2], rows, rows.folds[0], np.zeros((2, data.n)), table[0], 3)


def dense() -> None:
    """Fit a dense tree."""
    dense_tree(_order(WEIGHED))


PARTS = {f"{__name__}:{part.__name__}": part for part in (leaves, dense, searches)}
"""Parts that two processes compile, one from the front and one from the back. A whole fit compiles what is left."""


def _order(parameters: SoftParameters) -> Order:
    """The order for a tree of a few rows. Its stop signal is not open, so that a Ctrl-C interrupts at once."""
    machine = Machine(torch.device("cpu"), torch.float64, StopSignal())
    return Order(parameters, _few_rows(), None, NAMES, None, machine)


def _few_rows() -> SurvivalData:
    """Rows whose outcome depends on one feature almost alone, so that the fit finds a split."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.arange(ROWS) % 2, rng.random(ROWS)])
    time = rng.weibull(3, ROWS) * (1 + 9 * x[:, 0]) + 0.01
    return SurvivalData(pd.DataFrame(x, columns=[*NAMES]), torch.from_numpy(time), torch.arange(ROWS) % 8 > 0)
