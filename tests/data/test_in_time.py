"""Reading within a time limit: what is read in any case, the grace, and whose limit it is."""

import pytest

from softsurv import stopping
from softsurv.data import in_time
from softsurv.data.in_time import read_in_time
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
