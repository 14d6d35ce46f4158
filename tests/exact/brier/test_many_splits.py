"""The search for the integrated Brier score where splits are many: which of them differ, and how soon it stops."""

import math

import numpy as np
import pytest

from softsurv.exact.brier.base_case import expand
from softsurv.exact.brier.leaf_costs import IPCW, KM_ROWS
from softsurv.exact.brier.limits import Limits
from softsurv.exact.brier.prepare import has_equal_rows, prepare_rows
from softsurv.exact.brier.search import BrierSearch
from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.brier.table import Rules
from softsurv.exact.brier.tiles import tile
from softsurv.exact.objectives.brier import IbsScore
from softsurv.results import Status
from softsurv.stopping import Stopped


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (40, 70)).astype(np.uint8)
    return x, rng.integers(1, 30, 40).astype(float), rng.random(40) < 0.6


@pytest.mark.parametrize("mode", [KM_ROWS, IPCW])
def test_the_root_is_priced_without_any_split(problem, mode):
    x, time, event = problem
    rows = prepare_rows(x, IbsScore.from_columns(time, event))
    rules = Rules(mode, has_equal_rows(rows), 1.0, 0.0, 2.0, True, np.zeros(1, np.int64), tile.address)
    search = BrierSearch(rows, rules)
    *_, whole, key = expand(rows, search.everyone, rules, math.inf)
    root = search.root
    assert (root.size, root.leaf, root.bound) == pytest.approx(tuple(whole), rel=1e-12)
    assert root.key == (int(key[0]), int(key[1]))


def test_splits_are_priced_until_the_clock_stops(problem):
    x, time, event = problem
    rows = prepare_rows(x, IbsScore.from_columns(time, event))
    limits = Limits()
    rules = Rules(KM_ROWS, has_equal_rows(rows), 1.0, 0.0, 2.0, True, limits.flag, tile.address)
    search = BrierSearch(rows, rules, limits=limits)
    limits.flag[0] = 1
    feature, *_ = expand(rows, search.everyone, rules, math.inf)
    assert len(feature) == 0
    with pytest.raises(Stopped):
        search.children(search.everyone)


def test_many_splits_do_not_outlast_the_clock():
    """All pairs of 60,000 splits were compared before the clock was looked at."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (50, 60_000)).astype(np.uint8)
    time, event = rng.integers(1, 40, 50).astype(float), rng.random(50) < 0.6
    found = solve_ibs(x, time, event, complexity=0.001, max_depth=3, time_limit=0.5)
    assert found.report.status == Status.TIME_LIMIT
    assert found.report.lower_bound <= found.report.objective
