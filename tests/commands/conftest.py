"""A folder with a table, and a model that the command has saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv.cli import main


@pytest.fixture
def trial(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a table in it."""
    make_table().to_csv(tmp_path / "trial.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """A saved model, trained by the command."""
    folder = tmp_path_factory.mktemp("fit")
    make_table().to_csv(folder / "trial.csv", index=False)
    arguments = [str(folder / "trial.csv"), *OUTCOME, "--drop", "id", "status", *QUICK, "--out", str(folder / "model")]
    assert main(["fit", *arguments]) == 0
    return str(folder / "model")
