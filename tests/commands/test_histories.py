"""The command line on event histories: causes, subjects with several rows, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softsurv import load_model
from softsurv.cli import main
from softsurv.data.readers import survival_data
from softsurv.tune import StudyObjective

TREE = ["--model", "optimal", "--depth", "1"]
ROWS = ["--start", "from", "--stop", "to", "--id", "who"]


def causes_table(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"who": [f"p{k}" for k in range(n)], "age": rng.normal(60, 9, n), "arm": rng.choice(["a", "b"], n)}
    )
    months = np.round(10 * rng.weibull(1.5, n) * np.exp(-(frame["age"] - 60) / 20) + 0.1, 2)
    why = rng.choice(["0", "relapse", "death"], n, p=[0.3, 0.4, 0.3])
    return frame.assign(months=months, why=why)


def visits_table():
    """Two rows for each patient, with another age in the second."""
    rows = causes_table()
    middle = np.round(rows["months"] / 2, 2).clip(lower=0.01)
    first = rows.assign(**{"from": 0.0, "to": middle, "why": "0"})
    second = rows.assign(**{"from": middle, "to": rows["months"] + 0.01, "age": rows["age"] + 1})
    return pd.concat([first, second], ignore_index=True).drop(columns="months")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, and a model of each, trained by the command."""
    folder = tmp_path_factory.mktemp("histories")
    causes_table().to_csv(folder / "causes.csv", index=False)
    visits_table().to_csv(folder / "visits.csv", index=False)
    of_causes = ["--time", "months", "--cause", "why", "--drop", "who", *TREE, "--test-size", "0.3"]
    assert main(["fit", str(folder / "causes.csv"), *of_causes, "--out", str(folder / "model")]) == 0
    of_visits = [*ROWS, "--cause", "why", *TREE, "--out", str(folder / "path-model")]
    assert main(["fit", str(folder / "visits.csv"), *of_visits]) == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_codes_of_missing_values_are_none_of_starts_and_subjects(here):
    """--missing-values 0 took the start of every first row for missing."""
    table = visits_table().assign(who=lambda rows: rows["who"].str[1:].astype(int), age=0)
    table.to_csv("zeros.csv", index=False)
    command = ["predict", "path-model", "zeros.csv", *ROWS, "--times", "5", "--missing-values", "0", "--out", "p.csv"]
    assert main(command) == 0
    assert pd.read_csv("p.csv")["who"].tolist() == list(range(120))


def test_fit_learns_the_causes_by_name(here, capsys):
    model = load_model("model")
    assert model.cause_names_ == ("death", "relapse")
    assert set(model.feature_names_in_) == {"age", "arm"}
    record = json.loads(Path("model/run.json").read_text())
    assert record["config"]["cause"] == "why"
    assert set(record["metrics"]["causes"]) == {"death", "relapse"}
    assert main(["fit", "--config", "model/run.json", "--out", "again"]) == 0
    assert "causes death (" in capsys.readouterr().out


def test_evaluate_has_a_line_for_each_cause(here, capsys):
    outcome = ["--time", "months", "--cause", "why"]
    assert main(["evaluate", "model", "causes.csv", *outcome]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["cause", "concordance", "auc", "ibs", "events"] for line in lines)
    assert {line.split()[0] for line in lines if line} >= {"death", "relapse"}
    assert main(["evaluate", "model", "causes.csv", *outcome, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "model", "causes.csv", "--json"]) == 0  # the record of the fit names the columns
    assert json.loads(capsys.readouterr().out) == result
    rows = causes_table().drop(columns="who")
    assert result["causes"] == load_model("model").evaluate(rows, time="months", cause="why")["causes"]


