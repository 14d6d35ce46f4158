"""The check of a first replay: CUDA graphs on a device, and the stand-in of `oracles/recorded.py` on a CPU."""

from contextlib import nullcontext

import pytest
import torch
from oracles.device_paths import joint_training
from oracles.no_waits import no_waits
from oracles.recorded import Recorder

from softsurv.soft.bfgs import BfgsSettings, minimise_dense
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.replay import CudaGraphs, Repeated, recording
from softsurv.soft.watch import never_waiting

RULE = LbfgsSettings(max_iterations=24, ftol=0.0)
"""Rounds enough that some are recorded, compared and, if they agree, replayed."""

WAYS = [
    pytest.param("cpu", id="stand-in"),
    pytest.param(
        "cuda:0",
        id="cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")],
    ),
]


@pytest.fixture(params=WAYS)
def device(request):
    with never_waiting(), operators_alone():
        yield torch.device(request.param)


def recorder(device):
    """What records there, which has not failed yet."""
    return CudaGraphs(device) if device.type == "cuda" else Recorder()


def arrived(device):
    """Once the device has done its work, so that a verdict is there."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Adds:
    """Rounds that add numbers to the first of three trees; with ``stale`` the numbers are counted by Python alone."""

    def __init__(self, device, stale):
        self.total, self.next, self.stale = torch.zeros(3, 2, device=device), 1.0, stale
        self.step = torch.ones((), device=device)

    def __call__(self, count):
        for _ in range(count):
            self.total[0].add_(self.next if self.stale else self.step)
            self.next, _ = self.next + 1.0, self.step.add_(1.0)

    @property
    def first(self):
        return self.total[0, 0].item()


def repeated(rounds, capture):
    """Rounds two at a time, after one."""
    return Repeated(rounds, capture, (rounds.total, rounds.step), (rounds.total,), 2, 1)


def test_a_replay_that_agrees_takes_over(device):
    rounds = Adds(device, stale=False)
    do = repeated(rounds, recorder(device))
    for number in range(1, 6):
        do()
        arrived(device)
        taken = 2 * number - 1
        assert rounds.first == taken * (taken + 1) / 2
        assert rounds.total[1:].abs().sum() == 0
    assert do.record is not None
    assert rounds.next == 1 + 1 + 2 + 2  # Python was there once alone, for the record and for the check: then replays


def test_a_replay_that_differs_is_found_and_counts_for_nothing(device):
    rounds = Adds(device, stale=True)
    do = repeated(rounds, recorder(device))
    do()
    do()
    arrived(device)
    assert rounds.first == 1 + 4 + 5  # 2 and 3 went into the record; the rounds by operators count
    with pytest.warns(RuntimeWarning, match="differ from those by operators when they are replayed"):
        do()
    assert do.record is None
    assert do.capture is None
    assert rounds.first == 1 + 4 + 5 + 6 + 7
    assert do() == 1
    assert rounds.first == 1 + 4 + 5 + 6 + 7 + 8


def test_what_asks_the_device_cannot_be_recorded(device):
    """It is told once, and the device goes on."""
    rounds, asked = Adds(device, stale=False), []

    def asks(count):
        asked.append(rounds.first)
        rounds(count)

    do = Repeated(asks, recorder(device), (rounds.total, rounds.step), (rounds.total,), 2, 1)
    do()
    with pytest.warns(RuntimeWarning, match="could not be recorded"):
        assert do() == 2
    assert do() == 1
    assert rounds.first == 1 + 2 + 3 + 4
    assert len(asked) == 3  # an error ended the record before it was noted


def test_the_check_does_not_wait(device):
    rounds = Adds(device, stale=False)
    do = repeated(rounds, recorder(device))
    do()
    with no_waits() if device.type == "cuda" else nullcontext():
        do()
        do()  # whether the verdict is there or not
    assert rounds.first == 15


class Stale:
    """Records as the recorder does; a replay does nothing."""

    def __init__(self, recorder):
        self.recorder, self.tries = recorder, 0

    def __call__(self, work):
        self.tries += 1
        return None if self.recorder(work) is None else lambda: None


class Kept:
    """Records as the recorder does, and counts records and their replays."""

    def __init__(self, recorder):
        self.recorder, self.made, self.replays = recorder, 0, 0

    def __call__(self, work):
        record = self.recorder(work)
        self.made += 1

        def replay():
            self.replays += 1
            record()

        return replay


def no_room(work):
    """Records nothing: rounds run operator by operator."""


def test_training_with_a_faulty_replay_ends_where_it_ends_without(device):
    objective, start, metric = joint_training(str(device))
    stale = Stale(recorder(device))
    with recording(no_room):
        expected = minimise(objective, start, RULE, metric)
    with recording(stale), pytest.warns(RuntimeWarning, match="differ"):
        found = minimise(objective, start, RULE, metric)
    assert stale.tries == 1
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=0)
    assert torch.equal(found.converged, expected.converged)


def test_training_with_a_right_replay_ends_where_it_ends_without(device, recwarn):
    objective, start, metric = joint_training(str(device))
    with recording(no_room):
        expected = minimise(objective, start, RULE, metric)
    kept = Kept(recorder(device))
    with recording(kept):
        found = minimise(objective, start, RULE, metric)
    assert kept.replays > 1  # one to be compared, others that count
    assert not [one for one in recwarn if one.category is RuntimeWarning]
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=0)


def test_a_stack_that_narrows_is_recorded_anew_and_ends_where_it_ends_without(device, recwarn):
    """One of two trees stops among recorded rounds; without a record it leaves at once."""
    objective, start, metric = joint_training(str(device))
    rule = LbfgsSettings(max_iterations=80, ftol=1e-5)
    with recording(no_room):
        expected = minimise(objective, start, rule, metric)
    kept = Kept(recorder(device))
    with recording(kept):
        found = minimise(objective, start, rule, metric)
    assert kept.made == 2
    assert kept.replays > 2
    assert not [one for one in recwarn if one.category is RuntimeWarning]
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-6, atol=0)
    assert torch.equal(found.converged, expected.converged)


def test_rounds_of_bfgs_are_recorded_and_end_where_they_end_without(device, recwarn):
    objective, start, _ = joint_training(str(device))
    settings = BfgsSettings(accuracy=1e-7)
    with recording(no_room):
        expected = minimise_dense(objective, start, settings)
    kept = Kept(recorder(device))
    with recording(kept):
        found = minimise_dense(objective, start, settings)
    assert kept.made >= 1
    assert kept.replays > 5
    assert not [one for one in recwarn if one.category is RuntimeWarning]
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-6, atol=0)
    assert torch.equal(found.converged, expected.converged)
