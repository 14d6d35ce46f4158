"""Reading within a time limit: what is read in any case, the grace, and whose limit it is."""

import pytest

from softsurv import stopping
from softsurv.data import in_time
from softsurv.data.in_time import look_at_numbers, look_before_fitting, read_in_time
from softsurv.errors import InvalidParameterError
from softsurv.stopping import StopSignal


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    return now


def test_reading_ends_with_the_time_limit(clock):
    read = []

    def slowly():
        with StopSignal(5.0).reading():
            for name in read_in_time(range(30), "columns"):
                read.append(name)
                clock[0] += 5.3 if name == 19 else 0.0

    with pytest.raises(InvalidParameterError, match="got 5 s, which passed at 20 of 30 columns; raise it, leave"):
        slowly()
    assert read == list(range(20))


def test_reading_has_a_grace_and_the_limit_of_its_fit_alone(clock):
    budget = StopSignal(5.0)
    clock[0] += 5.0 + in_time.READING_GRACE
    with budget.reading():
        assert list(read_in_time(range(30), "columns")) == list(range(30))
        clock[0] += 1.0
        assert list(read_in_time(range(in_time.READ_ANYHOW), "columns")) == list(range(in_time.READ_ANYHOW))
        with StopSignal().reading():
            assert list(read_in_time(range(30), "columns")) == list(range(30))
    assert list(read_in_time(range(30), "columns")) == list(range(30))


def test_large_tables_of_numbers_are_read_until_the_limit(clock):
    budget = StopSignal(5.0)
    with budget.reading():
        clock[0] += 5.0 + in_time.READING_GRACE
        look_at_numbers(50_000, 1_000)
        clock[0] += 0.01
        look_at_numbers(50_000, 50)  # these take no time worth a limit
        with pytest.raises(InvalidParameterError, match="50000 rows of 1000 columns takes, got 5 s, which passed"):
            look_at_numbers(50_000, 1_000)
    look_at_numbers(50_000, 1_000)  # nobody reads


def test_a_leaf_needs_as_long_as_reading(clock):
    budget = StopSignal(5.0)
    clock[0] += 2.6
    look_before_fitting(50_000, 1_000, budget)
    clock[0] += 0.1
    look_before_fitting(50_000, 50, budget)
    look_before_fitting(50_000, 1_000, None)
    look_before_fitting(50_000, 1_000, StopSignal())
    with pytest.raises(InvalidParameterError, match="got 5 s, which left no time to fit a leaf; raise it, or"):
        look_before_fitting(50_000, 1_000, budget)
