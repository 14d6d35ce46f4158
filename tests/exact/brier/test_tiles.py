"""Costs of the leaves of many pairs of splits, against the score of each leaf, in Python and compiled."""

import sys

import numpy as np
import pytest
from oracles.brier_rows import four_leaves, in_order, loss_of, rules_of
from oracles.plain_python import pack, plain

from softsurv.exact.brier.leaf_costs import IPCW, KM_BINS, KM_ROWS, LANES
from softsurv.exact.brier.table import SubsetTable, gather
from softsurv.exact.brier.tiles import DONE, tile
from softsurv.exact.kernels.views import Packed, start_of

WEIGHTED = pytest.param(KM_ROWS, {"weighted": True}, id="weights")
CASES = [
    WEIGHTED,
    pytest.param(KM_ROWS, {"n": 24}, id="rows"),
    pytest.param(KM_ROWS, {"n": 150, "n_times": 4}, id="bins"),
    pytest.param(IPCW, {}, id="pointwise"),
]


@pytest.mark.parametrize(("mode", "how"), CASES)
def test_costs_and_rows_of_four_leaves_for_each_second_split(mode, how):
    x, score, rows = in_order(4, **how)
    index = np.arange(len(x))
    local = plain(gather)(rows, index, np.arange(4), rules_of(rows, mode))
    assert local.mode == (KM_BINS if how.get("n_times") == 4 else mode)
    local = local._replace(mode=int(local.mode), y_end=float(local.y_end), equal=bool(local.equal))
    words = np.empty(Packed(local).words.size, np.int64)
    pack(local, words)
    for first in (1, local.bits.shape[1] - 1):
        found = []
        for function, table in ((plain(tile), _Words(words)), (tile, Packed(local).address)):
            work, cost, count = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
            given = (work, cost, count) if function is not tile else map(start_of, (work, cost, count))
            assert function(table, first, 0, *given) == DONE
            found.append((cost.reshape(4, LANES)[:, :4], count.reshape(4, LANES)[:, :4]))
        (cost, count), (compiled_cost, compiled_count) = found
        columns = np.hstack([x, np.ones((len(x), 1), np.uint8)])
        leaves = [four_leaves(columns, min(first, 4), second) for second in range(4)]
        losses = [[loss_of(score, one, "ipcw" if mode == IPCW else "km") for one in four] for four in leaves]
        np.testing.assert_allclose(cost, np.array(losses).T, atol=1e-13)
        np.testing.assert_array_equal(count, np.array([[len(one) for one in four] for four in leaves]).T)
        np.testing.assert_allclose(compiled_cost, cost, atol=1e-14)
        np.testing.assert_array_equal(compiled_count, count)


def test_without_memory_it_says_that_it_is_not_done(monkeypatch):
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: errors.append(raised.exc_type))
    _, _, rows = in_order(4, n=150, n_times=4)
    local = plain(gather)(rows, np.arange(150), np.arange(4), rules_of(rows))
    packed = Packed(local._replace(mode=int(local.mode), y_end=float(local.y_end), equal=bool(local.equal)))
    packed.words[packed.view.fields["first"].at + 1] = 1 << 50  # of so many segments no sums can be kept
    given = np.empty(24 * LANES), np.empty(4 * LANES), np.empty(4 * LANES)
    assert tile(packed.address, 0, 0, *map(start_of, given)) != DONE
    assert errors == [MemoryError]


def test_the_words_of_the_table_are_as_many_as_its_view_reads():
    from softsurv.exact.brier.base_case import TABLE_WORDS
    from softsurv.exact.kernels.views import view_of

    assert view_of(SubsetTable).n_words == TABLE_WORDS


class _Words:
    """The address of words in plain Python."""

    def __init__(self, words):
        self.flat = words
