"""``softsurv compare``: its table, files and pictures, and models that it does not know."""

from __future__ import annotations

import errno
import re

import numpy as np
import pandas as pd
import pytest
from oracles.simulated import two_causes
from oracles.trial import OUTCOME, make_table

from softsurv import compare, load_dataset
from softsurv.cli import main
from softsurv.commands.compare import NAMES
from softsurv.explore.rivals import NAMED


def test_the_command_prints_a_table_and_writes_folds_and_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = load_dataset("veterans")
    data.X.assign(days=data.time.numpy(), died=data.event.numpy().astype(int)).to_csv("veterans.csv", index=False)
    outcome = ["veterans.csv", "--time", "days", "--event", "died", "--folds", "2"]
    models = ["--models", "cox", "kaplan_meier", "lifelines:WeibullAFTFitter"]
    assert main(["compare", *outcome, *models, "--out", "folds.csv", "--plot", "compared.png"]) == 0
    assert "lifelines:WeibullAFTFitter" in capsys.readouterr().out
    assert len(pd.read_csv("folds.csv")) == 6
    assert (tmp_path / "compared.png").read_bytes().startswith(b"\x89PNG")
    assert main(["compare", *outcome, "--models", "lifelines:NoSuchFitter"]) == 1
    assert "check MODULE:CLASS" in capsys.readouterr().err


def test_the_command_compares_causes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = two_causes()
    names = np.array(["", *data.cause_names])
    data.X.assign(days=data.time.numpy(), why=names[data.cause.numpy()]).to_csv("pumps.csv", index=False)
    outcome = ["pumps.csv", "--time", "days", "--cause", "why", "--folds", "2"]
    assert main(["compare", *outcome, "--models", "cox", "kaplan_meier", "--plot", "c.png"]) == 0
    tables = re.findall(r"^(\w+) +concordance \(higher\)", capsys.readouterr().out, re.MULTILINE)
    assert tables == list(data.cause_names)
    assert main(["compare", *outcome, "--models", "forest"]) == 1
    assert "got cause; leave out cause or the model" in capsys.readouterr().err


def test_each_fit_is_logged_as_it_begins_and_shown_on_a_terminal(trial, monkeypatch, capsys, caplog):
    arguments = ["compare", "trial.csv", *OUTCOME, "--models", "kaplan_meier", "cox", "--folds", "2", "--verbose"]
    with caplog.at_level("INFO", logger="softsurv"):
        assert main(arguments) == 0
    fits = [f"fit {k + 1} of 4: {name} on fold {k // 2}" for k, name in enumerate(["kaplan_meier", "cox"] * 2)]
    assert [record.message for record in caplog.records if "fit" in record.message] == fits
    assert "comparing" not in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(arguments) == 0
    assert "4/4" in capsys.readouterr().err
    assert main([*arguments, "--no-progress"]) == 0
    assert "comparing" not in capsys.readouterr().err


