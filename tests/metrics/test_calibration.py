"""Calibration at a horizon, D-calibration, calibration errors: by hand, slow twins, simulation."""

import numpy as np
import pytest
from scipy import stats

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError, NumericalError
from softsurv.metrics import calibration_curve, calibration_errors, d_calibration, smoothed_observed_survival
from softsurv.nonparametric import kaplan_meier


def exponential_fold(seed, n=4000, censored=True):
    """Times with rate exp(x), so that the true survival is known."""
    rng = np.random.default_rng(seed)
    rate = np.exp(0.8 * rng.normal(size=n))
    event_time = rng.exponential(1.0 / rate)
    censoring_time = rng.exponential(2.0, n) if censored else np.full(n, np.inf)
    return np.minimum(event_time, censoring_time), event_time <= censoring_time, rate


def test_groups_compare_the_mean_prediction_with_kaplan_meier():
    time, event, rate = exponential_fold(0, n=300)
    survival = np.exp(-rate * 0.7)
    curve = calibration_curve(time, event, survival, 0.7, n_bins=3)
    assert curve.n.tolist() == [100, 100, 100]
    chosen = np.argsort(survival)[:100]
    assert curve.predicted[0] == pytest.approx(survival[chosen].mean())
    assert curve.observed[0] == pytest.approx(float(kaplan_meier(time[chosen], event[chosen])(0.7)))
    assert (curve.lower <= curve.observed).all()
    assert (curve.upper >= curve.observed).all()


def test_true_curves_lie_within_their_intervals_and_wrong_ones_do_not():
    time, event, rate = exponential_fold(1)
    curve = calibration_curve(time, event, np.exp(-rate * 0.7), 0.7)
    inside = (curve.lower <= curve.predicted) & (curve.predicted <= curve.upper)
    assert inside.sum() >= 8
    wrong = calibration_curve(time, event, np.exp(-2.0 * rate * 0.7), 0.7)
    assert (wrong.predicted < wrong.lower).all()


def test_equal_predictions_share_a_group():
    time, event, rate = exponential_fold(2, n=200)
    survival = np.where(rate > 1.0, 0.3, 0.8)
    curve = calibration_curve(time, event, survival, 0.5)
    np.testing.assert_allclose(curve.predicted, [0.3, 0.8])
    assert curve.n.sum() == 200


def test_a_group_without_follow_up_is_unknown():
    time, event = [1.0, 2.0, 5.0, 6.0], [True, False, True, True]
    curve = calibration_curve(time, event, [0.2, 0.2, 0.9, 0.9], 4.0)
    assert np.isnan(curve.observed[0])
    assert curve.observed[1] == 1.0
    with pytest.raises(InvalidTimesError, match="no follow-up at 4"):
        calibration_errors(time, event, [0.2, 0.2, 0.9, 0.9], 4.0)


def slow_d_calibration(event, own, n_bins):
    """Haider et al. (2020), one subject and one bin at a time."""
    counts = np.zeros(n_bins)
    for c, s in zip(event, own, strict=True):
        for k in range(n_bins):
            low, high = k / n_bins, (k + 1) / n_bins
            here = low <= s < high or (s == 1.0 and k == n_bins - 1)
            if c or s == 0.0:
                counts[k] += here
            elif here:
                counts[k] += (s - low) / s
            elif s >= high:
                counts[k] += (high - low) / s
    return counts


@pytest.mark.parametrize("n_bins", [2, 4, 8])
def test_d_calibration_equals_the_slow_twin(n_bins):
    rng = np.random.default_rng(3)
    own = np.concatenate([rng.random(60), [0.0, 0.0, 1.0, 1.0, 0.5, 0.5]])
    event = np.concatenate([rng.random(60) < 0.6, [True, False, True, False, True, False]])
    found = d_calibration(np.ones(66), event, own, n_bins)
    counts = slow_d_calibration(event, own, n_bins)
    np.testing.assert_allclose(found.shares, counts / 66, atol=1e-12)
    expected = stats.chisquare(counts)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.shares.sum() == pytest.approx(1.0)


