"""Chunks on a device other than the CPU: the first ones stay, the others are read ahead, all give the same problem."""

from dataclasses import fields

import pytest
import torch
from oracles.simulated import simulate

from softsurv.hazards import get_family
from softsurv.soft.streaming.axis import make_axis
from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.placed import PlacedChunks, bytes_of
from softsurv.soft.streaming.store import ChunkStore, gather_outcomes

CHUNKS, ROWS = 5, 30
FAMILY = get_family("spline_ph")


class Elsewhere(PlacedChunks):
    """As on a device that is no CPU, with what was read, in order."""

    def __init__(self, store, axis, like, room):
        super().__init__(store, axis, like, room)
        self._elsewhere, self.read = True, []

    def _pinned(self, number):
        self.read.append(number)
        return super()._pinned(number)


@pytest.fixture
def store():
    data = simulate(CHUNKS * ROWS)
    x, time, event = data.x.numpy(), data.time.numpy(), data.event.numpy()
    with ChunkStore(2000) as store:  # some chunks lie in the file
        for k in range(CHUNKS):
            rows = slice(k * ROWS, (k + 1) * ROWS)
            store.append(x[rows], time[rows], event[rows], None)
        yield store


def tensors_of(problem):
    return {f.name: v for f in fields(problem) if isinstance(v := getattr(problem, f.name), torch.Tensor)}


def asked(chunks, passes=2):
    return [[tensors_of(chunks.problem(k)) for k in range(CHUNKS)] for _ in range(passes)]


@pytest.mark.parametrize("fitting", [0, 2, CHUNKS])
def test_chunks_stay_as_far_as_there_is_room_and_are_read_once_a_pass_beyond(store, fitting):
    axis, like = make_axis(FAMILY, *gather_outcomes(store, Ranks())), torch.zeros((), dtype=torch.float64)
    on_cpu = PlacedChunks(store, axis, like)
    size = bytes_of(on_cpu.problem(0))
    with Elsewhere(store, axis, like, room=fitting * size + size // 2) as chunks:
        found, expected = asked(chunks), asked(on_cpu)
        assert list(chunks.kept) == list(range(fitting))
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.keys() == other.keys()
            assert all(torch.equal(one[name], other[name]) for name in one)
    beyond = list(range(fitting, CHUNKS))
    assert chunks.read[: CHUNKS + len(beyond)] == list(range(CHUNKS)) + beyond
    assert len(chunks.read) <= CHUNKS + len(beyond) + 1  # and at most one ahead of a pass that did not come
    assert not chunks.kept  # nothing is held any more


def test_precision_is_that_of_the_device(store):
    axis, like = make_axis(FAMILY, *gather_outcomes(store, Ranks())), torch.zeros(())
    with Elsewhere(store, axis, like, room=10**9) as chunks:
        assert {value.dtype for value in tensors_of(chunks.problem(0)).values()} == {torch.float32}


def test_a_chunk_that_cannot_be_read_is_an_error_where_it_is_asked_for(store):
    axis, like = make_axis(FAMILY, *gather_outcomes(store, Ranks())), torch.zeros((), dtype=torch.float64)
    with Elsewhere(store, axis, like, room=0) as chunks:
        store.outcomes[1] = None
        chunks.problem(0)
        with pytest.raises(TypeError):
            chunks.problem(1)


def test_the_logarithms_of_times_are_taken_once(store):
    first = store.rows(0, 0.1).log_time
    assert store.rows(0, 0.1).log_time is first
    assert store.rows(0, 0.2).log_time is not first
