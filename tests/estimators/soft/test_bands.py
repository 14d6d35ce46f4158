"""Confidence bands of predicted curves: against the bootstrap, differences, and the reported standard errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from lifelines import LogNormalAFTFitter, WeibullAFTFitter
from numpy.testing import assert_allclose
from scipy.stats import norm

from softsurv import SoftSurvivalTree, load_model
from softsurv.errors import InvalidParameterError

ONE = {"depth": 0, "l2": 1e-3}


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    died, censored = rng.weibull(1.5, n) * 4 * np.exp(0.5 * X["a"] - 0.3 * X["b"]), rng.exponential(6.0, n)
    return X, (died <= censored, np.minimum(died, censored))


@pytest.mark.parametrize("leaf", ["weibull", "loglogistic", "lognormal", "spline_ph"])
def test_band_is_as_wide_as_the_bootstrap_says(leaf):
    X, y = simulate(300, 1)
    ask, times = X[:3], np.array([1.0, 3.0, 6.0])
    tree = SoftSurvivalTree(leaf=leaf, **ONE).fit(X, y)
    lower, upper = tree.predict_survival_interval(ask, times)
    rng, again = np.random.default_rng(0), []
    for _ in range(40):
        rows = rng.integers(0, 300, 300)
        fit = SoftSurvivalTree(leaf=leaf, **ONE).fit(X.iloc[rows], (y[0].to_numpy()[rows], y[1].to_numpy()[rows]))
        again.append(fit.predict_survival_function(ask, times))
    assert_allclose((upper - lower) / (2 * 1.96), np.std(again, axis=0), rtol=0.4, atol=0.004)
    middle = tree.predict_survival_function(ask, times)
    assert (lower < middle).all()
    assert (middle < upper).all()


def test_band_of_a_tree_is_that_of_each_leaf():
    """With next to nothing shared, a leaf's band is as wide as that of a single leaf fitted to its rows."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(400).round(2)})
    time = rng.weibull(1.3, 400) * np.where(X["a"] > 0.5, 1.0, 8.0)
    y = (np.ones(400, dtype=bool), time)
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=1e6, shrinkage=0.0, slope_shrinkage=0.0).fit(X, y)
    times = np.array([0.5, 2.0])
    for leaf in range(len(tree.leaf_table_.n)):
        rows = np.flatnonzero(tree.apply(X) == leaf)
        alone = SoftSurvivalTree(depth=0, leaf="weibull", l2=1e6).fit(X.iloc[rows], (y[0][rows], time[rows]))
        own, single = (model.predict_survival_interval(X.iloc[rows[:1]], times) for model in (tree, alone))
        assert_allclose(own[1] - own[0], single[1] - single[0], rtol=0.2)


def test_levels_times_and_saved_models(tmp_path):
    X, y = simulate(200, 4)
    tree = SoftSurvivalTree(leaf="weibull", **ONE).fit(X, y)
    narrow, wide = (tree.predict_survival_interval(X[:5], level=level) for level in (0.5, 0.99))
    assert (wide[0] < narrow[0]).all()
    assert (narrow[1] < wide[1]).all()
    at_start = tree.predict_survival_interval(X[:2], [0.0, 1.0])
    assert_allclose(np.array(at_start)[:, :, 0], 1.0)
    tree.save(tmp_path / "model")
    assert_allclose(
        load_model(tmp_path / "model").predict_survival_interval(X[:5]), tree.predict_survival_interval(X[:5])
    )
    with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, got 95"):
        tree.predict_survival_interval(X, level=95)


def test_fits_without_standard_errors_say_so():
    X, y = simulate(200, 5)
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=None, l2=1.0, shrinkage=1.0, l1=0.01).fit(X, y)
    with pytest.raises(InvalidParameterError, match="this fit has no standard errors"):
        tree.predict_survival_interval(X)


@pytest.mark.parametrize("leaf", ["weibull", "lognormal"])
def test_quantile_limits_are_those_of_lifelines(leaf):
    """Without penalties a single leaf is an accelerated failure time model; its log time is linear in log scale."""
    X, (event, time) = simulate(400, 2)
    tree = SoftSurvivalTree(depth=0, leaf=leaf, l2=1e-9).fit(X, (event, time))
    fitter = {"weibull": WeibullAFTFitter, "lognormal": LogNormalAFTFitter}[leaf]()
    fitter.fit(X.assign(time=time, event=event), "time", "event")
    spread = fitter.variance_matrix_
    location, shape = ("lambda_", "rho_") if leaf == "weibull" else ("mu_", "sigma_")
    for probability in (0.1, 0.5):
        lower, upper = tree.predict_quantile_interval(X[:3], probability, level=0.9)
        if leaf == "weibull":  # log t = log lambda + log(-log(1 - p)) / rho, of log lambda and log rho
            by_shape = -np.log(-np.log1p(-probability)) / np.exp(fitter.params_[shape, "Intercept"])
        else:  # log t = mu + sigma z, of mu and log sigma
            by_shape = norm.ppf(probability) * np.exp(fitter.params_[shape, "Intercept"])
        order = [(location, "Intercept"), (location, "a"), (location, "b"), (shape, "Intercept")]
        weights = np.column_stack([np.ones(3), X[:3].to_numpy(), np.full(3, by_shape)])
        error = np.sqrt(np.einsum("nk,kl,nl->n", weights, spread.loc[order, order].to_numpy(), weights))
        assert_allclose(np.log(upper / lower) / (2 * norm.ppf(0.95)), error, rtol=2e-3)
        assert_allclose(np.sqrt(lower * upper), tree.predict_quantile(X[:3], probability), rtol=1e-9)


def test_quantile_limits_of_leaves_are_those_of_the_summary_at_its_typical_rows():
    X, y = simulate(300, 5)
    tree = SoftSurvivalTree(depth=1, leaf="loglogistic", max_terms=1).fit(X, y)
    summary = tree.summary()
    lower, upper = tree.predict_quantile_interval(summary.typical.astype(float))
    assert_allclose(lower, summary.leaves["median_lower"], rtol=1e-9)
    assert_allclose(upper, summary.leaves["median_upper"], rtol=1e-9)


def test_a_quantile_that_is_never_reached_has_no_limits():
    X, y = simulate(300, 6)
    tree = SoftSurvivalTree(leaf="gompertz", **ONE).fit(X, y)
    with torch.no_grad():
        tree.tree_.leaves[..., -1] = -3.0  # the hazard falls so fast that many never have the event
    times, limits = tree.predict_quantile(X, 0.99), tree.predict_quantile_interval(X, 0.99)
    never = np.isinf(times)
    assert never.any()
    assert np.isnan(np.array(limits)[:, never]).all()


def test_quantile_limits_are_refused_where_there_are_none():
    X, y = simulate(200, 7)
    tree = SoftSurvivalTree(leaf="weibull", **ONE).fit(X, y)
    with pytest.raises(InvalidParameterError, match="probability must be between 0 and 1, got 0"):
        tree.predict_quantile_interval(X, 0)
    with pytest.raises(InvalidParameterError, match="level must be between 0 and 1"):
        tree.predict_quantile_interval(X, level=95)
    tree.covariance_ = None
    with pytest.raises(InvalidParameterError, match="no standard errors"):
        tree.predict_quantile_interval(X)
