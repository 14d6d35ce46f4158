"""The registry of classification objectives."""

import pytest

from softsurv.errors import InvalidParameterError
from softsurv.estimators.separable.class_objectives import CLASSIFIERS, register


def test_an_objective_is_registered_once():
    with pytest.raises(InvalidParameterError, match="has a solver already"):
        register("accuracy")(CLASSIFIERS["accuracy"])
