"""``softsurv predict``: the table that it writes, and tables that it refuses."""

from __future__ import annotations

import csv
import errno
import os

import numpy as np
import pandas as pd
import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import load_model
from softsurv.cli import main


def test_predict_writes_a_table(trial, model, capsys):
    arguments = ["predict", model, "trial.csv", "--times", "0", "2.5", "10", "--id", "id", "--out", "p.csv"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "80 predictions in p.csv\n"
    table, tree = pd.read_csv("p.csv"), load_model(model)
    rows = make_table()
    assert list(table) == ["id", "leaf", "risk", "median", "survival_0", "survival_2.5", "survival_10"]
    assert table["id"].tolist() == rows["id"].tolist()
    assert table["leaf"].tolist() == tree.apply(rows).tolist()
    assert np.allclose(table["risk"], tree.predict(rows))
    assert np.allclose(table["median"], tree.predict_median(rows))
    assert np.allclose(table.iloc[:, 4:], tree.predict_survival_function(rows, [0, 2.5, 10]))


def test_survival_ahead_of_the_age_of_each_row(trial, model, capsys):
    rows, tree = make_table(), load_model(model)
    rows["lived"] = np.linspace(0, tree.horizon_ / 2, len(rows))
    rows.to_csv("fleet.csv", index=False)
    arguments = ["predict", model, "fleet.csv", "--after", "lived", "--ahead", "0", "2.5", "--out", "p.csv"]
    assert main(arguments) == 0
    table = pd.read_csv("p.csv")
    assert list(table) == ["leaf", "risk", "median", "median_ahead", "survival_ahead_0", "survival_ahead_2.5"]
    later = tree.predict_survival_function(rows, rows["lived"] + 2.5).diagonal()
    now = tree.predict_survival_function(rows, rows["lived"]).diagonal()
    assert np.allclose(table["survival_ahead_2.5"], later / now)
    assert (table["survival_ahead_0"] == 1).all()
    assert np.allclose(table["median_ahead"], tree.predict_median(rows, after=rows["lived"]))
    assert main([*arguments, "--chunk-rows", "7"]) == 0
    assert np.allclose(pd.read_csv("p.csv"), table, rtol=1e-12)
    assert not capsys.readouterr().err
    assert main(["predict", model, "fleet.csv", "--after", "lived", "--ahead", repr(tree.horizon_)]) == 0
    assert f"no training row was observed after {tree.horizon_:g}; what is predicted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--after", "lived", "--ahead", "1"], "--after must name a column of DATA, got 'lived'"),
        (["--after", "status", "--ahead", "1"], "after must"),
        (["--after", "id", "--ahead", "-1"], "ahead must be"),
    ],
)
def test_wrong_ages(trial, model, options, message, capsys):
    assert main(["predict", model, "trial.csv", *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--after", "age"], "--after is a column of ages, --ahead the times counted from there; give both"),
        (["--ahead", "1"], "--after is a column of ages, --ahead the times counted from there; give both"),
        (
            ["--after", "age", "--ahead", "1", "--start", "age", "--stop", "id", "--id", "id", "--times", "1"],
            "a path has its own times; leave out --after and --ahead, or --start and --stop",
        ),
    ],
)
def test_ages_asked_for_in_part_are_wrong_usage(trial, model, options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["predict", model, "trial.csv", *options])
    assert message in capsys.readouterr().err


def test_times_beyond_the_training_times_are_said(trial, model, capsys):
    last = load_model(model).horizon_
    assert main(["predict", model, "trial.csv", "--times", "1", repr(last), "--out", "p.csv"]) == 0
    assert not capsys.readouterr().err
    assert main(["predict", model, "trial.csv", "--times", "1", "500", "900", "--out", "p.csv"]) == 0
    said = f"no training row was observed after {last:g}; what is predicted for 500, 900 is extrapolated"
    assert said in capsys.readouterr().err


