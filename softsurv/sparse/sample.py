"""Settings are compared on a sample of a large table; the tree of the best setting is trained on all rows.

Twenty thousand rows are enough to compare families, sizes and penalties: a comparison on more rows takes longer, and
its tree predicts no better (`scripts/bench_large_soft.py`). The tree itself gains by every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from softsurv.arrays import FloatArray
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards.base import LeafFamily
from softsurv.soft.parallel import Machine
from softsurv.soft.problem import make_problem
from softsurv.sparse.causes import SEPARATOR, Problems
from softsurv.sparse.folds import Grid, make_folds
from softsurv.sparse.prefer import Trial
from softsurv.sparse.row_space import RowSpace, row_space
from softsurv.sparse.splits import SplitData
from softsurv.sparse.trials import FamilyTrials

CHOICE_ROWS, FEWEST_ROWS, CHOICE_CELLS = 20_000, 5_000, 600_000
"""Size of the default sample. It has `CHOICE_ROWS` rows. Where there are many encoded features it has fewer, so that
rows times features is at most `CHOICE_CELLS`, but not fewer than `FEWEST_ROWS`."""

EVENT_SHARE = 0.2
"""Where a smaller share of the rows had an event, the sample is larger: it holds as many events as a sample with this
share would."""

ALL_ROWS_SHARE = 0.3
"""Share of the time limit that is kept for the tree of all rows while settings are compared on a sample."""

NEARLY_ALL = 0.8
"""All rows are taken where the sample would hold more than this share of them."""


def to_choose_on(data: SurvivalData, most: int | str | None, seed: int) -> SurvivalData:
    """A sample of about ``most`` rows, or the data themselves where they are few or ``most`` is None.

    The sample has the share of events of the data, and all rows of a subject. For "auto" see `CHOICE_ROWS`.
    """
    if most is None or data.n_failed_subjects < 2:
        return data
    if isinstance(most, str):
        most = min(CHOICE_ROWS, max(FEWEST_ROWS, CHOICE_CELLS // max(data.X.shape[1], 1)))
    share = max(most / data.n, EVENT_SHARE * most / data.n_failed_subjects)
    return data if share > NEARLY_ALL else data.split(share, seed)[1]


def on_all_rows(
    trial: Trial,
    data: SurvivalData,
    split: SplitData,
    families: Sequence[LeafFamily],
    grid: Grid,
    machine: Machine,
    counts: FloatArray | None = None,
) -> tuple[Trial, Problems, RowSpace]:
    """A trial of a sample, its rules improved and its leaves fitted on all rows; the problems and features of these.

    Parameters
    ----------
    trial : Trial
    data : SurvivalData
        All rows, as the sample's are encoded.
    split : SplitData
        Of all rows.
    families : sequence of LeafFamily
        Among which the trial's are.
    grid : Grid
    machine : Machine
    counts : ndarray (K,), optional
        Factor of each cause.
    """
    alone, space = replace(grid, n_folds=1), row_space(data, machine.budget)
    fold, by_name = make_folds(data, split, alone, 0, counts), {family.name: family for family in families}
    parts = zip(data.by_cause(), trial.candidate.family.split(SEPARATOR), strict=True)
    weight = torch.as_tensor(fold.masks)
    how: dict[str, Any] = {"weight": weight, "dtype": machine.dtype, "device": machine.device, "design": space.design}
    problems = tuple(make_problem(part, by_name[name], **how) for part, name in parts)
    of_family = FamilyTrials(trial.candidate.family, problems, fold, alone, machine)
    if not trial.rules:
        return replace(trial, models=of_family.single_leaves([trial.candidate.ridge])[1]), problems, space
    return of_family.found_again(trial, [trial.rules]), problems, space
