"""The summary of a fitted soft tree: each leaf's numbers and typical curve, and the effects of the features."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class TreeSummary:
    """What a fitted soft tree says of its leaves; ``str()`` of it is text to read.

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
        scale (of a shift: as it is). The leaf is "all" where the leaves share their slopes.
    measure : str
        What an effect is: ``hazard ratio``, ``odds ratio of the event``, ``time ratio`` or a shift.
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
            shown = self.effects[["effect", "lower", "upper", "coefficient", "standard_error"]]
            parts += ["", f"Effects: {self.measure}", shown.to_string(float_format=_number, na_rep="-")]
        return "\n".join([*parts, "", *self.notes])

    __repr__ = __str__


def _number(value: float) -> str:
    if value == float("inf"):
        return "not reached"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def notes_of(measure: str, *, shared: bool, known: bool, dense: bool) -> tuple[str, ...]:
    """How to read a table of effects.

    Parameters
    ----------
    shared : bool
        Whether all leaves have one slope for each feature.
    known : bool
        Whether there are standard errors.
    dense : bool
        Whether splits weigh all features.
    """
    above = {
        "time ratio": "Below 1: earlier events.",
        "shift in standard deviations": "Above 0: earlier events, by so many standard deviations of log time.",
    }
    found = [above.get(measure, "Above 1: earlier events.")]
    if shared:
        found.append("The leaves share their slopes; they differ in level and shape.")
    if not known:
        return (*found, "There are no standard errors: see the documentation of summary() for which fits have none.")
    given = "the most probable leaf of each row" if dense else "the rules"
    found.append(
        f"Intervals are 95 % Wald intervals from the Hessian of the penalised likelihood, given {given}: they do not "
        "know that the tree was chosen on the same rows, and penalties pull the effects towards none."
    )
    return tuple(found)
