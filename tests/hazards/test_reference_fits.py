"""Depth-0 fits against lifelines, and where it has no such family, against scipy on the printed likelihood.

Our objective leaves out the constants log t and log s of each observed event: :func:`log_likelihood` puts them back.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from lifelines import LogLogisticAFTFitter, LogNormalAFTFitter, WeibullAFTFitter
from scipy.optimize import minimize

from softsurv.data.datasets import load_dataset
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft.fit_stack import fit_single_leaf
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import no_penalties
from softsurv.soft.problem import make_problem
from softsurv.trees.soft_tree import SoftTree

FITTERS = {"weibull": WeibullAFTFitter, "loglogistic": LogLogisticAFTFitter, "lognormal": LogNormalAFTFitter}
AGREEMENT = 1e-4
"""Relative difference of log-likelihoods that the project promises; the fits agree to about 1e-8."""


@pytest.fixture(scope="module")
def gbsg2():
    """Scaled features, times in years and events of 686 patients."""
    data = load_dataset("gbsg2")
    x = pd.get_dummies(data.X, drop_first=True).astype(float)
    return (x - x.min()) / (x.max() - x.min()), data.time.numpy() / 365.25, data.event.numpy()


def fit(data, family):
    problem = make_problem(data, get_family(family))
    return problem, fit_single_leaf(problem).point[0]


def log_likelihood(data, family):
    """Log-likelihood of the fitted single leaf, its constants put back."""
    problem, leaves = fit(data, family)
    objective = Objective(problem, 0, no_penalties(1, leaves.shape[-1], leaves))
    loss = objective.value(leaves.new_zeros(1, 0, problem.design.shape[-1]), leaves)
    weight = torch.ones_like(data.time) if data.weight is None else data.weight
    constant = torch.where(data.event, data.time, 1.0).log() + problem.time_scale[0, 1].log()
    return float(-loss * weight.sum() - (weight * data.event * constant).sum())


def lifelines_fit(family, how, *args, **kwargs):
    model = FITTERS[family](penalizer=0.0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # lifelines' own, about its start and pandas
        return getattr(model, how)(*args, **kwargs)


@pytest.mark.parametrize("family", FITTERS)
def test_right_censored_fit(gbsg2, family):
    x, time, event = gbsg2
    theirs = lifelines_fit(family, "fit", x.assign(T=time, E=event), "T", "E")
    data = SurvivalData(x, time, event)
    assert log_likelihood(data, family) == pytest.approx(theirs.log_likelihood_, rel=AGREEMENT)
    problem, leaves = fit(data, family)
    tree = SoftTree(0, x.shape[1], problem.family)
    tree.load_state_dict({"routing": torch.zeros(1, 0, 10), "leaves": leaves, "time_scale": problem.time_scale})
    grid = np.array([0.5, 2.0, 6.0])
    with torch.no_grad():
        curves = tree.survival_function(data.x[:20], torch.tensor(grid))[0]
    expected = theirs.predict_survival_function(x.iloc[:20], times=grid).to_numpy().T
    np.testing.assert_allclose(curves, expected, atol=2e-3)


@pytest.mark.parametrize("family", FITTERS)
def test_weighted_fit(gbsg2, family):
    x, time, event = gbsg2
    weight = np.random.default_rng(0).integers(1, 4, len(time)).astype(float)
    theirs = lifelines_fit(family, "fit", x.assign(T=time, E=event, w=weight), "T", "E", weights_col="w")
    ours = log_likelihood(SurvivalData(x, time, event, weight=weight), family)
    assert ours == pytest.approx(theirs.log_likelihood_, rel=AGREEMENT)


@pytest.mark.parametrize("family", FITTERS)
def test_left_truncated_fit(gbsg2, family):
    x, time, event = gbsg2
    rng = np.random.default_rng(1)
    entry = np.where(rng.random(len(time)) < 0.4, time * rng.uniform(0.05, 0.8, len(time)), 0.0)
    theirs = lifelines_fit(family, "fit", x.assign(T=time, E=event, entry=entry), "T", "E", entry_col="entry")
    ours = log_likelihood(SurvivalData(x, time, event, entry=entry), family)
    assert ours == pytest.approx(theirs.log_likelihood_, rel=AGREEMENT)


@pytest.mark.parametrize("family", FITTERS)
def test_interval_censored_fit(gbsg2, family):
    x, time, event = gbsg2
    visit = np.maximum(np.floor(time * 2) / 2, 0.01)  # lifelines has no gradient of a log-normal interval from 0
    time, upper = np.where(event, visit, time), np.where(event, np.floor(time * 2) / 2 + 0.5, np.inf)
    theirs = lifelines_fit(family, "fit_interval_censoring", x.assign(low=time, high=upper), "low", "high")
    ours = log_likelihood(SurvivalData(x, time, np.zeros(len(x), bool), upper=upper), family)
    assert ours == pytest.approx(theirs.log_likelihood_, rel=AGREEMENT)


@pytest.mark.parametrize("family", FITTERS)
def test_left_censored_fit(gbsg2, family):
    x, time, _ = gbsg2
    start = np.random.default_rng(2).uniform(0.5, 3.0, len(time))
    event = time >= start
    table = x.assign(T=np.maximum(time, start), E=event)
    theirs = lifelines_fit(family, "fit_left_censoring", table, "T", "E")
    ours = SurvivalData(x, np.where(event, time, 0.0), event, upper=np.where(event, np.inf, start))
    assert log_likelihood(ours, family) == pytest.approx(theirs.log_likelihood_, rel=AGREEMENT)


def test_exponential_without_features_is_events_over_exposure(gbsg2):
    x, time, event = gbsg2
    rate = event.sum() / time.sum()
    ours = log_likelihood(SurvivalData(x[[]], time, event), "exponential")
    assert ours == pytest.approx(event.sum() * np.log(rate) - event.sum(), rel=1e-10)


def scipy_log_likelihood(loss, size, start=None):
    found = minimize(loss, np.zeros(size) if start is None else start, method="BFGS", options={"gtol": 1e-7})
    found = (
        minimize(loss, found.x, method="Nelder-Mead", options={"maxiter": 400, "fatol": 1e-10}) if size < 4 else found
    )
    return -found.fun


def test_exponential_fit_against_scipy(gbsg2):
    x, time, event = gbsg2
    design = np.column_stack([np.ones(len(x)), x])

    def loss(b):
        rate = design @ b
        return (np.exp(rate) * time - event * rate).sum()

    ours = log_likelihood(SurvivalData(x, time, event), "exponential")
    assert ours == pytest.approx(scipy_log_likelihood(loss, design.shape[1]), rel=1e-7)


def test_gompertz_fit_against_scipy(gbsg2):
    x, time, event = gbsg2
    x = x.iloc[:, :3]
    design = np.column_stack([np.ones(len(x)), x])

    def loss(b):
        rate, growth = design @ b[:-1], b[-1]
        mean_growth = np.expm1(growth * time) / growth if abs(growth) > 1e-9 else time
        return (np.exp(rate) * mean_growth - event * (rate + growth * time)).sum()

    ours = log_likelihood(SurvivalData(x, time, event), "gompertz")
    assert ours == pytest.approx(scipy_log_likelihood(loss, design.shape[1] + 1), rel=1e-7)


def raw_spline_loss(basis, slopes, x, event, odds):
    """Negative log-likelihood of Royston & Parmar on the power basis, infinite where the spline falls."""

    def loss(b):
        m = basis.shape[1]
        z, rise = basis @ b[:m] + x @ b[m:], slopes @ b[:m]
        if (rise[event] <= 0).any():
            return np.inf
        hazard = np.logaddexp(0, z) if odds else np.exp(np.minimum(z, 500))
        log_density = z - hazard if odds else z
        return (hazard - event * log_density)[...].sum() - np.log(rise[event]).sum()

    return loss


@pytest.mark.parametrize("family", ["spline_ph", "spline_po"])
def test_spline_fit_against_scipy_on_the_power_basis(gbsg2, family):
    x, time, event = gbsg2
    x = x.iloc[:, :3]
    log_time = np.log(time)
    first, *inner, last = np.quantile(log_time[event], [0, 0.33, 0.67, 1])
    columns, slopes = [np.ones_like(log_time), log_time], [np.zeros_like(log_time), np.ones_like(log_time)]
    for knot in inner:
        share = (last - knot) / (last - first)
        for power, into in ((3, columns), (2, slopes)):
            hinges = [np.maximum(log_time - k, 0) ** power for k in (knot, first, last)]
            factor = 1 if power == 3 else 3
            into.append(factor * (hinges[0] - share * hinges[1] - (1 - share) * hinges[2]))
    loss = raw_spline_loss(np.stack(columns, 1), np.stack(slopes, 1), x.to_numpy(), event, family == "spline_po")
    start = np.array([-2.0, 1.0, 0, 0, 0, 0, 0])
    with np.errstate(all="ignore"):
        best = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 8000, "fatol": 1e-9, "xatol": 1e-7})
        best = minimize(loss, best.x, method="Nelder-Mead", options={"maxiter": 8000, "fatol": 1e-10, "xatol": 1e-8})
    theirs = -best.fun - log_time[event].sum()
    ours = log_likelihood(SurvivalData(x, time, event), family)
    assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("name", ["exponential", "weibull", "loglogistic", "lognormal", "gompertz", "spline_ph"])
def test_unit_of_time_and_scale_of_features_leave_the_curves(gbsg2, name):
    x, time, event = gbsg2

    def curves(table, unit):
        problem, leaves = fit(SurvivalData(table, time * unit, event), name)
        tree = SoftTree(0, table.shape[1], problem.family)
        routing = torch.zeros(1, 0, table.shape[1] + 1)
        tree.load_state_dict({"routing": routing, "leaves": leaves, "time_scale": problem.time_scale})
        grid = torch.tensor([0.2, 1.0, 3.0, 7.0]) * unit
        with torch.no_grad():
            return tree.survival_function(torch.tensor(table.to_numpy())[:50], grid)

    plain = curves(x, 1.0)
    torch.testing.assert_close(curves(x, 365.25), plain, rtol=0, atol=1e-4)
    torch.testing.assert_close(curves(x * 3 - 2, 1.0), plain, rtol=0, atol=1e-3)
