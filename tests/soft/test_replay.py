"""Rounds that are recorded and replayed: the same trees, no wait, nothing moved; a fault is found and told."""

import pytest
import torch
from oracles.live_memory import tensors_in
from oracles.operators import Operators
from oracles.recorded import Again, Recorder
from oracles.rounds import rounds_taken

from softsurv.hazards import family_names
from softsurv.soft import optimisers, replay
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import ALONE, LbfgsSettings, _begin, _take_rounds, apart, minimise, side_by_side
from softsurv.soft.precondition import GramMetric
from softsurv.soft.replay import AGREEMENT, CudaGraphs, Repeated, Verdict, agree, capture_on, recording
from softsurv.soft.watch import LOOK_EVERY, never_waiting

TREES = 3
RULE = LbfgsSettings(max_iterations=30, ftol=1e-9)


@pytest.fixture(autouse=True)
def as_on_a_device():
    with never_waiting(), operators_alone():
        yield


def stack(tools, family="weibull"):
    """Objective, start and metric of a few trees of depth 2."""
    objective = tools.make_objective(tools.simulate(60), family, 2, TREES, penalised=True)
    return objective, tools.random_parameters(objective), GramMetric(objective.problem, 3, 4)


@pytest.fixture
def wide(monkeypatch):
    """Stacks stay as wide as they are: narrower ones round otherwise."""
    monkeypatch.setattr(optimisers, "NARROWER", 0.0)


HOST = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "lift_fresh",
    "_unique2",
    "equal",
    "bincount",
}
"""Operators that need the host, or bring what it holds: a graph would keep what it held when it was recorded."""

RANDOM = {"rand", "randn", "bernoulli", "uniform_", "normal_", "randperm", "randint"}


@pytest.mark.parametrize("family", family_names())
def test_recorded_rounds_end_where_others_do(tools, family, wide):
    """Up to how sums are rounded, which depends on where a tensor lies."""
    objective, start, metric = stack(tools, family)
    rule = LbfgsSettings(max_iterations=24, ftol=0.0)
    expected, recorder = minimise(objective, start, rule, metric), Recorder()
    with recording(recorder):
        found = minimise(objective, start, rule, metric)
    assert sum(one.replays for one in recorder.made) >= 3  # one to be compared, others that count
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=0)
    assert torch.equal(found.converged, expected.converged)
    torch.testing.assert_close(found.point, expected.point, rtol=1e-5, atol=1e-5)
    names = {call[0]._schema.name.removeprefix("aten::") for made in recorder.made for call in made.calls}
    both = names & (HOST | RANDOM)
    assert not both


def test_a_narrower_stack_is_recorded_anew(tools):
    objective, (routing, leaves), metric = stack(tools)
    near = minimise(objective, (routing, leaves), LbfgsSettings(max_iterations=300, ftol=0.0), metric).point
    routing[:2], leaves[:2] = near[0][:2], near[1][:2]  # two of three stop at once
    expected, recorder = minimise(objective, (routing, leaves), RULE, metric), Recorder()
    with recording(recorder):
        found = minimise(objective, (routing, leaves), RULE, metric)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-6, atol=0)
    widths = [max(len(one) for one in tensors_in(made.calls[0][3])) for made in recorder.made]
    assert widths[-1] < TREES


@pytest.mark.parametrize("steps", [3, 6, 7])
def test_what_ends_soon_takes_the_rounds_that_it_needs(tools, steps):
    """A minimisation of seven rounds on a device is over before rounds are taken four at a time."""
    capture = Recorder()
    for how in (None, capture):
        objective, start, metric = stack(tools)
        with recording(how), rounds_taken() as rounds:
            minimise(objective, start, LbfgsSettings(max_iterations=steps, ftol=0.0), metric)
        assert steps <= len(rounds) <= ALONE
        assert all(one.moving for one in rounds)
    assert not capture.made


class Stale:
    """Records work, but the replay leaves what it finds."""

    def __init__(self):
        self.tries = 0

    def __call__(self, work):
        self.tries += 1
        return lambda: None