def test_a_picture_of_no_format_is_said_before_the_fits(trial, capsys):
    assert main(["compare", "trial.csv", *OUTCOME, "--models", "kaplan_meier", "--plot", "c.xyz"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "--plot must end in one of" in err


def test_a_full_disk_leaves_the_old_measures(trial, monkeypatch, capsys):
    (trial / "folds.csv").write_text("old")
    monkeypatch.setattr(pd.DataFrame, "to_csv", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    assert main(["compare", "trial.csv", *OUTCOME, "--models", "kaplan_meier", "--out", "folds.csv"]) == 1
    assert "no space left on the disk for 'folds.csv'" in capsys.readouterr().err
    assert (trial / "folds.csv").read_text() == "old"


def test_the_command_knows_the_names():
    assert set(NAMES) == set(NAMED)


def test_a_class_that_needs_arguments_or_no_class_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": [0.0, 1, 0, 1], "t": [1.0, 2, 3, 4], "died": [1, 0, 1, 1]}).to_csv("rows.csv", index=False)
    given = ["compare", "rows.csv", "--time", "t", "--event", "died", "--folds", "2", "--models"]
    for name in ("fractions:NoSuch", "no_such_module:Model", "datetime:date", "math:pi"):
        assert main([*given, name]) == 1
        said = capsys.readouterr().err
        assert f"--models must name models, got {name!r}: " in said
        assert "check MODULE:CLASS" in said


def test_late_entry_weights_and_intervals_are_no_features(trial, capsys):
    rows = make_table(120).drop(columns=["id", "status"]).assign(w=lambda t: 1.0 + (t["arm"] == "new"))
    rows = rows.assign(late=0.4 * rows["months"], up=np.where(np.arange(120) % 4 == 0, 1.5 * rows["months"], np.inf))
    rows.to_csv("rows.csv", index=False)
    how = ["compare", "rows.csv", *OUTCOME, "--folds", "2"]
    more = ["--entry", "late", "--weight", "w", "--drop", "up"]
    assert main([*how, *more, "--models", "cox", "kaplan_meier", "--out", "folds.csv"]) == 0
    assert "120 rows, 2 features, 80 events" in capsys.readouterr().out
    features, y = rows[["age", "arm"]], (rows["died"], rows["months"])
    expected = compare(["cox", "kaplan_meier"], features, y, entry=rows["late"], weight=rows["w"], n_folds=2).folds
    np.testing.assert_allclose(pd.read_csv("folds.csv")["ibs"], expected["ibs"], rtol=1e-9)
    assert main([*how, *more, "--models", "forest"]) == 1
    assert "got entry; leave out entry or the model" in capsys.readouterr().err
    rows.assign(died=np.where(np.isfinite(rows["up"]), 0, rows["died"])).to_csv("rows.csv", index=False)
    between = ["--upper", "up", "--drop", "late", "w"]
    assert main([*how, *between, "--models", "sksurv.ensemble:RandomSurvivalForest"]) == 1
    said = capsys.readouterr().err
    assert "or take softsurv's SoftSurvivalTree" in said
    assert said.count("counts in the measures as censored") == 1


def test_intervals_are_compared_for_soft_trees_and_other_models_are_refused_before_a_fit(trial, capsys, monkeypatch):
    """By default the soft tree was fitted to every row of the first fold before the optimal one was refused."""
    rows = make_table(60).drop(columns=["id", "status"])
    rows.assign(died=0, up=1.5 * rows["months"]).to_csv("rows.csv", index=False)
    how, asked = ["compare", "rows.csv", *OUTCOME, "--upper", "up"], []
    monkeypatch.setattr("softsurv.explore.comparison.compare", lambda models, *_, **__: asked.append(models))
    for name in ("optimal", "kaplan_meier"):
        assert main([*how, "--models", "soft", name]) == 1
        said = capsys.readouterr()
        assert f"--upper is for soft trees alone, got --models {name}; leave one of them out" in said.err
        assert not said.out
    assert main(how) == 0
    assert [list(models) for models in asked] == [["soft"]]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--plot", "x.foo"], "--plot must end in one of"),
        (["--plot", "none/x.png"], "--plot must lie in an existing folder"),
        (["--out", "folds.parquet"], "--out must be a .csv file, got 'folds.parquet'"),
    ],
)
def test_files_of_other_kinds_are_refused_before_a_fit(trial, capsys, monkeypatch, option, sentence):
    monkeypatch.setattr("softsurv.explore.comparison.compare", None)
    assert main(["compare", "trial.csv", *OUTCOME, "--drop", "id", "status", *option]) == 1
    assert sentence in capsys.readouterr().err


def test_the_outcome_is_asked_for(trial, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "trial.csv", "--time", "months"])
    assert "the following arguments are required: --event (or --cause)" in capsys.readouterr().err


def test_cox_is_left_out_of_the_usual_models_where_features_outnumber_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("softsurv.commands.compare.DEFAULT", ("cox", "kaplan_meier"))
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 20))).add_prefix("gene")
    wide.assign(days=np.arange(1, 31), died=1).to_csv("genes.csv", index=False)
    assert main(["compare", "genes.csv", "--time", "days", "--event", "died", "--folds", "2"]) == 0
    told = capsys.readouterr()
    assert "Cox regression is left out: it cannot be fitted to more features than the rows that a fold" in told.err
    assert "kaplan_meier" in told.out
    assert "\ncox" not in told.out
