"""Tables of more columns than rows: the same leaves, fitted along as many axes as there are rows."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.numerics import Design, with_intercept
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.problem import make_problem
from softsurv.sparse.causes import fit_causes
from softsurv.sparse.row_space import RowSpace, ridge_scale, row_space
from softsurv.sparse.train import penalties_of
from softsurv.stopping import StopSignal

EXACT = LbfgsSettings(max_iterations=2000, ftol=1e-15)


def genes(n, p, seed=0, weight=None):
    """Numbers in [0, 1], one of which matters."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, p))
    time, late = rng.exponential(np.where(x[:, 0] > 0.5, 1.0, 4.0)), rng.exponential(6.0, n)
    return survival_data(x, time=np.minimum(time, late) + 1e-3, event=time <= late, weight=weight)


@pytest.mark.parametrize("family", ["weibull", "loglogistic", "spline_ph"])
@pytest.mark.parametrize("slopes", [None, 5.0])
def test_the_leaves_are_those_of_a_fit_in_the_columns(family, slopes):
    data, family = genes(40, 90), get_family(family)
    space = row_space(data)
    assert space.design.table.shape == (40, 41)
    leaf = torch.as_tensor(np.arange(40) % 2)[None]
    penalties = penalties_of(np.array([40.0]), 3.0, 2.0, slopes)
    plain = (make_problem(data, family),)
    expected, loss = fit_causes(plain, leaf, 2, penalties, settings=EXACT)
    narrow = (make_problem(data, family, design=space.design),)
    found, narrow_loss = fit_causes(narrow, leaf, 2, penalties, settings=EXACT)
    assert float(narrow_loss) == pytest.approx(float(loss), rel=1e-9)
    problems, models = space.in_columns(narrow, found)
    torch.testing.assert_close(problems[0].design, plain[0].design)
    torch.testing.assert_close(models[0], expected[0], atol=2e-4, rtol=1e-3)


