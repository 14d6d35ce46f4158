"""Many recipes on many sets of rows, in as few stacks as can be.

Recipes of one leaf family, depth and training share a stack, as each tree has its own penalties and start. Sets of rows
(the folds of a cross-validation) are the groups of a stack. A set with fewer columns or rows than another is padded
with columns of zeros and rows of weight zero, which change nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn.functional import pad

from softsurv.errors import InvalidParameterError
from softsurv.results import FitReport
from softsurv.soft.capacity import stack_size
from softsurv.soft.causes import make_problem_of_causes
from softsurv.soft.ended import Ended, form_of
from softsurv.soft.fairness import fairness_of
from softsurv.soft.fit import build_tree
from softsurv.soft.fit_stack import Stack, StackedTree, fit_anchors, fit_stack, stack_of
from softsurv.soft.one_pass import by_operators
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import Problem, join_problems
from softsurv.soft.recipe import Recipe
from softsurv.soft.spline_start import begin_spline_leaves
from softsurv.soft.stacked_starts import propose
from softsurv.soft.starts import TrainingRows
from softsurv.trees.soft_tree import SoftTree


@dataclass(frozen=True)
class OfMany:
    """The fit of one recipe on one set of rows.

    Attributes
    ----------
    tree : SoftTree
        The recipe's start with the lowest training objective, as a stack of one.
    together : int
        Trees that trained as one stack with it, of all recipes, rows and starts.
    of_causes : tuple of SoftTree
        A tree for each cause, which differ in their leaves alone; ``tree`` alone where there is one kind of event.
    """

    tree: SoftTree
    together: int
    of_causes: tuple[SoftTree, ...]
    _ended: Ended
    _at: tuple[int, int]  # its set of rows and its recipe in the stack

    @cached_property
    def report(self) -> FitReport:
        """How the fit ended. The first report of a stack waits for the device."""
        return self._ended.report(*self._at)

    def refuse_failed(self) -> None:
        """Wait for the device, and raise `NumericalError` if a fit of the stack left the finite numbers."""
        self._ended.read()


def can_stack(recipe: Recipe) -> bool:
    """Whether a recipe can share a stack: its starts are proposed by the rows, and no group lasso thins it out."""
    return not recipe.l1 and all(isinstance(start, str) for start in recipe.starts)


def alike(recipes: Sequence[Recipe]) -> list[list[int]]:
    """Numbers of the recipes that can train as one stack: they differ in starts and penalties alone."""
    groups: dict[Hashable, list[int]] = {}
    for number, recipe in enumerate(recipes):
        family = recipe.family
        key = (
            type(family),
            family.name,
            tuple(sorted(family.settings().items())),
            recipe.candidate.depth,
            recipe.training,
            recipe.l2_all,
            recipe.fairness,
            recipe.counts,
        )
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def fit_many(
    rows: Sequence[TrainingRows], recipes: Sequence[Recipe], machine: Machine | None = None
) -> list[list[OfMany]]:
    """Every recipe on every set of rows.

    Parameters
    ----------
    rows : sequence of TrainingRows
    recipes : sequence of Recipe
        Each of which :func:`can_stack`.
    machine : Machine, optional
        The CPU by default.

    Returns
    -------
    list (recipes) of list (rows) of OfMany

    Raises
    ------
    InvalidParameterError
        If a recipe cannot share a stack.
    NumericalError
        If a fit of a stack leaves the finite numbers.
    """
    for recipe in recipes:
        if not can_stack(recipe):
            raise InvalidParameterError(
                "recipes must have starts by name and no group lasso to share a stack; fit others by fit_tree"
            )
    machine = Machine(torch.device("cpu")) if machine is None else machine
    found: dict[tuple[int, int], OfMany] = {}
    for members in alike(recipes):
        chosen = [recipes[k] for k in members]
        for part in _parts(rows, chosen, machine):
            for (k, row), one in _fit_together(rows[part], chosen, machine).items():
                found[members[k], part.start + row] = one
    return [[found[k, row] for row in range(len(rows))] for k in range(len(recipes))]


def _parts(rows: Sequence[TrainingRows], recipes: Sequence[Recipe], machine: Machine) -> Iterator[slice]:
    """Consecutive sets of rows that train together, as many as the device takes at once.

    The grid of the fairness penalty depends on the rows, so with that penalty each set of rows is a stack of its own.
    """
    longest, columns = max(r.data.n for r in rows), max(r.data.x.shape[1] for r in rows) + 1
    leaves, trees = 2 ** recipes[0].candidate.depth, sum(len(recipe.used_starts) for recipe in recipes)
    room = stack_size(
        longest,
        leaves,
        columns,
        machine.device,
        machine.dtype,
        shared_design=False,
        right_censored=all(r.data.entry is None and r.data.upper is None for r in rows),
        n_causes=rows[0].data.n_causes,
    )
    together = 1 if recipes[0].fairness else max(1, min(len(rows), room // trees))
    size = math.ceil(len(rows) / math.ceil(len(rows) / together))  # parts of equal size
    return (slice(first, first + size) for first in range(0, len(rows), size))


def _fit_together(
    rows: Sequence[TrainingRows], recipes: Sequence[Recipe], machine: Machine
) -> dict[tuple[int, int], OfMany]:
    """Train recipes that are alike on some sets of rows as one stack; the best start of each (recipe, rows)."""
    began = time.perf_counter()
    first = recipes[0]
    problem = _joint_problem(rows, first, machine)
    trees = [StackedTree(k, r.seed + start) for k, r in enumerate(recipes) for start in range(len(r.used_starts))]
    n = torch.tensor([float(r.data.n) for r in rows], dtype=torch.float64).to(problem.weight)
    settings = [recipe.candidate for recipe in recipes]
    fairness = fairness_of(rows[0].data, problem.repeat(len(trees)), first.fairness)
    anchors = fit_anchors(problem, first, n, settings=settings, budget=machine.budget, fairness=fairness, check=False)
    columns = [r.data.x.shape[1] + 1 for r in rows]
    if by_operators(machine.device):
        routing = propose(rows, recipes, problem.design).to(problem.design)
    else:
        routing = _routing(rows, recipes, max(columns)).to(problem.design)
    stack = stack_of(problem, first, settings, trees, routing, anchors.point[0], n, fairness=fairness, columns=columns)
    if first.training.leaf_start == "spline" and first.candidate.depth:
        stack = _begin_at_curves(stack, rows, first, [tree.seed for tree in trees], columns)
    trained = fit_stack(stack, first.training, machine)
    spans = _spans([len(recipe.used_starts) for recipe in recipes])
    ended = Ended(trained, anchors, spans, len(rows), machine, began, form_of(stack, first.training))
    routing_, leaves_ = trained.routing[ended.best.flatten()], trained.leaves[ended.best.flatten()]
    found: dict[tuple[int, int], OfMany] = {}
    for row, own in enumerate(columns):
        for k, recipe in enumerate(recipes):
            at = row * len(recipes) + k
            leaves = [_unpadded(block, own, max(columns)) for block in problem.blocks(leaves_[at])]
            trees_ = tuple(
                build_tree(
                    recipe.family, recipe.candidate.depth, routing_[at, :, :own], block, part.time_scale[row],
                    rows[row].data.x,
                )
                for part, block in zip(problem.of_causes, leaves, strict=True)
            )  # fmt: skip
            found[k, row] = OfMany(trees_[0], stack.n_trees, trees_, ended, (row, k))
    if machine.device.type == "cpu":
        ended.read()
    return found


def _spans(counts: Sequence[int]) -> list[slice]:
    """Places of the starts of each recipe among the trees that a set of rows has in a stack."""
    ends = [0, *accumulate(counts)]
    return [slice(first, last) for first, last in pairwise(ends)]


def _unpadded(leaves: Tensor, own: int, columns: int) -> Tensor:
    """Leaves (..., own + K) of a fold with its own columns, out of those (..., columns + K) of the stack."""
    return torch.cat([leaves[..., :own], leaves[..., columns:]], -1)


def _padded(leaves: Tensor, own: int, columns: int) -> Tensor:
    """The way back: the columns that a fold lacks have coefficients of zero."""
    return torch.cat([pad(leaves[..., :own], (0, columns - own)), leaves[..., own:]], -1)


def _begin_at_curves(
    stack: Stack, rows: Sequence[TrainingRows], recipe: Recipe, seeds: Sequence[int], columns: Sequence[int]
) -> Stack:
    """The stack with the leaves of spline trees begun by each set of rows, in its own columns."""
    found, most = [], max(columns)
    like = {"dtype": stack.leaves.dtype, "device": stack.leaves.device}
    for r, own, random in zip(rows, columns, stack.leaves.unflatten(0, (len(rows), -1)), strict=True):
        problem = make_problem_of_causes(r.data, recipe.family, recipe.counts, **like)
        blocks = stack.objective.problem.blocks(random)
        leaves = torch.cat([_unpadded(block, own, most) for block in blocks], -1)
        begun = begin_spline_leaves(r.data, problem, recipe.candidate.depth, seeds, leaves)
        found.append(torch.cat([_padded(block, own, most) for block in problem.blocks(begun)], -1))
    return replace(stack, leaves=torch.cat(found))


def _joint_problem(rows: Sequence[TrainingRows], recipe: Recipe, machine: Machine) -> Problem:
    """The problem of one tree for each set of rows."""
    how = {"dtype": machine.dtype, "device": machine.device}
    parts = [make_problem_of_causes(r.data, recipe.family, recipe.counts, **how) for r in rows]
    return join_problems(parts) if len(parts) > 1 else parts[0]


def _routing(rows: Sequence[TrainingRows], recipes: Sequence[Recipe], columns: int) -> Tensor:  # (F, T, B, Q)
    """The starts of every recipe, proposed by each set of rows."""
    tables = []
    for r in rows:
        proposed = []
        for recipe in recipes:
            kinds = [start for start in recipe.used_starts if isinstance(start, str)]
            seeds = [recipe.seed + k for k in range(len(kinds))]
            proposed.append(r.start_routing(kinds, recipe.candidate.depth, seeds, recipe.counts))
        tables.append(pad(torch.cat(proposed), (0, columns - r.data.x.shape[1] - 1)))
    return torch.stack(tables)
