"""Hazards and incidences of several causes in compiled loops, beside those of each row at each time."""

import numpy as np
import pytest
from oracles.causes_by_rows import LINKS, Rows, counted

from softsurv.trees import causes_in_leaves
from softsurv.trees.causes_in_leaves import CausesInLeaves, CountedIncidences, RankedByHazard, RankedByIncidence

TIMES = np.array([0.0, 0.004, 0.01, 0.3, 2.0, 2.0001, 9.0, 25.0, 39.0])
BEYOND = 27.0
"""Added to all predictors: survival ends within the times, and hazards leave the exponential."""


def _events(seed=0, n=40):
    """Rows and times of events, from where to where each row is compared, and masses."""
    rng = np.random.default_rng(seed)
    rows, time = rng.permutation(n)[:25], np.sort(rng.choice(TIMES[1:], 25))
    first = rng.integers(0, 5, n)
    return rows, time, first, np.minimum(first + rng.integers(0, 25, n), 25), rng.integers(0, 4, n).astype(float)


@pytest.fixture(autouse=True)
def _compiled_for_few(monkeypatch):
    """Loops are taken for these small tables, too."""
    monkeypatch.setattr(causes_in_leaves, "FEW_CELLS", 0)
    monkeypatch.setattr(causes_in_leaves, "FEW_PAIRS", 0)


def test_few_rows_do_not_wait_for_the_compiler(monkeypatch):
    """The first incidence of one row took three seconds on a machine, and in every process that can write no cache."""
    monkeypatch.undo()
    rows, events = Rows("proportional_hazards"), _events()
    assert rows.curves.incidences(TIMES) is None
    assert rows.curves.count_by_hazard(*events) is rows.curves.count_by_incidence(0, *events) is None


@pytest.mark.parametrize("late", [0.0, BEYOND])
@pytest.mark.parametrize("link", LINKS)
def test_incidences_are_those_of_the_formula(link, late):
    rows = Rows(link, late=late)
    for got, expected in zip(rows.curves.incidences(TIMES), rows.incidences(TIMES), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("late", [0.0, BEYOND])
@pytest.mark.parametrize("link", LINKS)
def test_log_hazards_are_those_of_the_formula(link, late, monkeypatch):
    rows = Rows(link, late=late)
    np.testing.assert_allclose(rows.curves.log_hazards(TIMES), rows.log_hazard(TIMES), rtol=1e-10, atol=1e-12)
    ranked = RankedByHazard(rows.curves, lambda times: pytest.fail("the table of rows and times took the slow way"))
    assert np.array_equal(ranked(TIMES), rows.curves.log_hazards(TIMES))
    monkeypatch.setattr(causes_in_leaves, "FEW_CELLS", 1e6)
    assert rows.curves.log_hazards(TIMES) is None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("late", [0.0, BEYOND])
@pytest.mark.parametrize("link", LINKS)
def test_rows_are_counted_as_by_a_table_of_rows_and_events(link, late, whole):
    rows = Rows(link, late=late)
    who, time, first, last, mass = _events()
    mass = mass.astype(np.int64) if whole else mass / 3
    at_events = (who, time, first, last, mass)
    found = [rows.curves.count_by_hazard(*at_events)]
    tables = [rows.log_hazard(time)]
    if not late:  # incidences that have ended differ by rounding alone
        found += [rows.curves.count_by_incidence(cause, *at_events) for cause in range(3)]
        tables += list(np.moveaxis(rows.incidences(time)[1], -1, 0))
    for counts, table in zip(found, tables, strict=True):
        for got, expected in zip(counts, counted(table, who, first, last, mass), strict=True):
            assert got.dtype == mass.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-12)
        assert counts[1].sum() > 0 < counts[0].sum()


@pytest.mark.parametrize("link", LINKS)
def test_equal_rows_tie_wherever_the_hazard_is(link):
    for late in (-200.0, 0.0, BEYOND, 60.0):
        rows = Rows(link, n=4, late=late)
        curves = rows.curves.take(np.zeros(6, dtype=np.int64))
        time = np.array([1.0, 20.0, 39.0])
        compared = np.array([0, 3, 5]), time, np.zeros(6, np.int64), np.full(6, 3), np.ones(6, np.int64)
        for lower, equal in (curves.count_by_hazard(*compared), curves.count_by_incidence(1, *compared)):
            assert lower.tolist() == [0, 0, 0]
            assert equal.tolist() == [6, 6, 6]


def test_the_sum_of_parts_does_not_depend_on_threads(monkeypatch):
    rows, events, found = Rows("proportional_hazards"), _events(), []
    for threads in (1, 3):
        monkeypatch.setattr("softsurv.trees.causes_in_leaves.threads_for", lambda cells, n=threads: n)
        found.append(rows.curves.count_by_hazard(*events[:4], events[4] / 3))
    assert np.array_equal(found[0], found[1])


def test_what_a_float_does_not_hold_is_left_to_others():
    rows = Rows("proportional_odds")
    wide = rows.offset.copy()
    wide[0, 0] = 500.0
    assert CausesInLeaves.of("proportional_odds", rows.leaf, wide, rows.baseline, rows.curves.grid) is None
    assert CausesInLeaves.of("a link of one's own", rows.leaf, rows.offset, rows.baseline, rows.curves.grid) is None
    for link in ("proportional_odds", "probit"):
        beyond = Rows(link, late=320.0).curves
        assert beyond.incidences(TIMES) is beyond.log_hazards(TIMES) is None
        assert beyond.count_by_hazard(*_events()) is None
        assert beyond.count_by_incidence(0, *_events()) is None


def test_the_measures_get_values_too_and_those_of_all_causes_once():
    rows, asked = Rows("proportional_hazards"), []

    def each(times):
        asked.append(times)
        return rows.incidences(times)[1]

    of_all = CountedIncidences(rows.curves, each)
    for code in (1, 2, 3):
        assert np.array_equal(of_all(TIMES, code), rows.incidences(TIMES)[1][..., code - 1])
    assert len(asked) == 1
    one = of_all.of_cause(2)
    assert isinstance(one, RankedByIncidence)
    assert np.array_equal(one(TIMES[3:]), rows.incidences(TIMES[3:])[1][..., 1])
    assert len(asked) == 2
    events = _events()
    assert np.array_equal(one.count(*events), rows.curves.count_by_incidence(1, *events))
    ranked = RankedByHazard(rows.curves, rows.log_hazard)
    np.testing.assert_allclose(ranked(TIMES), rows.log_hazard(TIMES), rtol=1e-12)
    assert np.array_equal(ranked.count(*events), rows.curves.count_by_hazard(*events))