def test_a_replay_that_does_nothing_is_found_and_does_no_harm(tools, wide):
    objective, start, metric = stack(tools)
    rule, stale = LbfgsSettings(max_iterations=20, ftol=0.0), Stale()
    expected = minimise(objective, start, rule, metric)
    with recording(stale):
        with pytest.warns(RuntimeWarning, match="differ from those by operators when they are replayed"):
            found = minimise(objective, start, rule, metric)
        again = minimise(objective, start, rule, metric)  # no second warning
    assert stale.tries == 1
    for one in (found, again):
        assert torch.equal(one.loss, expected.loss)
        assert torch.equal(one.point[0], expected.point[0])


def test_a_narrower_stack_does_not_try_again_what_failed(tools):
    objective, start, metric = stack(tools)
    stale = Stale()
    with recording(stale), rounds_taken() as rounds, pytest.warns(RuntimeWarning, match="differ") as told:
        minimise(objective, start, LbfgsSettings(max_iterations=60, ftol=1e-7), metric)
    later = rounds[ALONE + 2 * LOOK_EVERY :]  # the failure is known
    assert len({one.trees for one in later}) >= 2
    assert all(one.trees == one.moving for one in later[1:])  # as where nothing is recorded
    assert stale.tries == 1
    assert len(told) == 1


def test_a_stack_that_narrows_before_is_recorded_no_later(tools):
    """Of the rounds by operators one at least has its width."""
    objective, (routing, leaves), metric = stack(tools)
    near = minimise(objective, (routing, leaves), LbfgsSettings(max_iterations=300, ftol=0.0), metric).point
    routing[:1], leaves[:1] = near[0][:1], near[1][:1]  # one of three stops at once
    again = Again()
    with recording(again), rounds_taken() as rounds:
        minimise(objective, (routing, leaves), LbfgsSettings(max_iterations=24, ftol=0.0), metric)
    first = [one.trees for one in rounds[: ALONE + LOOK_EVERY]]
    assert again.made == 1
    assert first[0] == TREES
    assert first[ALONE - 1 :] == [TREES - 1] * (1 + LOOK_EVERY)


def repeated(rounds, capture, total, alone=1):
    return Repeated(rounds, capture, (total,), (total,), 2, alone)


def test_a_fault_in_one_tree_alone_is_found():
    """The record forgets what Python counted: it adds to the first tree what it added when it was recorded."""
    total, numbers = torch.zeros(3), iter(range(1, 99))

    def rounds(count):
        for _ in range(count):
            total[0].add_(next(numbers))

    do, expected = repeated(rounds, Recorder(), total), 0
    assert do() == 1
    assert do() == 2
    assert total.tolist() == [1 + 4 + 5, 0, 0]  # 2 and 3 went into the record; the rounds by operators count
    with pytest.warns(RuntimeWarning, match="differ"):
        do()
    assert do.record is None
    expected = total[0].item()
    assert do() == 1
    assert total[0].item() > expected


def test_the_check_asks_for_few_operators_and_for_no_wait(tools):
    objective, start, metric = stack(tools)
    value, *gradient = objective.value_and_gradient(*start)
    shapes = [part.shape[1:] for part in start]
    state = _begin(side_by_side(start), value, side_by_side(gradient), RULE, metric)

    def rounds(count):
        _take_rounds(objective, metric, state, RULE, shapes, count)

    do = Repeated(rounds, lambda work: lambda: None, state.tensors, (state.f, state.memory.x), LOOK_EVERY, 1)
    with Operators() as alone:
        do()
    with Operators() as checked:
        do()
    assert checked.total - LOOK_EVERY * alone.total <= 60
    waiting = set(checked.seen) & HOST
    assert not waiting


def test_until_the_answer_arrives_rounds_run_by_operators(monkeypatch):
    total, answers = torch.zeros(1), iter([None, None, True])
    monkeypatch.setattr(Verdict, "__call__", lambda self: next(answers))
    record = Recorder()
    do = repeated(lambda count: total.add_(count), record, total)
    for _ in range(6):
        do()
    assert total.item() == 1 + 5 * 2
    assert record.made[0].replays == 1 + 2


