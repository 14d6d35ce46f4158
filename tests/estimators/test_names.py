"""The table of estimators."""

import importlib

import pytest
from sklearn.base import BaseEstimator

import softsurv
from softsurv.estimators.names import HOME


@pytest.mark.parametrize("name", HOME)
def test_every_name_is_an_estimator_where_the_table_says(name):
    found = getattr(importlib.import_module(HOME[name]), name)
    assert issubclass(found, BaseEstimator)
    assert found.__module__ == HOME[name]
    assert getattr(softsurv, name) is found


@pytest.mark.parametrize(("module", "name"), [("soft", "SoftSurvivalTree"), ("optimal", "OptimalSurvivalTree")])
def test_the_rooms_of_the_main_estimators_give_them_out(module, name):
    """Earlier imports name ``softsurv.estimators.soft`` and ``softsurv.estimators.optimal``."""
    room = importlib.import_module(f"softsurv.estimators.{module}")
    assert getattr(room, name) is getattr(softsurv, name)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        room.Nothing  # noqa: B018
