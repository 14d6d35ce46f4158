"""The batched L-BFGS: known minima, stacks against single trees, non-finite regions, budgets."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimise
from scipy.optimize import rosen, rosen_der

from softsurv.soft.optimisers import LbfgsSettings, minimise
from softsurv.stopping import StopSignal


class Rowwise:
    """A function of the parameters of some rows and of which rows they are, as the optimiser takes it."""

    def __init__(self, function, rows=None):
        self.function, self.rows = function, rows

    def value_and_gradient(self, x):
        return self.function(x, self.rows)

    def take(self, left):
        return type(self)(self.function, left if self.rows is None else self.rows[left])


def solve(function, start, settings, **how):
    """Points and losses."""
    end = minimise(Rowwise(function), (start,), settings, **how)
    return end.point[0], end.loss


TO_THE_END = LbfgsSettings(max_iterations=2000, ftol=0.0, gtol=1e-9)


def rosenbrock(x, rows):
    value = (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(1)
    inner = x[:, 1:] - x[:, :-1] ** 2
    gradient = torch.zeros_like(x)
    gradient[:, :-1] = -400 * x[:, :-1] * inner - 2 * (1 - x[:, :-1])
    gradient[:, 1:] += 200 * inner
    return value, gradient


def quadratic(scales, centres):
    """One quadratic for each row, with its own axes' scales (M, D) and centre (M, D)."""

    def function(x, rows):
        s, c = (scales, centres) if rows is None else (scales[rows], centres[rows])
        return 0.5 * (s * (x - c) ** 2).sum(1), s * (x - c)

    return function


def random_start(m, d, seed=0, size=2.0):
    return torch.tensor(size * np.random.default_rng(seed).standard_normal((m, d)))


