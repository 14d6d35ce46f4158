"""The value that an error names as an example marks the event, so that copying it does not turn the outcome round."""

import pandas as pd
import pytest

from softsurv.commands._input import _check_binary
from softsurv.errors import InvalidSurvivalDataError


@pytest.mark.parametrize(
    ("values", "named"),
    [(["no", "yes", "no"], "yes"), ([1, 2, 1], "2"), ([1.0, 2.0], "2"), (["A", "B"], "VALUE")],
)
def test_the_example_of_an_event(values, named):
    with pytest.raises(InvalidSurvivalDataError, match=f"such as --event died={named}$"):
        _check_binary(pd.Series(values, dtype=object), "died")
