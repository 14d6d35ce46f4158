"""Arguments of OptimalSurvivalTree: defaults and checks."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from softsurv.data.binarize import DEFAULT_THRESHOLDS
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.checks import flag, jobs, number, one_of, rows_for_a_leaf, whole
from softsurv.exact.problem import MAX_DEPTH

OBJECTIVES = {"relative_risk": ("adaptive", "nelson_aalen", "km"), "ibs": ("km", "ipcw")}
"""Leaf curves of each objective, the default first."""

HISTORIES = {"causes": "aalen_johansen", "recurrent": "mean_count"}
"""Leaf curves of event histories: cumulative incidences of competing causes, and mean counts of recurrent events."""

SCORES = ("likelihood", "ibs", "concordance")
"""What sizes may be chosen by; the objective's own is the default."""

AUTO_DEPTH, AUTO_LEAVES = 3, 8
"""Limits where ``max_depth`` is not given: eight leaves fit on a page. Depth 4 with eight leaves measures .005 more in
concordance over six sets of SurvSet, and takes ten times as long. Larger trees go on below such a tree
(`continued.py`)."""

CONTINUED_LEAVES = 32
"""Most leaves of a tree that goes on where ``max_leaves`` is not given: larger ones are not read. Over nine large sets
of SurvSet concordance is .6804 and the Brier score .1189; with 64 leaves .6800 and .1189, with 16 .6789 and .1191
(`bench_survset.py --collection large`, `optimal` beside `optimal:max_leaves=64,tune=cv`; two cores of an AMD EPYC,
2026-11-26)."""

AUTO_EVENTS = 5
"""Events to be expected among the rows of a leaf where ``min_samples_leaf`` is not given. Concordance and Brier score
of trees of depth 3 over six sets of SurvSet: .665 and .176; with 3 events .661 and .177, with 10 .657 and .179."""

RARE_ROWS, RARE_SHARE = 40, 0.05
"""Where events are rare, a leaf needs no more rows than so many, or than this share of all. Over 24 draws of 1,000 rows
with 30 events concordance is .603 and the Brier score .0497; .600 and .0503 where a leaf needs a fifth of the training
rows for its five events (`bench_survset.py --collection rare`, `optimal` beside `optimal:tune=cv,min_samples_leaf=167`;
two cores of an AMD EPYC, 2026-11-25)."""

AUTO_SHRINKAGE = 10.0
"""Events that a leaf takes from above where nothing chooses the number. Over ten sets of SurvSet 10, 20 and 40 give a
concordance of .628, .625 and .628, and a Brier score of .186 each."""


@dataclass(eq=False, repr=False)
class OptimalParameters:
    """Arguments of `OptimalSurvivalTree`, which documents them; ``dataclass`` writes the constructor."""

    objective: str = "relative_risk"
    max_depth: int | str | None = "auto"
    max_leaves: int | None = None
    _: KW_ONLY
    min_samples_leaf: int | str = "auto"
    complexity: float = 0.0
    thresholds: Any = DEFAULT_THRESHOLDS
    max_levels: int | None = None
    min_share: float = 0.0
    missing: str = "impute"
    level_sets: bool = False
    leaf: str = "auto"
    shrinkage: float | str = "auto"
    reference: Any = None
    cause_weights: Any = None
    tune: str | None = "auto"
    tune_score: str = "auto"
    time_limit: float | None = 60.0
    memory_limit: float = 1e9
    n_jobs: int | None = 1
    random_state: int | None = None
    progress: bool = False


def leaf_kind(p: OptimalParameters, data: SurvivalData) -> str:
    """The leaf curve that the arguments and the data ask for."""
    history = check_history(p, data.cause is not None, data.recurrent)
    if history is None:
        return OBJECTIVES[p.objective][0] if p.leaf == "auto" else p.leaf
    return HISTORIES[history]


def check_history(p: OptimalParameters, causes: bool, recurrent: bool) -> str | None:
    """The kind of event history, a name of `HISTORIES`, or None; refuse arguments that do not go with it."""
    history = "causes" if causes else "recurrent" if recurrent else None
    if history is not None:
        _require_auto(p, "objective", "relative_risk", history)
        _require_auto(p, "leaf", "auto", history)
        if p.tune_score not in ("auto", "likelihood"):
            _require_auto(p, "tune_score", "likelihood", history)
    return history


