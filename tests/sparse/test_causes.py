"""Leaf models of several causes: what is added up, what is counted, and what rows have to expect."""

import numpy as np
import pytest
import torch
from oracles.simulated import simulate

from softsurv.hazards import get_family
from softsurv.soft.problem import make_problem
from softsurv.sparse.causes import curves_in_leaves, fit_causes, losses_of_causes, second_orders, some, take
from softsurv.sparse.leaf_fit import LeafPenalties, fit_leaves, leaf_models, losses_in_leaves

TREES, LEAVES = 2, 3


@pytest.fixture(scope="module")
def problems():
    """The same rows under two families, as those of two causes."""
    return tuple(
        make_problem(simulate(40, seed=0), get_family(name)).repeat(TREES) for name in ("weibull", "loglogistic")
    )


@pytest.fixture(scope="module")
def models(problems):
    torch.manual_seed(0)
    sizes = [p.design.shape[-1] + p.family.n_shape for p in problems]
    return tuple(0.3 * torch.randn(TREES, 1 + LEAVES, size, dtype=torch.float64) for size in sizes)


def test_losses_are_added_as_often_as_each_cause_counts(problems, models):
    each = [losses_in_leaves(p, leaf_models(m)) for p, m in zip(problems, models, strict=True)]
    torch.testing.assert_close(losses_of_causes(problems, models), each[0] + each[1])
    torch.testing.assert_close(losses_of_causes(problems, models, np.array([2.0, 0.5])), 2 * each[0] + 0.5 * each[1])
    most = float(each[0].median())
    limited = losses_of_causes(problems, models, most=most)
    torch.testing.assert_close(limited, each[0].clamp(max=most) + each[1].clamp(max=most))


def test_slopes_of_causes_stand_side_by_side(problems, models):
    both = second_orders(problems, models, np.array([1.0, 3.0])).numpy()
    assert both.shape == (TREES, 40, 10)
    np.testing.assert_allclose(both[..., :5], second_orders(problems[:1], models[:1]).numpy())
    np.testing.assert_allclose(both[..., 5:], 3 * second_orders(problems[1:], models[1:]).numpy())


def test_causes_are_fitted_apart(problems):
    leaf = torch.randint(LEAVES, (TREES, 40), generator=torch.Generator().manual_seed(1))
    own = torch.full((TREES,), 0.05, dtype=torch.float64)
    penalties = LeafPenalties(own, own, torch.full_like(own, float("inf")))
    stronger = LeafPenalties(10 * own, own, torch.full_like(own, float("inf")))
    found, loss = fit_causes(problems, leaf, LEAVES, (penalties, stronger), counts=np.array([1.0, 2.0]))
    ends = [fit_leaves(p, leaf, LEAVES, how) for p, how in zip(problems, (penalties, stronger), strict=True)]
    for model, end in zip(found, ends, strict=True):
        torch.testing.assert_close(model, end.point[0])
    torch.testing.assert_close(loss, ends[0].loss + 2 * ends[1].loss)


def test_survival_and_incidences_of_rows_in_leaves(problems, models):
    one_tree, model = take(problems, torch.tensor([1])), some(models, slice(1, 2))
    times, rows = np.array([0.5, 1.0, 2.0, 4.0]), np.arange(40)
    survival = curves_in_leaves(one_tree[:1], model[:1], times, rows)
    assert survival.shape == (LEAVES, 40, 4)
    np.testing.assert_allclose(curves_in_leaves(one_tree[:1], model[:1], times, rows[7:9]), survival[:, 7:9])
    assert (np.diff(survival, axis=2) <= 0).all()
    assert ((survival > 0) & (survival <= 1)).all()
    incidence = curves_in_leaves(one_tree, model, times, rows).reshape(LEAVES, 40, 4, 2)
    assert (np.diff(incidence, axis=2) >= -1e-12).all()
    alive = 1 - incidence.sum(-1)
    other = curves_in_leaves(one_tree[1:], model[1:], times, rows)
    np.testing.assert_allclose(alive, survival * other, atol=1e-9)  # all causes together leave what no cause took


def test_some_trees(problems, models):
    part = take(problems, torch.tensor([1]))
    losses = losses_of_causes(part, some(models, slice(1, 2)))
    torch.testing.assert_close(losses, losses_of_causes(problems, models)[1:])
