"""Cox regression against scikit-survival and R, and under a clock."""

import numpy as np
import pytest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

from softsurv.cox import _newton_step, efron_steps, fit_cox, running_sums
from softsurv.stopping import StopSignal


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    time = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1])) + 0.01
    return X, time, rng.random(300) < 0.6


@pytest.mark.parametrize("ridge", [0.0, 0.1, 30.0])
@pytest.mark.parametrize("tied", [False, True])
def test_it_is_the_fit_of_scikit_survival(rows, ridge, tied):
    X, time, event = rows
    time = np.ceil(5 * time) if tied else time
    peer = CoxPHSurvivalAnalysis(alpha=ridge).fit(X, Surv.from_arrays(event, time))
    ours = fit_cox(X, time, event, ridge)
    assert ours.converged
    np.testing.assert_allclose(ours.coefficients, peer.coef_, rtol=1e-7)
    inside = ours.times >= peer.unique_times_[0]
    np.testing.assert_allclose(ours.hazard[inside], peer.cum_baseline_hazard_(ours.times[inside]), rtol=1e-7)
    np.testing.assert_allclose(ours.log_risk(X), peer.predict(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("far", [1e3, 1e5])
def test_a_row_whose_risk_no_float_holds_does_not_end_the_fit(rows, ridge, far):
    """It has its event first, as it should, and leaves no trace. Beside it all other risks were 0."""
    X, time, event = rows
    X, event = X.copy(), event.copy()
    first = time.argmin()
    X[first], event[first] = [far, 0, 0, 0], True
    without = np.arange(len(time)) != first
    plain, fit = fit_cox(X[without], time[without], event[without], ridge), fit_cox(X, time, event, ridge)
    assert fit.converged
    np.testing.assert_allclose(fit.coefficients, plain.coefficients, rtol=1e-6)
    np.testing.assert_allclose(fit.hazard_at(plain.times), plain.hazard, rtol=1e-6)


def test_sums_are_the_same_in_the_units_of_their_rows():
    base, values = np.repeat([-2.0, 1.0, 5.0], [3, 1, 4]), np.random.default_rng(0).random((8, 2))
    units = np.exp(base)[:, None]
    np.testing.assert_allclose(running_sums(values, base) * units, np.cumsum(values * units, axis=0))
    later = np.cumsum((values / units)[::-1], axis=0)[::-1]
    np.testing.assert_allclose(running_sums(values[::-1], base[::-1])[::-1] / units, later)


@pytest.mark.parametrize(("ridge", "wide"), [(0.0, False), (1.0, False), (1.0, True)])
def test_weights_are_repeated_rows(rows, ridge, wide):
    X, time, event = rows
    X = np.hstack([X, np.random.default_rng(1).standard_normal((300, 400))]) if wide else X
    weight = np.random.default_rng(2).integers(1, 4, 300)
    again = np.repeat(np.arange(300), weight)
    own, repeated = fit_cox(X, time, event, ridge, weight=weight), fit_cox(X[again], time[again], event[again], ridge)
    assert own.converged
    np.testing.assert_allclose(own.log_risk(X), repeated.log_risk(X), atol=1e-6)
    np.testing.assert_allclose(own.hazard, repeated.hazard, rtol=1e-6)


def test_the_baseline_of_tied_weighted_late_rows_is_that_of_r():
    """survival 3.5 of R, columns as below and en for entry:

    f <- coxph(Surv(en, t, e) ~ x, weights=w, init=0.5, control=coxph.control(iter.max=0), ties="efron")
    basehaz(f, centered=FALSE)
    """
    time, event = np.array([1.0, 1, 2, 2, 2, 3, 4, 4]), np.array([1, 1, 0, 1, 1, 1, 1, 0], dtype=bool)
    risk, weight = np.exp(0.5 * np.array([0, 1, 1, 0, 1, 0, 1, 0])), np.array([1, 2, 0.5, 1, 1, 3, 2, 1])
    steps = efron_steps(time, event, risk, weight, np.array([0.0, 0, 0, 1, 1, 0, 2, 0]))
    expected = [0.379554089972570, 0.676003132657412, 1.087106061249207, 1.552499136487004]
    np.testing.assert_allclose(np.cumsum(steps), expected, rtol=1e-12)


def test_the_baseline_is_level_between_events(rows):
    fit = fit_cox(*rows)
    first, last = fit.times[0], fit.times[-1]
    np.testing.assert_array_equal(fit.hazard_at(np.array([0.0, first, last, 10 * last])), [0, *fit.hazard[[0, -1, -1]]])


def test_an_equal_column_and_a_constant_one_break_nothing(rows):
    X, time, event = rows
    plain = fit_cox(X, time, event)
    wide = fit_cox(np.column_stack([X, X[:, 0], np.ones(len(X))]), time, event)
    assert wide.converged
    np.testing.assert_allclose(
        wide.log_risk(np.column_stack([X, X[:, 0], np.zeros(len(X))])), plain.log_risk(X), atol=1e-6
    )


def test_without_time_it_is_nelson_aalen(rows):
    X, time, event = rows
    fit = fit_cox(X, time, event, stop=StopSignal(0.0))
    assert not fit.converged
    assert not fit.coefficients.any()
    at_risk = (time[None, :] >= fit.times[:, None]).sum(axis=1)
    np.testing.assert_allclose(fit.hazard, np.cumsum(1 / at_risk))


@pytest.mark.parametrize("ridge", [3.0, 30.0])
def test_more_features_than_rows_are_fitted_in_the_span_of_the_rows(ridge):
    rng = np.random.default_rng(1)
    X, time, event = rng.standard_normal((40, 90)), rng.exponential(1.0, 40) + 0.01, rng.random(40) < 0.7
    X[:, 7] = X[:, 8]  # a span of less than 90 columns
    peer = CoxPHSurvivalAnalysis(alpha=ridge).fit(X, Surv.from_arrays(event, time))
    ours = fit_cox(X, time, event, ridge)
    assert ours.converged
    np.testing.assert_allclose(ours.coefficients, peer.coef_, rtol=1e-6, atol=1e-9)
    early = fit_cox(X, time, event, ridge, StopSignal(0.0))
    assert early.coefficients.shape == (90,)
    assert not early.coefficients.any()


def test_a_matrix_that_is_not_positive_to_rounding_has_a_step():
    hessian = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]])
    np.testing.assert_allclose(hessian @ _newton_step(hessian, np.array([1.0, 1.0]), 0.1), [1.0, 1.0], atol=1e-6)
