"""How a soft tree is made of checked arguments and encoded rows: a tree of rules, or a dense one."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from softsurv.arrays import FloatArray
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import warn
from softsurv.estimators.shared.cause_weights import cause_weights
from softsurv.estimators.shared.progress import choice_bar, training_bar
from softsurv.estimators.soft.features import incomplete, source_numbers, whole_numbers
from softsurv.estimators.soft.fitted import leaf_of
from softsurv.estimators.soft.hard_start import routing_from_tree
from softsurv.estimators.soft.inference import centre_and_spread, covariance_of_leaves, sizes_of_splits
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.results import FitReport, Status, how_it_ended
from softsurv.soft.fit import FittedStarts, fit_starts
from softsurv.soft.fit_stack import SINGLE_LEAF
from softsurv.soft.fitted import FittedSoftTree
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import time_floor
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.selection import select
from softsurv.sparse.exact import exact_start
from softsurv.sparse.fit import fit_rules
from softsurv.sparse.row_space import ridge_scale
from softsurv.sparse.sample import to_choose_on
from softsurv.sparse.settle import told
from softsurv.stopping import StopSignal
from softsurv.trees.hard_tree import HardTree
from softsurv.trees.leaf_medians import predicted_medians
from softsurv.trees.leaf_table import leaf_table_of
from softsurv.trees.soft_text import encoded_columns
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.typical_rows import typical_row, typical_rows

logger = logging.getLogger(__name__)

TRAINING_SHARE = 0.4
"""Share of the time limit that is kept for training a dense tree while it is chosen."""


@dataclass(frozen=True)
class Order:
    """The rows to train on, and the tree that is wanted.

    Attributes
    ----------
    parameters : SoftParameters
    data : SurvivalData
        Encoded rows.
    encoder : Preprocessor or None
    names : tuple of str (P,)
        Names of the encoded features.
    start : HardTree or None
        A tree whose splits are the only start of a dense tree.
    machine : Machine
        Its budget ends the choice and the training.
    """

    parameters: SoftParameters
    data: SurvivalData
    encoder: Preprocessor | None
    names: tuple[str, ...]
    start: HardTree | None
    machine: Machine


@dataclass(frozen=True)
class Made:
    """A trained tree: a module for each cause, its setting, the report of the fit, the settings that were tried, the
    covariances of the leaves, and all starts of a dense tree."""

    trees: tuple[SoftTree, ...]
    candidate: Candidate
    report: FitReport
    tried: list[dict[str, Any]]
    covariances: tuple[FloatArray | None, ...]
    starts: FittedStarts | None = None


def fitted_tree(
    raw: SurvivalData, encoder: Preprocessor | None, data: SurvivalData, made: Made, horizon: float
) -> FittedSoftTree:
    """The trained tree as one value, with its tables over the training rows; ``horizon`` is their largest time."""
    tree, report = made.trees[0], made.report
    leaf, n_leaves, weight = leaf_of(tree, data.design), len(tree.used_leaves), raw.outcomes()["weight"]
    predicted = predicted_medians(made.trees, data.design, leaf, n_leaves, horizon, weight)
    centre, spread = centre_and_spread(tree, data)
    columns, sources = encoded_columns(encoder, raw.X.columns.tolist()), () if encoder is None else encoder.sources_
    usual = typical_row(columns, sources, centre)
    history = {"recurrent": True} if raw.recurrent else {}
    return FittedSoftTree(
        tree,
        made.candidate,
        replace(
            report, details=report.details | {"imputed": incomplete(raw.X), "whole": whole_numbers(raw.X)} | history
        ),
        replace(leaf_table_of(raw, leaf, n_leaves), predicted=predicted),
        spread=spread,
        time_floor=time_floor(raw.time),
        preprocessor=encoder,
        tried=made.tried,
        centre=centre,
        typical=typical_rows(data.x.numpy(), leaf, weight, columns, sources, usual, n_leaves),
        split_sizes=sizes_of_splits(made.trees, data),
        covariance=made.covariances[0],
        causes=() if raw.cause is None else tuple(zip(made.trees, made.covariances, strict=True)),
    )


def rule_tree(order: Order) -> Made:
    """A tree of rules of few terms, chosen by inner validation."""
    parameters, budget = order.parameters, order.machine.budget
    columns = encoded_columns(order.encoder, list(order.names))
    with choice_bar(parameters.progress) as bar:
        fitted = fit_rules(
            order.data,
            columns,
            parameters.families_of(order.data.n_causes),
            parameters.rule_grid(),
            prefer=parameters.prefer,
            machine=order.machine,
            seed=parameters.seed,
            say=bar,
            counts=cause_weights(parameters.cause_weights, order.data.cause_names),
            choice_rows=parameters.choice_rows,
        )
    collapsed = [{"rule": gone.rule.text(columns), "difference": gone.difference} for gone in fitted.collapsed]
    details: dict[str, Any] = {"reason": fitted.reason, "collapsed": collapsed}
    details |= _compared(fitted.n_compared, order.data)
    if fitted.lost is not None:
        details["lost_likelihood"] = asdict(fitted.lost) | {"share": fitted.lost.share}
    if order.data.cause is not None:
        details["causes"] = told(fitted.candidate.family, fitted.settings)
    assert budget is not None
    report = FitReport(
        fitted.stopped or budget.status or Status.CONVERGED,
        fitted.objective,
        seconds=budget.seconds,
        details=details,
    )
    if report.status != Status.CONVERGED:
        warn(
            f"{how_it_ended('the choice of a tree', report.status)} with {len(fitted.table())} "
            f"settings compared{UNFITTED if fitted.unfitted else ''}"
            + ("" if report.status is Status.INTERRUPTED else f"; raise time_limit{_what_to_give(parameters)}"),
            ConvergenceWarning,
        )
    return Made(fitted.trees, fitted.candidate, report, fitted.table(), fitted.covariances)


def _what_to_give(parameters: SoftParameters) -> str:
    """The arguments that leave less to choose, of those not given."""
    nothing: dict[str, Any] = {"depth": None, "leaf": "auto", "l2": None, "shrinkage": None}
    left = [name for name, value in nothing.items() if getattr(parameters, name) == value][:2]
    return f", or give {' and '.join(left)}" if left else ""


def dense_tree(order: Order) -> Made:
    """A tree whose splits weigh all features (paper `sst`)."""
    parameters, data = order.parameters, order.data
    recipe, tried, cut_off, compared = _recipe(order)
    with training_bar(parameters.progress, recipe.training.rounds(recipe.candidate.depth)) as bar:
        groups = source_numbers(order.encoder, data.x.shape[1])
        starts = fit_starts(data, recipe, order.machine.ending_sooner(), groups, bar)
    trees, report = starts.best_of_causes, starts.report
    what = "the choice of a tree" if cut_off else "the training of the tree"
    report = replace(report, status=cut_off or report.status, details=report.details | compared)
    warn_of_what_was_cut_off(report.status, what, _what_was_reached(report))
    warn_of_what_did_not_converge(report, recipe, parameters.preprocess)
    known = not (recipe.fairness or recipe.l1)
    covariances = tuple(
        covariance_of_leaves(tree, part, recipe, data.design) if known else None
        for tree, part in zip(trees, data.by_cause(), strict=True)
    )
    return Made(trees, recipe.candidate, report, tried, covariances, starts)


def _compared(n: int, data: SurvivalData) -> dict[str, Any]:
    """What the report says of the rows on which settings were compared, where these were not all rows."""
    return {"compared": {"rows": n, "of": data.n}} if n < data.n else {}


def _recipe(order: Order) -> tuple[Recipe, list[dict[str, Any]], Status | None, dict[str, Any]]:
    """The recipe of the tree; the trials of inner cross-validation, if any, the status that ended these early, and
    what the report says of the rows on which they were compared."""
    parameters, start, data = order.parameters, order.start, order.data
    depth, causes = None if start is None else start.depth, data.cause_names
    counts = parameters.counts(causes)
    candidate, grid, tried, cut_off, compared = parameters.given(depth), None, [], None, {}
    if candidate is None:
        wide = {"ridge": parameters.l2 is None, "routing": parameters.routing_l2 is None}
        grid = parameters.grid(depth).scaled(ridge_scale(data), **wide)
        choosing = order.machine.ending_sooner(TRAINING_SHARE)
        with choice_bar(parameters.progress) as bar:
            some = to_choose_on(data, parameters.choice_rows, parameters.seed)
            compared = _compared(some.n, data)
            selection = select(
                some, (parameters.family,), grid, parameters.seed, choosing, bar, parameters.fairness, counts
            )
        candidate, tried = selection.chosen, selection.table()
        cut_off = None if choosing.budget is None else choosing.budget.status
        logger.info("chose %s of %d candidates", candidate, len(selection.trials))
    over = order.machine.budget is not None and order.machine.budget.exhausted
    if parameters.starts_exact and candidate.depth and not over:
        columns = encoded_columns(order.encoder, list(order.names))
        stop = StopSignal(order.machine.start_seconds(), outer=order.machine.budget)
        weights = None if counts is None else np.array(counts)
        exact = exact_start(data, columns, parameters.family, candidate.depth, stop, weights)
        return parameters.recipe(candidate, grid, exact, causes), tried, cut_off, compared
    if start is None:
        return parameters.recipe(candidate, grid, causes=causes), tried, cut_off, compared
    routing = routing_from_tree(start, order.encoder, data.x.numpy(), candidate.depth, list(order.names))
    return parameters.recipe(candidate, grid, routing, causes), tried, cut_off, compared


NOT_BEST = ", so the tree may not be the best of its kind"
"""What follows where work on a tree was cut off."""

UNFITTED = " before a single leaf was fitted to its end, so predictions may be far off"
"""What follows where not even that was reached."""


def warn_of_what_was_cut_off(status: Status, what: str, reached: str = NOT_BEST) -> None:
    """Warn of work that a time limit or a Ctrl-C ended."""
    if status in (Status.TIME_LIMIT, Status.INTERRUPTED):
        advice = "; raise time_limit" if status is Status.TIME_LIMIT else ""
        warn(f"{how_it_ended(what, status)}{reached}{advice}", ConvergenceWarning)


def _what_was_reached(report: FitReport) -> str:
    """What follows where work on a dense tree was cut off."""
    if not report.details["single_leaf_converged"]:
        return UNFITTED
    if "leaves_alike" in report.details:
        return " before its leaves were trained, so all of them predict what a single leaf does"
    return NOT_BEST


def warn_of_the_last_sweep(report: FitReport) -> None:
    """Warn of a streamed fit that took all its sweeps, where the last one still made a better tree."""
    if report.status is Status.ITERATION_LIMIT:
        warn(
            f"the training of the tree took all its {len(report.trace)} sweeps without converging; raise max_sweeps "
            "(--sweeps)",
            ConvergenceWarning,
        )


def warn_of_what_did_not_converge(report: FitReport, recipe: Recipe, preprocessed: bool) -> None:
    """Warn of a fit that reached its limit of rounds, where more rounds would make a better tree."""
    rounds = recipe.training.rounds(recipe.candidate.depth)
    if report.status == Status.ITERATION_LIMIT and not recipe.training.stops_early:
        warn(
            f"the fit took all its {rounds} rounds without converging; raise max_iter, or leave it out for a validated "
            "number of rounds",
            ConvergenceWarning,
        )
    stopped = report.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    if not report.details["single_leaf_converged"] and not stopped:
        remedy = "raise l2, or leave columns out" if preprocessed else "rescale the features, or use preprocess=True"
        warn(
            f"the single-leaf fit that the tree starts from did not converge in {SINGLE_LEAF.max_iterations} rounds; "
            f"{remedy}",
            ConvergenceWarning,
        )
