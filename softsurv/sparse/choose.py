"""Family, size, terms and penalties of a tree of rules, by inner cross-validation; all rows are one more fold.

Every candidate is trained on each inner fold and on all rows as one stack, so that the chosen tree is trained when the
choice is made. Candidates are ranked by the held-out negative log-likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidSurvivalDataError
from softsurv.hazards.base import LeafFamily
from softsurv.soft.parallel import Machine, map_parts
from softsurv.soft.problem import make_problem
from softsurv.sparse.causes import SEPARATOR, Problems, take
from softsurv.sparse.families import Known, better_families
from softsurv.sparse.folds import FoldRows, Grid, make_folds
from softsurv.sparse.prefer import Trial, best_of, surpass, usual_family
from softsurv.sparse.row_space import RowSpace, row_space
from softsurv.sparse.splits import SplitData
from softsurv.sparse.trials import FamilyTrials

Say = Callable[[str, int, int], None]
"""Called with a name of what was tried, the number of its candidates, and the number of all candidates."""


@dataclass(frozen=True)
class Tried:
    """The trials of a choice, with their problems and folds.

    Attributes
    ----------
    trials : tuple of Trial
    problems : dict of Problems
        The problems of all rows, by the family's name in a candidate.
    of_family, of_one_leaf : FamilyTrials
        The family, folds and problems with which trees were tried; and those of one leaf, where events have causes.
    space : RowSpace
        The features of the problems.
    given_up : tuple of Trial
        Trees of a family that another one surpassed.
    """

    trials: tuple[Trial, ...]
    problems: dict[str, Problems]
    of_family: FamilyTrials
    of_one_leaf: FamilyTrials
    space: RowSpace
    given_up: tuple[Trial, ...] = ()

    def table(self, chosen: Trial) -> list[dict[str, Any]]:
        """Trials from best to worst as plain rows: settings, mean loss, standard error of the gap to the best."""
        best = best_of(self.trials)
        rows = [
            asdict(t.candidate) | {"loss": t.mean, "gap_se": t.gap_error(best), "chosen": t is chosen}
            for t in (*self.trials, *self.given_up)
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

    Each cause has its own family, the one that does best for its events. Where another family does clearly better in
    the leaves of the best tree (`better_families`), trees are sought with that one too, and stay if clearly better.
    ``say`` is called after each part. ``counts`` (K,) are the factors of the causes in the rules and in the choice.

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
    space = row_space(data, budget)

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
        how: dict[str, Any] = {"dtype": machine.dtype, "device": machine.device}
        problem = make_problem(part, family, weight=weight, design=space.design, **how)
        of_family = FamilyTrials(family.name, (problem,), fold, grid, machine)
        trials = of_family.single_leaves(grid.single_ridges)[0]
        tell(f"{family.name}, one leaf", len(trials))
        return of_family, trials

    parts = data.by_cause()
    asked = [(k, part, family) for k, (part, own) in enumerate(zip(parts, families, strict=True)) for family in own]
    found = map_parts(one_leaf, asked, machine.at_once)
    by_cause = [
        [one for one, (k, *_) in zip(found, asked, strict=True) if one and k == own] for own in range(len(parts))
    ]
    chosen, join = [_usual(known) for known in by_cause], partial(_joined, by_cause, fold, grid, machine)
    of_one_leaf, single = join(chosen)
    of_family, given_up = of_one_leaf, list[Trial]()
    trials = [] if max(grid.leaves) == 1 else _of_depth(of_family.trees(stop, tell), grid)
    others = better_families(chosen, by_cause, single, trials) if trials and not stop() else None
    if others is not None:
        again, _ = join(others)  # one leaf stays with the families that do best in it
        given_up = _of_depth(again.trees(stop, tell), grid)
        # both begin with the smallest size; where time ended this search early, trees may lack the depth asked for
        as_deep = bool(given_up) and given_up[0].candidate.depth == trials[0].candidate.depth
        if as_deep and surpass(given_up, trials):
            of_family, trials, given_up = again, given_up, trials
    trials = (single if 1 in grid.leaves or not trials else []) + trials
    last, known = torch.tensor([len(fold.masks) - 1]), [one for one, _ in by_cause[0]] if len(parts) == 1 else []
    problems = {one.name: take(one.problems, last) for one in [*known, of_one_leaf, of_family]}
    return Tried(tuple(trials), problems, of_family, of_one_leaf, space, tuple(given_up))


def _of_depth(trees: list[Trial], grid: Grid) -> list[Trial]:
    """The trees of the depth that is asked for; where rows or time are too few for it, those of fewer leaves."""
    return [trial for trial in trees if trial.candidate.depth == grid.depth] or trees


def _usual(known: Sequence[Known]) -> Known:
    """The family of a cause that trees are grown with first."""
    usual = usual_family([trial for _, trials in known for trial in trials])
    return next(one for one in known if one[0].name == usual)


def _joined(
    by_cause: Sequence[Sequence[Known]], fold: FoldRows, grid: Grid, machine: Machine, chosen: Sequence[Known]
) -> tuple[FamilyTrials, list[Trial]]:
    """The families of all causes as one, and the trials of one leaf; with causes those of these families only."""
    if len(chosen) == 1:
        return chosen[0][0], [trial for _, trials in by_cause[0] for trial in trials]
    counts = np.ones(len(chosen)) if fold.rows.counts is None else fold.rows.counts
    name = SEPARATOR.join(one.name for one, _ in chosen)
    problems = tuple(problem for one, _ in chosen for problem in one.problems)
    single = [
        Trial(
            replace(of_ridge[0].candidate, family=name),
            np.concatenate([count * trial.by_cause for count, trial in zip(counts, of_ridge, strict=True)]),
            (),
            tuple(model for trial in of_ridge for model in trial.models),
        )
        for of_ridge in zip(*(trials for _, trials in chosen), strict=True)
    ]
    return FamilyTrials(name, problems, fold, grid, machine), single
