"""What a study measures of a fold: by name, by cause, by group, and what these rows do not have."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles.simulated import simulate, two_causes
from sklearn.base import BaseEstimator

from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.metrics import curve_gap
from softsurv.tune.measures import DIRECTIONS, check_measures, fit_and_measure, mean_over_folds, measured


@pytest.mark.parametrize(
    ("names", "interest", "sentence"),
    [
        (["harrel_c"], None, "measures must be of harrell_c, .*, got 'harrel_c'"),
        ([], None, "measures must be one or more different names"),
        (["ibs", "ibs"], None, "measures must be one or more different names"),
        (["fairness"], None, "fairness compares two groups, got 0; name the group column"),
        (["ibs"], "death", "interest names one of several causes, got 'death' for data without"),
    ],
)
def test_measures_that_the_rows_do_not_have(names, interest, sentence):
    with pytest.raises((InvalidParameterError, InvalidSurvivalDataError), match=sentence):
        check_measures(names, simulate(10), interest)


def test_all_measures_are_those_of_plain_rows_with_two_groups():
    data = simulate(10, group=np.arange(10) % 2)
    check_measures(list(DIRECTIONS), data, None)
    with pytest.raises(InvalidSurvivalDataError, match="compares two groups, got 3"):
        check_measures(["fairness"], simulate(10, group=np.arange(10) % 3), None)


def test_causes_and_visits_have_fewer_measures():
    check_measures(["harrell_c", "cd_auc", "ibs"], two_causes(20), "seal")
    with pytest.raises(InvalidParameterError, match="measures by cause are harrell_c, cd_auc and ibs, got 'uno_c'"):
        check_measures(["uno_c"], two_causes(20), None)
    visits = survival_data({"x": [1, 2, 3]}, start=[0, 1, 0], stop=[1, 2, 2], event=[0, 1, 1], id=["a", "a", "b"])
    check_measures(["harrell_c"], visits, None)
    with pytest.raises(InvalidParameterError, match="harrell_c alone where features change within subjects, got 'ibs'"):
        check_measures(["harrell_c", "ibs"], visits, None)


class Stub(BaseEstimator):
    """An estimator that says what it is told, and warns while it is fitted."""

    def __init__(self, result=None):
        self.result = result

    def fit(self, data):
        self.n_ = data.n
        warnings.warn("of a part of the rows", UserWarning, stacklevel=1)
        return self

    def evaluate(self, data):
        warnings.warn("of the fold", UserWarning, stacklevel=1)
        return dict(self.result)

    def predict_survival_function(self, X, times):
        return np.exp(-np.outer(np.exp(X["x0"]), times))


def test_a_fold_is_fitted_by_a_copy_without_warnings():
    stub = Stub({"ibs": 0.25, "n_times": 0, "range": (1.0, 2.0)})
    assert fit_and_measure(stub, simulate(20), simulate(10), None)["ibs"] == 0.25  # a warning would be an error
    assert not hasattr(stub, "n_")


BY_CAUSE = {
    "seal": {"concordance": 0.75, "auc": 0.5, "ibs": None},
    "motor": {"concordance": 0.25, "auc": None, "ibs": None},
}


@pytest.mark.parametrize(
    ("interest", "expected"),
    [(None, (0.5, 0.5, None)), ("seal", (0.75, 0.5, None)), ("motor", (0.25, None, None))],
)
@pytest.mark.filterwarnings("ignore:of the fold")
def test_measures_of_a_cause_or_their_means_over_the_causes_that_have_them(interest, expected):
    stub = Stub({"causes": BY_CAUSE, "uno_c": 0.9, "n_times": 0, "harrell_c": 0.1})
    found = measured(stub, SimpleNamespace(group=None), interest)
    assert tuple(found[name] for name in ("harrell_c", "cd_auc", "ibs")) == expected
    assert found["uno_c"] is None


@pytest.mark.filterwarnings("ignore:of the fold")
def test_fairness_is_the_gap_of_two_groups_on_the_grid():
    group = np.arange(30) % 2
    data, stub = simulate(30, group=group), Stub({"n_times": 7, "range": (0.5, 3.0)})
    times = np.linspace(0.5, 3.0, 7)
    gap = curve_gap(stub.predict_survival_function(data.X, times), times, group == 1).mean
    assert measured(stub, data, None)["fairness"] == pytest.approx(gap)
    weight = torch.arange(30, dtype=torch.float64) + 1
    weighted = curve_gap(stub.predict_survival_function(data.X, times), times, group == 1, weight).mean
    assert measured(stub, data._derive({"weight": weight}), None)["fairness"] == pytest.approx(weighted)
    assert weighted != pytest.approx(gap, rel=1e-3)
    one = data._derive({"group": torch.zeros(30, dtype=torch.int64)})
    assert "fairness" not in measured(stub, one, None)  # a fold that met one group alone
    assert "fairness" not in measured(Stub({"n_times": 0}), data, None)


def test_the_mean_is_over_the_folds_that_have_a_measure():
    assert mean_over_folds([{"ibs": 0.5}, {"ibs": None}, {"ibs": 0.25}], "ibs") == 0.375
    with pytest.raises(InvalidSurvivalDataError, match="ibs could be measured on none of 2 folds: too few events"):
        mean_over_folds([{"ibs": None}] * 2, "ibs")


def test_folds_that_met_one_group_alone_have_no_fairness():
    assert mean_over_folds([{"fairness": 0.5}, {"ibs": 0.1}], "fairness") == 0.5
    with pytest.raises(InvalidSurvivalDataError, match="on none of 1 folds: too few rows of a group; choose fewer"):
        mean_over_folds([{"ibs": 0.1}], "fairness")
