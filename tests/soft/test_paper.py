"""The published settings: regression of the reassignment, spline start, order of the thresholds."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from softsurv import SoftSurvivalTree
from softsurv.errors import DataWarning, InvalidParameterError
from softsurv.hazards import get_family
from softsurv.soft import bfgs, fit, nodec, paper
from softsurv.soft.gram import WeightedGram
from softsurv.soft.logistic import fit_logistic
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.problem import make_problem
from softsurv.soft.spline_start import event_hazards, least_squares, spline_leaves, within_limits
from softsurv.stopping import StopSignal


def nodes(seed, m=2, s=2, n=120, q=4):
    rng = np.random.default_rng(seed)
    design = torch.as_tensor(np.concatenate([np.ones((1, n, 1)), rng.random((1, n, q - 1))], -1))
    mass = torch.as_tensor(np.where(rng.random((m, s, n)) < 0.8, rng.random((m, s, n)), 0.0))
    labels = torch.as_tensor((rng.random((m, s, n)) < 0.3).astype(float))
    return design, mass, labels


def test_logistic_regressions_of_all_nodes_are_those_of_sklearn():
    design, mass, labels = nodes(0)
    ridge = torch.tensor([[[0.1], [1.0]], [[0.5], [2.0]]], dtype=torch.float64)
    found = fit_logistic(design, mass, labels, ridge)
    for tree in range(2):
        for node in range(2):
            model = LogisticRegression(C=1 / float(ridge[tree, node, 0]), tol=1e-10, max_iter=5000)
            model.fit(design[0, :, 1:], labels[tree, node], sample_weight=mass[tree, node])
            expected = np.concatenate([model.intercept_, model.coef_[0]])
            np.testing.assert_allclose(found[tree, node], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2])
def test_compiled_rounds_come_to_the_weights_of_the_operators(groups):
    """Rows without weight, a node without rows, zeros of encoded categories, and more steps than one node needs."""
    design, mass, labels = nodes(3, m=4)
    design[..., 2] = (design[..., 2] > 0.5).double()
    design = torch.cat([design, design.flip(1)])[:groups]
    mass[2, 1] = 0.0
    ridge = torch.tensor([1e-3, 1 / 120, 0.1, 3.0], dtype=torch.float64)[:, None, None].expand(4, 2, 1)
    found = fit_logistic(design, mass, labels, ridge)
    with operators_alone():
        expected = fit_logistic(design, mass, labels, ridge)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert not found[2, 1].any()
    assert bool(found[2, 0].any())


def test_classes_that_separate_and_extreme_weights_end_at_finite_weights():
    design, mass, _ = nodes(1, m=1, s=1)
    labels = (design[:, :, 1] > 0.5).double()[:, None]
    mass = torch.where(labels > 0, 1e3 * mass, mass)
    found = fit_logistic(design, mass, labels, torch.full((1, 1, 1), 1 / 120, dtype=torch.float64))
    assert bool(torch.isfinite(found).all())
    assert bool(((design @ found[0].mT > 0)[0, :, 0] == (labels[0, 0] > 0)).double().mean() > 0.9)


def test_weighted_gram_is_the_sum_over_rows_in_any_chunks(monkeypatch):
    design, mass, _ = nodes(2)
    whole = WeightedGram(design)(mass)
    torch.testing.assert_close(whole, torch.einsum("msn,nq,nr->msqr", mass, design[0], design[0]))
    monkeypatch.setattr("softsurv.soft.gram.CHUNK_ELEMENTS", 16 * 7)
    torch.testing.assert_close(WeightedGram(design)(mass), whole)


def test_the_two_thresholds_come_in_either_order():
    printed, text = paper.balance("printed"), paper.balance("text")
    assert (printed.moderate, printed.high) == (0.1, 0.3)
    assert (text.moderate, text.high) == (0.3, 0.1)
    assert printed.decayed(0.5).high == pytest.approx(0.15)
    assert printed.decayed(0.5).weighs_wanted


@pytest.mark.parametrize(
    ("family", "init", "start"),
    [("weibull", "random", "random"), ("loglogistic", "kmeans", "own"), ("spline_po", "random", "spline")],
)
def test_leaves_begin_as_printed(family, init, start):
    assert paper.training(family, init).leaf_start == start


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

    monkeypatch.setattr(fit, "spline_leaves", fails)
    data = tools.simulate(60, 2)
    with pytest.warns(DataWarning, match="overflow.*begin at random"):
        SoftSurvivalTree(depth=1, leaf="spline_ph", preset="paper", device="cpu", max_iter=1).fit(data)


def test_every_start_of_a_preset_has_its_scores(tools):
    data = tools.simulate(120, 3)
    tree = SoftSurvivalTree(depth=1, preset="paper", device="cpu", max_iter=1).fit(data)
    table = tree.evaluate_starts(data)
    assert len(table) == paper.RESTARTS
    best = table.loc[table["objective"].idxmin()]
    assert best["objective"] == pytest.approx(tree.report_.objective)
    assert best["harrell_c"] == tree.evaluate(data)["harrell_c"]
    assert table["harrell_c"].nunique() > 1


def test_starts_are_there_for_dense_trees_of_this_session_alone(tools, tmp_path):
    from softsurv import load_model

    data = tools.simulate(120, 3)
    tree = SoftSurvivalTree(depth=1, preset="paper", device="cpu", max_iter=1).fit(data)
    tree.save(tmp_path / "model")
    with pytest.raises(InvalidParameterError, match="fit again"):
        load_model(tmp_path / "model").evaluate_starts(data)


def test_regressions_of_nodes_look_at_the_clock():
    design, mass, labels = nodes(2)
    ridge = torch.ones(2, 2, 1, dtype=torch.float64)
    assert not fit_logistic(design, mass, labels, ridge, StopSignal(0.0)).any()
    torch.testing.assert_close(
        fit_logistic(design, mass, labels, ridge, StopSignal(60.0)), fit_logistic(design, mass, labels, ridge)
    )


def test_more_coefficients_than_a_matrix_has_room_for_are_refused_before_any_work(tools, monkeypatch):
    tree = SoftSurvivalTree(depth=2, preset="paper", leaf="weibull", device="cpu", max_iter=1)
    # 3 features: the root has 4 coefficients, all leaves 4 * 5 together
    monkeypatch.setattr(bfgs, "MATRIX_BYTES", 20 * 20 * 8 - 1)
    monkeypatch.setattr(nodec, "branch_step", None)
    with pytest.raises(InvalidParameterError, match=r"at most 19 coefficients.*got 20.*leave columns out, lower depth"):
        tree.fit(tools.simulate(60, 3))
