"""One sentence for every wrong input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree, hazards
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.hazards.parametric import Weibull

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"depth": -1}, "depth must be"),
        ({"depth": 1.5}, "depth must be"),
        ({"depth": 40}, "depth must be"),
        ({"leaf": "cauchy"}, "leaf must be one of exponential, .*, got 'cauchy'"),
        ({"leaf": "spline_ph", "n_knots": -1}, "n_knots must be an integer from 0 to 99, got -1"),
        ({"solver": "adam"}, "solver must be one of 'lbfgs', 'nodec', got 'adam'"),
        ({"init": "zeros"}, "init must be one of 'auto', 'random', 'kmeans', 'logrank', 'exact', got 'zeros'"),
        ({"n_restarts": 0}, "n_restarts must be an integer >= 1, got 0"),
        ({"leaf": "spline_po", "n_knots": 100}, "n_knots must be an integer from 0 to 99, got 100"),
        ({"n_restarts": 10**9}, "n_restarts must be at most 10000, got 1000000000"),
        ({"n_restarts": True}, "n_restarts must be an integer >= 1, got True"),
        ({"max_iter": 2.0}, r"max_iter must be an integer >= 1, got 2\.0"),
        ({"l2": -1.0}, r"l2 must be a finite number >= 0, got -1\.0"),
        ({"shrinkage": np.inf}, "shrinkage must be a finite number >= 0, got inf"),
        ({"routing_l2": "much"}, "routing_l2 must be a finite number >= 0, got 'much'"),
        ({"l1": np.nan}, "l1 must be a finite number >= 0, got nan"),
        ({"fairness": -0.1}, "fairness must be a finite number >= 0"),
        ({"max_terms": 2, "fairness": None}, "fairness must be a finite number >= 0, got None"),
        ({"slope_shrinkage": 1.0, "l1": "little"}, "l1 must be a finite number >= 0, got 'little'"),
        ({"time_limit": -5}, "time_limit must be a finite number >= 0, got -5"),
        ({"device": None}, 'device must be "auto", "cpu" or "cuda", got None'),
        ({"device": "meta"}, "got 'meta', which holds no numbers"),
        ({"leaf": ["weibull"]}, r"leaf must be one of .*, got \['weibull'\]"),
        ({"device": "abacus"}, 'device must be "auto", "cpu" or "cuda", got \'abacus\''),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32', got 'float16'"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"random_state": "seed"}, "random_state must be an integer >= 0, got 'seed'"),
        ({"preset": "book"}, "preset must be one of None, 'paper', got 'book'"),
        ({"preset": "paper"}, 'preset="paper" needs a depth'),
    ],
    ids=str,
)
def test_a_wrong_argument(rows, arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence) as caught:
        SoftSurvivalTree(**arguments).fit(*rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X, y: (X, None), "time must be given; pass a structured array"),
        (lambda X, y: (X, y["time"]), "y must hold event and time"),
        (lambda X, y: (X[:50], y), "must have one value per row of X, 50, got 120"),
        (lambda X, y: (X, (y["time"], y["event"])), "swapped"),
        (lambda X, y: (X, (y["event"], -y["time"])), "time must be finite and >= 0, got -"),
        (lambda X, y: (X, (np.zeros(120, bool), y["time"])), "event must be True in at least one row"),
        (lambda X, y: (X, (y["event"] * 2, y["time"])), r"event must be bool or 0/1 \(1 = event observed\)"),
        (lambda X, y: (X.assign(x=np.inf), y), "X must be finite or missing, got an infinite value in column 'x'"),
        (lambda X, y: (X.iloc[:0], y[:0]), "X must have at least one row, got none"),
        (lambda X, y: (X["x"], y), "X must be two-dimensional"),
        (lambda X, y: (X.assign(day=pd.Timestamp("2020-01-01")), y), "day"),
    ],
)
def test_wrong_data(rows, change, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence) as caught:
        SoftSurvivalTree(**SINGLE).fit(*change(*rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"path": "hard"}, "path must be"),
        ({"route": "soft"}, "predictions take path=, got route; leave it out"),
        ({"start": "from", "stop": "to"}, r"got start, stop; predict_path\(X, start, stop, id\) follows subjects"),
    ],
)
def test_a_wrong_choice_of_path(trees, rows, how, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        trees().predict(rows[0], **how)


def test_a_family_of_ones_own_may_be_called_a_spline(rows, monkeypatch):
    """It is given no number of knots that it does not take."""
    monkeypatch.setitem(hazards._REGISTRY, "spline_of_mine", Weibull)
    mine, weibull = (SoftSurvivalTree(leaf=leaf, **SINGLE).fit(*rows) for leaf in ("spline_of_mine", "weibull"))
    np.testing.assert_array_equal(mine.predict(rows[0]), weibull.predict(rows[0]))


@pytest.mark.parametrize("dense", [{"max_terms": None}, {"routing_l2": 1.0}, {"depth": 4}])
def test_dense_splits_have_no_shrinkage_of_slopes(dense, rows):
    with pytest.raises(InvalidParameterError, match="slope_shrinkage is there for rules of few terms alone"):
        SoftSurvivalTree(slope_shrinkage=5.0, **dense).fit(*rows)


def test_fairness_needs_groups(rows):
    with pytest.raises((InvalidParameterError, InvalidSurvivalDataError), match="group"):
        SoftSurvivalTree(depth=1, **FIXED, fairness=1.0).fit(*rows)


def test_predicting_without_a_feature(trees, rows):
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'x'; add or rename columns"):
        trees().predict(rows[0].drop(columns="x"))
