"""What commands write: places for output, tables in columns, sentences on data and on measures."""

from __future__ import annotations

import io
import json
import os
import sys

import numpy as np
import pandas as pd
import pytest

from softsurv.commands._output import (
    cause_table,
    data_line,
    echo,
    echo_json,
    measure_note,
    measure_table,
    output_file,
    output_folder,
    table,
    warn_of_differences,
)
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import InvalidParameterError, SoftsurvWarning

MEASURED = {"harrell_c": 0.71249, "uno_c": None, "cd_auc": 0.5, "ibs": 1.0, "n": 9, "events": 4, "range": (1.0, 30.5)}


def small(**columns):
    X = pd.DataFrame({"age": [50.0, np.nan, 70.0, 80.0], "arm": ["new", "old", "new", "old"]})
    return SurvivalData(X, [1.0, 2.0, 4.0, 8.0], [True, True, True, False], **columns)


def test_lines_and_json_go_to_stdout(capsys):
    echo("a", "", "b")
    echo_json({"Größe": [1, None]})
    out, err = capsys.readouterr()
    assert out.startswith("a\n\nb\n{")
    assert json.loads(out.removeprefix("a\n\nb\n")) == {"Größe": [1, None]}
    assert err == ""


def test_a_name_that_the_screen_cannot_show_is_written_by_its_codes(monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    echo("Größe <= 3")
    assert screen.buffer.getvalue() == b"Gr\\xf6\\xdfe <= 3\n"


def test_a_name_gives_the_screen_no_orders(capsys):
    echo("a\x1b]0;owned\x07\r\u202e <= 3\t\n\x9b2J")
    echo_json({"a\x7f": "\x1b"})
    out = capsys.readouterr().out
    first = "a\\u001b]0;owned\\u0007\\u000d\\u202e <= 3\t\n\\u009b2J\n"
    assert out.startswith(first)
    assert json.loads(out.removeprefix(first)) == {"a\x7f": "\x1b"}


def test_a_table_has_names_at_the_left_and_numbers_at_the_right():
    assert table([["", "c"], ["a long name", "0.5"], ["b", "-"]]) == [
        "               c",
        "a long name  0.5",
        "b              -",
    ]
    assert table([["alone"]]) == ["alone"]


def test_measures_have_a_row_for_each_model_and_a_dash_where_none_was_measured():
    head, one, other = measure_table({"soft": MEASURED, "cox": MEASURED | {"ibs": 0.0004}})
    assert head.split() == ["harrell_c", "uno_c", "cd_auc", "ibs"]
    assert one.split() == ["soft", "0.712", "-", "0.500", "1.000"]
    assert other.split()[-1] == "0.000"


def test_causes_have_a_table_where_there_are_any():
    assert cause_table(MEASURED) == []
    of_cause = {"concordance": 0.6, "auc": None, "ibs": 0.1, "events": 3}
    blank, head, line = cause_table(MEASURED | {"causes": {"heart failure": of_cause}})
    assert blank == ""
    assert head.split() == ["cause", "concordance", "auc", "ibs", "events"]
    assert line.split() == ["heart", "failure", "0.600", "-", "0.100", "3"]


def test_the_note_says_what_was_measured():
    assert measure_note(MEASURED).startswith("9 rows, 4 events, measured at times 1 to 30.5. ")
    assert measure_note(MEASURED | {"subjects": 5}).startswith("9 rows of 5 subjects, 4 events")


def test_a_data_set_in_one_line():
    assert data_line(small(name="trial")) == (
        "trial: 4 rows, 2 features, 3 events (25 % censored), times 1 to 8, median 3, 1 missing value"
    )
    assert data_line(small()).startswith("data: 4 rows")


def test_events_in_intervals_and_late_entries_are_counted_in_the_line():
    """An event in an interval is no censoring, and the share of censored rows says so."""
    rows = survival_data(
        pd.DataFrame({"age": [50.0, 51.0, 70.0, 71.0]}),
        time=[1.0, 2.0, 4.0, 8.0],
        event=[False, True, False, False],
        upper=[3.0, np.inf, np.inf, np.inf],
        entry=[0.0, 1.0, 0.0, 0.0],
    )
    assert "2 events, 1 within an interval (50 % censored)" in data_line(rows)
    assert data_line(rows).endswith(", 1 late entry")


def test_causes_and_subjects_are_counted_in_the_line():
    X = pd.DataFrame({"age": [50.0, 51.0, 70.0]})
    rows = survival_data(X, start=[0, 2, 0], stop=[2, 5, 4], cause=["", "seal", ""], id=["a", "a", "b"])
    assert data_line(rows) == (
        "data: 3 rows of 2 subjects, 1 feature, 1 event (50 % of subjects without event), times 4 to 5, "
        "median 4.5, causes seal (1)"
    )


def test_a_file_needs_a_folder_that_exists(tmp_path):
    assert output_file(tmp_path / "new.csv") == tmp_path / "new.csv"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidParameterError, match=r"must lie in an existing folder, got .*make the folder first"):
        output_file(tmp_path / "none" / "new.csv")
    with pytest.raises(InvalidParameterError, match="must be a file, got the folder"):
        output_file(tmp_path)


def test_a_folder_may_be_new_at_any_depth_but_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert output_folder("a/b/c") == tmp_path / "a" / "b" / "c"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidParameterError, match="must be a folder, got the file"):
        output_folder("file")
    with pytest.raises(InvalidParameterError, match=r"must be writable, got 'file/below'"):
        output_folder("file/below")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the system's owner may write everywhere")
def test_a_place_without_the_right_to_write_is_refused(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    for ask in (output_file, output_folder):
        with pytest.raises(InvalidParameterError, match="must be writable"):
            ask(locked / "new")


def test_what_differs_from_a_record_is_a_warning():
    warn_of_differences({}, small())  # no record, nothing to say
    warn_of_differences({"data": {"fingerprint": small().fingerprint()}}, small())
    with pytest.warns(SoftsurvWarning, match=r"the data differ .* so the result may differ from the recorded one"):
        warn_of_differences({"data": {"fingerprint": "other", "n": 7}}, small())
