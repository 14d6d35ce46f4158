"""The candidates of one leaf family, on every inner fold and on all rows, as one stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from softsurv.arrays import FloatArray, IntArray
from softsurv.soft.capacity import stack_parts
from softsurv.soft.parallel import Machine, map_parts
from softsurv.soft.problem import taken
from softsurv.soft.recipe import Candidate
from softsurv.sparse.causes import Models, Problems, fit_causes, some, take
from softsurv.sparse.folds import FoldRows, Grid
from softsurv.sparse.leaf_fit import ROUGH
from softsurv.sparse.on_host import on_host
from softsurv.sparse.prefer import Trial, best_of, clearly_own_slopes, larger_pays, within_reach
from softsurv.sparse.start import START_DEPTH
from softsurv.sparse.train import Grown, Plan, complete, grow, grown_on, held_out_losses, penalties_of, start_rules
from softsurv.trees.linear_rule import Rules

MOST_OWN = 4
"""Most leaves of trees that are grown for leaves with slopes of their own; in larger ones these are fitted alone."""

Planned = tuple[Candidate, list[Plan]]
"""A candidate, and its tree on each fold."""


Pool = dict[int, list[tuple[int, Rules]]]
"""Rules of one size found on a fold, by whichever candidate, with its most terms."""


class FamilyTrials:
    """Candidates of one leaf family, or of one for each cause, on all folds."""

    def __init__(self, name: str, problems: Problems, fold: FoldRows, grid: Grid, machine: Machine) -> None:
        self.name, self.problems, self.fold, self.grid = name, problems, fold, grid
        self.machine, self.budget = machine, machine.budget
        self.n_folds = len(fold.masks)
        self.smaller: dict[tuple[int, float, int], tuple[Rules, Models]] = {}
        """The largest trees so far, by fold, ridge and terms: their rules and common models."""

    def single_leaves(self, ridges: Sequence[float]) -> tuple[list[Trial], Models]:
        """One regression with each ridge; and the models (F * R, 2, Q + K), those of the first fold first."""
        which = np.arange(self.n_folds).repeat(len(ridges))
        stack = take(self.problems, torch.as_tensor(which))
        leaf = torch.zeros(len(which), self.problems[0].weight.shape[-1], dtype=torch.int64)
        strengths = np.tile(ridges, self.n_folds)
        penalties = penalties_of(self.fold.n_rows[which], strengths, 0.0, None)
        models, _ = fit_causes(stack, leaf, 1, penalties, budget=self.budget)
        losses = _of_trials(self._losses(models, leaf, which), self.n_folds, len(ridges)).sum(0)
        last = some(models, slice(len(which) - len(ridges), None))
        trials = [
            Trial(Candidate(self.name, 0, ridge, leaves=1), losses[k], (), some(last, slice(k, k + 1)))
            for k, ridge in enumerate(ridges)
        ]
        return trials, models

    def trees(self, stop: Callable[[], bool], tell: Callable[[str, int], None]) -> list[Trial]:
        """Every size, ridge, number of terms and shrinkage, the shallow trees first."""
        grid, machine = self.grid, self.machine
        if stop():
            return []
        _, bases = self.single_leaves(grid.ridges)
        if stop():
            return []
        which = np.arange(self.n_folds).repeat(len(grid.ridges))
        depth = max((size - 1).bit_length() for size in grid.leaves)
        stack = take(self.problems, torch.as_tensor(which))
        starts = start_rules(stack, self.fold.rows, which.tolist(), bases, depth, machine.workers, stop)
        trials: list[Trial] = []
        sizes = sorted(size for size in grid.leaves if size > 1)
        for size in (*sizes, *grid.more_leaves):
            if size > sizes[-1] and not larger_pays(within_reach(trials)):
                break
            level = (size - 1).bit_length()
            planned = self._plans(starts, size, 2**level - 1)
            what = f"{self.name}, depth {level}"
            tell(what, (len(grid.ridges) * len(grid.terms) - len(planned)) * len(grid.shrinkage))  # cannot be grown
            trials += self._of_size(planned, size, stop, partial(tell, what))
        return within_reach(trials)

    def _of_size(
        self, planned: list[Planned], size: int, stop: Callable[[], bool], tell: Callable[[int], None]
    ) -> list[Trial]:
        """Grow the trees of the candidates of one size, let them learn of each other, and fit their leaves."""
        if not planned:
            return []
        n_leaves = len(planned[0][1][0].rules) + 1
        parts = stack_parts(self.problems[0], n_leaves, n_jobs=len(planned), trees_per_job=self.n_folds)

        def grown(part: slice) -> Grown | None:
            return None if stop() else self._grown(_plans_of(planned[part]), size)

        found = map_parts(grown, parts, self.machine.at_once)
        pool: Pool = {}
        for part, one in zip(parts, found, strict=True):
            if one is None:
                continue
            for m, plan in enumerate(_plans_of(planned[part])):
                pool.setdefault(plan.fold, []).append((plan.max_terms, one.rules[m]))
                self.smaller[_key(plan)] = one.rules[m], tuple(model[m : m + 1, :1] for model in one.models)

        def scored(job: tuple[slice, Grown | None]) -> list[Trial]:
            """The trials of a part of the candidates, none where its trees were not grown."""
            part, one = job
            if one is None:
                return []
            learned = self._learned(planned[part], one, pool)
            trials = self._scored(planned[part], learned, self.grid.shrinkage)
            trials = self._with_own_slopes(planned[part], learned, trials)
            tell(len(planned[part]) * len(self.grid.shrinkage))
            return trials

        jobs = zip(parts, found, strict=True)
        return [trial for of_part in map_parts(scored, jobs, self.machine.at_once) for trial in of_part]

    def _plans(self, starts: list[dict[int, Rules]], size: int, n_branches: int) -> list[Planned]:
        """Trees of one size to be trained: for each candidate one on each fold, none where rows allow no such tree."""
        planned, depth = [], (n_branches + 1).bit_length() - 1
        strength, slopes = self.grid.shrinkage[0]
        for number, ridge in enumerate(self.grid.ridges):
            own = [starts[fold * len(self.grid.ridges) + number].get(size) for fold in range(self.n_folds)]
            for terms in self.grid.terms:
                if depth > START_DEPTH:
                    own = [self.smaller.get((fold, ridge, terms), (None,))[0] for fold in range(self.n_folds)]
                found = [complete(rules, n_branches) for rules in own if rules is not None]
                if len(found) < len(own):
                    continue  # some fold has too few events for so many leaves
                candidate = Candidate(self.name, depth, ridge, strength, 0.0, size, terms, slopes)
                plans = [Plan(fold, ridge, strength, terms, rules) for fold, rules in enumerate(found)]
                planned.append((candidate, plans))
        return planned

    def _grow(self, plans: Sequence[Plan], sweeps: int = 2, models: Models | None = None) -> Grown:
        # on a CPU other parts of the trees have the other cores
        workers = 1 if self.machine.device.type == "cpu" else self.machine.workers
        return grow(self.problems, self.fold.rows, plans, self.fold.n_rows, sweeps, self.budget, models, workers)

    def _grown(self, plans: list[Plan], size: int) -> Grown:
        """Trees grown from their rules, or from the largest smaller tree of the setting where that fits better.

        The rules to start from are improved once before: those of the smaller tree have been. Where there are none for
        so many leaves, the smaller tree's are all there is.
        """
        grown = self._grow(plans, 1 if plans[0].size + 1 == size else 0)
        at = [m for m, plan in enumerate(plans) if _key(plan) in self.smaller]
        if at and not self._stopped():
            known, n_branches = [self.smaller[_key(plans[m])] for m in at], len(plans[0].rules)
            small = [replace(plans[m], rules=complete(one, n_branches)) for m, (one, _) in zip(at, known, strict=True)]
            common = tuple(map(torch.cat, zip(*(models for _, models in known), strict=True)))
            larger = grown_on(self.problems, self.fold.rows, small, size, common, self._stopped)
            tried = {k: replace(small[k], rules=rules) for k, rules in enumerate(larger) if rules is not None}
            if tried:
                begin = tuple(_alike(models[list(tried)], n_branches + 1) for models in common)
                second = self._grow(list(tried.values()), 0, begin)
                grown = grown.better(second, torch.tensor([at[k] for k in tried]))
        better = [replace(plan, rules=rules) for plan, rules in zip(plans, grown.rules, strict=True)]
        return grown if self._stopped() else self._grow(better, 1, grown.models)

    def _stopped(self) -> bool:
        return self.budget is not None and self.budget.exhausted

    def _learned(self, planned: list[Planned], grown: Grown, pool: Pool) -> Grown:
        """Each tree with the rules, its own or another candidate's, under which its leaves fit best."""
        plans = _plans_of(planned)
        others = []
        for plan, own in zip(plans, grown.rules, strict=True):
            known = [rules for terms, rules in pool[plan.fold] if terms <= plan.max_terms]
            others.append([rules for rules in dict.fromkeys(known) if rules != own])
        for turn in range(max(map(len, others))):
            if self._stopped():
                break
            at = [m for m, own in enumerate(others) if turn < len(own)]
            tried = [replace(plans[m], rules=others[m][turn]) for m in at]
            fitted = self._grow(tried, 0, tuple(_alike(own[at, :1], own.shape[1] - 1) for own in grown.models))
            grown = grown.better(fitted, torch.tensor(at))
        return grown

    def _with_own_slopes(self, planned: list[Planned], grown: Grown, trials: list[Trial]) -> list[Trial]:
        """The trials of some candidates; where slopes of their own do better, of trees grown for such leaves.

        Rules that part rows by their slopes are not those that part them by level and shape. Of a candidate's two sets
        of trees that with the lower held-out loss stays. Causes are shrunk apart later (`settle`): their rules stay.
        """
        again: list[Planned] = []
        for k, (candidate, plans) in enumerate(planned):
            best = clearly_own_slopes(_of_setting(candidate, trials))
            if best is not None and self._seeks_own(best):
                rules = grown.rules[k * self.n_folds : (k + 1) * self.n_folds]
                again.append((candidate, [_for_slopes(*both, best) for both in zip(plans, rules, strict=True)]))
        if not again or self._stopped():
            return trials
        pairs = [pair for pair in self.grid.shrinkage if pair[1] is not None]
        scored = self._scored(again, self._grow(_plans_of(again)), pairs)
        for candidate, plans in again:
            new = [replace(trial, grown_with=plans[0].slopes) for trial in _of_setting(candidate, scored)]
            if best_of(new).mean < best_of(_of_setting(candidate, trials)).mean:
                known = {trial.candidate for trial in new}
                trials = [trial for trial in trials if trial.candidate not in known] + new
        return trials

    def _seeks_own(self, candidate: Candidate) -> bool:
        """Whether rules are sought for the own slopes of a candidate's leaves."""
        few = (candidate.leaves or 2**candidate.depth) <= MOST_OWN
        return candidate.slope_shrinkage is not None and few and len(self.problems) == 1

    def for_own_slopes(self, candidate: Candidate, rules: Rules) -> Rules:
        """Rules of all rows, sought once more where the candidate's leaves have slopes of their own."""
        if not self._seeks_own(candidate):
            return rules
        plan = Plan(self.n_folds - 1, candidate.ridge, candidate.shrinkage, candidate.max_terms or 1, rules)
        return self._grow([_for_slopes(plan, rules, candidate)]).rules[0]

    def _scored(self, planned: list[Planned], grown: Grown, pairs: Sequence[tuple[float, float | None]]) -> list[Trial]:
        """Fit the leaves of some candidates' trees with each shrinkage, and score them where they did not train."""
        plans = _plans_of(planned)
        which = np.array([plan.fold for plan in plans])
        stack = take(self.problems, torch.as_tensor(which))
        models = grown.models
        trials: list[Trial] = []
        for strength, slopes in pairs:
            if trials and self._stopped():
                break
            penalties = penalties_of(self.fold.n_rows[which], [plan.ridge for plan in plans], strength, slopes)
            n_leaves = len(plans[0].rules) + 1
            models, _ = fit_causes(stack, grown.leaf, n_leaves, penalties, models, ROUGH, self.budget)
            losses = _of_trials(self._losses(models, grown.leaf, which), len(planned), self.n_folds).sum(1)
            for k, (candidate, _) in enumerate(planned):
                last = (k + 1) * self.n_folds - 1
                own = replace(candidate, shrinkage=strength, slope_shrinkage=slopes)
                all_rows = some(models, slice(last, last + 1))
                fold_rules = grown.rules[last + 1 - self.n_folds : last + 1]
                trials.append(Trial(own, losses[k], grown.rules[last], all_rows, fold_rules))
        return trials

    def of_all_rows(self, trial: Trial) -> Trial:
        """The trial with the best tree of all rows among those that the rules of its folds lead to.

        The folds say how well the setting does; on all rows a search from one start may end elsewhere. One leaf stays
        as it is.
        """
        starts = list(dict.fromkeys(trial.fold_rules))
        return trial if len(starts) < 2 or self._stopped() else self.found_again(trial, starts)

    def found_again(self, trial: Trial, starts: Sequence[Rules]) -> Trial:
        """The trial with the best tree of all rows to which the search leads from any of these rules."""
        candidate, last, n_leaves = trial.candidate, self.n_folds - 1, len(starts[0]) + 1
        how = candidate.ridge, candidate.shrinkage, candidate.max_terms or 1

        def found(part: slice) -> tuple[float, Rules, Models]:
            """The best of some starts: its loss, rules and models."""
            plans = [Plan(last, *how, rules, trial.grown_with) for rules in starts[part]]
            grown = self._grow(plans)
            stack = take(self.problems, torch.full((len(plans),), last))
            n_rows = self.fold.n_rows[[last] * len(plans)]
            penalties = penalties_of(n_rows, candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage)
            models, loss = fit_causes(
                stack, grown.leaf, n_leaves, penalties, grown.models, ROUGH, self.budget, self.fold.rows.counts
            )
            (losses,) = on_host([loss])
            best = int(losses.argmin())
            return float(losses[best]), grown.rules[best], some(models, slice(best, best + 1))

        parts = stack_parts(self.problems[0], n_leaves, n_jobs=len(starts))
        _, rules, models = min(map_parts(found, parts, self.machine.at_once), key=lambda one: one[0])
        return replace(trial, rules=rules, models=models)

    def _losses(self, models: Models, leaf: Tensor, which: IntArray) -> FloatArray:
        """Losses of each cause and subject in trees that did not train on it, (M, K, S), their mean that of all.

        A cause's losses are times its count; they are 0 elsewhere.
        """
        counts = self.fold.rows.counts if len(models) > 1 else None  # those of all causes together
        often = np.ones(len(models)) if counts is None else counts
        out, found, places = np.zeros((len(models), *leaf.shape)), [], []
        for fold, (rows, problems) in enumerate(self.held_out):
            trees = torch.as_tensor(np.flatnonzero(which == fold))
            if not len(rows):
                continue
            own, weight = leaf[trees][:, rows], self.fold.held[fold, rows]
            for cause, (problem, model) in enumerate(zip(problems, models, strict=True)):
                alone = (taken(model, trees),)
                found.append(held_out_losses((problem,), alone, own, weight, often[[cause]], self.fold.most))
                places.append((out[cause], np.ix_(trees.numpy(), rows.numpy())))
        for (table, place), losses in zip(places, on_host(found), strict=True):
            table[place] = losses
        return self.fold.by_subject(out.swapaxes(0, 1))

    @cached_property
    def held_out(self) -> list[tuple[Tensor, Problems]]:
        """For each fold the rows held out (H,), and the problems on these; all rows, the last fold, hold none out."""
        found = [torch.as_tensor(np.flatnonzero(held.numpy())) for held in self.fold.held]
        return [(rows, tuple(problem.of_rows(rows) for problem in self.problems)) for rows in found]


