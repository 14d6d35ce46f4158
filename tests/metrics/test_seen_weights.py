"""Weights of rows among competing risks against a loop over rows and times."""

import numpy as np
import pytest

from softsurv.errors import InvalidTimesError
from softsurv.metrics import entry_distribution
from softsurv.metrics.seen_weights import SeenWeights
from softsurv.nonparametric import censoring_survival

N = 40


def some_rows(late, weighted):
    rng = np.random.default_rng(0)
    time = np.ceil(4 * rng.exponential(size=N)) / 4
    entry = np.where(rng.random(N) < 0.5, time / 2, 0.0) if late else None
    return time, rng.integers(0, 3, N), rng.random(N) if weighted else None, entry


def by_hand(time, codes, weight, entry, grid, censoring):
    """One over the chance of being seen: at its own time of an event up to t, at t of a row free of events there."""
    entered, table = entry_distribution(time, entry, weight), np.zeros((N, len(grid)))
    for i in range(N):
        for k, t in enumerate(grid):
            if time[i] > t:
                here = entry is None or entry[i] <= t
                table[i, k] = here / (censoring(t) * entered(t))
            elif codes[i]:
                table[i, k] = 1.0 / (censoring.left_limit(time[i]) * entered.left_limit(time[i]))
    return table if weight is None else weight[:, None] * table


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_those_of_a_loop(late, weighted):
    time, codes, weight, entry = some_rows(late, weighted)
    grid, censoring = np.array([0.25, 0.6, 1.0, 1.5]), censoring_survival(time, codes > 0)
    seen = SeenWeights.of(time, codes, grid, censoring, weight, entry)
    table = seen.table(time, grid)
    np.testing.assert_allclose(table, by_hand(time, codes, weight, entry, grid, censoring), rtol=1e-12)
    whole = table.sum(0) if late else np.full(4, N if weight is None else weight.sum())
    np.testing.assert_allclose(seen.total(table), whole, rtol=1e-12)


def test_a_grid_beyond_what_is_known_of_censoring_is_refused():
    time, codes, *_ = some_rows(False, False)
    with pytest.raises(InvalidTimesError, match="the censoring curve"):
        SeenWeights.of(time, codes, np.array([99.0]), censoring_survival(time, codes > 0), None, None)
