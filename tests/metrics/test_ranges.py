"""The span of time on which a fold is evaluated, and the checks of grids and predictions."""

import numpy as np
import pytest

from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidTimesError
from softsurv.metrics import ranges
from softsurv.metrics.ranges import (
    checked_matrix,
    checked_probabilities,
    checked_times,
    column_parts,
    default_grid,
    evaluation_range,
    refuse_unknown_censoring,
    support_end,
    survival_from_log_cumulative_hazard,
    thinned,
)
from softsurv.nonparametric import censoring_survival


def test_the_support_ends_before_nobody_is_left_uncensored():
    known = censoring_survival([1.0, 2.0, 3.0], [False, True, True])
    assert support_end(known) == 3.0  # an event is last: G stays above 0
    gone = censoring_survival([1.0, 2.0, 3.0], [True, True, False])
    assert support_end(gone) < 3.0
    assert gone(support_end(gone)) > 0.0 == gone(3.0)


def test_wanted_times_outside_the_folds_are_left_out_with_a_warning():
    censoring = censoring_survival([1.0, 2.0, 3.0, 3.5], [False, True, False, True])
    time, event = [1.0, 2.0, 2.5, 4.0], [True, False, True, True]
    with pytest.warns(EvaluationWarning, match="3 of 5 times lie outside"):
        span = evaluation_range(time, event, censoring, times=[0.5, 1.0, 3.5, 4.0, 9.0])
    assert span.times.tolist() == [1.0, 3.5]
    assert (span.lower, span.upper, span.support_end) == (1.0, 3.5, 3.5)
    assert (span.n_before, span.n_beyond, span.events_beyond) == (0, 1, 1)


@pytest.mark.parametrize("times", [[], [1.0, 1.0], [2.0, 1.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_grids_are_finite_and_increasing(times):
    with pytest.raises(InvalidTimesError, match="strictly increasing"):
        checked_times(times)


def test_one_time_is_a_grid():
    assert checked_times(2.0).tolist() == [2.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [([[0.1, 0.2]], r"shape \(2, 2\); got \(1, 2\)"), ([[0.1, np.nan], [0.2, np.nan]], "must not be NaN, got 2")],
)
def test_predictions_have_a_row_each_and_no_nan(values, message):
    for check in (checked_matrix, checked_probabilities):
        with pytest.raises(InvalidParameterError, match=f"survival .*{message}"):
            check("survival", values, 2, 2)


@pytest.mark.parametrize("value", [-1e-9, 1.0 + 1e-9])
def test_probabilities_lie_within_zero_and_one(value):
    assert checked_probabilities("survival", [[0.0, 1.0]], 1, 2).tolist() == [[0.0, 1.0]]
    assert checked_matrix("survival", [[value]], 1, 1) == value
    with pytest.raises(InvalidParameterError, match="between 0 and 1"):
        checked_probabilities("survival", [[value]], 1, 1)


def test_times_after_the_censoring_curve_are_refused():
    censoring = censoring_survival([1.0, 2.0, 3.0], [False, True, True])
    refuse_unknown_censoring(censoring, np.array([1.0, 3.0]))
    refuse_unknown_censoring(censoring, np.array([]))
    with pytest.raises(InvalidTimesError, match=r"positive up to 3, got 3\.5"):
        refuse_unknown_censoring(censoring, np.array([1.0, 3.5]))


@pytest.mark.parametrize(("n_rows", "sizes"), [(3, [3, 3, 1]), (10, [1] * 7), (1000, [1] * 7), (1, [7])])
def test_parts_cover_the_grid_once_and_hold_no_more_than_the_limit(n_rows, sizes, monkeypatch):
    monkeypatch.setattr(ranges, "CHUNK_ELEMENTS", 10)
    parts = list(column_parts(n_rows, 7))
    assert np.concatenate([np.arange(7)[part] for part in parts]).tolist() == list(range(7))
    assert [np.arange(7)[part].size for part in parts] == sizes


def test_the_default_grid_is_the_distinct_event_times_above_zero():
    time = np.array([0.0, 3.0, 1.0, 3.0, 7.0])
    assert default_grid(time, np.array([True, True, True, True, False])).tolist() == [1.0, 3.0]
    assert default_grid(time, np.array([True, False, False, False, False])).tolist() == [1.0]
    many = np.arange(2000.0)
    grid = default_grid(many, np.ones(2000, bool))
    assert (grid.size, grid[0], grid[-1]) == (500, 1.0, 1999.0)


def test_range_refuses_what_cannot_be_evaluated():
    censoring = censoring_survival([1.0, 2.0, 3.0], [True, True, False])
    assert support_end(censoring) == np.nextafter(3.0, 0.0)
    with pytest.raises(InvalidTimesError, match="leave no span of time"):
        evaluation_range([4.0, 5.0, 6.0], [1, 1, 1], censoring)
    with pytest.raises(InvalidTimesError, match="times must hold at least two values in"):
        evaluation_range([1.0, 2.0, 2.5], [1, 1, 1], censoring, times=[2.6, 2.7])
    for wrong in (1, 2.5, "9"):
        with pytest.raises(InvalidParameterError, match="n_times must be an integer >= 2"):
            evaluation_range([1.0, 2.0, 2.5], [1, 1, 1], censoring, n_times=wrong)
    span = evaluation_range([0.5, 1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1, 0], censoring, n_times=4)
    np.testing.assert_allclose(span.times, [0.5, 1.0, 1.5, 2.0])
    assert (span.n_before, span.n_beyond, span.events_beyond) == (0, 2, 1)


def test_a_long_grid_is_thinned_evenly_with_its_ends():
    values = np.arange(5000.0)
    kept = thinned(values, 500)
    assert (kept.size, kept[0], kept[-1]) == (500, 0.0, 4999.0)
    assert set(np.diff(kept)) <= {10.0, 11.0}
    assert thinned(values[:7], 500).tolist() == values[:7].tolist()


def test_saturated_log_hazards_give_probabilities():
    found = survival_from_log_cumulative_hazard([-np.inf, -800.0, 0.0, 800.0, np.inf])
    np.testing.assert_array_equal(found, [1.0, 1.0, np.exp(-1.0), 0.0, 0.0])
