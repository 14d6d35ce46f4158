"""BFGS with whole matrices and the simplex search: oracles are SciPy and closed forms."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles.looks import slow_looks
from oracles.recorded import Recorder
from oracles.rounds import rounds_taken
from oracles.soft_stack import stack
from oracles.valleys import START, TO_THE_END, VALLEYS, Rosenbrock, WithHole
from scipy.optimize import minimize as scipy_minimise

from softsurv.errors import InvalidParameterError
from softsurv.soft import bfgs
from softsurv.soft.bfgs import ALONE, AT_ONCE, BfgsSettings, minimise_dense, solve
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.replay import recording
from softsurv.soft.watch import never_waiting
from softsurv.stopping import StopSignal


def test_each_tree_comes_to_its_own_minimum():
    end = minimise_dense(VALLEYS, (START,), TO_THE_END)
    torch.testing.assert_close(end.point[0], torch.ones_like(START), atol=1e-5, rtol=0)
    assert bool(end.converged.all())


@pytest.mark.parametrize("function", [VALLEYS, WithHole(VALLEYS.steepness)])
@pytest.mark.parametrize("rounds", [1, 3, 8, 40])
def test_the_compiled_rounds_are_those_of_operators(function, rounds):
    settings = BfgsSettings(max_iterations=rounds, accuracy=1e-9)
    start = (START + torch.tensor([0.0, 4.0]),)
    found = minimise_dense(function, start, settings)
    with operators_alone():
        expected = minimise_dense(function, start, settings)
    torch.testing.assert_close(found.point[0], expected.point[0], rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-7, atol=1e-12)
    assert torch.equal(found.converged, expected.converged)


def test_the_compiled_rounds_on_a_tree(tools):
    objective = tools.make_objective(tools.simulate(90), "loglogistic", 2, n_trees=4, penalised=True)
    start, settings = tools.random_parameters(objective), BfgsSettings(max_iterations=30)
    found = minimise_dense(objective, start, settings)
    with operators_alone():
        expected = minimise_dense(objective, start, settings)
    for ours, theirs in zip(found.point, expected.point, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


def test_it_takes_about_as_many_rounds_as_slsqp():
    """Both begin with the identity; the line searches differ in what they try after a failed step."""
    calls = []

    def value(x):
        f, g = Rosenbrock(torch.tensor([100.0], dtype=torch.float64)).value_and_gradient(torch.as_tensor(x)[None])
        return float(f), g[0].numpy()

    theirs = scipy_minimise(value, START[2].numpy(), jac=True, method="SLSQP", options={"maxiter": 500})

    class Counted(Rosenbrock):
        def value_and_gradient(self, x):
            calls.append(1)
            return super().value_and_gradient(x)

    end = minimise_dense(Counted(VALLEYS.steepness[2:]), (START[2:],), BfgsSettings())
    assert len(calls) <= 1.5 * theirs.nfev
    np.testing.assert_allclose(end.loss, 0.0, atol=1e-4)


def test_no_tree_ends_above_its_start_and_a_round_limit_is_said():
    before = VALLEYS.value_and_gradient(START)[0]
    end = minimise_dense(VALLEYS, (START,), BfgsSettings(max_iterations=2))
    assert bool((end.loss <= before).all())
    torch.testing.assert_close(VALLEYS.value_and_gradient(end.point[0])[0], end.loss)


def test_an_exhausted_budget_returns_the_start():
    with StopSignal(0.0) as budget:
        end = minimise_dense(VALLEYS, (START,), TO_THE_END, budget)
    torch.testing.assert_close(end.point[0], START)
    assert not bool(end.converged.any())


def test_several_tensors_are_parts_of_one_point():
    class Two(Rosenbrock):
        def value_and_gradient(self, a, b):
            value, gradient = super().value_and_gradient(torch.cat([a, b], 1))
            return value, gradient[:, :1], gradient[:, 1:]

    parts = minimise_dense(Two(VALLEYS.steepness), (START[:, :1], START[:, 1:]), TO_THE_END).point
    torch.testing.assert_close(torch.cat(parts, 1), minimise_dense(VALLEYS, (START,), TO_THE_END).point[0])


@pytest.mark.parametrize("settings", [LbfgsSettings(max_iterations=500, ftol=1e-14), TO_THE_END])
def test_the_settings_say_which_optimiser(settings):
    torch.testing.assert_close(solve(VALLEYS, (START,), settings).point[0], torch.ones_like(START), atol=1e-4, rtol=0)


def test_trees_whose_matrices_have_no_room_together_are_solved_in_turn(monkeypatch):
    together = minimise_dense(VALLEYS, (START,), TO_THE_END)
    for trees in (1, 2):
        monkeypatch.setattr(bfgs, "MATRIX_BYTES", trees * 2 * 2 * 8)
        in_turn = minimise_dense(VALLEYS, (START,), TO_THE_END)
        torch.testing.assert_close(in_turn.point, together.point, rtol=0, atol=0)
        torch.testing.assert_close(in_turn.loss, together.loss, rtol=0, atol=0)
        assert bool(in_turn.converged.all())


def test_a_matrix_without_room_is_refused(monkeypatch):
    monkeypatch.setattr(bfgs, "MATRIX_BYTES", 2 * 2 * 8 - 1)
    with pytest.raises(InvalidParameterError, match=r"at most 1 coefficients.* got 2, that is .*preset=\"paper\""):
        minimise_dense(VALLEYS, (START,), TO_THE_END)


def test_trees_of_an_objective_in_turn(tools, monkeypatch):
    objective = tools.make_objective(tools.simulate(90), "loglogistic", 2, n_trees=5, penalised=True)
    start, settings = tools.random_parameters(objective), BfgsSettings(max_iterations=30)
    together = minimise_dense(objective, start, settings)
    size = sum(part[0].numel() for part in start)
    monkeypatch.setattr(bfgs, "MATRIX_BYTES", 2 * size * size * 8)
    in_turn = minimise_dense(objective, start, settings)
    for ours, theirs in zip((*in_turn.point, in_turn.loss), (*together.point, together.loss), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)


def uneven(tools):
    """Trees of log-normal leaves, of two sets of rows: their rounds are not compiled as a whole."""
    objective, routing, leaves = stack(tools, "lognormal", groups=2, trees=3)
    return objective, (routing, leaves), BfgsSettings(max_iterations=40, accuracy=1e-3)


@pytest.mark.parametrize("how", [nullcontext, operators_alone, never_waiting], ids=["cpu", "operators", "device"])
def test_a_tree_leaves_as_soon_as_it_has_stopped(tools, how):
    """Round by round the trees are those that move, on a device whose looks arrive in time too; each ends as alone."""
    objective, start, settings = uneven(tools)
    with how(), rounds_taken(bfgs) as rounds:
        together = minimise_dense(objective, start, settings)
    assert [one.trees for one in rounds] == [one.moving for one in rounds]
    assert len({one.trees for one in rounds}) >= 5  # one by one
    for k in range(len(together.loss)):
        one = torch.tensor([k])
        alone = minimise_dense(objective.take(one), tuple(part[one] for part in start), settings)
        torch.testing.assert_close(together.loss[one], alone.loss, rtol=1e-6, atol=1e-8)
        assert torch.equal(together.converged[one], alone.converged)


def test_where_each_look_is_late_a_tree_stays_one_round(tools):
    """As where a device is behind its host, which waits for the look of the round before."""
    objective, start, settings = uneven(tools)
    expected = minimise_dense(objective, start, settings)
    with slow_looks(), rounds_taken(bfgs) as rounds:
        found = minimise_dense(objective, start, settings)
    before = [len(expected.loss)] + [one.moving for one in rounds[:-1]]
    assert [one.trees for one in rounds] == before
    assert rounds[-1].moving == 0
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-9, atol=1e-10)
    assert torch.equal(found.converged, expected.converged)


def test_recorded_rounds_end_where_others_do_and_are_recorded_anew_for_few_trees(tools, monkeypatch):
    objective, start, settings = uneven(tools)
    monkeypatch.setattr(bfgs, "NARROWER", 0.7)
    with never_waiting(), rounds_taken(bfgs) as by_operators:
        expected = minimise_dense(objective, start, settings)
    recorder = Recorder()
    with never_waiting(), operators_alone(), recording(recorder), rounds_taken(bfgs) as rounds:
        found = minimise_dense(objective, start, settings)
    widths = [len(made.calls[0][1][0]) for made in recorder.made]
    assert widths[0] == len(expected.loss)
    assert widths[-1] <= 0.7 * widths[0]
    assert sum(one.replays for one in recorder.made) * AT_ONCE > len(by_operators) / 2
    assert len(rounds) <= len(recorder.made) * (2 * ALONE + 2 * AT_ONCE)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-6, atol=1e-8)
    assert torch.equal(found.converged, expected.converged)


def test_a_minimisation_that_ends_at_once_records_nothing(tools):
    objective, start, settings = uneven(tools)
    end, recorder = minimise_dense(objective, start, BfgsSettings(accuracy=1e-3)).point, Recorder()
    with never_waiting(), operators_alone(), recording(recorder):
        minimise_dense(objective, end, replace(settings, accuracy=1.0))
    assert not recorder.made
