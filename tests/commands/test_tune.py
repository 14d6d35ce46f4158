"""``softsurv tune`` on a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.simulated import simulate

from softsurv import SoftSurvivalTree, load_model
from softsurv.cli import main
from softsurv.tune import StudyObjective


@pytest.fixture(scope="module")
def data():
    return simulate(120)


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


def test_the_table_shows_complete_trials_and_what_they_tried(table, tmp_path, capsys):
    """A pruned trial has the mean of fewer folds; a fixed argument stands in the last lines alone."""
    out = tmp_path / "out"
    settings = ["--set", "depth=0", "leaf=weibull", "l2=0.1..1e6", "--measures", "harrell_c", "--pruner", "median"]
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--trials", "12", "--folds", "4", *settings]
    assert main([*arguments, "--out", str(out), "--no-progress"]) == 0
    head, *rows = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert head.split() == ["trial", "harrell_c", "l2"]
    trials = pd.read_csv(out / "trials.csv")
    assert (trials["state"] == "pruned").any()
    complete = trials.loc[trials["state"] == "complete", "trial"]
    assert [int(row.split()[0]) for row in rows] == complete.head(5).to_list()


def test_late_entry_intervals_and_weights_reach_the_fits(data, tmp_path, capsys):
    """Each trial trains on what the file says, and the written model is that of the same call in Python."""
    rng, time = np.random.default_rng(0), data.time.numpy()
    rows = data.X.assign(t=time, died=data.event.numpy(), late=0.5 * time * (rng.random(data.n) < 0.4))
    in_interval = ~data.event.numpy() & (rng.random(data.n) < 0.3)
    rows["until"] = np.where(in_interval, 1.5 * time, np.inf)
    rows["count"] = rng.integers(1, 4, data.n)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    columns = ["--time", "t", "--event", "died", "--entry", "late", "--upper", "until", "--weight", "count"]
    settings = ["--set", "depth=0", "leaf=weibull", "solver=lbfgs", "init=random", "n_restarts=1", "l2=1.0"]
    out = tmp_path / "out"
    arguments = ["tune", str(tmp_path / "rows.csv"), *columns, "--trials", "1", "--folds", "2", *settings]
    assert main([*arguments, "--out", str(out), "--no-progress"]) == 0
    assert "1 complete" in capsys.readouterr().out
    model = load_model(out / "model")
    again = pd.read_csv(tmp_path / "rows.csv")
    asked = model.get_params()
    expected = SoftSurvivalTree(**asked).fit(
        again[list(data.X.columns)],
        time=again["t"].to_numpy(),
        event=again["died"].to_numpy(),
        entry=again["late"].to_numpy(),
        upper=again["until"].to_numpy(),
        sample_weight=again["count"].to_numpy(),
    )
    plain = SoftSurvivalTree(**asked).fit(again[list(data.X.columns)], (again["died"], again["t"]))
    found = model.predict_median(data.X)
    np.testing.assert_allclose(found, expected.predict_median(data.X), rtol=1e-6)
    assert np.abs(found / plain.predict_median(data.X) - 1).max() > 0.01


def test_evaluate_takes_the_columns_of_a_study(data, tmp_path, capsys):
    """Causes, subjects, late entry and weights too: the record of the model names all columns of the outcome."""
    rows = pd.concat([data.X.assign(part=k) for k in (0, 1)], ignore_index=True)
    time, half = data.time.numpy(), 0.5 * data.time.numpy()
    cause = np.where(data.event.numpy(), 1 + np.arange(data.n) % 2, 0)
    rows["who"] = np.tile(np.arange(data.n), 2)
    rows["begin"], rows["end"] = np.append(np.zeros(data.n), half), np.append(half, time)
    rows["why"] = np.append(np.zeros(data.n, int), cause)
    rows["count"] = np.tile(1 + np.arange(data.n) % 3, 2)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    columns = ["--start", "begin", "--stop", "end", "--id", "who", "--cause", "why", "--weight", "count"]
    settings = ["--set", "depth=0", "leaf=weibull", "l2=1.0", "--measures", "harrell_c", "--trials", "1"]
    arguments = ["tune", str(tmp_path / "rows.csv"), *columns, *settings, "--out", str(tmp_path / "out")]
    assert main([*arguments, "--folds", "2", "--no-progress"]) == 0
    capsys.readouterr()
    asked = ["evaluate", str(tmp_path / "out" / "model"), str(tmp_path / "rows.csv")]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert f"of {data.n} subjects" in shown
    assert main([*asked, *columns]) == 0
    assert capsys.readouterr().out == shown


def test_a_storage_that_is_refused_is_told_before_the_table_is_read(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("softsurv.commands.tune.read_data", lambda *_, **__: pytest.fail("the table was read"))
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--storage", f"sqlite:///{tmp_path}/none/study.db"]) == 1
    assert "storage must be in a folder that is there" in capsys.readouterr().err


def test_ctrl_c_in_a_trial_ends_without_a_traceback(table, tmp_path, monkeypatch, capfd):
    """The same command takes the study up again."""
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--trials", "1", "--folds", "2", "--no-progress"]
    arguments += ["--out", str(tmp_path / "out"), "--set", "max_terms=none", "depth=0", "leaf=weibull", "l2=1.0"]

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StudyObjective, "__call__", interrupted)
        assert main(arguments) == 130
    said = capfd.readouterr().err
    assert "interrupted" in said
    assert "Traceback" not in said
    assert main(arguments) == 0


def test_bad_input_is_one_sentence(table, tmp_path, capsys):
    arguments = ["tune", str(table), "--time", "t", "--event", "died", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--pruner", "median"]) == 1
    assert "a pruner needs one measure" in capsys.readouterr().err
    assert main([*arguments, "--set", "depth"]) == 1
    assert "name=value" in capsys.readouterr().err
