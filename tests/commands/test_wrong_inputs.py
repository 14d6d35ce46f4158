"""One sentence for every wrong input of a command, before anything heavy is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles.trial import FIT, OUTCOME, make_table

from softsurv.cli import main


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (["fit", "trial.csv", "--tim", "months", "--event", "died"], "there is no option --tim; did you mean --time?"),
        (["fit", "trial.csv", *OUTCOME, "--dept", "2"], "there is no option --dept; did you mean --depth?"),
        (["report", "model", "trial.csv", "--boot=3"], "there is no option --boot; did you mean --bootstrap?"),
        (["datasets", "--qq"], "there is no option --qq; --help lists all"),
        (["fit", "--drop", "id", "trial.csv", *OUTCOME], "DATA; write trial.csv before the option that took it"),
        (["evaluate", "model", "my", "trial.csv"], "no argument takes 'trial.csv'; put quotes around a value"),
    ],
)
def test_options_are_written_out(line, hint, trial, capsys):
    """An abbreviation that is understood today would break when another option begins so."""
    with pytest.raises(SystemExit) as stop:
        main(line)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: softsurv {line[0]} ")
    assert hint in said


WRONG = {
    "no such file": (
        ["fit", "trail.csv", *OUTCOME],
        "DATA must be an existing file, got 'trail.csv'; did you mean 'trial.csv'?",
    ),
    "a folder": (
        ["fit", ".", *OUTCOME],
        "DATA must be a file, got the folder '.'; `fit --memory` and `predict --chunk",
    ),
    "no table": (["fit", "notes.txt", *OUTCOME], "must be a .csv or .parquet file"),
    "empty table": (["fit", "empty.csv", *OUTCOME], "must be a readable table, got 'empty.csv'"),
    "UTF-16": (["fit", "wide.csv", *OUTCOME], "pandas.read_csv(path, encoding='utf-16')"),
    "Latin-1 names": (["fit", "latin.csv", *OUTCOME], "must be encoded as UTF-8, got other bytes in 'latin.csv'"),
    "semicolons": (["fit", "semi.csv", *OUTCOME], "must be comma separated"),
    "wrong column": (
        [*FIT, "--time", "month", "--event", "died"],
        "--time must name a column of DATA, got 'month'; did you mean 'months'? It has id, age, arm, months, died",
    ),
    "wrong drop": (
        [*FIT[:2], *OUTCOME, "--drop", "Id"],
        "--drop must name a column of DATA, got 'Id'; did you mean 'id'?",
    ),
    "text as time": (
        [*FIT, "--time", "arm", "--event", "died"],
        "--time must name a column of numbers, got 'arm' with the values ",
    ),
    "text as event": (
        [*FIT[:2], "--time", "months", "--event", "status"],
        "say which one marks an observed event, such as --event status=",
    ),
    "numbers as event": (
        [*FIT, "--time", "months", "--event", "age"],
        "name the column that says whether the event was observed",
    ),
    "value that marks nothing": (
        [*FIT[:2], "--time", "months", "--event", "status=gone"],
        "--event status=gone marks no row; column 'status' holds",
    ),
    "names alone": (["fit", "names.csv", *OUTCOME[:3], "died=1"], "column 'died' holds nothing"),
    "one column twice": ([*FIT, "--time", "died", "--event", "died"], "--time and --event both name the column 'died'"),
    "negative time": (["fit", "negative.csv", *OUTCOME], "time must be finite and >= 0, got -3 at row 5; drop the row"),
    "missing time": (["fit", "missing.csv", *OUTCOME], "time must be finite and >= 0, got nan at row 5"),
    "missing event": (["fit", "unknown.csv", *OUTCOME], "event must be known, got nan at row 5"),
    "no events": (["fit", "none.csv", *OUTCOME], "event must be True in at least one row, got none in 80 rows"),
    "only zero times": (["fit", "zeros.csv", *OUTCOME], "time must be > 0 in at least one row, got only zeros"),
    "infinite feature": (["fit", "infinite.csv", *OUTCOME], "X must be finite or missing"),
    "unknown leaf": ([*FIT, *OUTCOME, "--leaf", "cauchy"], "leaf must be one of exponential, weibull"),
    "misspelt leaf": ([*FIT, *OUTCOME, "--leaf", "weibul"], "got 'weibul'; did you mean 'weibull'?"),
    "wrong depth": ([*FIT, *OUTCOME, "--depth", "-1"], "depth must be"),
    "wrong test size": ([*FIT, *OUTCOME, "--test-size", "2"], "test_size must be"),
    "output is a file": ([*FIT, *OUTCOME, "--out", "trial.csv"], "--out must be a folder, got the file"),
    "no model": (["predict", "nowhere", "trial.csv"], "'nowhere' holds no model"),
    "unknown model": (
        ["compare", *FIT[1:2], *OUTCOME, "--models", "coxx"],
        "--models must name any of soft, optimal, cox, kaplan_meier, forest, boosting, greedy_tree, "
        "cause_specific_cox, aalen_johansen or MODULE:CLASS, got 'coxx'; did you mean 'cox'?",
    ),
    "no data set": (["datasets", "gbsg3"], "name must be one of aids"),
    "misspelt data set": (["datasets", "gbgs2"], "got 'gbgs2'; did you mean 'gbsg2'?"),
    "a wide table": (
        ["fit", "many.csv", "--time", "zzz", "--event", "died"],
        "got 'zzz'; it has id, age, arm, months, died, status, v0, v1, v2, v3, v4, v5 and 14 more",
    ),
    "no table format": (["datasets", "veterans", "--out", "v.xlsx"], "--out must end in .csv or .parquet"),
    "no record": (["fit", "--config", "trial.csv"], "'trial.csv' is no run record"),
    "folder of the output": (["datasets", "veterans", "--out", "no/v.csv"], "--out must lie in an existing folder"),
    "folder of predictions": (
        ["predict", "m", "trial.csv", "--out", "no/p.csv"],
        "--out must lie in an existing folder",
    ),
    "folder as output": (["predict", "m", "trial.csv", "--out", "."], "--out must be a file, got the folder '.'"),
}


@pytest.fixture
def wrong(trial) -> Path:
    """The folder with tables that are wrong in one way each."""
    table = make_table()
    (trial / "notes.txt").write_text("no table")
    (trial / "empty.csv").write_text("")
    (trial / "names.csv").write_text("months,died,age\n")
    table.to_csv("semi.csv", index=False, sep=";")
    table.to_csv("wide.csv", index=False, encoding="utf-16")
    table.rename(columns={"age": "\xe2ge"}).to_csv("latin.csv", index=False, encoding="latin-1")
    five = table.index == 5
    changes = {
        "negative": {"months": table["months"].mask(five, -3.0)},
        "missing": {"months": table["months"].mask(five)},
        "unknown": {"died": table["died"].mask(five)},
        "none": {"died": 0},
        "zeros": {"months": 0.0},
        "infinite": {"age": table["age"].mask(five, np.inf)},
    }
    for name, change in changes.items():
        table.assign(**change).to_csv(f"{name}.csv", index=False)
    table.assign(**dict.fromkeys(map("v{}".format, range(20)), 1)).to_csv("many.csv", index=False)
    return trial


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_gets_one_sentence_and_code_1(case, wrong, capsys):
    arguments, sentence = WRONG[case]
    code = main(arguments)
    error = capsys.readouterr().err
    assert code == 1
    assert error.startswith("softsurv: error: ")
    assert sentence in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "trail.csv", *OUTCOME],
        ["fit", "trial.csv", "--time", "month", "--event", "died"],
        ["fit", "trial.csv", "--time", "months", "--event", "state=dead"],
        ["fit", "trial.parquet", "--time", "month", "--event", "died"],
        ["tune", "trial.csv", *OUTCOME, "--drop", "Id"],
        ["fit", "trial.csv", "--time", "arm", "--event", "died"],
        ["fit", "trial.csv", "--time", "months", "--event", "arm"],
        ["fit", "trail.csv", *OUTCOME, "--memory", "1GB"],
        ["tune", "trial.csv", "--time", "arm", "--event", "died"],
        ["compare", "trial.csv", "--time", "months", "--event", "arm"],
        ["compare", "trial.csv", *OUTCOME, "--models", "coxx"],
        ["evaluate", "m", "trial.csv", "--time", "month", "--event", "died"],
        ["evaluate", "m", "less.csv"],
        ["report", "m", "less.csv"],
        ["predict", "m", "less.csv"],
        ["predict", "m", "trail.csv", "--chunk-rows", "10"],
        ["report", "m", "trail.csv", *OUTCOME],
        ["predict", "m", "trail.csv"],
        ["predict", "m", "trial.csv", "--id", "name"],
        ["predict", "nowhere", "trial.csv"],
        ["fit", "trial.csv", *OUTCOME, "--out", "trial.csv"],
    ],
)
def test_what_is_wrong_is_said_before_torch_is_loaded(trial, model, arguments):
    make_table().to_parquet("trial.parquet")
    make_table().drop(columns="age").to_csv("less.csv", index=False)
    os.symlink(model, "m")
    code = "import sys; from softsurv.cli import main; print(main(sys.argv[1:]), 'torch' in sys.modules)"
    here = os.environ | {"PYTHONPATH": str(Path(sys.modules["softsurv"].__file__).parents[1])}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=here)
    assert done.stdout == "1 False\n"
    assert done.stderr.startswith("softsurv: error: ")
    assert done.stderr.count("\n") == 1


def test_debug_shows_where(wrong):
    with pytest.raises(ValueError, match="event must be True"):
        main(["fit", "none.csv", *OUTCOME, "--debug"])


def test_an_unforeseen_error_asks_for_a_report(trial, model, monkeypatch, capsys):
    def fail(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("softsurv.estimators.soft.tree.SoftSurvivalTree.apply", fail)
    assert main(["predict", model, "trial.csv"]) == 1
    assert "unexpected ZeroDivisionError: division by zero; run again with --debug" in capsys.readouterr().err