def test_d_calibration_of_rows_without_an_event_spreads_them_all():
    """Counts of no events were whole numbers, to which no shares could be added."""
    found = d_calibration([1.0, 2.0], [False, False], [0.5, 1.0], n_bins=2)
    np.testing.assert_allclose(found.shares, [0.75, 0.25])


def test_d_calibration_accepts_the_truth_and_rejects_a_wrong_model():
    p_values = {True: [], False: []}
    for seed in range(100):
        for censored, found in p_values.items():
            time, event, rate = exponential_fold(seed, n=400, censored=censored)
            found.append(d_calibration(time, event, np.exp(-rate * time)).p_value)
    assert stats.kstest(p_values[False], "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values[True]) < 0.05) <= 0.05  # conservative
    time, event, rate = exponential_fold(0)
    assert d_calibration(time, event, np.exp(-1.5 * rate * time)).p_value < 1e-6


def test_d_calibration_of_times_in_whole_units_rejects_the_truth_as_its_docstring_says():
    for seed in range(5):
        time, event, _ = exponential_fold(seed)
        whole = np.ceil(2 * time) / 2
        assert d_calibration(whole, event, kaplan_meier(whole, event)(whole)).p_value < 1e-6
        assert d_calibration(time, event, kaplan_meier(time, event)(time)).p_value > 0.1


def test_smoothed_survival_finds_a_known_distortion():
    time, event, rate = exponential_fold(5, n=20_000)
    truth = np.exp(-rate * 0.7)
    errors = calibration_errors(time, event, truth, 0.7)
    assert errors.mean < 0.015
    assert errors.mean <= errors.centile_90 <= errors.largest
    distorted = truth**1.6
    expected = np.abs(distorted - truth)
    errors = calibration_errors(time, event, distorted, 0.7)
    assert errors.mean == pytest.approx(expected.mean(), abs=0.015)
    assert errors.median == pytest.approx(np.median(expected), abs=0.02)


def test_smoothed_survival_of_tied_times_is_that_of_r():
    """survival 3.5 and Hmisc of R, in which i <- 1:40 and the columns are as below:

    cll <- log(-log(S)); B <- rcspline.eval(cll, knots=quantile(cll, c(0.05, 0.35, 0.65, 0.95)), inclx=TRUE)
    fit <- coxph(Surv(time, event) ~ B, ties="efron"); H <- basehaz(fit, centered=FALSE)
    o <- exp(-H$hazard[H$time == 3] * exp(as.vector(B %*% coef(fit)))); o[c(1, 10, 20, 40)]
    e <- abs(o - S); c(mean(e), median(e), quantile(e, 0.9), max(e))
    """
    i = np.arange(1, 41)
    time, event, survival = 1.0 + (7 * i) % 6, (3 * i) % 4 != 0, 0.15 + 0.7 * ((11 * i) % 40) / 40
    smooth = smoothed_observed_survival(time, event, survival, 3.0)[[0, 9, 19, 39]]
    np.testing.assert_allclose(smooth, [0.613232517787, 0.628239641530, 0.606835303390, 0.750034912020], rtol=1e-9)
    errors = calibration_errors(time, event, survival, 3.0)
    np.testing.assert_allclose(errors, [0.219030047241, 0.177766977312, 0.477091699841, 0.600034912020], rtol=1e-9)


def test_few_predictions_use_kaplan_meier_per_group():
    time, event, rate = exponential_fold(6, n=300)
    survival = np.where(rate > 1.0, 0.3, 0.8)
    observed = smoothed_observed_survival(time, event, survival, 0.5)
    for value in (0.3, 0.8):
        chosen = survival == value
        expected = float(kaplan_meier(time[chosen], event[chosen])(0.5))
        np.testing.assert_allclose(observed[chosen], expected)


def test_predictions_of_exactly_zero_and_one_are_smoothed():
    time, event, rate = exponential_fold(7, n=500)
    survival = np.exp(-rate * 0.7)
    survival[:3], survival[3:6] = 0.0, 1.0
    assert np.isfinite(smoothed_observed_survival(time, event, survival, 0.7)).all()


def test_predictions_that_all_lie_beside_one_are_smoothed():
    """At a very early horizon they are one value within the precision of the smoother."""
    time, event, rate = exponential_fold(1, n=200)
    errors = calibration_errors(time, event, np.exp(-rate * 1e-9), 1e-9)
    assert errors.largest < 1e-6


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    time, event, _ = exponential_fold(2, n=200)
    weight, survival = np.repeat([0.0, 1.0], 100), np.repeat([0.2, 0.4, 0.6, 0.8], 50)
    found = calibration_curve(time, event, survival, 0.7, weight=weight)
    expected = calibration_curve(time[100:], event[100:], survival[100:], 0.7)
    for name in ("predicted", "observed", "lower", "upper", "n"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_weights_that_are_all_zero_are_refused():
    time, event, survival = [1.0, 2.0], [True, True], [0.5, 0.6]
    with pytest.raises(InvalidSurvivalDataError, match="weight must be > 0 in at least one row"):
        calibration_curve(time, event, survival, 1.0, weight=[0.0, 0.0])
    with pytest.raises(InvalidSurvivalDataError, match="weight must be > 0 in at least one row"):
        d_calibration(time, event, survival, weight=[0.0, 0.0])


def test_nobody_with_an_event_is_observed_to_survive():
    time, event, rate = exponential_fold(3, n=100)
    survival = np.exp(-rate * 0.7)
    assert calibration_errors(time, event & False, survival, 0.7).mean == pytest.approx((1 - survival).mean())


@pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")  # scipy's, on the way there
def test_a_smoother_without_finite_coefficients_is_told():
    time = np.arange(1.0, 101.0)
    with pytest.raises(NumericalError, match=r"no finite coefficients for 100 events .* compare groups"):
        calibration_errors(time, time > 0, time / 101, 50.0)


@pytest.mark.parametrize("horizon", ["one year", None, [1.0]])
@pytest.mark.parametrize("measure", [calibration_curve, calibration_errors, smoothed_observed_survival])
def test_a_horizon_that_is_no_number_is_refused(measure, horizon):
    with pytest.raises(InvalidTimesError, match=r"horizon must lie between 0 and the largest observed time 2, got"):
        measure([1.0, 2.0], [True, True], [0.5, 0.6], horizon)
    assert calibration_curve([1.0, 2.0], [True, True], [0.5, 0.6], "1").horizon == 1.0  # as in predictions


def test_bad_arguments_are_refused():
    time, event, survival = [1.0, 2.0], [True, True], [0.5, 0.6]
    with pytest.raises(InvalidTimesError, match="horizon must lie between 0 and the largest observed time 2"):
        calibration_curve(time, event, survival, 3.0)
    with pytest.raises(InvalidParameterError, match="one probability per subject"):
        calibration_curve(time, event, [[0.5, 0.6]], 1.0)
    with pytest.raises(InvalidParameterError, match="between 0 and 1"):
        d_calibration(time, event, [0.5, 1.6])
    with pytest.raises(InvalidParameterError, match="n_bins must be an integer >= 2"):
        d_calibration(time, event, survival, 1)
    with pytest.raises(InvalidParameterError, match="n_bins must be an integer >= 1"):
        calibration_curve(time, event, survival, 1.0, n_bins=0)


def test_weights_are_repeated_subjects_and_late_rows_are_at_risk_from_their_entry():
    rng = np.random.default_rng(3)
    time, survival, weight = (
        rng.exponential(size=60).round(2) + 0.2,
        rng.choice([0.2, 0.5, 0.8], 60),
        rng.integers(1, 4, 60),
    )
    event, entry = rng.random(60) < 0.7, np.where(rng.random(60) < 0.5, 0.1, 0.0)
    again = np.repeat(np.arange(60), weight)
    weighted = calibration_curve(time, event, survival, 0.7, weight=weight, entry=entry)
    repeated = calibration_curve(time[again], event[again], survival[again], 0.7, entry=entry[again])
    for name in ("predicted", "observed", "lower", "upper"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))
    low = survival == 0.2
    np.testing.assert_allclose(weighted.observed[0], kaplan_meier(time[low], event[low], weight[low], entry[low])(0.7))
    one, two = (
        d_calibration(time, event, survival, 5, weight),
        d_calibration(time[again], event[again], survival[again], 5),
    )
    np.testing.assert_allclose(one.shares, two.shares)
    np.testing.assert_allclose(one.statistic, two.statistic)
