"""The compiled loop over rows in their leaves against torch's operators, which serve other devices and censorings."""

from dataclasses import replace

import pytest
import torch
from oracles.simulated import simulate, with_everything

from softsurv.hazards import family_names, get_family
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.problem import join_problems, make_problem
from softsurv.soft.row_kernels import BLOCK
from softsurv.sparse.leaf_fit import LeafObjective, LeafPenalties, fit_leaves
from softsurv.sparse.leaf_pass import pass_of

COMPILED = {"weibull", "loglogistic", "spline_ph", "spline_po"}
LEAVES = 3


def stacked(family, sizes, trees=2):
    """Trees of several groups of rows of unlike weight, and a leaf for each row."""
    parts = [make_problem(simulate(n, seed=n), get_family(family)).repeat(trees) for n in sizes]
    problem = join_problems(parts)
    random = torch.Generator().manual_seed(0)
    weight = problem.weight * torch.rand(problem.weight.shape, generator=random, dtype=torch.float64)
    leaf = torch.randint(LEAVES, weight[:, 0].shape, generator=random)
    return problem.weighing(weight), leaf


def penalties(trees, slopes):
    own = torch.full((trees,), 0.02, dtype=torch.float64)
    return LeafPenalties(own, own, torch.full_like(own, slopes))


@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("slopes", [0.1, float("inf")])
@pytest.mark.parametrize("sizes", [(2 * BLOCK + 17,), (40, 31)])
def test_values_and_gradients_are_those_of_operators(family, slopes, sizes):
    problem, leaf = stacked(family, sizes)
    assert (pass_of(problem, problem.design) is not None) == (family in COMPILED)
    objective = LeafObjective(problem, leaf, LEAVES, penalties(len(leaf), slopes))
    width = problem.design.shape[-1] + problem.family.n_shape
    random = torch.Generator().manual_seed(1)
    for size in (0.3, 3.0, 30.0):  # the last one beyond the limits of shapes
        model = size * torch.randn(len(leaf), 1 + LEAVES, width, generator=random, dtype=torch.float64)
        point = model[:, :1], torch.where(objective.free[:, None], model[:, 1:], 0.0)
        found = objective.value_and_gradient(*point)
        with operators_alone():
            expected = objective.value_and_gradient(*point)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12 * float(theirs.abs().max().clamp(min=1)))


@pytest.mark.parametrize("slopes", [0.1, float("inf")])
def test_minima_are_those_of_operators(slopes):
    problem, leaf = stacked("loglogistic", (150,), trees=3)
    found = fit_leaves(problem, leaf, LEAVES, penalties(3, slopes))
    with operators_alone():
        expected = fit_leaves(problem, leaf, LEAVES, penalties(3, slopes))
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-8, atol=0)


def test_a_tree_does_not_depend_on_the_stack_it_is_in():
    problem, leaf = stacked("spline_po", (BLOCK + 5,), trees=4)
    objective = LeafObjective(problem, leaf, LEAVES, penalties(4, float("inf")))
    some = torch.tensor([1, 3])
    random = torch.Generator().manual_seed(2)
    width = problem.design.shape[-1] + problem.family.n_shape
    common = 0.3 * torch.randn(4, 1, width, generator=random, dtype=torch.float64)
    deviation = torch.zeros(4, LEAVES, width, dtype=torch.float64)
    whole = objective.value_and_gradient(common, deviation)
    part = objective.take(some).value_and_gradient(common[some], deviation[some])
    for ours, theirs in zip(part, whole, strict=True):
        torch.testing.assert_close(ours, theirs[some], rtol=1e-13, atol=1e-15)


def test_other_censorings_other_precision_and_autograd_take_operators():
    entering = make_problem(with_everything(), get_family("weibull"))
    assert pass_of(entering, entering.design) is None
    problem = make_problem(simulate(20), get_family("weibull"))
    assert pass_of(problem, problem.design.float()) is None
    assert pass_of(problem, problem.design.clone().requires_grad_(True)) is None
    assert pass_of(replace(problem, family=get_family("lognormal")), problem.design) is None