def _alike(common: Tensor, n_leaves: int) -> Tensor:
    """Models (M, 1 + L, D) of leaves that do not deviate from common ones (M, 1, D)."""
    return torch.cat([common, common.new_zeros(len(common), n_leaves, common.shape[-1])], 1)


def _of_trials(losses: FloatArray, first: int, second: int) -> FloatArray:
    """Losses (M, K, S) of trees that are numbered by two things, as (first, second, K, S)."""
    return losses.reshape(first, second, *losses.shape[1:])


def _key(plan: Plan) -> tuple[int, float, int]:
    """The setting and the rows of a tree, whatever its size."""
    return plan.fold, plan.ridge, plan.max_terms


def _for_slopes(plan: Plan, rules: Rules, candidate: Candidate) -> Plan:
    """The plan with these rules to begin with, under the shrinkage of a candidate."""
    return replace(plan, rules=rules, baseline=candidate.shrinkage, slopes=candidate.slope_shrinkage)


def _of_setting(candidate: Candidate, trials: Sequence[Trial]) -> list[Trial]:
    """The trials of one size with the ridge and the terms of a candidate: their trees are grown alike."""
    own = candidate.ridge, candidate.max_terms
    return [trial for trial in trials if (trial.candidate.ridge, trial.candidate.max_terms) == own]


def _plans_of(planned: Sequence[Planned]) -> list[Plan]:
    """The trees of some candidates on all folds."""
    return [plan for _, of_folds in planned for plan in of_folds]
