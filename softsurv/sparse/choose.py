"""Family, size, terms and penalties of a tree of rules, by inner cross-validation; all rows are one more fold.

Every candidate is trained on each inner fold and on all rows as one stack, so that the chosen tree is there when the
choice is made. Candidates are ranked by the held-out negative log-likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.hazards.base import LeafFamily
from softsurv.soft.capacity import stack_parts
from softsurv.soft.parallel import Machine, map_parts
from softsurv.soft.problem import make_problem
from softsurv.soft.recipe import Candidate
from softsurv.sparse.causes import SEPARATOR, Models, Problems, fit_causes, some, take
from softsurv.sparse.leaf_fit import ROUGH
from softsurv.sparse.prefer import CONSTANT, USUAL_RIDGE, Trial, best_of, usual_family
from softsurv.sparse.splits import SplitData
from softsurv.sparse.train import (
    Plan,
    TrainingRows,
    complete,
    grow,
    held_out_losses,
    penalties_of,
    start_rules,
)
from softsurv.trees.linear_rule import Rules

FARTHEST = 12.0
"""Nats that a held-out row counts at most for each of several causes. A row whose features are far from all others can
cost a hundred, and would alone decide on families, trees and penalties of every cause."""


@dataclass(frozen=True)
class Grid:
    """What is tried."""

    single_ridges: tuple[float, ...] = (0.1, USUAL_RIDGE, 1.0, 10.0, CONSTANT)
    ridges: tuple[float, ...] = (USUAL_RIDGE, 30.0)
    leaves: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    terms: tuple[int, ...] = (1, 3)
    shrinkage: tuple[tuple[float, float | None], ...] = (
        (10.0, None),
        (40.0, None),
        (160.0, None),
        (40.0, 10.0),
        (10.0, 1.0),
    )
    """Pairs of shrinkage and slope shrinkage."""
    depth: int | None = None
    n_folds: int = 5
    least_events: float = 10.0
    split_penalty: float = 10.0

    def n_candidates(self, n_families: int) -> int:
        """How many candidates are tried: one leaf with each family, and the trees of one family."""
        sizes = sum(size > 1 for size in self.leaves)
        trees = sizes * len(self.ridges) * len(self.terms) * len(self.shrinkage)
        return n_families * len(self.single_ridges) + trees


@dataclass(frozen=True)
class Fold:
    """Rows of the folds, those of all rows last."""

    masks: FloatArray  # (F, N) 1 where a row trains
    held: Tensor  # (F, N) weight of held-out rows, on average 1 over all folds
    rows: TrainingRows
    subject: IntArray | None = None  # (N,) where subjects have several rows
    most: float = math.inf  # nats that a held-out row counts at most

    @property
    def n_rows(self) -> FloatArray:
        """Training rows of each fold, (F,)."""
        return self.masks.sum(1)

    def by_subject(self, losses: FloatArray) -> FloatArray:
        """Losses of rows (..., N) added up for each subject, (..., S)."""
        if self.subject is None:
            return losses
        flat = losses.reshape(-1, losses.shape[-1])
        return np.array([np.bincount(self.subject, own) for own in flat]).reshape(*losses.shape[:-1], -1)


def make_folds(data: SurvivalData, split: SplitData, grid: Grid, seed: int, counts: FloatArray | None = None) -> Fold:
    """Stratified folds for the choice and all rows for the tree; with one candidate all rows alone.

    Events of causes that do not count (K,) are none of those that a leaf must have.
    """
    events, subject = data.failed, None
    if counts is not None and data.cause is not None:
        events = np.append(False, counts > 0)[data.cause.cpu().numpy()]
    weight = np.ones(data.n) if data.weight is None else data.weight.double().cpu().numpy()
    weight = weight * 2.0 ** -np.rint(np.log2(weight.mean()))  # exact: the unit of the weights changes no rule
    masks = [np.ones(data.n)]
    if data.subject is not None:
        subject = np.unique(data.subject.cpu().numpy(), return_inverse=True)[1]
    if grid.n_folds > 1:
        for train, _ in data.folds(max(2, min(grid.n_folds, data.n_failed_subjects)), seed):
            mask = np.zeros(data.n)
            mask[train] = 1.0
            masks.insert(len(masks) - 1, mask)
    table = np.array(masks)
    folds = tuple(np.flatnonzero(mask) for mask in table)
    rows = TrainingRows(split, weight, events.astype(float), folds, grid.least_events, grid.split_penalty, counts)
    held = (1 - table) * weight
    total = held.sum()
    mean_one = torch.as_tensor(held * (data.n_subjects / total) if total > 0 else held)
    return Fold(table, mean_one, rows, subject, FARTHEST if data.n_causes > 1 else math.inf)


Say = Callable[[str, int, int], None]
"""Told what is tried, how many candidates that were, and how many there are in all."""

Planned = tuple[Candidate, list[Plan]]
"""A candidate, and its tree on each fold."""


class FamilyTrials:
    """Candidates of one leaf family, or of one for each cause, on all folds."""

    def __init__(self, name: str, problems: Problems, fold: Fold, grid: Grid, machine: Machine) -> None:
        self.name, self.problems, self.fold, self.grid = name, problems, fold, grid
        self.workers, self.budget = machine.workers, machine.budget
        self.n_folds = len(fold.masks)

    def single_leaves(self, ridges: Sequence[float]) -> tuple[list[Trial], Models]:
        """One regression with each ridge; and the models (F * R, 2, Q + K), those of the first fold first."""
        which = np.arange(self.n_folds).repeat(len(ridges))
        stack = take(self.problems, torch.as_tensor(which))
        leaf = torch.zeros(len(which), self.problems[0].weight.shape[-1], dtype=torch.int64)
        strengths = np.tile(ridges, self.n_folds)
        penalties = penalties_of(self.fold.n_rows[which], strengths, 0.0, None)
        models, _ = fit_causes(stack, leaf, 1, penalties, budget=self.budget)
        losses = self._losses(stack, models, leaf, which).reshape(self.n_folds, len(ridges), -1).sum(0)
        last = some(models, slice(len(which) - len(ridges), None))
        trials = [
            Trial(Candidate(self.name, 0, ridge, leaves=1), losses[k], (), some(last, slice(k, k + 1)))
            for k, ridge in enumerate(ridges)
        ]
        return trials, models

    def trees(self, stop: Callable[[], bool], tell: Callable[[str, int], None]) -> list[Trial]:
        """Every size, ridge, number of terms and shrinkage, the shallow trees first."""
        grid = self.grid
        if stop():
            return []
        _, bases = self.single_leaves(grid.ridges)
        if stop():
            return []
        which = np.arange(self.n_folds).repeat(len(grid.ridges))
        depth = max((size - 1).bit_length() for size in grid.leaves)
        stack = take(self.problems, torch.as_tensor(which))
        starts = start_rules(stack, self.fold.rows, which.tolist(), bases, depth, self.workers, stop)
        trials: list[Trial] = []
        each = len(grid.shrinkage)
        for level in range(1, depth + 1):
            sizes = [size for size in grid.leaves if size > 1 and (size - 1).bit_length() == level]
            families = self._plans(starts, sizes, 2**level - 1)
            what = f"{self.name}, depth {level}"
            tell(what, (len(sizes) * len(grid.ridges) * len(grid.terms) - len(families)) * each)  # cannot be grown

            def grown(part: slice, families: list[Planned] = families, what: str = what) -> list[Trial]:
                found = [] if stop() else self._grown(families[part])
                tell(what, len(families[part]) * each)
                return found

            parts = stack_parts(self.problems[0], 2**level, n_jobs=len(families), trees_per_job=self.n_folds)
            trials += [trial for found in map_parts(grown, parts, self.workers) for trial in found]
        return trials

    def _plans(self, starts: list[dict[int, Rules]], sizes: list[int], n_branches: int) -> list[Planned]:
        """Trees of one depth to be trained: for each candidate one on each fold."""
        planned, depth = [], (n_branches + 1).bit_length() - 1
        strength, slopes = self.grid.shrinkage[0]
        for size in sizes:
            for number, ridge in enumerate(self.grid.ridges):
                own = [starts[fold * len(self.grid.ridges) + number].get(size) for fold in range(self.n_folds)]
                found = [complete(rules, n_branches) for rules in own if rules is not None]
                if len(found) < len(own):
                    continue  # some fold has too few events for so many leaves
                for terms in self.grid.terms:
                    candidate = Candidate(self.name, depth, ridge, strength, 0.0, size, terms, slopes)
                    plans = [Plan(fold, ridge, strength, terms, rules) for fold, rules in enumerate(found)]
                    planned.append((candidate, plans))
        return planned

    def _grown(self, planned: list[Planned]) -> list[Trial]:
        """Train the trees of some candidates, and fit their leaves with each shrinkage."""
        plans = [plan for _, of_folds in planned for plan in of_folds]
        grown = grow(self.problems, self.fold.rows, plans, self.fold.n_rows, budget=self.budget)
        which = np.array([plan.fold for plan in plans])
        stack = take(self.problems, torch.as_tensor(which))
        models = grown.models
        trials: list[Trial] = []
        for strength, slopes in self.grid.shrinkage:
            if trials and self.budget is not None and self.budget.exhausted:
                break
            penalties = penalties_of(self.fold.n_rows[which], [plan.ridge for plan in plans], strength, slopes)
            n_leaves = len(plans[0].rules) + 1
            models, _ = fit_causes(stack, grown.leaf, n_leaves, penalties, models, ROUGH, self.budget)
            losses = self._losses(stack, models, grown.leaf, which).reshape(len(planned), self.n_folds, -1).sum(1)
            for k, (candidate, _) in enumerate(planned):
                last = (k + 1) * self.n_folds - 1
                own = replace(candidate, shrinkage=strength, slope_shrinkage=slopes)
                all_rows = some(models, slice(last, last + 1))
                fold_rules = grown.rules[last + 1 - self.n_folds : last + 1]
                trials.append(Trial(own, losses[k], grown.rules[last], all_rows, fold_rules))
        return trials

    def _losses(self, stack: Problems, models: Models, leaf: Tensor, which: IntArray) -> FloatArray:
        """Loss of each subject in the trees that did not train on it, (M, S), its mean that of all; 0 elsewhere."""
        counts = self.fold.rows.counts if len(stack) > 1 else None  # those of all causes together
        losses = held_out_losses(stack, models, leaf, self.fold.held[which], counts, self.fold.most)
        return self.fold.by_subject(losses.double().cpu().numpy())


@dataclass(frozen=True)
class Tried:
    """What was tried, and on what.

    Attributes
    ----------
    trials : tuple of Trial
    problems : dict of Problems
        Of all rows, for the families by their name in a candidate.
    causes : FamilyTrials, optional
        Where events have causes: what their trees were tried on.
    """

    trials: tuple[Trial, ...]
    problems: dict[str, Problems]
    causes: FamilyTrials | None = None

    def table(self, chosen: Trial) -> list[dict[str, Any]]:
        """Trials from best to worst as plain rows: settings, mean loss, standard error of the gap to the best."""
        best = best_of(self.trials)
        rows = [
            asdict(t.candidate) | {"loss": t.mean, "gap_se": t.gap_error(best), "chosen": t is chosen}
            for t in self.trials
        ]
        return sorted(rows, key=lambda row: row["loss"])


def try_all(
    data: SurvivalData,
    split: SplitData,
    families: Sequence[Sequence[LeafFamily]],  # for each cause
    grid: Grid,
    seed: int,
    machine: Machine,
    say: Say | None = None,
    counts: FloatArray | None = None,
) -> Tried:
    """Try one leaf with every family, and trees with the family that does best or is as good as the usual one.

    With causes each has its own family, the one that does best for its events. ``say`` is told what is tried.
    ``counts`` (K,) say how much each cause counts in rules and in the choice.

    Raises
    ------
    InvalidSurvivalDataError
        If fewer than two rows had their event.
    """
    if data.failed.sum() < 2:
        raise InvalidSurvivalDataError(
            f"event must be True in at least 2 rows to choose a tree by cross-validation, got "
            f"{int(data.failed.sum())}; collect more events, or set depth=0, leaf and l2"
        )
    fold, budget = make_folds(data, split, grid, seed, counts), machine.budget

    total = grid.n_candidates(sum(map(len, families)))

    def stop() -> bool:
        return budget is not None and budget.exhausted

    def tell(what: str, tried: int) -> None:
        if say is not None:
            say(what, tried, total)

    def one_leaf(asked: tuple[int, SurvivalData, LeafFamily]) -> tuple[FamilyTrials, list[Trial]] | None:
        """The trials of a family without splits; the first family of each cause is always tried."""
        cause, part, family = asked
        if stop() and family is not families[cause][0]:
            return None
        weight = torch.as_tensor(fold.masks)
        problem = make_problem(part, family, weight=weight, dtype=machine.dtype, device=machine.device)
        of_family = FamilyTrials(family.name, (problem,), fold, grid, machine)
        trials = of_family.single_leaves(grid.single_ridges)[0]
        tell(f"{family.name}, one leaf", len(trials))
        return of_family, trials

    parts = data.by_cause()
    asked = [(k, part, family) for k, (part, own) in enumerate(zip(parts, families, strict=True)) for family in own]
    found = map_parts(one_leaf, asked, machine.workers)
    by_cause = [
        [one for one, (k, *_) in zip(found, asked, strict=True) if one and k == own] for own in range(len(parts))
    ]
    of_family, single = _of_all_causes(by_cause, fold, grid, machine)
    trials = [] if max(grid.leaves) == 1 else of_family.trees(stop, tell)
    if grid.depth is not None:  # fewer leaves are the way out where there are too few rows
        trials = [trial for trial in trials if trial.candidate.depth == grid.depth] or trials
    trials = (single if 1 in grid.leaves or not trials else []) + trials
    last, known = torch.tensor([len(fold.masks) - 1]), [one for one, _ in by_cause[0]] if len(parts) == 1 else []
    problems = {one.name: take(one.problems, last) for one in [*known, of_family]}
    return Tried(tuple(trials), problems, of_family if len(parts) > 1 else None)


def _of_all_causes(
    by_cause: list[list[tuple[FamilyTrials, list[Trial]]]], fold: Fold, grid: Grid, machine: Machine
) -> tuple[FamilyTrials, list[Trial]]:
    """The families that trees are grown with, and the trials of one leaf: with causes, those of the families alone."""
    chosen = []
    for found in by_cause:
        usual = usual_family([trial for _, trials in found for trial in trials])
        chosen.append(next(one for one in found if one[0].name == usual))
    if len(by_cause) == 1:
        return chosen[0][0], [trial for _, trials in by_cause[0] for trial in trials]
    counts = np.ones(len(chosen)) if fold.rows.counts is None else fold.rows.counts
    name = SEPARATOR.join(one.name for one, _ in chosen)
    problems = tuple(problem for one, _ in chosen for problem in one.problems)
    single = [
        Trial(
            replace(of_ridge[0].candidate, family=name),
            np.sum([count * trial.losses for count, trial in zip(counts, of_ridge, strict=True)], 0),
            (),
            tuple(model for trial in of_ridge for model in trial.models),
        )
        for of_ridge in zip(*(trials for _, trials in chosen), strict=True)
    ]
    return FamilyTrials(name, problems, fold, grid, machine), single
