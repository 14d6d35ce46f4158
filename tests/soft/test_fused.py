"""The pass over the rows as one operator: node by node against torch's operators, and compiled where a compiler is."""

import shutil
import warnings

import pytest
import torch
from oracles.operators import Operators
from oracles.recorded import Again

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.hazards import family_names
from softsurv.hazards.likelihood import right_censored_loss
from softsurv.soft import fused
from softsurv.soft.objective import FUSED, LOOPS, OPERATORS, Objective, route
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.soft.precondition import GramMetric
from softsurv.soft.problem import join_problems
from softsurv.soft.replay import recording
from softsurv.soft.watch import never_waiting

compiler = pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="torch.compile finds no C++ compiler"
)
deprecated = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # torch warns of its own parts
RULE = LbfgsSettings(max_iterations=24, ftol=0.0)


@pytest.fixture
def asked(monkeypatch):
    """As on a device, with the fused operator asked for."""
    monkeypatch.setenv(fused.SWITCH, fused.ON)
    with operators_alone():
        yield monkeypatch


@pytest.fixture
def trusted():
    """The processor has the vectors that it names: torch compiles a program for each kind of them to find that out."""
    import torch._inductor.config as inductor

    with inductor.patch("cpp.vec_isa_ok", True):
        yield


def assert_equal(found, expected):
    """Up to 1e-12 of the largest entry."""
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(1.0, float(theirs.abs().max())) if theirs.numel() else 1.0
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12 * scale)


def by_operators(link, z, log_slope, event, split, mass):
    """The oracle: table by table."""
    loss, slopes = right_censored_loss(link, z, log_slope, event)
    with operators_alone():
        found = route(split, loss, mass)
    return found.value, found.slopes, found.reach * slopes.at_time, found.reach


@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
def test_node_by_node_gives_what_operators_give(tools, family, depth):
    """Of the whole tree and of all nodes below a level, with predictors of any size."""
    stack = tools.make_objective(tools.simulate(40), family, depth, n_trees=3)
    p = stack.problem
    for size in (0.3, 4.0):
        routing, leaves = tools.random_parameters(stack, size=size)
        _, z, rise = stack.predictors(leaves)
        split = stack.splits(routing)
        for level in range(depth + 1):
            mass = torch.rand(3, 2**level, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(level))
            rows = p.family.link, z, rise, p.per_tree(p.event), split[:, 2**level - 1 :], mass
            assert_equal(fused.expected_loss_by_node(*rows), by_operators(*rows))


@pytest.fixture
def uncompiled(asked):
    """The function itself in the place of what is compiled of it; the links that it was asked for."""
    links = []

    def plain(link, *kind):
        links.append(link)
        return lambda *rows: fused.expected_loss_by_node(link, *rows)

    asked.setattr(fused, "_compiled", plain)
    return links


@pytest.mark.parametrize("family", family_names())
def test_the_objective_takes_it_where_it_is_asked_for(tools, family, uncompiled, monkeypatch):
    """In groups of rows too, whose trees have their own events, and below hard levels."""
    parts = [tools.make_objective(tools.simulate(n, seed=n), family, 2, 2).problem for n in (40, 31)]
    for problem in (parts[0], join_problems(parts)):
        stack = Objective(problem, 2, tools.penalties_for(problem))
        routing, leaves = tools.random_parameters(stack)
        for hard in range(3):
            assert stack.form(leaves) == FUSED
            found = stack.value_and_gradient(routing, leaves, hard)
            with monkeypatch.context() as patch:
                patch.setenv(fused.SWITCH, "0")
                assert stack.form(leaves) == OPERATORS
                expected = stack.value_and_gradient(routing, leaves, hard)
            assert_equal(found, expected)
    assert len(uncompiled) == 6


def test_it_is_off_unless_it_is_asked_for(tools, monkeypatch):
    """And a CPU has its loops, whatever is asked for."""
    stack = tools.make_objective(tools.simulate(40))
    leaves = tools.random_parameters(stack)[1]
    monkeypatch.delenv(fused.SWITCH, raising=False)
    with operators_alone():
        assert stack.form(leaves) == OPERATORS
    monkeypatch.setenv(fused.SWITCH, fused.ON)
    assert stack.form(leaves) == LOOPS


def test_other_censorings_causes_and_autograd_take_operators(tools, uncompiled):
    everything = tools.make_objective(tools.with_everything(), "weibull", 1)
    assert everything.form(everything.problem.weight) == OPERATORS
    plain = tools.make_objective(tools.simulate(40), "weibull", 1)
    assert plain.form(plain.problem.weight) == FUSED
    assert plain.form(plain.problem.weight.clone().requires_grad_()) == OPERATORS
    everything.value_and_gradient(*tools.random_parameters(everything))
    assert uncompiled == []


