"""The summary of a fitted soft tree: each leaf's numbers and typical curve, and the effects of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softsurv.arrays import FloatArray, IntArray
from softsurv.trees.leaf_effects import Contrast, baseline_table, effect_table, measure_of
from softsurv.trees.soft_tree import SoftTree

SHOWN_EFFECTS = 40
"""Effects of a leaf at most that the text shows: a category of hundreds of levels has as many."""


@dataclass(frozen=True)
class TreeSummary:
    """Leaves, typical curves and effects of a fitted soft tree; ``str()`` of it is text to read.

    Attributes
    ----------
    rules : str
        The tree as text.
    leaves : DataFrame, index ``leaf``
        ``n`` and ``events`` of the training rows, ``observed_median`` of their Kaplan-Meier curve; ``median`` of the
        curve of a typical row in the leaf with its 95 % interval ``median_lower`` and ``median_upper``, and the
        ``shape`` of the curve in the words of the family.
    effects : DataFrame, index (leaf, feature, contrast)
        ``effect`` with its 95 % interval ``lower`` and ``upper``; ``coefficient`` and ``standard_error`` on the log
        scale (for a shift on its own scale). The leaf is "all" where the leaves share their slopes.
    measure : str
        What an effect is: ``hazard ratio``, ``odds ratio of the event``, ``time ratio`` or a shift; with causes the
        measure of each, by its name.
    typical : str
        The typical row in words.
    notes : tuple of str
        How to read the numbers.
    """

    rules: str
    leaves: pd.DataFrame
    effects: pd.DataFrame
    measure: str
    typical: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        parts = [self.rules, "", "Leaves", self.leaves.to_string(float_format=_number, na_rep="-")]
        parts += ["", f"Typical row: {self.typical}."]
        if len(self.effects):
            columns = ["effect", "lower", "upper", "coefficient", "standard_error"]
            shown = surest(self.effects, SHOWN_EFFECTS)[columns]
            parts += ["", f"Effects: {self.measure}", shown.to_string(float_format=_number, na_rep="-")]
            left_out = len(self.effects) - len(shown)
            parts += [f"{left_out} effects of less evidence are not shown: they are in `effects`."] * (left_out > 0)
        return "\n".join([*parts, "", *self.notes])

    __repr__ = __str__


def surest(effects: pd.DataFrame, most: int) -> pd.DataFrame:
    """The effects of each leaf, and cause, that are furthest from none in standard errors; so many at most."""
    evidence = effects["coefficient"].abs() / effects["standard_error"]
    evidence = evidence.fillna(effects["coefficient"].abs())
    groups = [name for name in effects.index.names if name not in ("feature", "contrast")]
    return effects[evidence.groupby(level=groups).rank(ascending=False, method="first") <= most]


def _number(value: float) -> str:
    if value == float("inf"):
        return "not reached"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class CauseSummary:
    """The curves of a typical row and the effects, for one cause."""

    leaves: pd.DataFrame
    effects: pd.DataFrame
    measure: str


def summary_of(
    tree: SoftTree,
    used: IntArray,  # (L,)
    covariance: FloatArray | None,
    typical: FloatArray,  # (P,)
    asked: Sequence[Contrast],
    measure: str,
) -> CauseSummary:
    """The summary of the leaves of a tree, or of one cause of a tree."""
    curves = baseline_table(tree, used, covariance, typical)
    return CauseSummary(curves, effect_table(tree, used, covariance, asked, measure), measure_of(tree.family, measure))


def joined(
    numbers: pd.DataFrame, told: Sequence[CauseSummary], causes: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Leaves, effects and measure; effects of several causes one below the other.

    The median of a cause is left out: the curve of its hazard alone is that of a world without the other causes.
    """
    numbers = numbers.rename_axis("leaf")
    if not causes:
        (one,) = told
        return pd.concat([numbers, one.leaves], axis=1), one.effects, one.measure
    shapes = pd.DataFrame({f"shape of {name}": one.leaves["shape"] for name, one in zip(causes, told, strict=True)})
    effects = pd.concat([one.effects for one in told], keys=causes, names=["cause"])
    measures = "; ".join(f"{name}: {one.measure}" for name, one in zip(causes, told, strict=True))
    return pd.concat([numbers, shapes], axis=1), effects, measures


def notes_of(
    measures: Sequence[str],
    *,
    shared: bool,
    known: bool,
    dense: bool,
    causes: Sequence[str] = (),
    lost: float | None = None,
    by_subject: bool = False,
) -> tuple[str, ...]:
    """How to read a table of effects.

    Parameters
    ----------
    measures : sequence of str
        The measure of each cause.
    shared : bool
        Whether all leaves have one slope for each feature.
    known : bool
        Whether there are standard errors.
    dense : bool
        Whether splits weigh all features.
    causes : sequence of str
        Names of the causes; empty for one kind of event.
    lost : float, optional
        Share that the rules lose of the log-likelihood gained by a dense tree.
    by_subject : bool
        Whether standard errors are robust by subject.
    """
    above = {
        "time ratio": "Below 1: earlier events.",
        "shift in standard deviations": "Above 0: earlier events, by so many standard deviations of log time.",
    }
    found = list(dict.fromkeys(above.get(measure, "Above 1: earlier events.") for measure in measures))
    if not causes:
        found.append(
            "The median of a leaf is that of the typical row, which is the same in every leaf; the observed median is "
            "that of the leaf's own training rows."
        )
    else:
        found.append(
            "An effect is one on the hazard of its cause alone. How many have the event in the end also depends on the "
            "other causes: see predict_cumulative_incidence."
        )
    if shared:
        found.append("The leaves share their slopes; they differ in level and shape.")
    if lost is not None:
        found.append(_lost_words(lost))
    if not known:
        return (*found, "There are no standard errors: see the documentation of summary() for which fits have none.")
    given = "the most probable leaf of each row" if dense else "the rules"
    robust = ", robust by subject (sandwich)" if by_subject else ""
    found.append(
        f"Intervals are 95 % Wald intervals from the Hessian of the penalised likelihood{robust}, given {given}: they "
        "do not know that the tree was chosen on the same rows, and penalties pull the effects towards none."
    )
    return tuple(found)


def _lost_words(share: float) -> str:
    """What the rules cost, in a sentence."""
    than = "that a dense tree of this depth gains over one curve for all training rows"
    if share < 0.005:
        return f"The rules lose nothing of the log-likelihood {than}."
    return f"The rules lose {share:.0%} of the log-likelihood {than}."
