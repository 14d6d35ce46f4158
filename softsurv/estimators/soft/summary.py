"""The summary of a fitted soft tree: each leaf's numbers and typical curve, and the effects of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from softsurv.arrays import FloatArray, IntArray
from softsurv.trees.leaf_effects import Contrast, baseline_table, effect_table, measure_of
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.typical_rows import as_words

SHOWN_EFFECTS = 40
"""Effects of a leaf at most that the text shows: a category of hundreds of levels has as many."""


SHOWN_FEATURES = 40
"""Of more features the text shows, of typical rows, those whose effects it shows."""


@dataclass(frozen=True)
class TreeSummary:
    """Leaves, typical curves and effects of a fitted soft tree; ``str()`` of it is text to read.

    Attributes
    ----------
    rules : str
        The tree as text.
    leaves : DataFrame, index ``leaf``
        ``n`` and ``events`` of the training rows, ``observed_median`` of their Kaplan-Meier curve; ``median`` of the
        curve of the leaf's typical row with its 95 % interval ``median_lower`` and ``median_upper``, and the
        ``shape`` of the curve in the words of the family.
    effects : DataFrame, index (leaf, feature, contrast)
        ``effect`` with its 95 % interval ``lower`` and ``upper``; ``coefficient`` and ``standard_error`` on the log
        scale (for a shift on its own scale). The leaf is "all" where the leaves share their slopes.
    measure : str
        What an effect is: ``hazard ratio``, ``odds ratio of the event``, ``time ratio`` or a shift; with causes the
        measure of each, by its name.
    typical : DataFrame, index ``leaf``
        The typical row of each leaf in the data's units: medians of its training rows and their most frequent levels.
        One row, ``all``, where training kept none of the leaves: means and levels of all training rows. A table to
        predict for; features that training left out are missing.
    notes : tuple of str
        How to read the numbers.
    """

    rules: str
    leaves: pd.DataFrame
    effects: pd.DataFrame
    measure: str
    typical: pd.DataFrame
    notes: tuple[str, ...]

    def __str__(self) -> str:
        parts = [self.rules, "", "Leaves", self.leaves.to_string(float_format=_number, na_rep="-")]
        parts += ["", *self.typical_text()]
        if len(self.effects):
            columns = ["effect", "lower", "upper", "coefficient", "standard_error"]
            shown = surest(self.effects, SHOWN_EFFECTS)[columns]
            parts += ["", f"Effects: {self.measure}", shown.to_string(float_format=_number, na_rep="-")]
            left_out = len(self.effects) - len(shown)
            parts += [f"{left_out} effects of less evidence are not shown: they are in `effects`."] * (left_out > 0)
        return "\n".join([*parts, "", *self.notes])

    __repr__ = __str__

    def typical_text(self) -> list[str]:
        """The typical rows as lines of text; of many features those of the effects that the text shows."""
        known = self.typical.dropna(axis=1, how="all")
        told = set(surest(self.effects, SHOWN_EFFECTS).index.get_level_values("feature"))
        shown = known if known.shape[1] <= SHOWN_FEATURES else known[[name for name in known if name in told]]
        left_out = known.shape[1] - shown.shape[1]
        lines = [self.typical_title, as_words(shown).to_string()] if known.shape[1] else []
        return lines + [f"{left_out} features more are in `typical`."] * (left_out > 0)

    @property
    def typical_title(self) -> str:
        """What the typical rows are."""
        if list(self.typical.index) == ["all"]:
            return "Typical row (means and most frequent levels of all training rows)"
        return "Typical row of each leaf (medians and most frequent levels of its training rows)"


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
    """The curves of typical rows and the effects, for one cause."""

    leaves: pd.DataFrame
    effects: pd.DataFrame
    measure: str


def summary_of(
    tree: SoftTree,
    used: IntArray,  # (L,)
    covariance: FloatArray | None,
    typical: FloatArray,  # (L, P), or (1, P)
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
    typical: str = "",
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
    typical : str
        Whose median a leaf shows, in words.
    """
    above = {
        "time ratio": "Below 1: earlier events.",
        "shift in standard deviations": "Above 0: earlier events, by so many standard deviations of log time.",
    }
    found = list(dict.fromkeys(above.get(measure, "Above 1: earlier events.") for measure in measures))
    if not causes:
        found.append(typical)
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


def typical_words(tree: SoftTree, typical: FloatArray) -> str:  # (L, P), or (1, P)
    """Whose median a leaf shows, and which typical rows do not lie in their leaf."""
    used = tree.used_leaves
    with torch.no_grad():
        at = tree.apply_leaf(torch.as_tensor(typical).to(tree.leaves))[0].cpu().numpy()
    own = "the observed median is that of all its training rows."
    if len(typical) < len(used):
        return (
            "The median of a leaf is that of the typical row, which is the same in every leaf, also in leaves to which "
            f"it would not go; {own}"
        )
    outside = ", ".join(str(k) for k in np.flatnonzero(at != used))
    also = f" The typical row of leaf {outside} would go to another leaf." if outside else ""
    return f"The median of a leaf is that of its typical row; {own}{also}"


def late_words(curves: pd.DataFrame, horizon: float) -> str:
    """Which medians no training row was observed for, in a sentence; "" where there are none."""
    late = [str(k) for k in curves.index[curves["median"] > horizon]]
    if not late:
        return ""
    which = f"median of leaf {late[0]} is" if len(late) == 1 else f"medians of leaves {', '.join(late)} are"
    return f" Nothing was observed after {horizon:g}: the {which} extrapolated."


def _lost_words(share: float) -> str:
    """What the rules cost, in a sentence."""
    than = "that a dense tree of this depth gains over one curve for all training rows"
    if share < 0.005:
        return f"The rules lose nothing of the log-likelihood {than}."
    return f"The rules lose {share:.0%} of the log-likelihood {than}."