def test_rosenbrock():
    start = random_start(8, 4)
    x, f = solve(rosenbrock, start, TO_THE_END)
    for row in range(8):
        theirs = scipy_minimise(rosen, start[row].numpy(), jac=rosen_der, method="L-BFGS-B", options={"gtol": 1e-9})
        assert float(f[row]) <= theirs.fun + 1e-9  # four dimensions have a second minimum
        np.testing.assert_allclose(rosen(x[row].numpy()), f[row], atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_ill_conditioned_quadratics(condition):
    d, m = 10, 5
    scales = torch.logspace(0, np.log10(condition), d, dtype=torch.float64).expand(m, d)
    centres = random_start(m, d, 1)
    x, f = solve(quadratic(scales, centres), random_start(m, d), TO_THE_END)
    torch.testing.assert_close(x, centres, rtol=0, atol=1e-6)
    assert (f < 1e-10).all()


def test_a_shallow_start_is_not_a_flat_end():
    """A first step along a small gradient gains little; that alone must not end the search."""
    scales = torch.full((1, 2), 1e-5, dtype=torch.float64)
    centres = torch.tensor([[3.0, -50.0]], dtype=torch.float64)
    x, _ = solve(
        quadratic(scales, centres), torch.zeros(1, 2, dtype=torch.float64), LbfgsSettings(ftol=1e-5, gtol=1e-8)
    )
    torch.testing.assert_close(x, centres, rtol=0, atol=0.1)


@given(seed=st.integers(0, 1000), m=st.integers(1, 6), d=st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_stack_is_its_rows_one_by_one(seed, m, d):
    rng = np.random.default_rng(seed)
    scales = torch.tensor(10 ** rng.uniform(-2, 3, (m, d)))
    centres, start = random_start(m, d, seed + 1), random_start(m, d, seed, 5.0)
    rule = LbfgsSettings(max_iterations=40)
    x, f = solve(quadratic(scales, centres), start, rule)
    for k in range(m):
        one = slice(k, k + 1)
        alone_x, alone_f = solve(quadratic(scales[one], centres[one]), start[one], rule)
        torch.testing.assert_close(x[one], alone_x, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(f[one], alone_f, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 1000), iterations=st.integers(0, 30), size=st.sampled_from([0.1, 3.0, 100.0]))
@settings(max_examples=25, deadline=None)
def test_never_above_the_start(seed, iterations, size):
    def rough(x, rows):  # ripples defeat many steps
        return (x**2).sum(1) + 5 * torch.cos(8 * x).sum(1), 2 * x - 40 * torch.sin(8 * x)

    start = random_start(6, 3, seed, size)
    x, f = solve(rough, start, LbfgsSettings(max_iterations=iterations))
    assert (f <= rough(start, None)[0]).all()
    torch.testing.assert_close(rough(x, None)[0], f)


@pytest.mark.parametrize("hole", [float("inf"), float("-inf"), float("nan")])
def test_steps_back_from_regions_without_a_value(hole):
    def function(x, rows):
        value = x.sum(1) - x.log().sum(1)  # convex on x > 0, its minimum at 1
        outside = (x <= 0).any(1)
        gradient = 1 - 1 / x
        return torch.where(outside, hole, value), torch.where(outside[:, None], hole, gradient)

    start = torch.tensor([[5.0, 0.02], [0.3, 4.0], [1e-3, 1e-3]], dtype=torch.float64)
    x, f = solve(function, start, TO_THE_END)
    torch.testing.assert_close(x, torch.ones_like(x), rtol=0, atol=1e-5)
    assert torch.isfinite(f).all()


def test_a_row_without_a_value_stays_where_it_is_and_holds_up_nobody():
    def function(x, rows):
        value = (x**2).sum(1)
        bad = x[:, 0] > 1e6
        return torch.where(bad, torch.nan, value), torch.where(bad[:, None], torch.nan, 2 * x)

    start = torch.tensor([[1e7, 0.0], [3.0, 4.0]], dtype=torch.float64)
    x, f = solve(function, start, TO_THE_END)
    assert x[0].tolist() == [1e7, 0.0]
    assert torch.isnan(f[0])
    assert float(f[1]) < 1e-12


def test_a_finite_value_with_an_infinite_gradient_ends_quietly():
    def function(x, rows):
        return x.abs().sqrt().sum(1), torch.sign(x) / (2 * x.abs().sqrt())

    x, f = solve(function, torch.tensor([[4.0], [0.0]], dtype=torch.float64), LbfgsSettings(max_iterations=50))
    assert torch.isfinite(x).all()
    assert (f <= torch.tensor([2.0, 0.0])).all()


def test_start_at_the_minimum_is_returned():
    centres = random_start(3, 2)
    x, f = solve(quadratic(torch.ones(3, 2, dtype=torch.float64), centres), centres, TO_THE_END)
    torch.testing.assert_close(x, centres)
    assert (f == 0).all()


def test_rows_that_stop_leave_the_stack():
    seen = []
    d = 6
    scales = torch.ones(8, d, dtype=torch.float64)
    scales[0] = torch.logspace(0, 5, d)

    def function(x, rows):
        seen.append(len(x))
        return quadratic(scales, torch.zeros(8, d, dtype=torch.float64))(x, rows)

    solve(function, random_start(8, d), LbfgsSettings(max_iterations=200, ftol=1e-14))
    assert seen[0] == 8
    assert seen[-1] == 1


def test_iteration_limit_counts_accepted_steps():
    calls = []

    def function(x, rows):
        calls.append(1)
        return rosenbrock(x, rows)

    solve(function, random_start(1, 4), LbfgsSettings(max_iterations=5, ftol=0.0))
    assert len(calls) <= 1 + 4 * 5
    start = random_start(2, 4)
    x, _ = solve(rosenbrock, start, LbfgsSettings(max_iterations=0))
    torch.testing.assert_close(x, start)


def test_an_exhausted_budget_returns_the_best_so_far():
    budget = StopSignal(60.0)
    start = random_start(3, 4)

    def function(x, rows):
        budget.interrupted = True
        return rosenbrock(x, rows)

    x, f = solve(function, start, TO_THE_END, budget=budget)
    assert (f <= rosenbrock(start, None)[0]).all()
    torch.testing.assert_close(rosenbrock(x, None)[0], f)
    assert (f > 1e-6).any()


def test_an_exhausted_budget_takes_no_step():
    """A stage that began after the time limit took seconds where one look at all rows does."""
    start, asked = random_start(3, 4), []

    def function(x, rows):
        asked.append(1)
        return rosenbrock(x, rows)

    x, _ = solve(function, start, TO_THE_END, budget=StopSignal(0.0))
    torch.testing.assert_close(x, start)
    assert len(asked) == 1


def test_progress_never_rises():
    values = []
    solve(rosenbrock, random_start(4, 4), TO_THE_END, on_round=lambda f: values.append(f.clone()))
    trace = torch.stack(values)
    assert len(trace) > 3
    assert (trace.diff(dim=0) <= 0).all()


def test_single_precision():
    scales = torch.logspace(0, 3, 5).expand(3, 5)
    centres = random_start(3, 5, 1).float()
    x, f = solve(quadratic(scales, centres), random_start(3, 5).float(), LbfgsSettings(max_iterations=300, ftol=0.0))
    assert x.dtype == f.dtype == torch.float32
    torch.testing.assert_close(x, centres, rtol=0, atol=1e-2)


def test_a_cut_off_is_told_from_an_end():
    """Of two rows one reaches its minimum within the iterations, the other does not."""
    scales = torch.stack([torch.ones(4, dtype=torch.float64), torch.logspace(0, 6, 4, dtype=torch.float64)])
    centres = torch.zeros(2, 4, dtype=torch.float64)
    start = random_start(2, 4)
    kept = start.clone()
    end = minimise(Rowwise(quadratic(scales, centres)), (start,), LbfgsSettings(max_iterations=6, ftol=0.0, gtol=1e-9))
    assert end.converged.tolist() == [True, False]
    assert minimise(Rowwise(quadratic(scales, centres)), (start,), TO_THE_END).converged.all()
    assert torch.equal(start, kept)  # a minimisation writes into nothing of its caller's


def test_a_point_of_several_tensors_is_the_same_point_in_one():
    scales, centres, start = torch.rand(3, 5).double() + 0.5, random_start(3, 5, 1), random_start(3, 5)

    class InTwo(Rowwise):
        def value_and_gradient(self, a, b):
            value, gradient = self.function(torch.cat([a.flatten(1), b], 1), self.rows)
            return value, gradient[:, :4].view(-1, 2, 2), gradient[:, 4:]

    whole = minimise(Rowwise(quadratic(scales, centres)), (start,), LbfgsSettings(max_iterations=5))
    parts = minimise(InTwo(quadratic(scales, centres)), (start[:, :4].view(3, 2, 2), start[:, 4:]), LbfgsSettings(5))
    torch.testing.assert_close(torch.cat([parts.point[0].flatten(1), parts.point[1]], 1), whole.point[0])
