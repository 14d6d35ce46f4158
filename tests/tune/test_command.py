"""``softsurv tune`` on a file."""

from __future__ import annotations

import pytest

from softsurv import load_model
from softsurv.cli import main


@pytest.fixture
def table(data, tmp_path):
    path = tmp_path / "rows.csv"
    data.X.assign(t=data.time.numpy(), died=data.event.numpy()).to_csv(path, index=False)
    return path


def test_a_study_from_a_file(table, tmp_path, capsys):
    out = tmp_path / "out"
    settings = ["--set", "depth=0,1", "leaf=weibull", "solver=lbfgs", "init=random", "n_restarts=1", "l2=0.1..10"]
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--trials", "3", "--folds", "2", *settings]
    assert main([*arguments, "--out", str(out), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    assert "3 complete" in shown
    assert str(out / "model") in shown
    assert load_model(out / "model").depth_ in (0, 1)
    assert main([*arguments, "--out", str(out), "--no-progress"]) == 0  # nothing left to do
    assert "3 complete" in capsys.readouterr().out


def test_bad_input_is_one_sentence(table, tmp_path, capsys):
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--pruner", "median"]) == 1
    assert "a pruner needs one measure" in capsys.readouterr().err
    assert main([*arguments, "--set", "depth"]) == 1
    assert "name=value" in capsys.readouterr().err
