"""``softsurv report``: late entry and intervals of the fit, and no libraries of pictures."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import OptimalSurvivalTree, load_dataset
from softsurv.cli import main


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


def test_a_report_knows_late_entry_and_intervals_as_evaluate_does(trial, capsys):
    """The columns of the fit are no features, and the measures are those of ``evaluate``."""
    rows = make_table(160).drop(columns=["id", "status"])
    rows = rows.assign(entry=0.4 * rows["months"], up=np.where(rows["died"] == 1, np.inf, 1.5 * rows["months"]))
    rows[:80].to_csv("train.csv", index=False)
    rows[80:].to_csv("new.csv", index=False)
    assert main(["fit", "train.csv", *OUTCOME, "--entry", "entry", "--drop", "up", *QUICK, "--out", "late"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "late", "new.csv", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert main(["report", "late", "new.csv", "--bootstrap", "20"]) == 0
    page = (trial / "report.html").read_text(encoding="utf-8")
    assert f"{measured['harrell_c']:.3f}" in page
    assert re.search(r"late entries</t[dh]>\s*<td[^>]*>80<", page)
    assert ">entry<" not in page
    assert main(["fit", "train.csv", *OUTCOME, "--upper", "up", "--drop", "entry", *QUICK, "--out", "between"]) == 0
    assert main(["report", "between", "new.csv", "--bootstrap", "20"]) == 0


def test_evaluate_and_report_know_the_weights_of_the_fit(trial, capsys):
    rows = make_table(160).drop(columns=["id", "status"])
    rows = rows.assign(w=np.random.default_rng(0).choice([0.1, 5.0], 160))
    rows[:80].to_csv("train.csv", index=False)
    rows[80:].to_csv("new.csv", index=False)
    rows[80:].drop(columns="w").to_csv("plain.csv", index=False)
    assert main(["fit", "train.csv", *OUTCOME, "--weight", "w", *QUICK, "--out", "weighted"]) == 0
    capsys.readouterr()
    measured = []
    for table, more in (("new.csv", []), ("new.csv", ["--weight", "w"]), ("plain.csv", [])):
        assert main(["evaluate", "weighted", table, "--json", *more]) == 0
        measured.append(json.loads(capsys.readouterr().out)["harrell_c"])
    assert measured[0] == measured[1] != measured[2]
    assert main(["report", "weighted", "new.csv", "--bootstrap", "20"]) == 0
    page = (trial / "report.html").read_text(encoding="utf-8")
    assert f"{measured[0]:.3f}" in page
    assert ">w<" not in page
