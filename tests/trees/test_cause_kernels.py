"""The loops over hazards of several causes in parts of a few times, as plain Python."""

import math

import numpy as np
import pytest
from oracles.causes_by_rows import GRID, LINKS, Rows
from oracles.plain_python import plain
from scipy.special import log_ndtr

from softsurv.trees import cause_kernels
from softsurv.trees.cause_kernels import compare_hazards, compare_incidences, fill_incidences, own_incidences

TIMES = np.array([0.05, 0.5, 1.0, 4.0, 9.0, 20.0, 39.0])


@pytest.mark.parametrize("name", ["_log_of_ratio", "_mean_decay"])
def test_series_and_closed_forms_meet(name):
    function = plain(getattr(cause_kernels, name))
    for x in (0.0, 1e-300, 1e-9, 0.01, 0.0999, 0.1001, 0.2499, 0.2501, 3.0, 700.0):
        if name == "_log_of_ratio":
            assert function(2.0 * x, 2.0) == pytest.approx(math.log1p(x), rel=1e-15, abs=0.0)
        else:
            assert function(x) == pytest.approx(-math.expm1(-x) / x if x else 1.0, rel=4e-16)


def test_the_tail_of_the_normal_law_holds_to_any_depth():
    function = plain(cause_kernels._normal_hazard)
    for z in (-37.0, -9.0, -1e-9, 0.0, 0.7, 5.0, 29.999, 30.001, 300.0):
        assert function(z) == pytest.approx(-log_ndtr(-z), rel=1e-12, abs=0.0)
    assert function(-1000.0) == 0.0


@pytest.mark.parametrize("link", LINKS)
def test_parts_of_a_few_times_join(link):
    """Times, events and points of the grid are worked on in parts; here a part has four of them."""
    rows = Rows(link, n=5)
    curves, n = rows.curves, 5
    tables = curves._tables(TIMES)
    of = curves.link, curves.effect, curves.leaf
    survival, found = np.empty((n, TIMES.size)), np.empty((n, TIMES.size, 3))
    plain(fill_incidences, TIMES_AT_ONCE=4)(*of, *tables, survival, found)
    expected = rows.incidences(TIMES)
    np.testing.assert_allclose(survival, expected[0], rtol=1e-12)
    np.testing.assert_allclose(found, expected[1], rtol=1e-12)
    assert len(GRID) > 4
    who, spans = np.arange(TIMES.size) % n, (np.arange(n) % 2, np.full(n, TIMES.size))
    own = np.empty(TIMES.size)
    plain(own_incidences, TIMES_AT_ONCE=4)(*of, 1, *tables, who, own)
    np.testing.assert_allclose(own, found[who, np.arange(TIMES.size), 1], rtol=1e-14)
    counts = np.zeros((2, 2, TIMES.size))
    whole = *spans, np.ones(n), 0, n
    plain(compare_incidences, TIMES_AT_ONCE=4)(*of, 1, *tables, own, *whole, *counts[0])
    plain(compare_hazards, TIMES_AT_ONCE=4)(*of, curves._levels(TIMES), who, *whole, *counts[1])
    both = found[..., 1], rows.log_hazard(TIMES)
    compared = (np.arange(TIMES.size) >= spans[0][:, None]) & (np.arange(TIMES.size) < spans[1][:, None])
    for (lower, equal), values in zip(counts, both, strict=True):
        mine = values[who, np.arange(TIMES.size)]
        same = np.isclose(values, mine, rtol=1e-12)
        assert lower.tolist() == (compared & (values < mine) & ~same).sum(0).tolist()
        assert equal.tolist() == (compared & same).sum(0).tolist()
