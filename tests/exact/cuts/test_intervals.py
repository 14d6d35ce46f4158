"""Intervals that wait at a node: the least bound first, and slots used again."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oracles.plain_python import plain

from softsurv.exact.cuts.intervals import clear_intervals, pop_interval, push_interval

push, pop, clear = plain(push_interval), plain(pop_interval), plain(clear_intervals)


def empty(levels=2, room=8):
    whole = {name: np.zeros((levels, room), np.int32) for name in ("slot", "back")}
    return SimpleNamespace(
        key=np.zeros((levels, room)), waiting=np.zeros((levels, 3), np.int64),
        span=np.zeros((3 * levels, room), np.int32), side_bound=np.zeros((4 * levels, room)), **whole,
    )  # fmt: skip


def add(cuts, level, bound):
    """An interval whose numbers tell it from the others."""
    push(
        cuts, level, bound, int(10 * bound), int(10 * bound) + 1, int(10 * bound) + 2, bound, -bound, 2 * bound, np.inf
    )


@given(st.lists(st.one_of(st.integers(0, 30), st.none()), max_size=40))
def test_the_least_bound_comes_first(steps):
    """Numbers are added, None takes one out."""
    cuts, waiting = empty(room=48), []
    for step in steps:
        if step is not None:
            add(cuts, 1, step / 10)
            waiting.append(step / 10)
        elif waiting:
            slot, least = pop(cuts, 1), min(waiting)
            waiting.remove(least)
            assert cuts.span[3:6, slot].tolist() == [int(10 * least) + k for k in range(3)]
            np.testing.assert_allclose(cuts.side_bound[4:8, slot], [least, -least, 2 * least, np.inf])
        assert cuts.waiting[1, 0] == len(waiting)
        assert cuts.waiting[0].tolist() == [0, 0, 0]


def test_slots_given_back_are_used_again():
    cuts = empty(room=3)
    for bound in (0.3, 0.1, 0.2):
        add(cuts, 0, bound)
    for bound in (0.4, 0.5, 0.6):
        pop(cuts, 0)
        add(cuts, 0, bound)
    taken = [pop(cuts, 0) for _ in range(3)]
    assert sorted(taken) == [0, 1, 2]
    assert cuts.waiting[0, 1] == 3


def test_a_cleared_level_is_empty_and_its_slots_are_free():
    cuts = empty()
    add(cuts, 0, 0.1)
    add(cuts, 1, 0.2)
    clear(cuts, 0)
    assert cuts.waiting.tolist() == [[0, 0, 0], [1, 1, 0]]
    add(cuts, 0, 0.7)
    assert pop(cuts, 0) == 0