def test_predict_writes_to_the_screen_without_out(trial, model, capsys):
    assert main(["predict", model, "trial.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "leaf,risk,median"
    assert len(lines) == 81


@pytest.mark.parametrize(
    "arguments",
    [["predict", "MODEL", "trial.csv"], ["report", "MODEL", "trial.csv"], ["compare", "trial.csv", *OUTCOME]],
    ids=lambda arguments: arguments[0],
)
def test_the_table_is_not_written_over(arguments, trial, model, capsys):
    before = (trial / "trial.csv").read_bytes()
    (trial / "link.csv").symlink_to("trial.csv")
    assert main([model if one == "MODEL" else one for one in arguments] + ["--out", "link.csv"]) == 1
    assert "--out must not be DATA, which would be lost, got 'link.csv'; choose another" in capsys.readouterr().err
    assert (trial / "trial.csv").read_bytes() == before


def test_a_formula_is_not_passed_through(trial, model):
    ids = ["=1+1", "@a", "-3", "x", "a\r=1", "\r\n=1", "\uff1d1", "\t=1", " =1", " -3"]
    make_table().assign(id=ids * 8).to_csv("ids.csv", index=False, quoting=csv.QUOTE_ALL)
    assert main(["predict", model, "ids.csv", "--id", "id", "--out", "p.csv"]) == 0
    written = pd.read_csv("p.csv", dtype=str)["id"].tolist()
    assert written == ["'=1+1", "'@a", "-3", "x", "a\n=1", "'\n=1", "'\uff1d1", "'\t=1", "' =1", " -3"] * 8


def test_ids_are_not_lost_under_the_name_of_a_prediction(trial, model, capsys):
    make_table().rename(columns={"id": "leaf"}).to_csv("ids.csv", index=False)
    assert main(["predict", model, "ids.csv", "--id", "leaf", "--out", "p.csv"]) == 1
    assert "--id must not be called as a column of the result is, got 'leaf'; rename" in capsys.readouterr().err
    assert not (trial / "p.csv").exists()


def test_cells_that_meant_missing_in_the_fit_do_so_in_predictions(trial):
    """`evaluate` took 9999 for missing, and `predict` for an age of 9999 years."""
    table = make_table().assign(id=[9999, *range(1, 80)])
    table.loc[::9, "age"] = 9999
    table.to_csv("coded.csv", index=False)
    command = ["fit", "coded.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--missing-values", "9999"]
    assert main([*command, "--out", "m"]) == 0
    known = load_model("m").predict(table.assign(age=table["age"].where(table["age"] != 9999)))
    for chunks in ([], ["--chunk-rows", "30"]):
        assert main(["predict", "m", "coded.csv", "--id", "id", *chunks, "--out", "p.csv"]) == 0
        found = pd.read_csv("p.csv")
        assert np.allclose(found["risk"], known)
        assert found["id"].tolist() == table["id"].tolist()  # the code is one of features
    assert main(["predict", "m", "coded.csv", "--missing-values", "-1", "--out", "p.csv"]) == 0
    assert not np.allclose(pd.read_csv("p.csv")["risk"], known)


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "2"]], ids=["at once", "in chunks"])
def test_numbers_that_name_rows_are_carried_over_as_they_are(chunks, trial, model):
    """In chunks they were floats, as which the first two are one."""
    numbers = [2**53 + 1, 2**53, 7, 8]
    make_table().head(4).assign(number=numbers).to_csv("numbered.csv", index=False)
    assert main(["predict", model, "numbered.csv", "--id", "number", *chunks, "--out", "p.csv"]) == 0
    assert pd.read_csv("p.csv", dtype=str)["number"].tolist() == list(map(str, numbers))


@pytest.mark.parametrize("numbers", [["7", "", str(2**53 + 1)], ["7.5", "", "8.0"]], ids=["whole", "with decimals"])
@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "3"]], ids=["at once", "in chunks"])
def test_a_number_is_carried_over_where_another_row_has_none(chunks, numbers, trial, model):
    make_table().head(3).assign(number=numbers).to_csv("numbered.csv", index=False)
    assert main(["predict", model, "numbered.csv", "--id", "number", *chunks, "--out", "p.csv"]) == 0
    assert pd.read_csv("p.csv", dtype=str)["number"].fillna("").tolist() == numbers


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "30"]], ids=["at once", "in chunks"])
def test_a_wrong_row_is_named_by_its_place_in_the_file(chunks, trial, model, capsys):
    """In chunks it was that within the chunk, of which nothing told the number."""
    table = make_table()
    table.loc[75, "age"] = np.inf
    table.to_csv("wrong.csv", index=False)
    assert main(["predict", model, "wrong.csv", *chunks]) == 1
    assert "an infinite value in column 'age' at row 75;" in capsys.readouterr().err


