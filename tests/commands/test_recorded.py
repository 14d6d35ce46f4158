"""Runs that are repeated from their record, with other options, on other rows, and from damaged records."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import load_model
from softsurv.cli import main
from softsurv.persistence import read_model


def test_a_run_is_recorded_and_can_be_repeated(trial, capsys):
    options = ["--drop", "id", "status", *QUICK, "--test-size", "0.25", "--seed", "3", "--out", "a"]
    assert main(["fit", "trial.csv", *OUTCOME, *options]) == 0
    record = json.loads((trial / "a" / "run.json").read_text())
    assert record["config"]["drop"] == ["id", "status"]
    assert record["config"]["leaf"] == "auto"  # what was not given is recorded too
    assert record["config"]["solver"] == "lbfgs"
    assert record["metrics"]["n"] == 20
    assert record["seed"] == 3
    assert main(["fit", "--config", "a/run.json", "--out", "b"]) == 0
    again = json.loads((trial / "b" / "run.json").read_text())
    assert again["metrics"] == record["metrics"]
    assert again["config"] == record["config"] | {"out": str(trial / "b")}
    first, second = (read_model(trial / name).arrays for name in "ab")
    assert all(np.array_equal(first[name], second[name], equal_nan=True) for name in first | second)
    assert capsys.readouterr().err == ""


def test_columns_that_a_packed_table_lacks_need_not_be_left_out(trial, capsys):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    make_table(70).drop(columns=["id", "status"]).to_csv("fewer.csv.gz", index=False)
    assert main(["evaluate", "a", "fewer.csv.gz"]) == 0
    capsys.readouterr()
    (trial / "broken.csv.gz").write_bytes((trial / "fewer.csv.gz").read_bytes()[:40])
    assert main(["evaluate", "a", "broken.csv.gz"]) == 1
    assert "X must be a readable table, got 'broken.csv.gz'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"), [("event", 1), ("drop", True), ("drop", "id"), ("missing_values", [None])]
)
def test_a_record_that_names_no_columns_is_refused(option, value, trial, capsys):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    record = json.loads((trial / "a" / "run.json").read_text())
    (trial / "a" / "run.json").write_text(json.dumps(record | {"config": record["config"] | {option: value}}))
    assert main(["evaluate", "a", "trial.csv"]) == 1
    assert f"error: {option} in the record of 'a' cannot be {value!r}; correct it" in capsys.readouterr().err


def test_options_beside_a_record_take_precedence(trial):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    assert main(["fit", "--config", "a", "--depth", "0", "--leaf", "weibull", "--out", "b"]) == 0
    assert (load_model("b").depth_, load_model("b").leaf) == (0, "weibull")


def test_an_option_for_the_outcome_takes_the_place_of_the_recorded_one(trial, capsys):
    """The former columns are no features then, and one that was left out may have a role."""
    table = make_table()
    begin, end = np.zeros(len(table)), table["months"]
    table.assign(begin=begin, end=end, why=table["died"] * (1 + table["id"] % 2)).to_csv("trial.csv", index=False)
    tree = ["--model", "optimal", "--depth", "1"]
    spans = ["--start", "begin", "--stop", "end", "--id", "id", "--event", "died"]
    assert main(["fit", "trial.csv", *spans, "--drop", "months", "status", "why", *tree, "--out", "a"]) == 0
    assert main(["evaluate", "a", "trial.csv"]) == 0
    first = capsys.readouterr().out.splitlines()[-2:]
    assert main(["evaluate", "a", "trial.csv", "--time", "months"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == first
    assert main(["fit", "--config", "a", "--time", "months", "--out", "b"]) == 0
    assert main(["fit", "--config", "a", "--cause", "why", "--drop", "months", "--out", "c"]) == 0
    capsys.readouterr()
    assert load_model("b").feature_names_in_.tolist() == ["age", "arm"]
    assert load_model("c").feature_names_in_.tolist() == ["age", "arm", "status"]
    assert load_model("c").cause_names_ == ("1", "2")


@pytest.mark.parametrize(
    ("event", "options"),
    [("died", ["--event", "late"]), ("state=now=dead", ["--event", "late"]), ("state=now=dead", ["--cause", "late"])],
)
def test_another_column_for_an_outcome_leaves_the_recorded_one_out(trial, event, options):
    """It became a feature, and told the tree the outcome. Its name may hold an equals sign."""
    table = make_table()
    state = np.where(table["died"] == 1, "dead", "alive")
    column = event.rpartition("=")[0] or event
    rest = table.drop(columns=["died", "status", "id"]).assign(late=table["died"], **{column: table["died"]})
    (rest.assign(**{column: state}) if "=" in event else rest).to_csv("trial.csv", index=False)
    fit = ["fit", "trial.csv", "--time", "months", "--event", event, "--drop", "late", "--model", "optimal"]
    assert main([*fit, "--depth", "1", "--out", "a"]) == 0
    assert main(["fit", "--config", "a", *options, "--out", "b"]) == 0
    assert load_model("b").feature_names_in_.tolist() == ["age", "arm"]


def test_a_repeated_run_on_other_rows_says_so(trial, capsys):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    make_table(70).to_csv("trial.csv", index=False)
    assert main(["fit", "--config", "a/run.json"]) == 0
    assert "note: the data differ from the recorded ones (80 rows then, 70 now)" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["evaluate", "--weight", "age"], ["report", "--group", "arm"]])
def test_a_feature_of_the_model_is_no_group_and_no_weight(trial, options, capsys):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    capsys.readouterr()
    command, option, name = options
    assert main([command, "a", "trial.csv", option, name]) == 1
    said = capsys.readouterr().err
    assert f"{option} must name a column that is no feature of 'a', got '{name}'" in said


ODD = [None, True, 3, -1.5, "word", [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("key", ["format", "command", "data", "seed", "versions", "config", "softsurv", "metrics"])
def test_records_with_other_types_are_one_sentence(trial, key, capsys):
    record = {"format": 1, "softsurv": "0", "command": "fit", "config": {}, "seed": 0, "data": {}, "versions": {}}
    for value in ODD:
        (trial / "run.json").write_text(json.dumps(record | {key: value}))
        with suppress(SystemExit):  # wrong usage, where the record is good and names no table
            assert main(["fit", "--config", "run.json"]) == 1
        assert "unexpected" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["data", "time", "drop", "depth", "l2", "model", "progress", "thresholds", "memory"])
def test_options_of_other_types_in_a_record_are_one_sentence(trial, name, capsys):
    config = {"data": "none.csv", "time": "months", "event": "died"}
    for value in ODD:
        record = {"format": 1, "softsurv": "0", "command": "fit", "config": config | {name: value}, "data": None}
        (trial / "run.json").write_text(json.dumps(record))
        with suppress(SystemExit):  # wrong usage, where an option that is needed is None
            assert main(["fit", "--config", "run.json"]) == 1
        assert "unexpected" not in capsys.readouterr().err
