"""The value that an error names as an example marks the event, so that copying it does not turn the outcome round."""

import numpy as np
import pandas as pd
import pytest
from oracles.trial import OUTCOME, make_table

from softsurv.cli import main
from softsurv.commands._input import _check_binary, event_parts
from softsurv.errors import InvalidSurvivalDataError


@pytest.mark.parametrize(
    ("values", "named"),
    [(["no", "yes", "no"], "yes"), ([1, 2, 1], "2"), ([1.0, 2.0], "2"), (["A", "B"], "VALUE")],
)
def test_the_example_of_an_event(values, named):
    with pytest.raises(InvalidSurvivalDataError, match=f"such as --event died={named}$"):
        _check_binary(pd.Series(values, dtype=object), "died")


def test_infinite_values_meet_their_sentence_alone(tmp_path, capsys):
    """A note of numpy's on a subtraction stood before it."""
    make_table(60).assign(id=np.where(np.arange(60) < 2, np.inf, 1.5)).to_csv(tmp_path / "rows.csv", index=False)
    assert main(["fit", str(tmp_path / "rows.csv"), *OUTCOME, "--out", str(tmp_path / "model")]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "got an infinite value in column 'id' at row 0" in said


def test_a_missing_status_is_told_by_its_row(tmp_path, capsys):
    """A parquet file holds None there, not NaN."""
    rows = make_table(60).drop(columns="died")
    rows.loc[3, "status"] = None
    rows.to_parquet(tmp_path / "rows.parquet")
    asked = ["fit", str(tmp_path / "rows.parquet"), "--time", "months", "--event", "status=dead", "--drop", "id"]
    assert main([*asked, "--out", str(tmp_path / "model")]) == 1
    assert "event must be known" in (said := capsys.readouterr().err)
    assert "at row 3" in said


@pytest.mark.parametrize(
    ("given", "names", "wanted"),
    [
        ("died", ["died"], ("died", None)),
        ("status=2 = dead", ["status", "age"], ("status", "2 = dead")),
        ("a=b=c", ["a=b"], ("a=b", "c")),
        ("a=b", ["a", "a=b"], ("a=b", None)),
        ("sttus=2 = dead", ["status"], ("sttus", "2 = dead")),
    ],
)
def test_column_and_value_of_an_event(given, names, wanted):
    assert event_parts(given, names) == wanted
