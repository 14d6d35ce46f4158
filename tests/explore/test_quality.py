"""Own-time survival, calibration and Brier curves against slow twins."""

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.explore.quality import brier_frame, calibration_curves, own_survival, sensitive_rows
from softsurv.metrics import d_calibration, relative_integrated_brier_score
from softsurv.nonparametric import kaplan_meier


def test_own_survival_matches_a_row_by_row_loop(gbsg2):
    data = gbsg2.test
    own = own_survival(gbsg2.tree, data)
    for k in range(0, data.n, 50):
        single = gbsg2.tree.predict_survival_function(data.X.iloc[[k]], times=[float(data.time[k])])
        assert own[k] == pytest.approx(single[0, 0], rel=1e-12)
    _, test = calibration_curves(gbsg2.tree, data, np.array([500.0]))
    assert test.statistic == pytest.approx(d_calibration(data.time.numpy(), data.event.numpy(), own).statistic)


def test_brier_curve_averages_to_the_integrated_score(gbsg2):
    frame = brier_frame({"tree": gbsg2.tree}, gbsg2.test, n_times=100)
    times = frame.index.to_numpy()
    mean = np.trapezoid(frame["tree"], times) / (times[-1] - times[0])
    assert mean == pytest.approx(gbsg2.tree.evaluate(gbsg2.test)["ibs"])
    common = np.trapezoid(frame["no features"], times) / (times[-1] - times[0])
    time, event = gbsg2.test.time.numpy(), gbsg2.test.event.numpy()
    survival = gbsg2.tree.predict_survival_function(gbsg2.test.X, times=times)
    share = relative_integrated_brier_score(
        time, event, survival, times, gbsg2.tree.censoring_, kaplan_meier(time, event)
    )
    assert 1 - mean / common == pytest.approx(share)


def test_the_sensitive_group_is_found_by_name(mixed, gbsg2):
    member = sensitive_rows(mixed.data, "f")
    assert member.sum() + sensitive_rows(mixed.data, "m").sum() == mixed.data.n
    with pytest.raises(InvalidParameterError, match="group must be one of f, m, got 'x'"):
        sensitive_rows(mixed.data, "x")
    with pytest.raises(InvalidSurvivalDataError, match="data must hold a group"):
        sensitive_rows(gbsg2.test)
