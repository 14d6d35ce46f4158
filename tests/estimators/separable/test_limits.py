"""The limits of a search: one value that cannot change."""

import dataclasses

import pytest

from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.limits import SearchArguments, SearchLimits, TreeArguments
from softsurv.exact.memory import Room
from softsurv.stopping import StopSignal


@pytest.mark.parametrize(
    ("depth", "leaves", "most", "limited"), [(3, None, 8, False), (2, 9, 4, False), (3, 5, 5, True)]
)
def test_the_largest_number_of_leaves(depth, leaves, most, limited):
    limits = SearchLimits(depth, leaves, 1, 0.0, 0.0, StopSignal())
    assert (limits.most_leaves, limits.limits_leaves) == (most, limited)


def test_limits_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SearchLimits(3, None, 1, 0.0, 0.0, StopSignal()).depth = 4


def test_arguments_become_limits():
    limits = SearchArguments(complexity=0.5, time_limit=None, n_jobs=1, path=True, progress=True)._limits(2, None)
    assert limits == SearchLimits(2, None, 1, 0.0, 0.5, limits.stop, 1, Room(1e9), True, True)
    assert limits.stop.left == float("inf")
    assert TreeArguments(min_samples_leaf=7)._limits(2, 3) == SearchLimits(2, 3, 7, 0.0, 0.0, StopSignal())
    assert 0 < TreeArguments(time_limit=60.0)._limits(2, 3).stop.left <= 60.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"min_samples_leaf": 0}, "min_samples_leaf must be an integer >= 1, got 0"),
        ({"complexity": -1.0}, "complexity must be a finite number >= 0, got -1.0"),
        ({"memory_limit": 10}, "memory_limit must be a finite number of bytes >= 1e[+]06, got 10"),
        ({"time_limit": "1"}, "time_limit must be a finite number of seconds >= 0, got '1'"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
    ],
)
def test_wrong_limits_are_named(changes, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        SearchArguments(**changes)._limits(2, None)
