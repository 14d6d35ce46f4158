"""Logistic regressions of many nodes at once."""

import numpy as np
import pytest
import torch
from oracles.logistic_nodes import nodes
from sklearn.linear_model import LogisticRegression

from softsurv.soft import logistic
from softsurv.soft.logistic import fit_logistic
from softsurv.soft.one_pass import operators_alone
from softsurv.stopping import StopSignal


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


def test_regressions_of_nodes_look_at_the_clock():
    design, mass, labels = nodes(2)
    ridge = torch.ones(2, 2, 1, dtype=torch.float64)
    assert not fit_logistic(design, mass, labels, ridge, StopSignal(0.0)).any()
    torch.testing.assert_close(
        fit_logistic(design, mass, labels, ridge, StopSignal(60.0)), fit_logistic(design, mass, labels, ridge)
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_more_columns_than_rows_are_fitted_in_the_span_of_the_rows(groups, monkeypatch):
    """A step went over all pairs of columns: with 2,000 of them the starts of a stack took ten seconds unasked."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(groups, 30, 400, generator=generator, dtype=torch.float64)
    design = torch.cat([torch.ones(groups, 30, 1, dtype=torch.float64), x], -1)
    mass = torch.rand(2, 2, 30, generator=generator, dtype=torch.float64) / 30
    labels = (torch.rand(2, 2, 30, generator=generator) < 0.5).double()
    ridge = torch.full((2, 2, 1), 5.0, dtype=torch.float64)
    widths, compiled = [], logistic._fit_compiled
    monkeypatch.setattr(
        logistic, "_fit_compiled", lambda few, *order: widths.append(few.shape[-1]) or compiled(few, *order)
    )
    found = fit_logistic(design, mass, labels, ridge, tolerance=1e-10)
    assert widths == [31]
    own = design.repeat_interleave(2 // groups, 0)
    slope = mass * (torch.sigmoid(found @ own.mT) - labels)
    penalty = torch.cat([torch.zeros_like(ridge), ridge * found[..., 1:]], -1)
    assert (slope @ own + penalty).abs().max() < 1e-8