def test_equal_up_to_rounding_with_nan_and_infinity_in_their_places():
    near = torch.finfo(torch.float64).eps ** AGREEMENT
    one = torch.tensor([[1e6, 1.0], [torch.nan, torch.inf]], dtype=torch.float64)
    assert agree([one], [one.clone()])
    assert agree([one + 0.5e6 * near], [one])
    assert not agree([one * torch.tensor([[1 + 2 * near], [1.0]])], [one])
    assert not agree([one], [one.nan_to_num(2.0)])
    assert not agree([one.nan_to_num(2.0)], [one])
    assert not agree([one], [torch.where(torch.isinf(one), -one, one)])
    assert agree([torch.tensor([2.0, 3.0])], [torch.tensor([2.0, 3.0])])
    assert not agree([torch.tensor([2.0, 3.0])], [torch.tensor([2.0, 3.1])])


def test_the_state_of_a_round_stays_where_it_is(tools):
    objective, start, metric = stack(tools)
    shapes = [part.shape[1:] for part in start]
    value, *gradient = objective.value_and_gradient(*start)
    state = _begin(side_by_side(start), value, side_by_side(gradient), RULE, metric)
    places = {name: one.data_ptr() for name, one in tensors_of(state)}
    before = state.f.clone()
    _take_rounds(objective, metric, state, RULE, shapes, 3)
    assert (state.f < before).all()
    assert {name: one.data_ptr() for name, one in tensors_of(state)} == places
    assert objective.value_and_gradient(*apart(state.memory.x.clone(), shapes))[0] == pytest.approx(state.f, rel=1e-12)


def tensors_of(state):
    """Those of the state and of its memory, by name."""
    both = vars(state) | vars(state.memory)
    return [(name, value) for name, value in both.items() if isinstance(value, torch.Tensor)]


def test_recording_changes_nothing():
    table = torch.arange(6.0).view(2, 3)

    def work():
        table[:, 1].mul_(2).add_(table[:, 0])
        table[:, 2].copy_(table.sum(1))

    before, other = table.clone(), table.clone()
    record = Recorder()(work)
    assert torch.equal(table, before)
    record()
    other[:, 1] = 2 * other[:, 1] + other[:, 0]
    other[:, 2] = other.sum(1)
    assert torch.equal(table, other)


def test_what_cannot_be_recorded_is_told_once_and_done_as_it_is():
    total = torch.zeros(1)

    def refuses(work):
        try:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")
        finally:
            raise RuntimeError("the capture cannot end")

    do = repeated(lambda count: total.add_(count), refuses, total)
    do()
    with pytest.warns(RuntimeWarning, match=r"could not be recorded \(operation not permitted\); from here on"):
        do()
    do()
    assert total.item() == 1 + 2 + 1
    with recording(refuses):
        assert capture_on(torch.device("cpu")) is None  # a failed capture is not repeated


def test_without_room_rounds_run_by_operators():
    total = torch.zeros(1)
    do = repeated(lambda count: total.add_(count), lambda work: None, total)
    for _ in range(3):
        do()
    assert total.item() == 1 + 2 + 1


def test_graphs_are_for_cuda_and_can_be_switched_off(monkeypatch):
    monkeypatch.delenv(replay.SWITCH, raising=False)
    second = capture_on(torch.device("cuda:1"))
    assert isinstance(second, CudaGraphs)
    assert second.device == torch.device("cuda:1")
    assert capture_on(torch.device("cuda:1")) is second
    monkeypatch.setenv(replay.SWITCH, "0")
    assert capture_on(torch.device("cuda:1")) is None
    assert capture_on(torch.device("cpu")) is None


def test_a_graph_is_destroyed_before_its_stream_is_given_to_another():
    seen, idle = [], []

    class Graph:
        def replay(self):
            seen.append("replay")

        def reset(self):
            seen.append(("reset", len(idle)))

    one = replay.RecordedGraph(Graph(), "stream", idle)
    one()
    assert seen == ["replay"]
    del one
    assert seen == ["replay", ("reset", 0)]
    assert idle == ["stream"]
