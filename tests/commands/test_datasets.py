"""``softsurv datasets``: the list of data sets, one of them, and its file."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from softsurv import load_dataset
from softsurv.cli import main
from softsurv.data.readers import survival_data


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
    known = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # NaN is no JSON
    assert {row["name"] for row in known} >= {"gbsg2", "whas500"}
    assert None in {row["paper_n"] for row in known}
    assert main(["datasets", "veterans", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == 128


def test_datasets_out_needs_a_name():
    with pytest.raises(SystemExit) as stop:
        main(["datasets", "--out", "x.csv"])
    assert stop.value.code == 2


def test_a_table_of_a_package_that_is_not_there_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "SurvSet.data", None)
    assert main(["datasets", "survset:cancer"]) == 1
    said = capsys.readouterr().err
    assert said == "softsurv: error: this table comes with the package SurvSet: pip install 'softsurv[data]'\n"
    with pytest.raises(ImportError, match="softsurv\\[data\\]"):
        load_dataset("aids2")
