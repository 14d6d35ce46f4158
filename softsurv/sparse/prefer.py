"""Which of the trials of a tree of rules to take, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from softsurv.arrays import FloatArray
from softsurv.soft.recipe import Candidate
from softsurv.soft.selection import USUAL_RIDGE, distance_to_usual, scaled_ridge
from softsurv.sparse.causes import Models
from softsurv.trees.linear_rule import Rules

CONSTANT = 1e4
"""A ridge so strong that slopes vanish: all rows of a leaf then have one curve."""

EVER_WEAKER = ((10.0, 1.0), (1.0, 0.1), (0.1, 0.01))
"""Shrinkage of level and slopes: each pair counts only where the one before it does best."""


@dataclass(frozen=True)
class Trial:
    """A candidate with its held-out losses, and its tree of all rows."""

    candidate: Candidate
    by_cause: FloatArray  # (K, S) losses of each cause and subject where it was held out, times its weight
    rules: Rules
    models: Models = field(repr=False)  # of each cause (1, 1 + L, Q + K)
    fold_rules: tuple[Rules, ...] = field(default=(), repr=False)  # of each fold, all rows last
    grown_with: float | None = None  # slope shrinkage under which the rules were sought; None: shared slopes

    @cached_property
    def losses(self) -> FloatArray:
        """Loss of each subject where it was held out, (S,): those of causes add."""
        return self.by_cause.sum(0)

    @cached_property
    def mean(self) -> float:
        """Mean held-out loss, in nats per subject of standardised log time."""
        return float(self.losses.mean()) if len(self.losses) else float("nan")

    def gap_error(self, other: Trial) -> float:
        """Standard error of the paired gap between two candidates' mean losses, from the rows: folds are too few."""
        gap = self.losses - other.losses
        return float(gap.std(ddof=1) / len(gap) ** 0.5) if len(gap) > 1 else 0.0


def preferred(trials: Sequence[Trial], prefer: str, scale: float = 1.0) -> tuple[Trial, str]:
    """The trial to take, and why in a sentence; every choice leaves the usual only by one standard error.

    "tree": the simplest of the good trees (`_simple_tree`), if trees come within one standard error of the best trial
    and this one within one of the single leaf: it says more at the same score. One leaf where no trial beats the
    curve of all rows by its standard error, which is what noise looks like. "simplest": one leaf wherever it is within
    one standard error of the best.

    Trees whose leaves have slopes of their own are looked at only where they are clearly better than all others, one
    leaf among them (`clearly_own_slopes`): each leaf adds a coefficient for every feature, and of many such settings
    the best one is low by chance.

    A tree that predicts one of several causes worse than one leaf does must be better over all by two standard errors:
    its rules are then of the other causes, and whoever asks for that one reads them as its own.

    How many errors count was decided on the collection "development" of `scripts/bench_survset.py`; for causes on the
    set mgus2 of `scripts/bench_events.py`, which is therefore no test of it.

    ``scale`` is what the usual ridges have been multiplied with.
    """
    trials = _with_shared_slopes(trials)
    best = best_of(trials)
    single = [t for t in trials if not t.candidate.depth]
    trees = [t for t in trials if t.candidate.depth]
    if not trees:
        one = _usual_single(single, scale)
        return one, f"one leaf, the only size that was tried, with held-out loss {one.mean:.4g}"
    tree = _simple_tree(trees, scale)
    if not single:
        return tree, f"held-out loss {tree.mean:.4g} with {tree.candidate.leaves} leaves"
    one = _usual_single(single, scale)
    compared = f"held-out loss {one.mean:.4g} with one leaf, {tree.mean:.4g} with {tree.candidate.leaves} leaves"
    flat = [t for t in single if t.candidate.ridge >= scaled_ridge(CONSTANT, scale)]
    if flat:
        null = best_of(flat)
        if best is null or null.mean - best.mean <= best.gap_error(null):
            nothing = f"{compared}, {null.mean:.4g} with one curve"
            return one, f"no setting predicts held-out rows better than one curve for all rows ({nothing})"
    if prefer == "simplest" and _as_good(one, best):
        return one, f"one leaf is within one standard error of the best ({compared})"
    if _as_good(best_of(trees), best) and _as_good(tree, one):
        if _costs_a_cause(tree, one):
            return one, f"a tree predicts one cause worse, and all together hardly better ({compared})"
        return tree, f"a tree predicts held-out rows as well as one leaf, within one standard error ({compared})"
    return one, f"no tree predicts held-out rows as well ({compared})"


def _leaves(trial: Trial) -> int:
    return trial.candidate.leaves or 2**trial.candidate.depth


