"""``softsurv report``: what it takes from the fit, and without the libraries of its pictures."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd

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


def test_a_report_knows_the_late_entries_of_the_fit(capsys, tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=150), "t": rng.exponential(size=150) + 0.1, "e": rng.random(150) < 0.7})
    rows = rows.assign(came=rows["t"] * rng.random(150) * 0.5)
    table, model, page = (str(tmp_path / name) for name in ("rows.csv", "model", "page.html"))
    rows.to_csv(table, index=False)
    outcome = ["--time", "t", "--event", "e", "--entry", "came"]
    assert main(["fit", table, *outcome, "--model", "optimal", "--depth", "1", "--out", model]) == 0
    assert main(["report", model, table, "--bootstrap", "20", "--out", page]) == 0
    words = re.sub(r"<[^>]+>|\s+", " ", (tmp_path / "page.html").read_text())
    assert re.search(r"late entries +150\b", words)
    assert re.search(r"features +1\b", words)
