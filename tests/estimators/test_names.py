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