def test_a_folder_names_the_file_of_a_wrong_row(trial, model, capsys):
    (trial / "parts").mkdir()
    make_table().to_csv("parts/a.csv", index=False)
    make_table().assign(age=[1.0] * 75 + [np.inf] * 5).to_csv("parts/b.csv", index=False)
    assert main(["predict", model, "parts", "--chunk-rows", "30"]) == 1
    assert "in column 'age' at row 75 of 'parts/b.csv';" in capsys.readouterr().err


def test_notes_on_chunks_say_which_rows_they_count(trial, model, capsys):
    """The counts of the first chunk were told as those of the table."""
    make_table().assign(arm=["other"] * 40 + ["new"] * 10 + ["other"] * 30).to_csv("other.csv", index=False)
    arguments = ["predict", model, "other.csv", "--out", "p.csv"]
    assert main([*arguments, "--chunk-rows", "30"]) == 0
    said = capsys.readouterr().err
    assert said.count("in 30 row(s): 'other'") == 1
    assert said.endswith("; counted in the rows from 0 to 29 alone\n")
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert "in 70 row(s): 'other'" in said
    assert "counted" not in said


def test_notes_on_a_chunk_are_told_before_its_error(trial, model, capsys):
    """They were lost with it."""
    make_table().assign(arm="other", lived=[1.0] * 75 + [-1.0] * 5).to_csv("wrong.csv", index=False)
    assert main(["predict", model, "wrong.csv", "--after", "lived", "--ahead", "1", "--chunk-rows", "80"]) == 1
    said = capsys.readouterr().err
    assert "got -1 at row 75" in said
    assert "counted in the rows from 0 to 79 alone" in said


def test_notes_that_count_no_rows_name_none(trial, model, capsys):
    """A note on times said that it was counted in some rows."""
    make_table().assign(lived=1.0).to_csv("lived.csv", index=False)
    asked = ["--after", "lived", "--ahead", "1e6", "--chunk-rows", "30", "--out", "p.csv"]
    assert main(["predict", model, "lived.csv", *asked]) == 0
    said = capsys.readouterr().err
    assert "no training row was observed after" in said
    assert "counted" not in said


def test_a_full_disk_leaves_the_old_predictions(trial, model, monkeypatch, capsys):
    (trial / "p.csv").write_text("good")

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["predict", model, "trial.csv", "--out", "p.csv"]) == 1
    assert "no space left on the disk for" in capsys.readouterr().err
    assert (trial / "p.csv").read_text() == "good"
    assert not list(trial.glob(".softsurv-*"))


def test_predicting_without_a_feature(trial, model, capsys):
    make_table().drop(columns="age").to_csv("less.csv", index=False)
    assert main(["predict", model, "less.csv"]) == 1
    assert "DATA must have every column that" in capsys.readouterr().err


@pytest.mark.parametrize("times", [["-1"], ["nan"]])
def test_predicting_at_no_time(trial, model, times, capsys):
    assert main(["predict", model, "trial.csv", "--times", *times]) == 1
    assert "times must be finite and >= 0" in capsys.readouterr().err


def test_close_times_have_columns_of_their_own(trial, model):
    times = ["1.0000001", "1.0000002", "20"]
    assert main(["predict", model, "trial.csv", "--times", *times, "--out", "p.csv"]) == 0
    table = pd.read_csv("p.csv")
    assert list(table)[3:] == ["survival_1.0000001", "survival_1.0000002", "survival_20"]
    assert np.allclose(
        table.iloc[:, 3:], load_model(model).predict_survival_function(make_table(), list(map(float, times)))
    )
