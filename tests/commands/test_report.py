"""``softsurv report`` without the libraries of its pictures."""

from __future__ import annotations

import sys

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
