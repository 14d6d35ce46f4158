"""The command line: what it writes, its exit codes, and one sentence for every wrong input."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, __version__, load_dataset, load_model
from softsurv.cli import build_parser, main
from softsurv.commands import modules
from softsurv.data.readers import survival_data
from softsurv.hazards import family_names
from softsurv.persistence import read_model

QUICK = ["--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1", "--restarts", "1", "--device", "cpu"]
OUTCOME = ["--time", "months", "--event", "died"]


def make_table(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.arange(n), "age": rng.normal(60, 9, n), "arm": rng.choice(["new", "old"], n)})
    months = 10 * rng.weibull(1.5, n) * np.exp(-(frame["age"] - 60) / 20) + 0.1
    died = rng.random(n) < 0.7
    return frame.assign(months=months, died=died.astype(int), status=np.where(died, "dead", "alive"))


@pytest.fixture
def trial(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a table in it."""
    make_table().to_csv(tmp_path / "trial.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A saved model, trained by the command."""
    folder = tmp_path_factory.mktemp("fit")
    make_table().to_csv(folder / "trial.csv", index=False)
    arguments = [str(folder / "trial.csv"), *OUTCOME, "--drop", "id", "status", *QUICK, "--out", str(folder / "model")]
    assert main(["fit", *arguments]) == 0
    return str(folder / "model")


# -- help -----------------------------------------------------------------------------------------------------------
def test_help_teaches_the_first_steps(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    for word in ("first steps", "softsurv fit", "softsurv predict", "softsurv evaluate", "exit codes"):
        assert word in text


@pytest.mark.parametrize("module", modules(), ids=lambda m: m.__name__.rpartition(".")[2])
def test_every_command_explains_itself_with_an_example(module, capsys):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"softsurv {name} " in text.split("usage:")[1]
    assert "example" in text or "by hand" in text
    assert "``" not in text


def test_the_help_of_fit_names_every_leaf_family(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = capsys.readouterr().out
    assert [name for name in family_names() if name not in text] == []


def test_no_arguments_show_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert "first steps:" in out
    assert err == ""


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"softsurv {__version__}\n"


@pytest.mark.parametrize("arguments", [["fti"], ["fit"], ["fit", "a.csv", "--time", "t"], ["predict", "--times", "x"]])
def test_wrong_usage_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: softsurv" in capsys.readouterr().err


def test_building_the_parser_imports_nothing_heavy():
    code = (
        "import sys; from softsurv.cli import build_parser; build_parser(); "
        "print([m for m in ('torch', 'pandas', 'sksurv', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", ["softsurv", "softsurv.cli"])
def test_both_modules_run(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"softsurv {__version__}\n"


# -- fit ------------------------------------------------------------------------------------------------------------
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


def test_a_value_marks_the_event(trial):
    common = ["fit", "trial.csv", "--time", "months", *QUICK, "--drop", "id"]
    assert main([*common, "status", "--event", "died", "--out", "a"]) == 0
    assert main([*common, "died", "--event", "status=dead", "--out", "b"]) == 0
    rows = make_table()
    assert np.array_equal(load_model("a").predict(rows), load_model("b").predict(rows))


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


def test_warnings_are_notes_of_one_line(trial, capsys):
    make_table().assign(months=lambda t: t["months"].where(t.index > 0, 0.0)).to_csv("zero.csv", index=False)
    assert main(["fit", "zero.csv", *OUTCOME, "--drop", "id", "status", *QUICK]) == 0
    assert capsys.readouterr().err == (
        "softsurv: note: time is 0 in 1 of 80 rows; soft trees take half the smallest positive time instead\n"
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


def test_options_beside_a_record_take_precedence(trial):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    assert main(["fit", "--config", "a", "--depth", "0", "--leaf", "weibull", "--out", "b"]) == 0
    assert (load_model("b").depth_, load_model("b").leaf) == (0, "weibull")


def test_a_repeated_run_on_other_rows_says_so(trial, capsys):
    assert main(["fit", "trial.csv", *OUTCOME, "--drop", "id", "status", *QUICK, "--out", "a"]) == 0
    make_table(70).to_csv("trial.csv", index=False)
    assert main(["fit", "--config", "a/run.json"]) == 0
    assert "note: the data differ from the recorded ones (80 rows then, 70 now)" in capsys.readouterr().err


# -- predict and evaluate -------------------------------------------------------------------------------------------
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


def test_predict_writes_to_the_screen_without_out(trial, model, capsys):
    assert main(["predict", model, "trial.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "leaf,risk,median"
    assert len(lines) == 81


def test_evaluate_prints_what_the_model_says(trial, model, capsys):
    assert main(["evaluate", model, "trial.csv", *OUTCOME, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    rows = make_table()
    expected = load_model(model).evaluate(rows, (rows["died"], rows["months"]))
    expected = json.loads(json.dumps(expected))  # a sum may differ in the last bit from run to run
    assert result.keys() == expected.keys()
    for name, value in expected.items():
        assert result[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name
    assert main(["evaluate", model, "trial.csv", *OUTCOME]) == 0
    assert f"{expected['harrell_c']:.3f}" in capsys.readouterr().out


def test_evaluate_takes_late_entry_and_says_what_it_means(trial, model, capsys):
    rows = make_table().assign(late=lambda t: 0.9 * t["months"])
    rows.to_csv("late.csv", index=False)
    assert main(["evaluate", model, "late.csv", *OUTCOME, "--entry", "late", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "late entry" not in err
    expected = load_model(model).score(rows, (rows["died"], rows["months"]), entry=rows["late"])
    assert json.loads(out)["harrell_c"] == pytest.approx(expected)


def test_measures_on_rows_of_the_fit_are_called_so(trial, model, capsys):
    """The same rows in the same leaves; the table of a fit that held some rows out; and neither for other rows."""
    assert main(["evaluate", model, "trial.csv", *OUTCOME, "--drop", "id", "status"]) == 0
    assert "looks like the rows that the model was trained on" in capsys.readouterr().err
    make_table(81).to_csv("other.csv", index=False)
    assert main(["evaluate", model, "other.csv", *OUTCOME]) == 0
    assert "trained" not in capsys.readouterr().err
    columns = [*OUTCOME, "--drop", "id", "status"]
    assert main(["fit", "trial.csv", *columns, *QUICK, "--test-size", "0.25", "--out", "part"]) == 0
    capsys.readouterr()
    for command in (["evaluate", "part", "trial.csv"], ["report", "part", "trial.csv", "--bootstrap", "20"]):
        assert main(command) == 0
        assert "whole table of the fit, the model was trained on 60 of its 80 rows" in capsys.readouterr().err


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_without_commas_is_told_so(mark, word, trial, capsys):
    """As spreadsheets save it in countries that write decimal commas."""
    make_table().to_csv("other.csv", index=False, sep=mark, decimal=",")
    assert main(["fit", "other.csv", *OUTCOME]) == 1
    assert f"comma separated, got {word} in 'other.csv'; save it with commas and decimal" in capsys.readouterr().err


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


# -- datasets -------------------------------------------------------------------------------------------------------
def test_datasets_lists_them(capsys):
    assert main(["datasets"]) == 0
    text = capsys.readouterr().out
    for name in ("aids", "gbsg2", "unemployment", "whas500"):
        assert f"\n{name} " in text


def test_datasets_tells_of_one_and_saves_it(trial, capsys):
    assert main(["datasets", "veterans", "--out", "v.csv"]) == 0
    assert "veterans: 137 rows, 6 features, 128 events" in capsys.readouterr().out
    assert pd.read_csv("v.csv").shape == (137, 8)
    assert main(["datasets", "veterans", "--out", "v.parquet"]) == 0
    assert pd.read_parquet("v.parquet").shape == (137, 8)


@pytest.mark.parametrize("name", ["survset:follic", "survset:heart"])
def test_datasets_saves_event_histories_as_they_are_read(trial, name):
    assert main(["datasets", name, "--out", "h.csv"]) == 0
    data, outcome = load_dataset(name), {"time": "time"}
    if data.subject is not None:
        outcome = {"id": "id", "start": "start", "stop": "stop"}
    outcome["event" if data.cause is None else "cause"] = "event" if data.cause is None else "cause"
    saved = survival_data("h.csv", **outcome)
    np.testing.assert_allclose(saved.time, data.time, rtol=1e-14)
    np.testing.assert_array_equal(saved.event, data.event)
    assert (saved.summary()["causes"], saved.n_subjects) == (data.summary()["causes"], data.n_subjects)


def test_datasets_as_json(capsys):
    assert main(["datasets", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"gbsg2", "whas500"}
    assert main(["datasets", "veterans", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == 128


def test_datasets_out_needs_a_name():
    with pytest.raises(SystemExit) as stop:
        main(["datasets", "--out", "x.csv"])
    assert stop.value.code == 2


# -- one sentence for every wrong input -----------------------------------------------------------------------------
FIT = ["fit", "trial.csv", "--drop", "id", "status", *QUICK]
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
    "semicolons": (["fit", "semi.csv", *OUTCOME], "must be comma separated"),
    "wrong column": (
        [*FIT, "--time", "month", "--event", "died"],
        "--time must name a column of DATA, got 'month'; did you mean 'months'? It has id, age, arm, months, died",
    ),
    "wrong drop": (
        [*FIT[:2], *OUTCOME, "--drop", "Id"],
        "--drop must name a column of DATA, got 'Id'; did you mean 'id'?",
    ),
    "text as time": ([*FIT, "--time", "arm", "--event", "died"], "time must be numbers, got '"),
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
    "one column twice": ([*FIT, "--time", "died", "--event", "died"], "--time and --event both name the column 'died'"),
    "negative time": (["fit", "negative.csv", *OUTCOME], "time must be finite and >= 0, got -3 at row 5; drop the row"),
    "missing time": (["fit", "missing.csv", *OUTCOME], "time must be finite and >= 0, got nan at row 5"),
    "missing event": (["fit", "unknown.csv", *OUTCOME], "event must be known, got nan at row 5"),
    "no events": (["fit", "none.csv", *OUTCOME], "event must be True in at least one row, got none in 80 rows"),
    "only zero times": (["fit", "zeros.csv", *OUTCOME], "time must be > 0 in at least one row, got only zeros"),
    "infinite feature": (["fit", "infinite.csv", *OUTCOME], "X must be finite or missing"),
    "unknown leaf": ([*FIT, *OUTCOME, "--leaf", "cauchy"], "leaf must be one of exponential, weibull"),
    "wrong depth": ([*FIT, *OUTCOME, "--depth", "-1"], "depth must be"),
    "wrong test size": ([*FIT, *OUTCOME, "--test-size", "2"], "test_size must be"),
    "output is a file": ([*FIT, *OUTCOME, "--out", "trial.csv"], "--out must be a folder, got the file"),
    "no model": (["predict", "nowhere", "trial.csv"], "'nowhere' holds no model"),
    "unknown model": (
        ["compare", *FIT[1:2], *OUTCOME, "--models", "coxx"],
        "got 'coxx'; did you mean 'cox'? There are",
    ),
    "no data set": (["datasets", "gbsg3"], "name must be one of aids"),
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
    table.to_csv("semi.csv", index=False, sep=";")
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


def test_a_place_that_cannot_be_written_is_said_before_the_fit(trial, monkeypatch, capsys):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert main([*FIT, *OUTCOME, "--out", "deep/er"]) == 1
    assert "--out must be writable, got 'deep/er'" in capsys.readouterr().err
    assert main(["predict", "m", "trial.csv", "--out", "p.csv"]) == 1
    assert "--out must be writable, got 'p.csv'" in capsys.readouterr().err


# -- dirty tables ---------------------------------------------------------------------------------------------------
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
    assert main(["predict", "m", "dirty.csv"]) == 1
    assert "column 'age' must be numbers, got 'unknown' at row 7" in capsys.readouterr().err
    assert main(["predict", "m", "dirty.csv", "--missing-values", "unknown"]) == 0
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
    assert "column 'id' looks like the number of the row; leave it out with --drop id" in notes[2]
    assert "column 'site' is left out: it holds 4 in every row" in notes[3]
    assert load_model("m").preprocessor_.dropped_ == {"site": "constant", "patient": "identifier"}


def test_a_formula_is_not_passed_through(trial, model):
    ids = ["=1+1", "@a", "-3", "x", "a\r=1", "\r\n=1", "\uff1d1", "\t=1"]
    make_table().assign(id=ids * 10).to_csv("ids.csv", index=False, quoting=csv.QUOTE_ALL)
    assert main(["predict", model, "ids.csv", "--id", "id", "--out", "p.csv"]) == 0
    written = pd.read_csv("p.csv", dtype=str)["id"].tolist()
    assert written == ["'=1+1", "'@a", "-3", "x", "a\n=1", "'\n=1", "'\uff1d1", "'\t=1"] * 10


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


def test_evaluating_where_no_pair_can_be_ordered(trial, model, capsys):
    make_table().assign(months=4.0).to_csv("tied.csv", index=False)
    assert main(["evaluate", model, "tied.csv", *OUTCOME]) == 1
    assert capsys.readouterr().err.startswith("softsurv: error: ")


def test_an_option_of_the_other_tree(trial, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*FIT, *OUTCOME, "--objective", "ibs"])
    assert stop.value.code == 2
    assert "--objective is no option of --model soft" in capsys.readouterr().err


def test_debug_shows_where(wrong):
    with pytest.raises(ValueError, match="event must be True"):
        main(["fit", "none.csv", *OUTCOME, "--debug"])


def test_an_unforeseen_error_asks_for_a_report(trial, model, monkeypatch, capsys):
    def fail(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("softsurv.estimators.soft.tree.SoftSurvivalTree.apply", fail)
    assert main(["predict", model, "trial.csv"]) == 1
    assert "unexpected ZeroDivisionError: division by zero; run again with --debug" in capsys.readouterr().err


def test_a_reader_that_stops_reading():
    """A pipe that nobody reads any more, as with ``softsurv datasets | head -1``."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "softsurv", "datasets"], stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_keeps_the_best_tree_so_far_and_ends_with_130(trial):
    slow = ["--depth", "4", "--restarts", "60", "--solver", "nodec", "--max-iter", "5000", "--verbose"]
    command = [sys.executable, "-m", "softsurv", *FIT, *OUTCOME, *slow, "--out", "m"]
    for wait in (1.5, 6, 24):  # a busy machine may take longer until the fit has begun
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        assert "80 rows" in run.stdout.readline()
        time.sleep(wait)
        run.send_signal(signal.SIGINT)
        text, _ = run.communicate(timeout=60)
        assert run.returncode == 130
        if "interrupted after" in text:
            break
    assert "interrupted after" in text
    assert load_model(trial / "m").report_.status == "interrupted"


def test_the_parser_knows_every_command_by_its_file():
    folder = Path(sys.modules["softsurv.commands"].__path__[0])
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert {module.__name__.rpartition(".")[2] for module in modules()} == files
    assert build_parser().prog == "softsurv"


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


def test_a_report_without_a_library_of_pictures_names_the_extra(monkeypatch, capsys, tmp_path):
    """A module that is None in `sys.modules` is one that cannot be imported."""
    train = load_dataset("veterans")
    OptimalSurvivalTree(max_depth=1).fit(train).save(tmp_path / "model")
    train.X.assign(time=train.time.numpy(), event=train.event.numpy().astype(int)).to_csv(tmp_path / "rows.csv")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("softsurv.explore")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = ["report", str(tmp_path / "model"), str(tmp_path / "rows.csv"), "--time", "time", "--event", "event"]
    assert main([*command, "--out", str(tmp_path / "report.html")]) == 1
    assert "pip install 'softsurv[explore]'" in capsys.readouterr().err


def test_a_table_of_a_package_that_is_not_there_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "SurvSet.data", None)
    assert main(["datasets", "survset:cancer"]) == 1
    said = capsys.readouterr().err
    assert said == "softsurv: error: this table comes with the package SurvSet: pip install 'softsurv[data]'\n"
    with pytest.raises(ImportError, match="softsurv\\[data\\]"):
        load_dataset("aids2")
