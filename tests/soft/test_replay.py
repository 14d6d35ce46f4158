"""Rounds that are recorded and replayed: the same trees, no wait, nothing moved; a failure is told."""

import pytest
import torch
from oracles.live_memory import tensors_in
from oracles.recorded import Recorder

from softsurv.hazards import family_names
from softsurv.soft import replay
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, _begin, _take_rounds, apart, minimise, never_waiting, side_by_side
from softsurv.soft.precondition import GramMetric
from softsurv.soft.replay import Repeated, capture_on, cuda_graph, recording

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


class Wide:
    """A function whose stack stays as wide as it is: narrower ones round otherwise."""

    def __init__(self, function):
        self.value_and_gradient = function.value_and_gradient

    def even_groups(self, trees):
        return trees.any().expand(len(trees))


@pytest.mark.parametrize("family", family_names())
def test_recorded_rounds_end_where_others_do(tools, family):
    """Up to how sums are rounded, which depends on where a tensor lies."""
    objective, start, metric = stack(tools, family)
    objective, rule = Wide(objective), LbfgsSettings(max_iterations=8, ftol=0.0)
    expected, recorder = minimise(objective, start, rule, metric), Recorder()
    with recording(recorder):
        found = minimise(objective, start, rule, metric)
    assert sum(one.replays for one in recorder.made) >= 2
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-12, atol=0)
    assert torch.equal(found.converged, expected.converged)
    torch.testing.assert_close(found.point, expected.point, rtol=1e-9, atol=1e-9)


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


def test_work_that_counts_in_python_shows_in_a_replay():
    total, numbers = torch.zeros(1), iter(range(1, 9))

    def work():
        total.add_(next(numbers))

    do = Repeated(work, Recorder())
    for expected in (1, 3, 5, 7):  # recorded the second time: the 2 of then is added for good
        do()
        assert total.item() == expected


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


def test_what_cannot_be_recorded_is_told_and_done_as_it_is():
    total = torch.zeros(1)

    def refuses(work):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    do = Repeated(lambda: total.add_(1), refuses)
    do()
    with pytest.warns(RuntimeWarning, match=r"could not be recorded \(operation not permitted\); they run operator"):
        do()
    do()
    assert total.item() == 3


def test_graphs_are_for_cuda_and_on_demand(monkeypatch):
    monkeypatch.delenv(replay.SWITCH, raising=False)
    assert capture_on(torch.device("cuda")) is None
    monkeypatch.setenv(replay.SWITCH, "1")
    assert capture_on(torch.device("cuda")) is cuda_graph
    assert capture_on(torch.device("cpu")) is None