def _require_auto(p: OptimalParameters, name: str, only: str, history: str) -> None:
    what = "competing causes" if history == "causes" else "recurrent events"
    if getattr(p, name) != only:
        raise InvalidParameterError(f"{name} must be {only!r} with {what}, got {getattr(p, name)!r}")


def size_limits(p: OptimalParameters) -> tuple[int | None, int | None]:
    """Largest depth and number of leaves."""
    if not isinstance(p.max_depth, str):
        return p.max_depth, p.max_leaves
    return AUTO_DEPTH, AUTO_LEAVES if p.max_leaves is None else p.max_leaves


def most_leaves(p: OptimalParameters) -> int:
    """Most leaves of a tree that goes on below a proven one."""
    return CONTINUED_LEAVES if p.max_leaves is None else p.max_leaves


def is_tuned(p: OptimalParameters) -> bool:
    """Whether cross-validation chooses the size: on request, or where nothing is said of the size."""
    if p.tune == "auto":
        return bool(p.max_depth == "auto" and p.max_leaves is None and p.complexity == 0 and p.reference is None)
    return p.tune == "cv"


def least_rows(p: OptimalParameters, n: int, n_events: int) -> int:
    """Least rows per leaf, of n rows with so many events."""
    if p.min_samples_leaf != "auto":
        return int(p.min_samples_leaf)
    rare = max(RARE_ROWS, math.ceil(RARE_SHARE * n))
    return min(math.ceil(AUTO_EVENTS * n / max(n_events, 1)), rare, n)


def check_least_rows(p: OptimalParameters, n: int) -> None:
    """Refuse leaves larger than the whole."""
    if not isinstance(p.min_samples_leaf, str):
        rows_for_a_leaf(p.min_samples_leaf, n)


def score_of(p: OptimalParameters) -> str:
    """What cross-validation compares sizes by."""
    if p.tune_score != "auto":
        return str(p.tune_score)
    return "likelihood" if p.objective == "relative_risk" else "ibs"


def check_parameters(p: OptimalParameters) -> None:
    """Check every argument once; the sentence names it, what it must be and what it got."""
    one_of("objective", p.objective, tuple(OBJECTIVES))
    one_of("leaf", p.leaf, ("auto", *OBJECTIVES[p.objective]), f" for objective={p.objective!r}")
    one_of("tune", p.tune, ("auto", None, "cv"))
    one_of("tune_score", p.tune_score, ("auto", *SCORES))
    _check_size(p)
    if p.min_samples_leaf != "auto":
        whole("min_samples_leaf", p.min_samples_leaf, 1)
    if p.shrinkage != "auto":
        number("shrinkage", p.shrinkage, 0.0, "events")
    number("complexity", p.complexity, 0.0)
    number("memory_limit", p.memory_limit, 1e6, "bytes")
    if p.time_limit is not None:
        number("time_limit", p.time_limit, 0.0, "seconds")
    jobs(p.n_jobs)
    for name in ("level_sets", "progress"):
        flag(name, getattr(p, name))
    if p.random_state is not None:
        whole("random_state", p.random_state, 0)
    if p.reference is not None and p.objective != "ibs":
        raise InvalidParameterError(
            f"reference must be None for objective={p.objective!r}, whose search needs no guess; "
            'leave it out or take objective="ibs"'
        )


def _check_size(p: OptimalParameters) -> None:
    if p.max_leaves is not None:
        whole("max_leaves", p.max_leaves, 1)
    if p.max_depth is not None and p.max_depth != "auto":
        whole("max_depth", p.max_depth, 0)
    depth, _ = size_limits(p)
    if p.objective == "relative_risk" and (depth is None or depth > MAX_DEPTH):
        raise InvalidParameterError(
            f"max_depth must be an integer from 0 to {MAX_DEPTH} for objective='relative_risk', got {p.max_depth!r}"
        )
    if p.tune == "cv" and depth is None:
        raise InvalidParameterError('max_depth must be given where tune="cv" chooses up to it, got None; 4 is usual')
