"""What a search holds is counted, and `memory_limit` bounds all of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalClassificationTree, OptimalFairClassificationTree, OptimalSurvivalTree
from softsurv.errors import InvalidParameterError, LimitWarning
from softsurv.exact.bounds import Bounds
from softsurv.exact.kernels.simd import LANES
from softsurv.exact.memory import COPIES, Room, bytes_of, bytes_of_pairs, bytes_of_scratch, bytes_of_shares
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.rashomon.problem import SearchProblem
from softsurv.exact.search import Search


@dataclass
class Holder:
    table: dict[str, np.ndarray]
    frame: pd.DataFrame


def test_arrays_count_once_however_they_are_shared():
    block = np.zeros((10, 100))
    one = Holder({"a": block[0], "b": block[1]}, pd.DataFrame({"x": np.zeros(100)}))
    assert bytes_of(one) == block.nbytes + 800
    assert bytes_of(one, (block, [block.T])) == block.nbytes + 800
    assert bytes_of(np.zeros(3), np.zeros(3), None, "text") == 48


def test_the_cache_has_what_rows_and_scratch_leave():
    rng = np.random.default_rng(0)
    codes, label = rng.integers(0, 4, (5000, 6)), rng.integers(0, 2, 5000)
    costs = label_costs.misclassification(label, 2)
    problem = SearchProblem(label_costs.TASK, codes, np.full(6, 4), np.zeros(6, bool), costs)
    wide, narrow = problem.search(1e8), problem.search(3e6)
    assert wide.held == narrow.held > bytes_of(wide.problem)
    for search, limit in ((wide, 1e8), (narrow, 3e6)):
        assert search.held + bytes_of(search.cache) == pytest.approx(limit, rel=0.1)
    alone = narrow.held
    narrow.solve(4, n_jobs=2)
    assert narrow.held > alone  # each thread has scratch of its own, taken off the cache
    assert narrow.held + bytes_of(narrow.cache) <= 3e6


def test_threads_without_room_for_their_scratch_are_left_out():
    """Eight threads on 300,000 rows took 0.72 GB where 0.3 GB were allowed. The tree is the same."""
    rng = np.random.default_rng(0)
    codes, label = rng.integers(0, 4, (5000, 6)), rng.integers(0, 2, 5000)
    costs = label_costs.misclassification(label, 2)
    problem = SearchProblem(label_costs.TASK, codes, np.full(6, 4), np.zeros(6, bool), costs)
    one = problem.search(1e6)
    few, many = problem.search(one.held + 5 * one.scratch_bytes), problem.search(1e9)
    objectives = [search.solve(4, n_jobs=8).report.objective for search in (few, many)]
    assert 1 < len(few.scratch) < len(many.scratch) == 8
    assert few.held + bytes_of(few.cache) <= 1.01 * few.memory_limit
    assert objectives[0] == objectives[1]


def test_sums_over_pairs_of_bins_take_a_share_of_the_limit():
    """They only save time: with less memory the children of a node are solved one by one, and the tree is the same."""
    rng = np.random.default_rng(0)
    codes, event = rng.integers(0, 10, (200, 30)).astype(np.int32), rng.integers(0, 2, 200).astype(float)
    statistics = np.column_stack([event, rng.exponential(size=200)])
    found = []
    for limit in (1e9, 1e7):
        search = Search(relative_risk.TASK, codes, np.full(30, 10), np.zeros(30, bool), statistics, memory_limit=limit)
        assert bytes_of_pairs(search.problem) == 8 * 300**2 * 2
        assert search.problem.use_lanes == (limit == 1e9)
        assert len(search.scratch[0].local.value.pairs) == (300**2 * 2 if limit == 1e9 else 0)
        assert search.needed < limit
        found.append(search.solve(3, 8).report)
    assert [one.details["lane_runs"] > 0 for one in found] == [True, False]
    assert found[0].objective == pytest.approx(found[1].objective)


def test_what_pairs_of_splits_share_takes_a_share_of_the_limit():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 20, (150, 30)).astype(np.int32)
    costs = label_costs.misclassification((codes[:, 0] > 9).astype(int) ^ (rng.random(150) < 0.1), 2)
    found = []
    for limit in (1e9, 5e7):
        search = Search(
            label_costs.TASK, codes, np.full(30, 20), np.zeros(30, bool), costs, complexity=2.0, memory_limit=limit
        )
        assert search.base == "bits"
        assert search.problem.use_similar == (limit == 1e9) == (bytes_of_shares(search.problem) <= limit / 8)
        assert search.needed < limit
        found.append(search.solve(3, 8).report.objective)
    assert found[0] == found[1]


def test_what_pairs_of_splits_share_takes_no_more_scratch_than_is_counted():
    """Of 0/1 columns there are twice as many codes as splits: pairs of codes would take four times as much."""
    rng = np.random.default_rng(2)
    codes, label = (rng.random((150, 400)) < 0.3).astype(np.int32), rng.integers(0, 2, 150)
    costs, kinds = label_costs.misclassification(label, 2), np.zeros(400, bool)
    with_them, without = (
        Search(label_costs.TASK, codes, np.full(400, 2), kinds, costs, bounds=Bounds(similar=similar))
        for similar in (True, False)
    )
    taken = bytes_of_scratch(with_them.scratch) - bytes_of_scratch(without.scratch)
    assert taken == pytest.approx(bytes_of_shares(with_them.problem), rel=0.15)


def test_a_limit_below_what_the_rows_take_is_told_with_both_numbers():
    room = Room(1e6).beside(np.zeros(100_000))
    assert room.left == pytest.approx(1e6 - COPIES * 8e5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        room.check(1e4)
    with pytest.warns(LimitWarning, match=r"memory_limit=1e\+06 bytes is less than the 1.44e\+06"):
        room.check(4e5)


def test_columns_that_take_many_times_the_table_are_refused_before_they_are_made():
    """These would take 34 GB."""
    rng = np.random.default_rng(1)
    X, n = rng.standard_normal((20_000, 20)), 20_000
    tree = OptimalSurvivalTree("ibs", max_depth=1, thresholds="all", memory_limit=1e8)
    said = r"at least the 3.36e\+10 bytes that 399980 splits of 20000 rows, .*, got 1e\+08; lower thresholds"
    with pytest.raises(InvalidParameterError, match=said):
        tree.fit(X, (np.ones(n, dtype=bool), np.arange(1.0, n + 1)))


def test_a_tuned_tree_warns_of_no_limit_that_it_keeps():
    """Joint sums only save time: a limit that has room for them on all rows, and not on a fold too, is enough."""
    rng = np.random.default_rng(0)
    X, n = rng.standard_normal((20_000, 20)), 20_000
    tree = OptimalSurvivalTree(memory_limit=6e7, time_limit=0.5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tree.fit(X, (np.ones(n, dtype=bool), rng.exponential(size=n)))
    assert not [one for one in said if "memory_limit" in str(one.message)]


def test_joint_sums_are_left_out_where_their_tables_break_the_limit():
    """They save time alone; the tree is the same."""
    rng = np.random.default_rng(1)
    codes, n_codes = rng.integers(0, 5, (20_000, 6)).astype(np.int32), np.full(6, 5)
    costs = label_costs.misclassification(rng.integers(0, 2, 20_000), 2)
    data = label_costs.TASK, codes, n_codes, np.zeros(6, dtype=bool), costs
    wide, narrow = Search(*data, memory_limit=1e9), Search(*data, memory_limit=3e6)
    assert wide.by_joint
    assert not narrow.by_joint
    assert narrow.held < wide.held
    assert narrow.solve(3).report.objective == wide.solve(3).report.objective


def test_no_table_of_pairs_of_splits_is_made_where_nothing_is_kept_in_it():
    """Of 20,000 splits it would take 3 GB."""
    rng = np.random.default_rng(1)
    codes, costs = rng.integers(0, 3, (60, 10_000)), label_costs.misclassification(rng.integers(0, 2, 60), 2)

    def search_over(p):
        return SearchProblem(label_costs.TASK, codes[:, :p], np.full(p, 3), np.zeros(p, bool), costs).search(1e8)

    search, few = search_over(10_000), search_over(20)
    for one in (search, few):
        pairs = (len(one.problem.row_kinds.split_code) + LANES) ** 2
        assert len(one.problem.row_kinds.split_code) > 0
        assert one.scratch[0].local.value.bits.shared.size == (pairs if one.problem.use_similar else 0)
    assert few.problem.use_similar
    assert not search.problem.use_similar
    assert 1e6 < sum(search.scratch[0].nbytes) < 1e9


@pytest.mark.parametrize("kind", ["classes", "fair", "survival", "brier"])
def test_every_search_tells(kind):
    """The tree is the same with less memory."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (20_000, 12)).astype(float), rng.integers(0, 2, 20_000)
    outcome = (y == 1, rng.integers(1, 9, 20_000).astype(float))
    fits = {
        "classes": lambda limit: OptimalClassificationTree(max_depth=1, memory_limit=limit).fit(X, y),
        "fair": lambda limit: OptimalFairClassificationTree(max_depth=1, memory_limit=limit).fit(X, y, group=X[:, 0]),
        "survival": lambda limit: OptimalSurvivalTree(max_depth=1, memory_limit=limit).fit(X, outcome),
        "brier": lambda limit: OptimalSurvivalTree("ibs", max_depth=1, memory_limit=limit).fit(X, outcome),
    }
    enough = fits[kind](1e9)
    with pytest.warns(LimitWarning, match="raise memory_limit"):
        short = fits[kind](1e6)
    assert short.export_text() == enough.export_text()
