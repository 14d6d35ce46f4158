"""Bounds change the time of a search, never its optimum: random problems with every bound on and off."""

import dataclasses

import fuzz_exact
import numpy as np
import pytest

from softsurv.exact.bounds import Bounds
from softsurv.exact.brier.bounds import IbsBounds
from softsurv.exact.objectives import label_costs
from softsurv.exact.search import Search
from softsurv.results import Status

EVERY = {"brier": IbsBounds()}


@pytest.mark.parametrize("target", fuzz_exact.TARGETS)
def test_bounds_leave_the_optimum(target):
    every = EVERY.get(target, Bounds())
    off = dataclasses.replace(fuzz_exact.all_off(every), base_case=True)  # the plain one is compared in test_search
    for seed in range(600 if target == "labels" else 150):
        solve = fuzz_exact.TARGETS[target](np.random.default_rng(seed))
        assert not fuzz_exact.differ(solve(every), solve(off)), f"fuzz_exact.py --targets {target} --seed {seed}"


@pytest.mark.parametrize("target", fuzz_exact.TARGETS)
def test_no_single_switch_changes_the_optimum(target):
    every = EVERY.get(target, Bounds())
    for number, switch in enumerate(dataclasses.fields(every)):
        for seed in range(1000 * number, 1000 * number + 12):
            solve = fuzz_exact.TARGETS[target](np.random.default_rng(seed))
            without = dataclasses.replace(every, **{switch.name: False})
            assert not fuzz_exact.differ(solve(every), solve(without)), f"{target} without {switch.name}, seed {seed}"


def test_similar_support_where_no_label_is_free():
    """Rows that cost something under every label: w is what a row can cost at most, not the spread of its costs."""
    codes = np.array(
        [[0, 1, 2], [2, 1, 0], [0, 1, 1], [1, 0, 1], [2, 1, 1], [2, 1, 2], [0, 0, 0], [0, 1, 0], [1, 1, 2], [2, 0, 1],
         [0, 0, 1]]
    )  # fmt: skip
    costs = np.array(
        [[2, 3, 3], [2, 1, 4], [4, 4, 3], [3, 3, 3], [1, 2, 0], [3, 3, 3], [0, 0, 2], [4, 2, 0], [2, 2, 1], [0, 3, 1],
         [2, 3, 3]], float
    )  # fmt: skip
    search = Search(
        label_costs.TASK, codes, np.array([3, 2, 3]), np.array([False, True, False]), costs,
        complexity=0.4, memory_limit=1e6,
    )  # fmt: skip
    assert search.solve(3, 6).report.objective == pytest.approx(17.0)


def test_similar_support_between_sides_with_different_limits():
    """Five leaves are shared as two and three: what two leaves cost at least says nothing of three."""
    solve = fuzz_exact.TARGETS["labels"](np.random.default_rng(6711))
    assert solve(Bounds()) == pytest.approx(15.0 / 23.5)


def test_dear_leaves_end_the_search_at_its_base_case():
    """A tree with three leaves on one side costs more than the best of depth two: nothing below the root is opened."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (200, 12)).astype(np.int32)
    label = codes[:, 0] ^ (rng.random(200) < 0.1)
    costs = label_costs.misclassification(label, 2)
    data = label_costs.TASK, codes, np.full(12, 2), np.zeros(12, bool), costs
    seen = {}
    for on in (True, False):
        search = Search(*data, complexity=20.0, bounds=Bounds(look_ahead=on))
        report = search.solve(4).report
        seen[on] = report.objective, report.details["base_cases"]
    assert seen[True][0] == seen[False][0]
    assert seen[True][1] <= 2 < 20 < seen[False][1]  # once for each of the depths 3 and 4


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_features", [1, 3])
def test_the_arguments_stay_as_they_are(order, n_features):
    rng = np.random.default_rng(0)
    codes = np.array(rng.integers(0, 2, (9, n_features)), np.int32, order=order)
    codes[0] = 1  # features with two codes are compared with those that have them swapped
    costs = np.array(rng.random((9, 2)), order=order)
    given = codes.copy(), costs.copy()
    search = Search(label_costs.TASK, codes, np.full(n_features, 2), np.zeros(n_features, bool), costs)
    tree = search.solve(2).tree
    assert (codes == given[0]).all()
    assert (costs == given[1]).all()
    if n_features == 1 and tree.n_leaves == 2:
        np.testing.assert_allclose(tree.sums[tree.left[0]], costs[codes[:, 0] <= tree.code[0]].sum(axis=0))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("off", ["bits", "similar", "cancel", "interval"])
def test_bits_and_bounds_do_not_change_the_optimum(n_labels, off):
    rng = np.random.default_rng(n_labels)
    codes = rng.integers(0, 2, (150, 12)).astype(np.int32)
    codes[:, 6] = 1 - codes[:, 0]
    label = np.where(rng.random(150) < 0.2, rng.integers(0, n_labels, 150), codes[:, :3].sum(axis=1) % n_labels)
    statistics = label_costs.misclassification(label, n_labels)

    def solve(bounds):
        search = Search(
            label_costs.TASK, codes, np.full(12, 2), np.zeros(12, bool), statistics, bounds=bounds, memory_limit=1e7
        )
        return search.solve(4).report

    every, without = solve(Bounds()), solve(Bounds(**{off: False}))
    assert every.status == without.status == Status.OPTIMAL
    assert every.objective == without.objective
    assert off != "bits" or without.details["lane_runs"] > every.details["lane_runs"] == 0