def _as_good(trial: Trial, best: Trial, errors: float = 1.0) -> bool:
    """Whether a trial is within so many standard errors of the best."""
    return trial.mean - best.mean <= errors * trial.gap_error(best)


def _costs_a_cause(tree: Trial, one: Trial) -> bool:
    """Whether a tree predicts one of several causes worse, and all together not better by two standard errors."""
    worse = tree.by_cause.mean(-1) > one.by_cause.mean(-1)
    return len(worse) > 1 and bool(worse.any()) and one.mean - tree.mean <= 2.0 * tree.gap_error(one)


def _simple_tree(trees: list[Trial], scale: float) -> Trial:
    """The simplest of the good trees, one question after the other.

    The usual ridge, if a tree that has it is within half a standard error of the best one; then the fewest leaves
    within one; then, within two standard errors of the best of these, leaves that share their slopes, the strongest
    shrinkage, the fewest terms. The lowest loss of so many settings is low by chance: what is taken instead is hardly
    worse and moves less.
    """
    best, usual = best_of(trees), [t for t in trees if t.candidate.ridge == scaled_ridge(USUAL_RIDGE, scale)]
    takes_usual = usual and _as_good(best_of(usual), best, 0.5)
    good = usual if takes_usual else [t for t in trees if t.candidate.ridge == best.candidate.ridge]
    good = [t for t in good if _as_good(t, best_of(good))]
    good = [t for t in good if _leaves(t) == min(map(_leaves, good))]
    good = [t for t in good if _as_good(t, best_of(good), 2.0)]
    return min(
        good,
        key=lambda t: (
            t.candidate.slope_shrinkage is not None,
            -t.candidate.shrinkage,
            t.candidate.max_terms or 0,
            t.mean,
        ),
    )


def within_reach(trials: Sequence[Trial]) -> list[Trial]:
    """The trials without those of ever weaker shrinkage, but for the pairs up to which each step does best.

    Leaves with slopes nearly of their own are low in loss by chance where little speaks for them.
    """
    out = set(EVER_WEAKER[1:])
    for step, weaker in pairwise(EVER_WEAKER):
        known = [t for t in trials if _pair(t) not in out]
        if known and _pair(best_of(known)) != step:
            break
        out.remove(weaker)
    return [t for t in trials if _pair(t) not in out]


def clearly_own_slopes(trials: Sequence[Trial]) -> Candidate | None:
    """The best setting if its leaves have slopes of their own and no shared slopes are within one standard error."""
    best, shared = best_of(trials), [t for t in trials if t.candidate.slope_shrinkage is None]
    if best.candidate.slope_shrinkage is None or (shared and _as_good(best_of(shared), best)):
        return None
    return best.candidate


def _with_shared_slopes(trials: Sequence[Trial]) -> Sequence[Trial]:
    """The trials without slopes of the leaves' own, unless these are clearly better or no tree is without."""
    shared = [t for t in trials if t.candidate.slope_shrinkage is None]
    trees = any(t.candidate.depth for t in shared)
    return shared if trees and clearly_own_slopes(trials) is None else trials


def larger_pays(trials: Sequence[Trial]) -> bool:
    """Whether the largest trees are better than those of half as many leaves, by more than one standard error."""
    most = max((_leaves(trial) for trial in trials), default=0)
    large = [trial for trial in trials if _leaves(trial) == most]
    small = [trial for trial in trials if 2 * _leaves(trial) <= most]
    return bool(large and small) and surpass(large, small)


def surpass(trials: Sequence[Trial], others: Sequence[Trial]) -> bool:
    """Whether the best of some trials is better than the best of others by more than one standard error."""
    return not _as_good(best_of(others), best_of(trials))


def _pair(trial: Trial) -> tuple[float, float | None]:
    return trial.candidate.shrinkage, trial.candidate.slope_shrinkage


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial of the lowest held-out loss."""
    return min(trials, key=lambda t: t.mean)


def usual_family(single: Sequence[Trial]) -> str:
    """The first family, unless the best one is better by more than one standard error."""
    first = single[0].candidate.family
    best = best_of(single)
    usual = min((t for t in single if t.candidate.family == first), key=lambda t: t.mean)
    return first if _as_good(usual, best) else best.candidate.family


def _usual_single(single: Sequence[Trial], scale: float) -> Trial:
    """One leaf of the usual family; its ridge is the nearest to the usual within one standard error of the best."""
    family = usual_family(single)
    own = [t for t in single if t.candidate.family == family]
    best = best_of(own)
    good = [t for t in own if _as_good(t, best)]
    return min(good, key=lambda t: (distance_to_usual(t.candidate.ridge, scale), t.mean))
