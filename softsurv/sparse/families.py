"""The leaf family, chosen once more under the rules of a tree.

Families are compared on one leaf first, and trees are sought with the one that does best there. But the rows of two
leaves together need not look like those of one: two Weibull regressions with shapes of their own look like proportional
odds, and under proportional odds three leaves then do what two would.
"""

from __future__ import annotations

from collections.abc import Sequence

from softsurv.sparse.prefer import Trial, best_of
from softsurv.sparse.settle import LeafSetting, losses_under
from softsurv.sparse.trials import FamilyTrials
from softsurv.trees.linear_rule import Rules

ERRORS = 2.0
"""Standard errors by which another family must be better in the leaves of a tree: to seek trees again takes as long as
the first time."""

Known = tuple[FamilyTrials, list[Trial]]
"""A family of one cause, and its trials of one leaf."""


def better_families(
    chosen: Sequence[Known], by_cause: Sequence[Sequence[Known]], single: Sequence[Trial], trees: Sequence[Trial]
) -> list[Known] | None:
    """For each cause the family that predicts held-out rows best in the leaves of the best tree.

    None where those ``chosen`` stay: also where one leaf (``single``) does better than all trees. The rules were sought
    for the families chosen, so they favour these.
    """
    tree = best_of(trees)
    if tree.mean >= best_of(single).mean:
        return None
    candidate = tree.candidate
    setting = LeafSetting(candidate.ridge, candidate.shrinkage, candidate.slope_shrinkage)
    pairs = zip(chosen, by_cause, strict=True)
    best = [_best(own, known, tree.fold_rules, setting) for own, known in pairs]
    return None if all(one is own for one, own in zip(best, chosen, strict=True)) else best


def _best(own: Known, known: Sequence[Known], rules: Sequence[Rules], setting: LeafSetting) -> Known:
    """The family of one cause with the lowest loss among those that are clearly better than its own."""
    best, least = own, 0.0
    others = [one for one in known if one is not own]
    usual = losses_under(own[0], rules, setting)[0] if others else None
    for one in others:
        gap = losses_under(one[0], rules, setting)[0] - usual
        if gap.mean() < min(least, -ERRORS * gap.std(ddof=1) / len(gap) ** 0.5):
            best, least = one, float(gap.mean())
    return best
