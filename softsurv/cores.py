"""How many cores a process may use: the one place that counts them.

A container on a large host may have a quota of few cores, which neither the machine nor the affinity of the process
shows. joblib knows all of them, and ``n_jobs=-1`` of scikit-learn means the same number.
"""

from __future__ import annotations

import os

from softsurv.errors import InvalidParameterError

LIMIT = "LOKY_MAX_CPU_COUNT"
"""The environment variable by which joblib's users limit its cores."""


def n_cores() -> int:
    """Cores that this process may use, at least one.

    Notes
    -----
    The least of four numbers: cores of the machine, affinity of the process, quota of the container (rounded up), and
    the environment variable ``LOKY_MAX_CPU_COUNT``. They may change while a process runs, so that each call counts
    anew. That takes a tenth of a millisecond.

    Raises
    ------
    InvalidParameterError
        If the variable is no whole number.
    """
    _refuse_unreadable_limit()
    from joblib import cpu_count

    return int(cpu_count())


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for, as scikit-learn reads it: -1 for `n_cores`, None for joblib's configuration."""
    if n_jobs == 1:
        return 1
    _refuse_unreadable_limit()
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def _refuse_unreadable_limit() -> None:
    """Raise where the user's limit is no whole number: joblib would end in the middle of a fit."""
    given = os.environ.get(LIMIT, "0")
    try:
        int(given)
    except ValueError:
        raise InvalidParameterError(
            f"the environment variable {LIMIT} must be a whole number of cores, got {given!r}; correct or unset it"
        ) from None
