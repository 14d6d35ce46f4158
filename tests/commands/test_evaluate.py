"""``softsurv evaluate``: the measures of a model, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import load_model
from softsurv.cli import main


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
        assert "whole table of the fit: the model was trained on 60 of its 80 rows" in capsys.readouterr().err
    assert "This is the whole table of the fit: the model was trained on 60 of its" in Path("report.html").read_text()


def test_evaluating_where_no_pair_can_be_ordered(trial, model, capsys):
    make_table().assign(months=4.0).to_csv("tied.csv", index=False)
    assert main(["evaluate", model, "tied.csv", *OUTCOME]) == 1
    assert capsys.readouterr().err.startswith("softsurv: error: ")
