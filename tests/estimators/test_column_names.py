"""Names of columns: weights as ``fit`` names them, and times that lie close together."""

import pytest

from softsurv.errors import InvalidParameterError
from softsurv.estimators.column_names import reader_columns, time_names


def test_names_of_times_are_short_where_they_tell_the_times_apart():
    assert time_names([0, 0.5, 20, 1e10]) == ["0", "0.5", "20", "1e+10"]
    assert time_names([1.0000001, 1.0000002, 20]) == ["1.0000001", "1.0000002", "20"]
    assert time_names([1234567, 1234568, 2]) == ["1234567", "1234568", "2"]
    assert time_names([2, 2.0, 1.2345678]) == ["2", "2", "1.23457"]


def reads(data, *, folds=5, **columns):
    """Takes columns for the reader."""


def test_weights_have_two_names_and_one_value():
    assert reader_columns(reads, {"sample_weight": 1, "time": "t"}) == {"weight": 1, "time": "t"}
    assert reader_columns(reads, {"weight": 1}) == {"weight": 1}
    with pytest.raises(InvalidParameterError, match="weight and sample_weight say the same, got both"):
        reader_columns(reads, {"weight": 1, "sample_weight": 1})


@pytest.mark.parametrize(("name", "close"), [("wieght", "weight"), ("fold", "folds"), ("foo", "")])
def test_an_unknown_argument_is_one_of_the_caller(name, close):
    with pytest.raises(TypeError, match=f"^reads has no argument '{name}'" + (f".*'{close}'" if close else "$")):
        reader_columns(reads, {"time": "t", name: 1})
