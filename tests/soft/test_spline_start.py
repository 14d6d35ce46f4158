"""Where spline leaves begin: Cox regression and least squares."""

import numpy as np
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.errors import DataWarning
from softsurv.hazards import get_family
from softsurv.soft import spline_start
from softsurv.soft.problem import make_problem
from softsurv.soft.spline_start import event_hazards, least_squares, spline_leaves, within_limits


@pytest.mark.parametrize(("name", "gap"), [("spline_ph", 0.15), ("spline_po", 0.25)])  # a Cox curve is no line in odds
def test_spline_leaves_begin_at_the_curves_of_the_cox_regression(tools, name, gap):
    """With one leaf and many rows the start's log H is near that of the regression at its own events."""
    data, family = tools.simulate(400, 3), get_family(name)
    problem = make_problem(data, family)
    leaves = spline_leaves(data, problem, 0, [3, 4])
    assert leaves.shape == (2, 1, problem.design.shape[-1] + family.n_shape)
    assert not torch.equal(leaves[0], leaves[1])
    hazard, event = event_hazards(data)
    value, _ = family.baseline(leaves[:1, :, -family.n_shape :], problem.features)
    z = (leaves[0, :, : -family.n_shape] @ problem.design[0].T + value[0])[0].numpy()[event]
    target = np.log(hazard) if name == "spline_ph" else np.log(np.expm1(hazard))
    middle = (target > np.quantile(target, 0.1)) & (target < np.quantile(target, 0.9))
    assert np.abs(z - target)[middle].mean() < gap


def test_least_squares_keep_the_slope_positive():
    rng = np.random.default_rng(0)
    x, rise = np.column_stack([np.ones(50), rng.random(50)]), rng.random((50, 2))
    target = 1 + 2 * x[:, 1] + 3 * rise[:, 0] - 4 * rise[:, 1]
    found = least_squares(x, rise, target)
    assert np.exp(found[3]) == pytest.approx(1e-3)
    assert np.exp(found[2]) > 1


def test_least_squares_of_columns_that_are_nearly_collinear_stay_finite():
    rng = np.random.default_rng(0)
    level = (np.arange(50) % 5 == 0).astype(float)
    x = np.column_stack([np.ones(50), level, 1 - level + 1e-13 * rng.random(50), rng.random(50)])
    rise = rng.random((50, 2))
    target = 1 + 2 * level - x[:, 3] + 3 * rise[:, 0] + rise[:, 1]
    found = least_squares(x, rise, target)
    assert np.abs(found).max() < 5
    fitted = x @ found[:4] + rise @ np.exp(found[4:])
    assert np.abs(fitted - target).max() < 0.1


@pytest.mark.parametrize(("name", "replaced"), [("spline_ph", True), ("spline_po", False)])
def test_a_leaf_whose_hazard_overflows_at_some_row_begins_at_random(tools, name, replaced):
    problem = make_problem(tools.simulate(60, 2), get_family(name))
    leaves = torch.zeros(2, 2, problem.design.shape[-1] + problem.family.n_shape, dtype=torch.float64)
    leaves[0, 1, 0], random = 40.0, torch.rand_like(leaves)
    found = within_limits(problem, leaves, random)
    torch.testing.assert_close(found[0, 1], random[0, 1] if replaced else leaves[0, 1])
    found[0, 1] = leaves[0, 1]
    torch.testing.assert_close(found, leaves)


def test_a_failing_cox_regression_is_said_and_leaves_begin_at_random(tools, monkeypatch):
    def fails(*_):
        raise ArithmeticError("overflow")

    monkeypatch.setattr(spline_start, "spline_leaves", fails)
    data = tools.simulate(60, 2)
    with pytest.warns(DataWarning, match="overflow.*begin at random"):
        SoftSurvivalTree(depth=1, leaf="spline_ph", preset="paper", device="cpu", max_iter=1).fit(data)


def test_a_hazard_that_no_float_holds_lets_leaves_begin_at_random():
    """Of a row far outside the others, without preprocessing: the fit ended at an objective of nan."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 2))
    time, event = rng.exponential(np.exp(-x[:, 0])), rng.random(120) < 0.8
    x[0], time[0], event[0] = [1e3, 0.0], time.min() / 2, True
    tree = SoftSurvivalTree(depth=1, preset="paper", leaf="spline_ph", preprocess=False, n_restarts=1)
    with pytest.warns(DataWarning, match="beyond all floats"):
        tree.fit(x, (event, time))
    assert np.isfinite(tree.report_.objective)
