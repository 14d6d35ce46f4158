"""Levels of a category in the order of their risk, so that a split may send several of them left.

Notes
-----
Of all ways to send levels left and right of *one* split into two leaves, a best one cuts the levels in the order of
E / H, events over expected events in the node: the deviance -E log(E / H) is concave and homogeneous in (E, H), and
for such costs a best division is one by a line through the origin (Breiman et al. 1984, Theorem 4.5; Chou 1991). In a
deeper tree that is not so: a set out of order may prepare better splits below it, and the order within a node need not
be that of all rows, which is taken here, with levels of few events pulled to all rows (`BORROWED`). So the order is a
restriction, and what it may lose is not known, not even of one split. One level against the rest stays a split of its
own, hence no tree is worse on the training rows than without the order. Missing values that are routed go with either
side of every cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsurv.data.binarize import Binarizer
from softsurv.data.coded_columns import CodedColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.exact.objectives.relative_risk import one_subject
from softsurv.nonparametric import nelson_aalen

LEAST_LEVELS = 4
"""With three levels every set is one level, or all but one."""

BORROWED = 5.0
"""Events, of a subject each, that a level takes from all rows, so that a rare level is not first or last by chance."""


def add_level_orders(binarizer: Binarizer, table: Mapping[str, NDArray[Any]], data: SurvivalData) -> None:
    """Let splits of a fitted binarizer cut categories in the order of their levels' risk.

    Parameters
    ----------
    binarizer : Binarizer
    table : mapping of str to ndarray (N,)
        Raw columns of the training rows, as `Binarizer.fit_filled` gives them.
    data : SurvivalData
        The same rows.
    """
    event, weight = data.failed.astype(float), np.ones(data.n) if data.weight is None else data.weight.numpy()
    time, entry = data.time.numpy(), None if data.entry is None else data.entry.numpy()
    baseline = nelson_aalen(time, data.failed, weight, entry)
    borrowed = BORROWED * one_subject(weight)
    met = baseline(time) - (0.0 if entry is None else np.where(entry > 0, baseline(entry), 0.0))
    for column, source in list(zip(binarizer.columns_, binarizer.sources_, strict=True)):
        whole = column.nominal and not column.other  # not the columns of single levels and missing values
        if whole and len(column.levels) >= LEAST_LEVELS:
            values = table[column.name]
            risk = {}
            for level in column.levels:
                here = values == level
                risk[level] = ((weight * event)[here].sum() + borrowed) / ((weight * met)[here].sum() + borrowed)
            order = sorted(column.levels, key=lambda level: (risk[level], level))
            for side in ("first", "last") if column.missing else ("",):
                binarizer.sources_.append(source)
                binarizer.columns_.append(CodedColumn(column.name, (), tuple(order), ordered=True, missing=side))