@pytest.mark.filterwarnings("ignore:the fit took all its")
def test_a_report_says_how_the_objective_went_over_the_rows(tools, uncompiled, monkeypatch):
    given = {"max_terms": None, "depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0}
    data, said = tools.simulate(40), []
    for switch in (fused.ON, "0"):
        monkeypatch.setenv(fused.SWITCH, switch)
        tree = SoftSurvivalTree(device="cpu", max_iter=4, n_restarts=1, init="random", **given).fit(data)
        said.append((tree.report_.details["objective_by"], tree.report_.objective))
    assert [form for form, _ in said] == [FUSED, OPERATORS]
    assert said[0][1] == pytest.approx(said[1][1], rel=1e-9)
    monkeypatch.setenv(fused.SWITCH, fused.ON)
    tree = SoftSurvivalTree(device="cpu", solver="nodec", max_iter=1, n_restarts=1, init="random", **given).fit(data)
    assert tree.report_.details["objective_by"] == OPERATORS  # node by node


def test_a_round_has_fewer_operators_and_moves_fewer_tables(tools, asked):
    """Counted as one operator that reads and writes what it is given and gives; compiled it is one, see below."""
    counted = Operators(large=4 * 4 * 40)

    def one(link, *kind):
        def run(*rows):
            before = counted.seen.copy(), counted.moved
            found = fused.expected_loss_by_node(link, *rows)
            counted.seen, counted.moved = before
            counted.seen["fused"] += 1
            counted._measure((rows, found))
            return found

        return run

    asked.setattr(fused, "_compiled", one)
    stack = tools.make_objective(tools.simulate(40), "loglogistic", 2, 4, penalised=True)
    point, operators = tools.random_parameters(stack), Operators(large=4 * 4 * 40)
    stack.value_and_gradient(*point)  # penalties are added up once
    counted.seen.clear()
    counted.moved = 0
    with counted:
        stack.value_and_gradient(*point)
    asked.setenv(fused.SWITCH, "0")
    with operators:
        stack.value_and_gradient(*point)
    assert counted.seen["fused"] == 1
    assert counted.total <= operators.total - 20
    assert counted.tables <= 0.5 * operators.tables, (counted.tables, operators.tables)


@compiler
@deprecated
@pytest.mark.slow
@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(("family", "depth"), [("loglogistic", 2), ("lognormal", 1), ("spline_ph", 2)])
def test_compiled_it_is_one_kernel_for_any_number_of_trees_and_rows(tools, family, depth, asked):
    """Two at most: a single tree has its own. Values are those of operators."""
    import torch._inductor.metrics as metrics

    metrics.reset()
    for rows in (60, 45):
        stack = tools.make_objective(tools.simulate(rows), family, depth, n_trees=5, penalised=True)
        routing, leaves = tools.random_parameters(stack)
        for trees in (5, 3, 2, 1):
            part = stack.take(torch.arange(trees))
            found = part.value_and_gradient(routing[:trees], leaves[:trees])
            with asked.context() as patch:
                patch.setenv(fused.SWITCH, "0")
                expected = part.value_and_gradient(routing[:trees], leaves[:trees])
            assert_equal(found, expected)
    assert metrics.generated_kernel_count == 2


@compiler
@deprecated
@pytest.mark.slow
@pytest.mark.usefixtures("trusted")
def test_compiled_rounds_are_recorded_as_others_are(tools, asked):
    """Compiled in the rounds that are taken one by one, and replayed after; trees end where they end by operators."""
    stack = tools.make_objective(tools.simulate(60), "weibull", 1, 3, penalised=True)
    start, metric = tools.random_parameters(stack), GramMetric(stack.problem, 1, 2)
    again = Again()
    with never_waiting():
        with recording(again):
            found = minimise(stack, start, RULE, metric)
        asked.setenv(fused.SWITCH, "0")
        expected = minimise(stack, start, RULE, metric)
    assert again.made >= 1
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=0)
    torch.testing.assert_close(found.point, expected.point, rtol=1e-5, atol=1e-5)


@deprecated
def test_what_cannot_be_compiled_is_an_error(tools, asked):
    """Nobody is given operators in the place of what was asked for."""
    torch._dynamo.reset()

    def broken(*kind):
        def ask(z, *rows):
            warnings.warn(str(z), stacklevel=1)  # text of values breaks a graph

        return torch.compile(ask, dynamic=True, fullgraph=True, backend="eager")

    asked.setattr(fused, "_compiled", broken)
    stack = tools.make_objective(tools.simulate(40))
    with pytest.raises(InvalidParameterError, match="SOFTSURV_COMPILE must be 0 where torch cannot compile"):
        stack.value_and_gradient(*tools.random_parameters(stack))


def test_other_errors_are_told_as_they_are(tools, asked):
    def full(*kind):
        def run(*rows):
            raise torch.OutOfMemoryError("no memory")

        return run

    asked.setattr(fused, "_compiled", full)
    stack = tools.make_objective(tools.simulate(40))
    with pytest.raises(torch.OutOfMemoryError):
        stack.value_and_gradient(*tools.random_parameters(stack))


def test_the_switch_is_0_or_1(monkeypatch):
    monkeypatch.setenv(fused.SWITCH, "true")
    with pytest.raises(InvalidParameterError, match="SOFTSURV_COMPILE must be 0 or 1, got 'true'"):
        fused.is_fused(torch.zeros(1))
    for off in ("", "0"):
        monkeypatch.setenv(fused.SWITCH, off)
        assert not fused.is_fused(torch.zeros(1))
