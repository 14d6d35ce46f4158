"""How survival trees read their rows: names, times and censoring are kept, and those of an earlier fit forgotten."""

import numpy as np
import pandas as pd
import pytest
from oracles.known_hazards import KnownHazards

from softsurv import OptimalSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidSurvivalDataError
from softsurv.nonparametric import StepFunction, censoring_survival

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "b": [0, 1, 0, 1]})
TIME, EVENT = np.array([2.0, 1.0, 4.0, 3.0]), np.array([True, True, False, True])


class Tree(KnownHazards):
    _knows = ("causes", "subjects")


def test_names_grid_and_horizon_are_those_of_the_rows():
    tree = Tree().fit(FRAME, time=TIME, event=EVENT)
    assert tree.feature_names_in_.tolist() == ["x", "b"]
    assert (tree.n_features_in_, tree.horizon_) == (2, 4.0)
    assert tree.unique_times_.tolist() == [1.0, 2.0, 3.0]
    expected = censoring_survival(TIME, EVENT)
    np.testing.assert_array_equal(tree.censoring_(TIME), expected(TIME))
    assert tree.cause_names_ == ()


def test_intervals_from_time_zero_alone_are_refused():
    with pytest.raises(
        InvalidSurvivalDataError, match="time must be > 0 in at least one row, got only intervals from 0"
    ):
        Tree().fit(FRAME, time=np.zeros(4), event=np.zeros(4, bool), upper=TIME)


def test_errors_about_weights_name_the_argument_of_fit():
    tree = OptimalSurvivalTree(max_depth=0).fit(FRAME, time=TIME, event=EVENT)
    for fit in (tree.fit, tree.evaluate):
        with pytest.raises(InvalidSurvivalDataError, match=r"^sample_weight must be finite and >= 0, got -1 at row 2"):
            fit(FRAME, time=TIME, event=EVENT, sample_weight=[1, 1, -1, 1])
        with pytest.raises(InvalidSurvivalDataError, match=r"^sample_weight must be in .* use sample_weight.loc\["):
            fit(FRAME, time=TIME, event=EVENT, sample_weight=pd.Series([1.0, 2, 3, 4], index=[3, 2, 1, 0]))


def test_a_second_fit_forgets_the_first():
    tree = Tree().fit(FRAME, time=TIME, event=EVENT)
    tree.calibration_ = "of the first fit"
    tree.fit(FRAME.to_numpy()[:, :1], time=[1.0, 5.0, 1.0, 1.0], event=EVENT)
    assert not hasattr(tree, "feature_names_in_")
    assert not hasattr(tree, "calibration_")
    assert (tree.n_features_in_, tree.horizon_) == (1, 5.0)


def test_a_curve_of_ones_own_takes_the_place_of_the_censoring():
    tree = Tree().fit(FRAME, time=TIME, event=EVENT)
    curve = StepFunction(np.array([1.0]), np.array([0.5]), 1.0)
    tree.censoring_ = curve
    assert tree.censoring_ is curve


def test_the_order_of_a_fit_depends_on_the_content_alone():
    tree = Tree().fit(FRAME, time=TIME, event=EVENT)
    data = survival_data(FRAME, time=TIME, event=EVENT)
    order, columns = tree._in_order(data)
    turn = np.array([2, 0, 3, 1])
    other = survival_data(FRAME.iloc[turn][["b", "x"]], time=TIME[turn], event=EVENT[turn])
    again, same = tree._in_order(other)
    assert columns == same
    np.testing.assert_array_equal(turn[again], order)


def test_rows_that_only_cut_a_history_are_joined_before_a_fit():
    table = {
        "x": [1.0, 1.0, 2.0],
        "start": [0.0, 1.0, 0.0],
        "stop": [1.0, 3.0, 2.0],
        "died": [0, 1, 1],
        "who": [1, 1, 2],
    }
    tree = Tree().fit(pd.DataFrame(table), start="start", stop="stop", event="died", id="who")
    assert tree.unique_times_.tolist() == [2.0, 3.0]
    assert tree.feature_names_in_.tolist() == ["x"]


def test_rows_without_events_are_refused():
    with pytest.raises(InvalidSurvivalDataError, match="event must be True in at least one row"):
        Tree().fit(FRAME, time=TIME, event=np.zeros(4, bool))


def test_rows_of_weight_0_leave_no_trace():
    """Neither their times nor their values, which lie beyond all others."""
    more = pd.concat([FRAME, pd.DataFrame({"x": [99.0, -99.0], "b": [0, 1]})])
    weight, time, event = [1.0, 2.0, 1.0, 1.0, 0.0, 0.0], np.append(TIME, [50.0, 60.0]), np.append(EVENT, [True, False])
    tree = Tree().fit(more, time=time, event=event, weight=weight)
    alone = Tree().fit(FRAME, time=TIME, event=EVENT, weight=weight[:4])
    assert tree.horizon_ == alone.horizon_ == 4.0
    assert tree.unique_times_.tolist() == alone.unique_times_.tolist()
    assert tree.ranges_ == alone.ranges_
    np.testing.assert_array_equal(tree.censoring_.times, alone.censoring_.times)
    with pytest.raises(InvalidSurvivalDataError, match="event must be True in at least one row, got none in 1 rows"):
        Tree().fit(FRAME, time=TIME, event=EVENT, weight=[0.0, 0.0, 1.0, 0.0])


def test_what_is_worked_out_later_is_of_the_rows_that_were_fitted():
    """Horizon and censoring were those of the data when first asked for."""
    data = survival_data(FRAME, time=TIME, event=EVENT)
    tree = Tree().fit(data)
    data.time[:], data.event[:] = 9.0, True
    assert tree.horizon_ == 4.0
    assert tree.unique_times_.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(tree.censoring_(TIME), censoring_survival(TIME, EVENT)(TIME))
