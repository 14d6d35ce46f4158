"""Limits of quantiles: what both kinds of trees check, and pass on as it is; tests of each are beside its bands."""

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.estimators.shared.intervals import QuantileIntervals


class Stub(QuantileIntervals):
    """A tree that gives back what it was asked."""

    def _checked(self, X, how):
        assert how == {}
        return np.asarray(X)

    def _quantile_limits(self, prepared, share, level):
        return prepared * share, prepared * level


def test_rows_share_and_level_are_passed_on():
    lower, upper = Stub().predict_quantile_interval([10.0, 20.0], 0.1, level=0.5)
    np.testing.assert_array_equal(lower, [1.0, 2.0])
    np.testing.assert_array_equal(upper, [5.0, 10.0])


@pytest.mark.parametrize("probability", [0, 1, 10, -0.1, np.nan, "0.1", None, True])
def test_a_probability_is_a_number_between_0_and_1(probability):
    with pytest.raises(InvalidParameterError, match="probability must be between 0 and 1, got"):
        Stub().predict_quantile_interval([1.0], probability)


@pytest.mark.parametrize("level", [0, 1, 95, None])
def test_a_level_is_a_number_between_0_and_1(level):
    with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, got"):
        Stub().predict_quantile_interval([1.0], level=level)
