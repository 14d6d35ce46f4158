"""The figures that are asked of a GPU can be measured where there is one: here on a CPU, and few of each."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from softsurv.soft.parallel import keep_memory

FEW = {"fits": 3, "sets": 1, "folds": 1, "families": ("exponential",), "rows": 400, "columns": 3}


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "scripts")
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tests")
    import _gpu_goals

    keep_memory()
    return _gpu_goals


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of short fits
def test_each_figure_can_be_measured(module, monkeypatch):
    sizes, cpu, fitted = module.Sizes(**FEW), torch.device("cpu"), []
    monkeypatch.setattr(module, "fit_many", lambda rows, recipes, machine: fitted.append((len(rows), len(recipes))))
    assert module.fits_a_second(cpu, sizes) > 0
    assert module.seconds_of_the_grid(cpu, sizes) > 0  # in a process of its own
    grid = module.Grid(cpu, sizes, sizes.families)
    grid.fit(grid.sets)
    assert fitted == [(sizes.folds, 2 * len(sizes.families))] * 2  # depths 1 and 2, after one set to warm up
    assert module.seconds_of_many_rows(cpu, sizes) > 0
    assert module.difference_from_the_cpu(cpu, sizes) == 0


def test_the_grid_is_the_papers(module):
    assert module.Sizes().grid == 15_000


def test_without_a_device_the_table_says_so(module, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(module, "fits_a_second", lambda device, sizes: 7.0)
    monkeypatch.setitem(module.GOALS, "fits", ("at least 10,000", module.fits_a_second))
    rows = list(module.goals(True, 40))
    assert {row["GPU"] for row in rows} == {module.NONE}
    assert rows[-1]["CPU"] == "7"
