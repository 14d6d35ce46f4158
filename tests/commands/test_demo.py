"""The demonstration: one run on real data, its report, its files; and the scripts around it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree, load_dataset, load_model
from softsurv.cli import main
from softsurv.estimators.baselines import CauseSpecificCox

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Folder and report of one demonstration on a small data set."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("softsurv.commands.demo.echo", lambda *text: lines.extend(text))
        assert main(["demo", "--data", "veterans", "--out", str(folder)]) == 0
    return folder, "\n".join(lines)


def test_the_report_has_every_part(demo):
    folder, text = demo
    assert text.startswith("veterans: 137 rows, 6 features, 128 events (6.6 % censored), times 1 to 999, median 80")
    assert "train on 110 rows, hold out 27" in text
    assert re.search(r"Soft survival tree, depth \d, chosen from \d+ settings by cross-validation \(converged,", text)
    assert load_model(folder / "model").depth_ > 0
    assert re.search(r"leaf \d: n \d+, events \d+, (predicted )?median \d+", text)
    assert str(folder.resolve() / "model") in text
    assert str(folder.resolve() / "leaves.png") in text


def test_the_table_of_measures_is_right(demo):
    folder, text = demo
    rows = {name: re.search(rf"^{name} +(.+)$", text, re.MULTILINE) for name in ("soft tree", "Cox", "Kaplan-Meier")}
    values = {name: [float(v) for v in row.group(1).split()] for name, row in rows.items()}
    _, test = load_dataset("veterans").split(test_size=0.2, seed=0)
    result = load_model(folder / "model").evaluate(test)
    assert values["soft tree"] == [round(result[key], 3) for key in ("harrell_c", "uno_c", "cd_auc", "ibs")]
    assert values["Kaplan-Meier"][:3] == [0.5, 0.5, 0.5]
    assert values["Cox"][0] > 0.5
    assert values["Cox"][3] < values["Kaplan-Meier"][3]


@pytest.mark.filterwarnings("ignore:uno_c, cd_auc, ibs")
def test_other_models_know_late_entry_and_subjects_with_several_rows(tmp_path, monkeypatch):
    """They took each row for a subject from the start, beside a tree that did not."""
    lines: list[str] = []
    monkeypatch.setattr("softsurv.commands.demo.echo", lambda *text: lines.extend(text))
    plain = OptimalSurvivalTree(max_depth=1, min_samples_leaf=5)
    monkeypatch.setattr("softsurv.commands.demo._train", lambda train, seed: {"soft tree": plain.fit(train)})
    assert main(["demo", "--data", "heart_transplant", "--out", str(tmp_path)]) == 0
    train, test = load_dataset("heart_transplant").split(test_size=0.2, seed=0)
    expected = CauseSpecificCox().fit(train).evaluate(test)["harrell_c"]
    (row,) = [line.split() for line in lines if line.startswith("Cox")]
    assert row == ["Cox", f"{expected:.3f}", "-", "-", "-"]


def test_the_picture_is_one(demo):
    from matplotlib.image import imread

    picture = imread(demo[0] / "leaves.png")
    assert picture.shape[0] >= 600
    assert picture.shape[1] >= 1000
    assert np.unique(picture[..., :3].reshape(-1, 3), axis=0).shape[0] > 50


def test_an_unknown_data_set(capsys):
    assert main(["demo", "--data", "gbsg3"]) == 1
    assert "name must be one of aids" in capsys.readouterr().err


# -- scripts --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("script", ["scripts/_venv", "scripts/demo", "scripts/test", ".ci/run"])
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_scripts_parse(script):
    done = subprocess.run(["bash", "-n", str(ROOT / script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_an_old_python_is_refused_with_a_sentence(tmp_path):
    """In a folder without .venv, with a python that calls itself too old."""
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [str(tmp_path / "scripts" / "demo")],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(old)},
    )
    assert done.returncode == 1
    assert done.stderr == f"PYTHON={old} is no Python 3.11 or newer; name another one.\n"
