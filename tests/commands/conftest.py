"""A folder with a table, and a model that the command has saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import SoftSurvivalTree
from softsurv.cli import main
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.estimators.soft.warm_up import ready


@pytest.fixture(scope="session")
def compiled() -> None:
    """No test sees the note of the first fit on a machine."""
    for max_terms in ("auto", None):
        ready(SoftParameters(**SoftSurvivalTree(max_terms=max_terms).get_params(deep=False)))


@pytest.fixture
def trial(tmp_path, monkeypatch, compiled) -> Path:
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
