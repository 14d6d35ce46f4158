"""Curvature of each leaf: compiled loop and operators, and the second derivative that it stands for."""

from dataclasses import replace

import pytest
import torch
from oracles.simulated import simulate

from softsurv.hazards import family_names, get_family
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.problem import make_problem
from softsurv.sparse.leaf_fit import row_terms
from softsurv.sparse.leaf_grams import leaf_grams

ROWS, TREES, LEAVES, CURVATURE = 60, 2, 3, 0.25


def a_stack(family):
    problem = make_problem(simulate(ROWS), get_family(family), n_trees=TREES)
    leaf = torch.randint(0, LEAVES - 1, (TREES, ROWS), generator=torch.Generator().manual_seed(0))  # one is empty
    shape = torch.linspace(-0.4, 0.4, TREES * problem.family.n_shape).double().view(TREES, -1)
    return problem, leaf, shape


@pytest.mark.parametrize("family", family_names())
def test_the_compiled_loop_is_what_operators_say(family):
    problem, leaf, shape = a_stack(family)
    found = leaf_grams(problem, leaf, LEAVES, shape, CURVATURE)
    with operators_alone():
        expected = leaf_grams(problem, leaf, LEAVES, shape, CURVATURE)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)
    assert (found[:, -1] == 0).all()
    torch.testing.assert_close(found, found.mT)


@pytest.mark.parametrize("family", ["exponential", "loglogistic", "spline_ph", "spline_po"])
def test_scaled_by_each_row_it_is_the_curvature_by_slopes(family):
    """With the true curvature of every row's loss by its level as its weight, the block of the slopes is exact."""
    problem, leaf, shape = a_stack(family)
    q = problem.design.shape[-1]
    slopes = torch.linspace(-0.5, 0.5, TREES * q).double().view(TREES, 1, q).requires_grad_(True)

    def losses(coefficients):
        only = torch.zeros(TREES, ROWS, dtype=torch.int64)
        return row_terms(problem, coefficients @ problem.design.mT, shape[:, None], only)[0]

    offset = (slopes @ problem.design.mT).detach().requires_grad_(True)
    only = torch.zeros(TREES, ROWS, dtype=torch.int64)
    (first,) = torch.autograd.grad(row_terms(problem, offset, shape[:, None], only)[0].sum(), offset, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), offset)
    found = leaf_grams(replace(problem, weight=second.clamp(min=0)), torch.zeros_like(leaf), 1, shape, 1.0)[
        :, 0, :q, :q
    ]
    hessian = torch.autograd.functional.hessian(lambda own: losses(own).sum(), slopes.detach())
    expected = torch.stack([hessian[m, 0, :, m, 0] for m in range(TREES)])
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)
