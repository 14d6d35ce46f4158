"""The value that an error names as an example marks the event, so that copying it does not turn the outcome round."""

import pandas as pd
import pytest

from softsurv.commands._input import likely_event


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (["no", "yes", "no"], "yes"),
        (["Alive", "Dead", None], "Dead"),
        ([1, 2, 1], "2"),  # as R's survival package has it: 1 censored, 2 dead
        (["1", "2"], "2"),
        (["A", "B"], "VALUE"),
    ],
)
def test_the_likely_event(values, named):
    assert likely_event(pd.Series(values, dtype=object)) == named