def test_slopes_in_the_columns_predict_what_those_along_the_axes_do():
    data = genes(30, 70, seed=1)
    space = row_space(data)
    problems = (make_problem(data, get_family("weibull"), design=space.design),)
    model = torch.randn(1, 3, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wide, (models,) = space.in_columns(problems, (model,))
    torch.testing.assert_close(wide[0].linear(models[..., :71]), problems[0].linear(model[..., :31]))
    torch.testing.assert_close(models[..., 1:71].square().sum(-1), model[..., 1:31].square().sum(-1))  # penalties
    torch.testing.assert_close(models[..., [0, -1]], model[..., [0, -1]])


@pytest.mark.parametrize("ridge", [1e6, 1e8, 1e12])
def test_one_curve_is_found_under_any_ridge(ridge):
    """The first axis is nearly constant: steps that leave the ridge out move it against the intercept."""
    data, family = genes(120, 500, seed=3), get_family("weibull")
    narrow, nothing = (
        make_problem(data, family, design=design) for design in (row_space(data).design, Design(torch.ones(120, 1)))
    )
    leaf, penalties = torch.zeros(1, 120, dtype=torch.int64), penalties_of(np.array([120.0]), ridge, 0.0, None)
    expected = float(fit_causes((nothing,), leaf, 1, penalties)[1])
    assert expected - 2e-4 < float(fit_causes((narrow,), leaf, 1, penalties)[1]) < expected + 1e-6


def test_equal_rows_and_constant_columns_need_no_axis():
    twice = np.repeat(np.random.default_rng(0).random((10, 50)), 2, axis=0)
    data = survival_data(twice, time=np.arange(1.0, 21.0), event=np.ones(20, bool))
    assert row_space(data).design.table.shape == (20, 11)
    nothing = survival_data(np.zeros((4, 9)), time=np.arange(1.0, 5.0), event=np.ones(4, bool))
    assert row_space(nothing).design.table.shape == (4, 1)


def test_few_columns_stay_as_they_are():
    data = genes(50, 50)
    space, design = row_space(data), Design(with_intercept(data.x))
    assert space.weights is None
    assert space.design is space.plain
    torch.testing.assert_close(space.plain.table, design.table)
    problems, models = (make_problem(data, get_family("weibull")),), (torch.zeros(1, 2, 52),)
    assert RowSpace(design, design).in_columns(problems, models) == (problems, models)
    assert ridge_scale(data) == 1.0


def test_axes_that_would_take_much_of_the_time_left_are_not_sought():
    data = genes(40, 90)
    assert row_space(data, StopSignal(60.0)).design.table.shape == (40, 41)
    assert row_space(data, StopSignal(math.inf)).weights is not None
    short = row_space(data, StopSignal(1e-5))
    assert short.weights is None
    assert short.design.table.shape == (40, 91)


def test_the_ridge_grows_with_the_variance_of_many_columns():
    data = genes(60, 600)
    assert ridge_scale(data) == pytest.approx(600 / 12 / 0.5, rel=0.1)
    few = survival_data(data.X * 0.01, time=data.time.numpy(), event=data.event.numpy())
    assert ridge_scale(few) == 1.0
    rows, weight = np.repeat(np.arange(60), np.arange(60) % 3 + 1), (np.arange(60) % 3 + 1).astype(float)
    weighted = survival_data(data.X, time=data.time.numpy(), event=data.event.numpy(), weight=weight)
    assert ridge_scale(weighted) == ridge_scale(data.take(rows))
    assert ridge_scale(weighted) == float(f"{ridge_scale(weighted):.2g}")


@pytest.fixture(scope="module")
def many_genes():
    """Normal numbers: one splits the rows, others add up."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(240, 500))
    hazard = np.exp(1.2 * (x[:, 0] > 0) + 0.3 * x[:, 1:20].sum(1) / 4)
    time, late = rng.exponential(1 / hazard), rng.exponential(2.0, 240)
    X = pd.DataFrame(x, columns=[f"g{k}" for k in range(500)])
    return X, np.where(time <= late, np.where(rng.random(240) < 0.5, "a", "b"), ""), np.minimum(time, late)


def test_a_default_tree_of_many_columns_predicts():
    """The usual ridge would let so many slopes follow single rows. Columns share what matters, as genes do."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=240)
    X, hazard = 0.5 * shared[:, None] + rng.normal(size=(240, 500)), np.exp(shared)
    time, late = rng.exponential(1 / hazard), rng.exponential(2.0, 240)
    y = time <= late, np.minimum(time, late) + 1e-3
    train, test = (survival_data(X[k::2], time=y[1][k::2], event=y[0][k::2]) for k in (0, 1))
    tree = SoftSurvivalTree(leaf="weibull", depth=0).fit(train)
    ridges = np.sort(tree.selection_["ridge"])
    assert ridges[0] > 1.0
    np.testing.assert_allclose(ridges / ridges[0], [1.0, 3.0, 10.0, 100.0, 1e5], rtol=1e-2)
    others = [SoftSurvivalTree(leaf="weibull", depth=0, l2=ridge).fit(train) for ridge in (1e9, 0.3)]
    assert tree.evaluate(test)["ibs"] < 0.95 * min(other.evaluate(test)["ibs"] for other in others)


def test_trees_with_causes_have_slopes_of_every_column(many_genes):
    X, cause, time = many_genes
    tree = SoftSurvivalTree(leaf="weibull", depth=1).fit(X, time=time, cause=cause)
    assert set(tree.selection_["ridge"]) == {9.6, 960.0}
    for of_cause in tree.cause_trees_:
        assert of_cause.leaves.shape == (1, 2, 502)
        assert np.count_nonzero(of_cause.leaves[0, :, 1:501].detach()) > 900
    assert np.isfinite(tree.predict(X)).all()


def test_a_given_ridge_is_taken_as_it_is(many_genes):
    X, cause, time = many_genes
    tree = SoftSurvivalTree(leaf="weibull", depth=1, l2=2.0).fit(X, (cause != "", time))
    assert set(tree.selection_["ridge"]) == {2.0}


def test_one_event_is_enough_where_nothing_is_left_to_choose():
    rng = np.random.default_rng(0)
    X, time, event = rng.random((12, 30)), rng.exponential(size=12) + 0.1, np.arange(12) == 3
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0).fit(X, (event, time))
    assert tree.predict(X).argmax() == 3
