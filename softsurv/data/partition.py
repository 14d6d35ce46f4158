"""Seeded folds, splits and mini-batches that keep the share of events equal in every part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softsurv.arrays import BoolArray, IntArray
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError


def stratified_folds(event: ArrayLike, n_splits: int = 5, seed: int = 0) -> list[tuple[IntArray, IntArray]]:
    """Cross-validation folds with events and censored rows spread evenly.

    Events, censored rows and fold sizes each differ by at most one between test folds: rows are
    shuffled within the two strata and dealt round, the second stratum from where the first one ended.

    Parameters
    ----------
    event : (N,) bool
        True = observed.
    n_splits : int
        Number of folds, >= 2; at least that many events are needed.
    seed : int
        Same seed, same folds.

    Returns
    -------
    list of (train, test)
        Row numbers, ascending; the test parts are disjoint and cover all rows.

    Raises
    ------
    InvalidSurvivalDataError
        Fewer events than folds.
    """
    event = _as_events(event)
    if isinstance(n_splits, bool) or not isinstance(n_splits, (int, np.integer)) or n_splits < 2:
        raise InvalidParameterError(f"n_splits must be an integer >= 2, got {n_splits!r}")
    events = int(event.sum())
    if events < n_splits:
        raise InvalidSurvivalDataError(
            f"event must be True in at least {n_splits} rows, one for each fold, got {events}; "
            + (f"use at most {events} folds" if events >= 2 else "collect more events")
        )
    fold = np.empty(len(event), dtype=np.int64)
    fold[_shuffled_strata(event, seed)] = np.arange(len(event)) % n_splits
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_splits)]


def stratified_split(event: ArrayLike, test_size: float = 0.2, seed: int = 0) -> tuple[IntArray, IntArray]:
    """One split into train and test rows with the share of events equal in both.

    The test part has ``round(test_size * N)`` rows and ``round(test_size * events)`` events, but at
    least one event goes to each part.

    Parameters
    ----------
    event : (N,) bool
        True = observed.
    test_size : float
        Share of the rows in the test part, in (0, 1).
    seed : int
        Same seed, same split.

    Returns
    -------
    train, test : arrays of row numbers, ascending
    """
    event = _as_events(event)
    if not isinstance(test_size, (float, np.floating)) or not 0 < test_size < 1:
        raise InvalidParameterError(f"test_size must be a share in (0, 1), got {test_size!r}")
    events = int(event.sum())
    if events < 2:
        raise InvalidSurvivalDataError(
            f"event must be True in at least 2 rows, one for each part, got {events}; collect more events"
        )
    test_events = min(max(round(test_size * events), 1), events - 1)
    test_censored = min(max(round(test_size * len(event)) - test_events, 0), len(event) - events)
    order = _shuffled_strata(event, seed)
    test = np.concatenate([order[:test_events], order[events : events + test_censored]])
    return np.setdiff1d(order, test), np.sort(test)


def _as_events(event: ArrayLike) -> BoolArray:
    """The indicator as a bool array; tensors on a device are brought over."""
    if hasattr(event, "detach"):
        event = event.detach().cpu().numpy()
    array = np.asarray(event)
    if array.ndim != 1 or array.dtype != bool:
        raise InvalidSurvivalDataError(
            f"event must be a one-dimensional bool array, got {array.dtype} of shape {array.shape}; "
            "survival_data() converts 0/1 codes"
        )
    return array


def _shuffled_strata(event: BoolArray, seed: int) -> IntArray:
    """Row numbers (N,): all events in random order, then all censored rows in random order."""
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"seed must be an integer >= 0, got {seed!r}") from None
    return np.concatenate([rng.permutation(np.flatnonzero(event)), rng.permutation(np.flatnonzero(~event))])
