"""Trees of depth one and two over a set of rows, against every pair of splits by the definition of the score."""

import ctypes
import math

import numpy as np
import pytest
from oracles.brier_rows import in_order, in_python, least_losses, rules_of
from oracles.plain_python import plain

from softsurv.exact.brier.base_case import coarse_floor, expand, solve_shallow
from softsurv.exact.brier.leaf_costs import IPCW, KM_ROWS
from softsurv.exact.brier.prepare import prepare_rows


def shallow(rows, index, rules, depth=2, budget=math.inf, floor=None):
    floor = np.zeros(rows.x.shape[1]) if floor is None else floor
    return plain(solve_shallow)(rows, index, in_python(rules), depth, budget, floor)


def loss_of(plan, x, score, leaf, rows):
    """Loss of the tree of a plan."""
    sides = [(rows[x[rows, plan[0]] == 1], plan[1]), (rows[x[rows, plan[0]] == 0], plan[2])]
    total = 0.0
    for side, split in sides:
        parts = [side] if split < 0 else [side[x[side, split] == value] for value in (1, 0)]
        total += sum(score.leaf_loss(part, leaf) for part in parts)
    return total


@pytest.mark.parametrize(("mode", "leaf"), [(KM_ROWS, "km"), (IPCW, "ipcw")])
@pytest.mark.parametrize("how", [{}, {"weighted": True}, {"n": 60, "n_times": 3}, {"p": 18, "n": 16}])
def test_least_losses_by_number_of_leaves(mode, leaf, how):
    x, score, rows = in_order(5, **how)
    index = np.arange(len(x))
    loss, plan = shallow(rows, index, rules_of(rows, mode, min_rows=2.0))
    expected = least_losses(x, score, leaf, min_rows=2)
    np.testing.assert_allclose(loss[2:], expected[2:], atol=1e-13)
    for leaves in (2, 3, 4):
        assert loss_of(plan[leaves], x, score, leaf, index) == pytest.approx(loss[leaves])
        assert (plan[leaves] >= 0).sum() == leaves - 1


def test_depth_one_and_a_subset_of_the_rows():
    x, score, rows = in_order(6, n=30)
    index = np.arange(2, 30, 2)
    loss, _ = shallow(rows, index, rules_of(rows), depth=1)
    assert loss[2] == pytest.approx(least_losses(x, score, rows=index, depth=1)[2])
    assert np.isinf(loss[3:]).all()
    loss, _ = shallow(rows, index, rules_of(rows))
    np.testing.assert_allclose(loss[2:], least_losses(x, score, rows=index)[2:])


def test_a_budget_and_a_floor_leave_out_only_what_does_not_matter():
    _, _, rows = in_order(7, n=40)
    rules, index = rules_of(rows, complexity=0.003), np.arange(40)
    loss, plan = shallow(rows, index, rules)
    value = min(loss[k] + 0.003 * k for k in (2, 3, 4))
    best = min((2, 3, 4), key=lambda k: loss[k] + 0.003 * k)
    for floor in (np.zeros(4), np.where(np.arange(4) == plan[best, 0], 0.0, value + 1e-6)):
        within, same = shallow(rows, index, rules, budget=value + 1e-6, floor=floor)
        assert within[best] == pytest.approx(loss[best])
        np.testing.assert_array_equal(same[best], plan[best])


def test_children_of_every_split_and_what_was_left_out():
    x, score, rows = in_order(8, n=30)
    index, rules = np.arange(30), in_python(rules_of(rows, min_rows=2.0, complexity=0.002))
    feature, node, key, pruned, whole, whole_key = plain(expand)(rows, index, rules, math.inf)
    assert math.isinf(pruned)
    np.testing.assert_allclose(whole, [30, score.leaf_loss(index), rows.bound.sum()])
    np.testing.assert_array_equal(whole_key, rows.key.sum(axis=0, dtype=np.uint64))
    for k, f in enumerate(feature):
        for side, value in enumerate((1, 0)):
            part = index[x[:, f] == value]
            np.testing.assert_allclose(
                node[side, :3, k], [len(part), score.leaf_loss(part), rows.bound[part].sum()], atol=1e-14
            )
            np.testing.assert_array_equal(key[side, :, k], rows.key[part].sum(axis=0, dtype=np.uint64))
            if node[side, 3, k] == 0:  # no split of this side can pay for its leaves
                best = least_losses(x, score, rows=part)
                assert min(best[m] + 0.002 * m for m in (2, 3, 4)) >= best[1] + 0.002 - 1e-12
    few, *_, left_out, _, _ = plain(expand)(rows, index, rules, 0.0)
    assert len(few) == 0
    least = min(
        sum(least_losses(x, score, rows=index[x[:, f] == v])[1:].min() for v in (1, 0)) + 0.004 for f in feature
    )
    assert 0.0 <= left_out <= least + 1e-12


def test_no_split_leaves_enough_rows():
    _, _, rows = in_order(8, n=10)
    loss, plan = shallow(rows, np.arange(10), rules_of(rows, min_rows=6.0))
    assert np.isinf(loss).all()
    assert (plan == -1).all()


def test_coarse_bins_bound_the_trees_of_each_first_split(monkeypatch):
    monkeypatch.setattr("softsurv.exact.brier.prepare.PACK_FACTOR", 0)
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_BINS", 1)
    monkeypatch.setattr("softsurv.exact.brier.prepare.COARSE_ROWS", 5)
    x, score, rows = in_order(9, n=60, n_times=40)
    x[:, 3] = 0  # no row has the last feature
    rows = prepare_rows(x, score)
    index, rules = np.arange(60), rules_of(rows, min_rows=2.0, complexity=0.002)
    floor = plain(coarse_floor)(rows, index, in_python(rules))
    assert floor[3] == np.inf
    for f in range(3):
        sides = [index[x[:, f] == value] for value in (1, 0)]
        best = 0.0
        for side in sides:
            losses = least_losses(x, score, min_rows=2, rows=side, depth=1)
            best += min(losses[k] + 0.002 * k for k in (1, 2))
        assert 0.5 * best < floor[f] <= best + 1e-12


@pytest.mark.parametrize("search", [solve_shallow, expand])
def test_costs_that_memory_did_not_suffice_for_are_an_error(search):
    """No error passes through the address of the function that is called for the costs."""

    def without_memory(*_):
        return 0.0

    called = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_int64] * 6)(without_memory)
    address = ctypes.cast(called, ctypes.c_void_p).value
    _, _, rows = in_order(8)
    more = (2, math.inf, np.zeros(4)) if search is solve_shallow else (math.inf,)
    for function, in_its_place in ((plain(search), without_memory), (search, address)):
        with pytest.raises(MemoryError):
            function(rows, np.arange(24), rules_of(rows)._replace(tile=in_its_place), *more)
