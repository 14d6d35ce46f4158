"""What is given for each row: masked values are missing, indexes must name the same rows, weights have any unit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import softsurv
from softsurv import OptimalPolicyTree, OptimalRegressionTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.separable.front import misclassification_front

N = 80
RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(N, 2)).round(1), columns=["u", "v"])
VALUE = X["u"].to_numpy() + RNG.normal(size=N)
CLASS, TWO, EVENT = (VALUE > 0).astype(int), RNG.integers(0, 2, N), RNG.random(N) < 0.7
TIME = np.exp(VALUE)
OUTCOMES = {
    "OptimalClassificationTree": ({}, {"y": CLASS}),
    "OptimalRegressionTree": ({}, {"y": VALUE}),
    "OptimalCostSensitiveTree": ({}, {"y": CLASS, "costs": RNG.random((N, 2))}),
    "OptimalFairClassificationTree": ({"tolerance": 0.2}, {"y": CLASS, "group": TWO}),
    "OptimalPolicyTree": ({}, {"y": VALUE, "treatment": TWO}),
    "OptimalCapacityPolicyTree": ({"capacity": {1: 0.5}}, {"y": VALUE, "treatment": TWO}),
    "OptimalSurvivalPolicyTree": ({"horizon": 1.0}, {"y": (EVENT, TIME), "treatment": TWO}),
}
COLUMNS = [(name, key) for name, (_, given) in OUTCOMES.items() for key in (*given, "sample_weight") if key != "costs"]


@pytest.mark.parametrize(("name", "key"), COLUMNS)
def test_indexes_that_share_some_rows_are_refused(name, key):
    options, given = OUTCOMES[name]
    values = given.get(key, np.ones(N))
    values = values if isinstance(values, tuple) else (values,)
    moved = tuple(pd.Series(one, index=X.index + 10) for one in values)
    with pytest.raises(InvalidSurvivalDataError, match="an index that shares some rows with that of X and not all"):
        getattr(softsurv, name)(**options).fit(X, **given | {key: moved if len(moved) > 1 else moved[0]})


TABLES = {
    "OptimalPolicyTree": ("scores", "predicted", "propensity"),
    "OptimalCapacityPolicyTree": ("scores",),
    "OptimalCostSensitiveTree": ("costs",),
    "OptimalSurvivalPolicyTree": ("propensity", "y"),
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, keys in TABLES.items() for key in keys])
def test_tables_with_the_rows_in_another_order_are_refused(name, key):
    options, given = OUTCOMES[name]
    table = pd.DataFrame({"event": EVENT, "time": TIME}) if key == "y" else pd.DataFrame({0: TWO / 2, 1: 1 - TWO / 2})
    with pytest.raises(InvalidSurvivalDataError, match=rf"{key} must be in the row order of X.* use {key}\.loc"):
        getattr(softsurv, name)(**options).fit(X, **given | {key: table[::-1]})


def test_the_front_looks_at_the_index_too():
    with pytest.raises(InvalidSurvivalDataError, match="y must be in the row order of X"):
        misclassification_front(X, pd.Series(CLASS)[::-1])


def test_rows_without_names_of_their_own_go_by_position():
    """An index of its own, or none, says nothing about the other table."""
    expected = OptimalRegressionTree(max_depth=1).fit(X.to_numpy(), VALUE).predict(X.to_numpy())
    for index in (range(1000, 1000 + N), RNG.permutation(N)):
        tree = OptimalRegressionTree(max_depth=1).fit(X.to_numpy(), pd.Series(VALUE, index=index))
        assert tree.predict(X.to_numpy()).tolist() == expected.tolist()


def test_masked_values_are_missing():
    hidden = RNG.random(X.shape) < 0.3
    masked, missing = np.ma.masked_array(X.to_numpy(), hidden), X.mask(hidden).to_numpy()
    tree, same = (OptimalRegressionTree(max_depth=2).fit(one, VALUE) for one in (masked, missing))
    assert tree.export_text() == same.export_text()
    assert tree.predict(masked).tolist() == same.predict(missing).tolist()
    with pytest.raises(ValueError, match="NaN"):
        OptimalRegressionTree().fit(X, np.ma.masked_array(VALUE, hidden[:, 0]))
    with pytest.raises(ValueError, match="NaN"):
        OptimalRegressionTree().fit(X, VALUE, sample_weight=np.ma.masked_array(VALUE**2, hidden[:, 0]))
    with pytest.raises(ValueError, match="NaN"):
        OptimalPolicyTree().fit(X, scores=np.ma.masked_array(X.to_numpy(), hidden))
    for name, key in (("OptimalFairClassificationTree", "group"), ("OptimalPolicyTree", "treatment")):
        given = OUTCOMES[name][1] | {key: np.ma.masked_array(TWO, hidden[:, 0])}
        with pytest.raises(InvalidSurvivalDataError, match=f"{key} must"):
            getattr(softsurv, name)().fit(X, **given)


@pytest.mark.parametrize("how", [{"dtype": torch.bfloat16}, {"dtype": torch.float64, "requires_grad": True}], ids=str)
def test_tensors_of_every_kind_are_read(how):
    def tensor(values):
        return torch.tensor(np.asarray(values, dtype=float), **how)

    plain = [tensor(one).detach().double().numpy() for one in (X, VALUE, np.abs(VALUE) + 0.1)]
    tree = OptimalRegressionTree(max_depth=1).fit(*plain)
    same = OptimalRegressionTree(max_depth=1).fit(tensor(X), tensor(VALUE), tensor(np.abs(VALUE) + 0.1))
    assert same.predict(tensor(X)).tolist() == tree.predict(plain[0]).tolist()


@pytest.mark.parametrize("unit", [1e-90, 1e-6, 1e90])
def test_the_unit_of_the_weights_changes_no_prediction(unit):
    models = {
        SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=0.3, shrinkage=10.0): (EVENT, TIME),
        OptimalSurvivalTree(max_depth=1): (EVENT, TIME),
        OptimalRegressionTree(max_depth=1): VALUE,
    }
    for model, y in models.items():
        expected = model.fit(X, y).predict(X)
        np.testing.assert_allclose(
            model.fit(X, y, sample_weight=np.full(N, unit)).predict(X), expected, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("unit", [1e-120, 1e120])
@pytest.mark.parametrize("model", [SoftSurvivalTree(), OptimalSurvivalTree(), OptimalRegressionTree()])
def test_weights_whose_squares_are_lost_are_refused(model, unit):
    y = VALUE if isinstance(model, OptimalRegressionTree) else (EVENT, TIME)
    with pytest.raises(InvalidSurvivalDataError, match=r"weight must be 0 or from 1e-100 to 1e\+100, got"):
        model.fit(X, y, sample_weight=np.full(N, unit))


def test_whole_numbers_beyond_all_doubles_are_one_sentence():
    huge = [10**400] * N
    with pytest.raises(InvalidSurvivalDataError, match=r"sample_weight must hold numbers up to 1\.8e308, got a"):
        OptimalRegressionTree().fit(X, VALUE, sample_weight=huge)
    with pytest.raises(InvalidSurvivalDataError, match=r"y must hold numbers up to 1\.8e308"):
        OptimalRegressionTree().fit(X, huge)


def test_an_error_names_the_row_as_given_where_rows_before_it_weigh_nothing():
    weight, table = np.ones(N), pd.DataFrame({"x": np.arange(N, dtype=float)})
    weight[:5], table.loc[8, "x"] = 0.0, np.inf
    with pytest.raises(InvalidSurvivalDataError, match="infinite value in column 'x' at row 8"):
        OptimalRegressionTree().fit(table, VALUE, sample_weight=weight)
