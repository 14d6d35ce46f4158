"""What a binarizer may be asked for, argument by argument."""

import numpy as np
import pytest

from softsurv.data.binarizer_checks import check_binarizer
from softsurv.errors import InvalidParameterError

GOOD = {"thresholds": 10, "max_levels": None, "min_share": 0.0, "missing": "impute"}


@pytest.mark.parametrize(
    "changes",
    [
        {"thresholds": "all"},
        {"thresholds": np.int64(1)},
        {"thresholds": []},
        {"thresholds": [1, 2.5, np.float64(3)]},
        {"thresholds": np.array([0.5])},
        {"thresholds": {"age": 3, "size": "all", "nodes": (1.0,)}},
        {"max_levels": 2},
        {"max_levels": np.int64(5)},
        {"min_share": np.float64(0.49)},
        {"missing": "route"},
    ],
    ids=str,
)
def test_what_is_good_passes(changes):
    assert check_binarizer(**(GOOD | changes)) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"thresholds": 0}, 'thresholds must be an integer >= 1, "all", a list .* got 0'),
        ({"thresholds": None}, "got None"),
        ({"thresholds": 2.0}, "got 2.0"),
        ({"thresholds": "every"}, "got 'every'"),
        ({"thresholds": [1.0, np.nan]}, "thresholds must"),
        ({"thresholds": ["1"]}, "thresholds must"),
        ({"thresholds": {"age": 3, "size": -1}}, "thresholds must"),
        ({"max_levels": 1}, "max_levels must be an integer >= 2 or None, got 1"),
        ({"max_levels": 2.5}, "max_levels must be an integer"),
        ({"max_levels": True}, "max_levels must be an integer"),
        ({"min_share": 0.5}, r"min_share must be a share of the rows in \[0, 0.5\), got 0.5"),
        ({"min_share": -0.1}, "min_share must"),
        ({"min_share": "0.1"}, "min_share must"),
        ({"min_share": np.nan}, "min_share must"),
        ({"missing": "drop"}, 'missing must be "impute" or "route", got \'drop\''),
        ({"missing": None}, "missing must"),
    ],
)
def test_what_is_wrong_is_named(changes, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        check_binarizer(**(GOOD | changes))
