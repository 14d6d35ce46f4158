"""Parts of a large table in threads against the plain loop."""

import threading

import numpy as np
import pytest

from softsurv.data import threads
from softsurv.data.threads import MANY_CELLS, MOST_THREADS, cell_parts, in_threads, row_parts, threads_for


def test_small_tables_have_no_threads_and_large_ones_as_many_as_there_are_cores(monkeypatch):
    assert threads_for(MANY_CELLS - 1) == 1
    for cores, expected in ((1, 1), (3, 3), (64, MOST_THREADS)):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        assert threads_for(MANY_CELLS) == expected


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 10])
def test_results_are_in_the_order_of_the_parts(n, n_threads):
    assert in_threads(lambda k: k * k, range(n), n_threads) == [k * k for k in range(n)]


def test_threads_know_what_numpy_was_told_of_errors_and_say_what_they_raise():
    barrier = threading.Barrier(2, timeout=20)

    def told(part):
        barrier.wait()
        return np.geterr()["over"], threading.get_ident()

    with np.errstate(over="ignore"):
        found = in_threads(told, [0, 1], 2)
    assert [over for over, _ in found] == ["ignore", "ignore"]
    assert len({thread for _, thread in found}) == 2
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 / k, [1, 0], 2)
    assert in_threads(lambda k: k, range(1000), 3) == list(range(1000))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9])
def test_parts_are_all_rows_once(n):
    assert [row for rows in row_parts(n, 4) for row in range(n)[rows]] == list(range(n))
    assert all(rows.stop - rows.start <= 4 for rows in row_parts(n, 4))


def test_cells_are_those_of_every_column(monkeypatch):
    monkeypatch.setattr(threads, "row_parts", lambda n: row_parts(n, 2))
    assert cell_parts(2, 3) == [(k, rows) for k in range(2) for rows in (slice(0, 2), slice(2, 3))]
