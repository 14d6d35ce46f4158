"""From training rows to the arrays of a search, and what is refused at that door."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.objectives import label_costs, squared_error
from softsurv.exact.search import Search
from softsurv.exact.split_costs import SplitCosts


def test_checks_of_the_arguments():
    codes, sides = np.zeros((4, 1), np.int32), (np.array([2]), np.zeros(1, bool))
    with pytest.raises(InvalidParameterError, match="statistics must have the 2 columns"):
        Search(squared_error.TASK, codes, *sides, np.ones((4, 3)))
    with pytest.raises(InvalidParameterError, match="codes must lie in"):
        Search(label_costs.TASK, codes + 2, *sides, np.ones((4, 2)))
    with pytest.raises(InvalidParameterError, match="0 <= reduced <= full"):
        SplitCosts(np.array([1.0]), np.array([0]), np.ones(4), np.array([2.0]))
