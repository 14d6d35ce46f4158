"""``softsurv fit``: what it writes and records, dirty tables, and what cannot be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from oracles.trial import FIT, OUTCOME, QUICK, make_table

from softsurv import load_model
from softsurv.cli import main
from softsurv.hazards import family_names


def test_the_help_of_fit_names_every_leaf_family(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = capsys.readouterr().out
    assert [name for name in family_names() if name not in text] == []


def test_fit_prints_the_tree_and_saves_it(trial, capsys):
    code = main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--test-size", "0.25"])
    text = capsys.readouterr().out
    assert code == 0
    assert "trial.csv: 80 rows, 2 features" in text
    assert "soft tree of depth 1 with loglogistic leaves: converged" in text
    assert "leaf 0:" in text
    assert "held out" in text
    assert "harrell_c" in text
    assert f"model: {trial / 'trial-model'}" in text
    loaded = load_model(trial / "trial-model")
    assert list(loaded.feature_names_in_) == ["age", "arm"]
    assert int(loaded.leaf_table_.n.sum()) == 60


def test_fit_passes_every_option_on(trial):
    given = ["--leaf", "spline_ph", "--n-knots", "1", "--solver", "nodec", "--init", "kmeans", "--max-iter", "3"]
    more = ["--l1", "0.5", "--dtype", "float32", "--seed", "7", "--time-limit", "60", "--fairness", "0.1", "--progress"]
    columns = ["--group", "arm", "--weight", "id", "--drop", "status"]
    assert main(["fit", "trial.csv", *OUTCOME, *columns, *QUICK, *given, *more, "--out", "m"]) == 0
    wanted = {"leaf": "spline_ph", "n_knots": 1, "solver": "nodec", "init": "kmeans", "max_iter": 3, "l1": 0.5}
    wanted |= {"dtype": "float32", "random_state": 7, "time_limit": 60.0, "fairness": 0.1, "n_restarts": 1, "depth": 1}
    parameters = load_model("m").get_params()
    assert {name: parameters[name] for name in wanted} == wanted
    assert list(load_model("m").feature_names_in_) == ["age"]


def test_the_model_knows_the_columns_of_the_outcome_in_python(trial):
    common = ["fit", "trial.csv", "--time", "months", *QUICK, "--drop", "id"]
    assert main([*common, "status", "--event", "died", "--out", "a"]) == 0
    model, table = load_model("a"), pd.read_csv("trial.csv")
    assert model.outcome_columns_ == {"time": "months", "event": "died"}
    assert model.evaluate(table) == model.evaluate(table, time="months", event="died")
    assert main([*common, "died", "--event", "status=dead", "--out", "b"]) == 0
    assert load_model("b").outcome_columns_ == {}  # the column itself is no indicator


def test_a_value_marks_the_event(trial):
    common = ["fit", "trial.csv", "--time", "months", *QUICK, "--drop", "id"]
    assert main([*common, "status", "--event", "died", "--out", "a"]) == 0
    assert main([*common, "died", "--event", "status=dead", "--out", "b"]) == 0
    rows = make_table()
    assert np.array_equal(load_model("a").predict(rows), load_model("b").predict(rows))


def test_a_value_with_an_equals_sign_marks_the_event(trial):
    """It was cut at the last sign, and the column was said to be missing."""
    words = {"dead": "2 = dead", "alive": "1 = alive"}
    make_table().drop(columns="died").replace({"status": words}).to_csv("coded.csv", index=False)
    common = ["fit", "coded.csv", "--time", "months", "--event", "status=2 = dead", "--drop", "id"]
    assert main([*common, *QUICK, "--test-size", "0.25"]) == 0
    assert load_model("coded-model").leaf_table_.events.sum() > 0
    assert main(["evaluate", "coded-model", "coded.csv"]) == 0


def test_numeric_codes_mark_the_event_too(trial):
    make_table().assign(code=lambda t: t["died"] + 1).drop(columns=["died", "status"]).to_csv("coded.csv", index=False)
    assert main(["fit", "coded.csv", "--time", "months", "--event", "code=2", *QUICK]) == 0
    assert load_model("coded-model").leaf_table_.events.sum() == make_table()["died"].sum()


def test_late_entry_and_intervals(trial):
    table = make_table().assign(late=lambda t: t["months"] / 3, until=np.inf)
    table.loc[table["died"] == 0, "until"] = table["months"] + 2
    table.drop(columns="status").to_parquet("trial.parquet")
    columns = ["--entry", "late", "--upper", "until", "--drop", "id"]
    assert main(["fit", "trial.parquet", *OUTCOME, *columns, *QUICK, "--out", "m"]) == 0
    assert list(load_model("m").feature_names_in_) == ["age", "arm"]


def test_a_table_without_censoring_is_fitted_and_noted(trial, capsys):
    make_table().assign(died=1).to_csv("all.csv", index=False)
    assert main(["fit", "all.csv", *OUTCOME, "--drop", "id", "status", *QUICK]) == 0
    assert "Every row has its event, none is censored; if that is not so, check --event." in capsys.readouterr().out
    causes = ["--time", "months", "--cause", "died", "--drop", "id", "status", "--model", "optimal", "--depth", "1"]
    assert main(["fit", "all.csv", *causes]) == 0
    assert "if that is not so, check --cause." in capsys.readouterr().out


def test_warnings_are_notes_of_one_line(trial, capsys):
    make_table().assign(months=lambda t: t["months"].where(t.index > 0, 0.0)).to_csv("zero.csv", index=False)
    assert main(["fit", "zero.csv", *OUTCOME, "--drop", "id", "status", *QUICK]) == 0
    assert capsys.readouterr().err == (
        "softsurv: note: time is 0 in 1 of 80 rows: soft trees, whose leaves are models of log time, take half the "
        "smallest positive time instead; optimal trees take 0\n"
    )


def test_an_optimal_tree(trial, capsys):
    options = ["--model", "optimal", "--depth", "2", "--min-samples-leaf", "8", "--thresholds", "3", "--leaf", "km"]
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *options, "--out", "m"]) == 0
    assert "optimal tree for relative_risk: optimal after" in capsys.readouterr().out
    parameters = load_model("m").get_params()
    assert (parameters["max_depth"], parameters["thresholds"], parameters["leaf"]) == (2, 3, "km")
    assert main(["predict", "m", "trial.csv", "--times", "5", "--out", "p.csv"]) == 0
    assert pd.read_csv("p.csv")["survival_5"].between(0, 1).all()
    assert main(["evaluate", "m", "trial.csv", *OUTCOME]) == 0
    assert main(["fit", "--config", "m", "--thresholds", "all", "--out", "all"]) == 0
    assert load_model("all").thresholds == "all"


def test_another_kind_of_tree_takes_the_columns_of_a_run(trial):
    columns = ["--drop", "id", "status", "--test-size", "0.25"]
    assert main(["fit", "trial.csv", *OUTCOME, *columns, *QUICK, "--out", "a"]) == 0
    assert main(["fit", "--config", "a", "--model", "optimal", "--depth", "2", "--out", "b"]) == 0
    record = json.loads((trial / "b" / "run.json").read_text())
    assert record["metrics"]["n"] == 20
    assert record["config"]["depth"] == 2
    assert "solver" not in record["config"]


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_without_commas_is_told_so(mark, word, trial, capsys):
    """As spreadsheets save it in countries that write decimal commas."""
    make_table().to_csv("other.csv", index=False, sep=mark, decimal=",")
    assert main(["fit", "other.csv", *OUTCOME]) == 1
    assert f"comma separated, got {word} in 'other.csv'; save it with commas and decimal" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_said_before_the_fit(trial, monkeypatch, capsys):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert main([*FIT, *OUTCOME, "--out", "deep/er"]) == 1
    assert "--out must be writable, got 'deep/er'" in capsys.readouterr().err
    assert main(["predict", "m", "trial.csv", "--out", "p.csv"]) == 1
    assert "--out must be writable, got 'p.csv'" in capsys.readouterr().err


def test_one_dirty_cell_is_asked_about(trial, capsys):
    table = make_table().astype({"age": object})
    table.loc[7, "age"] = "unknown"
    table.to_csv("dirty.csv", index=False)
    command = ["fit", "dirty.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "m"]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert "column 'age' must hold numbers or categories, got numbers and 'unknown' in 1 cell" in error
    assert "--missing-values unknown" in error
    assert main([*command, "--missing-values", "unknown"]) == 0
    model = load_model("m")
    assert model.preprocessor_.columns_[0].kind == "number"
    assert main(["fit", "--config", "m/run.json", "--out", "again"]) == 0
    assert main(["predict", "m", "dirty.csv", "--missing-values", "other"]) == 1
    assert "column 'age' must be numbers, got 'unknown' at row 7" in capsys.readouterr().err
    assert main(["predict", "m", "dirty.csv"]) == 0  # the record of the fit knows what means missing
    assert main([*command, "--categorical", "age"]) == 0
    assert {column.kind for column in load_model("m").preprocessor_.columns_} == {"level"}


def test_two_columns_of_one_name_are_refused(trial, capsys):
    lines = (trial / "trial.csv").read_text().splitlines()
    rows = [f"{line},{line.split(',')[3]}" for line in lines]
    (trial / "twice.csv").write_text("\n".join(rows))
    assert main(["fit", "twice.csv", *OUTCOME]) == 1
    assert "X must have unique column names, got 'months' twice in 'twice.csv'" in capsys.readouterr().err
    streamed = ["--memory", "1MB", "--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1"]
    assert main(["fit", "twice.csv", *OUTCOME, *streamed]) == 1
    assert "must have unique column names, got 'months' twice" in capsys.readouterr().err


def test_columns_that_tell_nothing_are_named(trial, capsys):
    table = make_table()
    table = table.assign(site=4.0, patient=[f"P{k:03d}" for k in range(len(table))]).drop(columns="status")
    table.to_csv("wide.csv")
    assert main(["fit", "wide.csv", *OUTCOME, *QUICK, "--out", "m"]) == 0
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 4
    assert notes[0].startswith("softsurv: note: column 1 of 'wide.csv' has no name and is left out")
    assert "column 'patient' is left out: each of its 80 values occurs once" in notes[1]
    assert "column 'id' is left out: it counts the rows" in notes[2]
    assert "column 'site' is left out: it holds 4 in every row" in notes[3]
    model = load_model("m")
    assert model.preprocessor_.dropped_ == {"site": "constant", "patient": "identifier"}
    assert "id" not in model.feature_names_in_
    assert main(["evaluate", "m", "wide.csv"]) == 0
    assert "the rows that the model was trained on" in capsys.readouterr().err


def test_an_option_of_the_other_tree(trial, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*FIT, *OUTCOME, "--objective", "ibs"])
    assert stop.value.code == 2
    assert "--objective is no option of --model soft" in capsys.readouterr().err


def test_ctrl_c_keeps_the_best_tree_so_far_and_ends_with_130(trial, usual_ctrl_c):
    deep = [*FIT, *OUTCOME, "--depth", "4", "--solver", "nodec"]
    assert main([*deep, "--max-iter", "1", "--out", "compiled"]) == 0  # a Ctrl-C while code is compiled ends the fit
    slow = ["--restarts", "600", "--max-iter", "5000", "--verbose"]
    command = [sys.executable, "-m", "softsurv", *deep, *slow, "--out", "m"]
    for wait in (1.5, 3, 5, 8, 12, 17, 24):  # a busy machine may take longer until the fit has begun
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        assert "80 rows" in run.stdout.readline()
        time.sleep(wait)
        run.send_signal(signal.SIGINT)
        text, _ = run.communicate(timeout=600)
        assert run.returncode == 130
        if "interrupted after" in text:
            break
    assert "interrupted after" in text
    assert load_model(trial / "m").report_.status == "interrupted"


def test_a_model_whose_held_out_rows_cannot_be_measured_is_saved(trial, capsys):
    """As where inspections tell of every event only that it lies between two of them."""
    rows = make_table().assign(up=lambda t: np.where(t["died"] == 1, t["months"] + 5, np.inf), died=0)
    rows.to_csv("rows.csv", index=False)
    how = [*OUTCOME, "--upper", "up", "--drop", "id", "status", "--test-size", "0.25"]
    assert main(["fit", "rows.csv", *how, *QUICK, "--leaf", "weibull", "--out", "m"]) == 0
    said = capsys.readouterr().err
    assert "the rows held out were not measured: every event is known only to lie in an interval" in said
    assert load_model("m").depth_ == 1
    assert main(["evaluate", "m", "rows.csv"]) == 1
    assert "judge a soft tree by tree.log_likelihood(data)" in capsys.readouterr().err