def test_a_cause_that_the_test_rows_lack_changes_no_code(here, capsys):
    causes_table().query("why != 'death'").to_csv("few.csv", index=False)
    assert main(["evaluate", "model", "few.csv", "--time", "months", "--cause", "why", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["causes"]
    assert (result["death"]["events"], result["death"]["concordance"]) == (0, None)
    assert result["relapse"]["events"] > 0


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
def test_visits_are_measured_at_risk(here, capsys):
    assert main(["evaluate", "path-model", "visits.csv"]) == 0
    out = capsys.readouterr().out
    assert " -  " in out
    assert "240 rows of 120 subjects, " in out


def test_predict_has_the_incidence_of_each_cause(here):
    assert main(["predict", "model", "causes.csv", "--times", "5", "10", "--id", "who", "--out", "p.csv"]) == 0
    found, model = pd.read_csv("p.csv"), load_model("model")
    names = [f"incidence_{name}_{time}" for name in ("death", "relapse") for time in (5, 10)]
    assert list(found)[-4:] == names
    np.testing.assert_allclose(found["survival_5"] + found[names[0]] + found[names[2]], 1, atol=1e-9)
    assert main(["predict", "model", "causes.csv", "--times", "5", "--cause", "2", "--out", "p.csv"]) == 0
    one = pd.read_csv("p.csv")
    assert list(one)[-1] == "incidence_relapse_5"
    np.testing.assert_allclose(one["risk"], model.predict(causes_table(), cause="relapse"))


def test_predict_follows_a_path(here, capsys):
    assert main(["predict", "path-model", "visits.csv", *ROWS, "--times", "5", "10", "--out", "p.csv"]) == 0
    assert "120 predictions in p.csv" in capsys.readouterr().out
    found, rows = pd.read_csv("p.csv"), visits_table().drop(columns="why")
    assert found["who"].tolist() == rows["who"].unique().tolist()
    expected = load_model("path-model").predict_path(rows, "from", "to", "who", times=[5.0, 10.0], cause="death")
    np.testing.assert_allclose(found[["incidence_death_5", "incidence_death_10"]], expected)


def test_predictions_are_not_called_what_they_are_not(here, capsys):
    assert main(["predict", "model", "causes.csv", "--out", "p.parquet"]) != 0
    assert "--out must be a .csv file, got 'p.parquet'" in capsys.readouterr().err
    assert not Path("p.parquet").exists()


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
@pytest.mark.parametrize("kind", [["--model", "optimal", "--depth", "1"], ["--depth", "1", "--leaf", "exponential"]])
def test_events_that_recur_have_mean_counts(here, kind):
    rows = visits_table()
    rows.assign(again=(rows["why"] != "0") | (rows["from"] == 0)).drop(columns="why").to_csv("again.csv", index=False)
    assert main(["fit", "again.csv", *ROWS, "--event", "again", "--recurrent", *kind, "--out", "often"]) == 0
    assert main(["predict", "often", "again.csv", "--times", "5", "10", "--out", "p.csv"]) == 0
    found, model = pd.read_csv("p.csv"), load_model("often")
    np.testing.assert_allclose(found[["mean_count_5", "mean_count_10"]], model.predict_mean_count(rows, [5.0, 10.0]))


@pytest.mark.filterwarnings("ignore::softsurv.errors.EvaluationWarning")
def test_tune_keeps_subjects_whole(here, capsys):
    study = ["--model", "optimal", "--trials", "2", "--folds", "3", "--set", "max_depth=1,2", "--no-progress"]
    outcome = [*ROWS, "--cause", "why", "--measures", "harrell_c"]
    assert main(["tune", "visits.csv", *outcome, *study, "--out", "study"]) == 0
    assert load_model("study/model").cause_names_ == ("death", "relapse")
    assert main(["tune", "visits.csv", *ROWS, "--cause", "why", *study, "--out", "other"]) == 1
    assert "measures must be harrell_c alone where features change" in capsys.readouterr().err


def test_tune_measures_the_cause_of_interest(here, capsys):
    study = ["--model", "optimal", "--trials", "2", "--folds", "2", "--set", "max_depth=1", "--no-progress"]
    outcome = ["--time", "months", "--cause", "why", "--drop", "who", "--measures", "ibs", "--interest"]
    assert main(["tune", "causes.csv", *outcome, "relapse", *study, "--out", "interest"]) == 0
    config = json.loads(Path("interest/model/run.json").read_text())["config"]
    assert config["interest"] == "relapse"
    assert main(["tune", "causes.csv", *outcome, "2", *study, "--out", "interest"]) == 0  # the same cause: nothing left
    capsys.readouterr()
    assert main(["tune", "causes.csv", *outcome, "other", *study, "--out", "no"]) == 1
    assert "one of the names ['death', 'relapse'], got 'other'" in capsys.readouterr().err


def test_folds_of_a_study_are_by_subject_whatever_the_order_of_rows():
    data = survival_data(visits_table(), start="from", stop="to", cause="why", id="who")
    goal = StudyObjective(data, "optimal", n_folds=4)
    mixed = StudyObjective(data.take(np.random.default_rng(0).permutation(data.n)), "optimal", n_folds=4)
    for (train, test), (_, other) in zip(goal._rows, mixed._rows, strict=True):
        subjects = [set(goal.data.subject[rows].tolist()) for rows in (train, test)]
        assert not subjects[0] & subjects[1]
        assert set(mixed.data.subject[other].tolist()) == subjects[1]


WRONG_USE = {
    "no time": (["fit", "causes.csv", "--cause", "why"], "required: --time (or --stop)"),
    "no event": (["fit", "causes.csv", "--time", "months"], "required: --event (or --cause)"),
    "both": (
        ["tune", "causes.csv", "--time", "months", "--cause", "why", "--event", "why"],
        "say the same; leave one out",
    ),
    "start alone": (["fit", "causes.csv", "--time", "to", "--start", "from", "--cause", "why"], "--start needs --stop"),
    "recurrent": (["fit", "causes.csv", "--time", "months", "--cause", "why", "--recurrent"], "--recurrent needs --id"),
    "half a path": (
        ["predict", "path-model", "visits.csv", "--stop", "to"],
        "a path needs --start, --stop, --id",
    ),
    "chunks": (
        ["predict", "path-model", "visits.csv", *ROWS, "--times", "5", "--chunk-rows", "9"],
        "--chunk-rows may cut a subject's rows apart",
    ),
    "streamed causes": (
        ["fit", "causes.csv", "--time", "months", "--cause", "why", "--memory", "1GB"],
        "--cause is no option with --memory",
    ),
    "streamed visits": (
        ["fit", "visits.csv", *ROWS, "--event", "why=death", "--memory", "1GB"],
        "is no option with --memory",
    ),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_wrong_use_ends_with_two(here, capsys, case):
    arguments, words = WRONG_USE[case]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


WRONG_INPUT = {
    "unknown cause": (
        ["predict", "model", "causes.csv", "--cause", "other"],
        "one of the names ['death', 'relapse'], got 'other'",
    ),
    "no column": (
        ["fit", "causes.csv", "--time", "months", "--cause", "wy"],
        "--cause must name a column of DATA, got 'wy'; did you mean 'why'?",
    ),
    "no subject": (
        ["fit", "visits.csv", *ROWS[:-1], "whom", "--cause", "why"],
        "--id must name a column of DATA, got 'whom'",
    ),
}


@pytest.mark.parametrize("case", WRONG_INPUT)
def test_wrong_input_is_one_sentence(here, capsys, case):
    arguments, words = WRONG_INPUT[case]
    assert main(arguments) == 1
    assert words in capsys.readouterr().err


def test_the_report_measures_each_cause(here):
    assert main(["report", "model", "causes.csv", "--bootstrap", "20", "--out", "r.html"]) == 0
    page, model = Path("r.html").read_text(encoding="utf-8"), load_model("model")
    result = model.evaluate(causes_table().drop(columns="who"), time="months", cause="why")
    assert "Measures by cause" in page
    for found in result["causes"].values():
        assert f"{found['ibs']:.3f}" in page


def test_the_report_of_visits_declines_what_needs_one_row_each(here):
    assert main(["report", "path-model", "visits.csv", "--bootstrap", "20", "--out", "r.html"]) == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "240 rows of 120 subjects" in page
    assert re.search(r">subjects</th><td[^>]*>120</td>", page)
    assert "need one row for each subject and are left out" in page
    assert "Measures by cause" not in page
