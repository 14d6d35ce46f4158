"""What a fit of a soft tree calls is compiled before its time limit starts, and said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.exact.entries import Compiled, make_ready
from softsurv.soft import dense_kernels, logistic_kernels, node_kernels, row_kernels, step_kernels
from softsurv.soft.jit import of_causes
from softsurv.sparse import cut_kernels, fit_kernels, gram_kernels, kernels, leaf_kernels
from softsurv.stopping import StopSignal

if TYPE_CHECKING:
    from softsurv.estimators.soft.parameters import SoftParameters

LEAVES = (fit_kernels.fit_rounds, leaf_kernels.rows_in_leaves, step_kernels.descend, step_kernels.move)
"""Loops that fit leaves. Two processes compile a list, one from either end: long ones are there."""

DENSE = (
    row_kernels.leaves_alone,
    row_kernels.losses,
    step_kernels.descend,
    step_kernels.move,
    row_kernels.routing_alone,
    row_kernels.leaves_and_routing,
)
"""Loops of a dense tree. A tree of rules needs all, as it is compared with a dense one."""

SEARCHES = (
    kernels.gain_of_leaf,
    cut_kernels.cut_gains,
    cut_kernels.best_cuts,
    cut_kernels.best_pair,
    kernels.gains_alone,
    kernels.best_trees,
)
"""Loops that search for rules. They alone are called with single precision too: they get float64 sums."""

RULES = (*LEAVES[:2], gram_kernels.add_leaf_grams, *SEARCHES[:1], *DENSE, *SEARCHES[1:])
"""Loops of a tree of rules."""

NODES = (logistic_kernels.newton,)
"""What ``solver="nodec"`` calls beside those of a dense tree."""

PAPER = (node_kernels.leaf_rounds, dense_kernels.advance, node_kernels.branch_rounds)
"""What ``preset="paper"`` calls beside those."""


def ready(*fits: SoftParameters) -> None:
    """Compile the loops that fits with these arguments call, or read them from disk."""
    loops = dict.fromkeys(loop for parameters in fits for loop in loops_of(parameters))
    make_ready(loops, "the training of soft trees")


def loops_of(parameters: SoftParameters) -> tuple[Compiled, ...]:
    """The loops that a fit calls."""
    if parameters.dtype == "float32":
        return SEARCHES if parameters.has_rules else ()
    loops = RULES if parameters.has_rules else DENSE
    if parameters.preset == "paper":
        return (*PAPER[:1], *loops, *NODES, *PAPER[1:])
    return (*loops, *NODES) if parameters.solver == "nodec" else loops


def ready_for_causes(parameters: SoftParameters, n: int, stop: StopSignal) -> None:
    """Compile what a tree of rules calls where events have so many causes; the clock of ``stop`` does not count it."""
    if n > 1 and parameters.has_rules:
        make_ready([of_causes(one, n) for one in SEARCHES], f"the search for rules with {n} causes", stop)
