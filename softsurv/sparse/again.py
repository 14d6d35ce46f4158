"""The rules of a known setting, found again on other rows: nothing is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from softsurv.arrays import FloatArray
from softsurv.data.encoding import OutputColumn
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Candidate
from softsurv.sparse.choose import try_all
from softsurv.sparse.fit import split_data
from softsurv.sparse.folds import Grid
from softsurv.sparse.many_levels import level_scale, shrunk
from softsurv.trees.linear_rule import Rules


def rules_again(
    data: SurvivalData,
    columns: Sequence[OutputColumn],
    families: Sequence[LeafFamily],
    candidate: Candidate,
    counts: FloatArray | None = None,
) -> Rules:
    """Rules of the setting on some rows, before splits that change nothing are taken out.

    As in the fit, trees with fewer terms and with fewer leaves are searched too: their rules are taken over, or a
    search begins at them, where they fit better. So are trees with the other usual ridge, if the candidate has one of
    the two: not if it was given, nor where columns outnumber rows and ridges are scaled by the table. Rules are
    grown under the shrinkage under which the fit grows them, whichever was chosen. Where leaves have slopes of their
    own, they are then sought once more for such leaves.

    Parameters
    ----------
    data : SurvivalData
        With numeric, complete features.
    columns : sequence of OutputColumn (P,)
    families : sequence of LeafFamily
        The family of each cause.
    candidate : Candidate
        Setting of a tree of rules with at least two leaves.
    counts : ndarray (K,), optional
        Factor of each cause.
    """
    split = split_data(data.x.double().cpu().numpy(), columns)
    usual, terms, size = Grid(), candidate.max_terms or 1, candidate.leaves or 2**candidate.depth
    grid = Grid(
        single_ridges=(candidate.ridge,),
        ridges=usual.ridges if candidate.ridge in usual.ridges else (candidate.ridge,),  # chosen, or given
        leaves=(*(smaller for smaller in (*usual.leaves, *usual.more_leaves) if smaller < size), size),
        more_leaves=(),
        terms=tuple(sorted({terms, *(other for other in usual.terms if other < terms)})),
        shrinkage=usual.shrinkage[:1],
        n_folds=1,
    )
    rows, alone = shrunk(data, level_scale(columns)), [(family,) for family in families]
    tried = try_all(rows, split, alone, grid, 0, Machine(torch.device("cpu")), counts=counts)
    own = (candidate.ridge, candidate.max_terms, size)
    found = [t for t in tried.trials if (t.candidate.ridge, t.candidate.max_terms, t.candidate.leaves) == own]
    return tried.of_family.for_own_slopes(candidate, found[0].rules) if found else ()
