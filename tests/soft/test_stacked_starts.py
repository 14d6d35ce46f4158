"""Starts of many recipes and sets of rows at once, against those of each."""

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.designs import design_of, normal, outcomes

from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft import starts
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.stacked_kmeans import kmeans_starts
from softsurv.soft.stacked_starts import propose
from softsurv.soft.starts import TrainingRows


@pytest.fixture(autouse=True)
def as_on_a_device():
    with operators_alone():
        yield


def test_a_large_table_proposes_by_the_same_rows_as_on_the_host(monkeypatch):
    monkeypatch.setattr(starts, "MOST_SECONDS", 2 * 40**2 / starts.LOGRANK_RATE)
    time, event = outcomes(200)
    rows = TrainingRows(SurvivalData(pd.DataFrame(normal(200, 2)).add_prefix("x"), time, event))
    recipe = Recipe(get_family("weibull"), Candidate("weibull", 1, 1.0, 1.0, 1.0), ("logrank",))
    (found,) = propose([rows], [recipe], design_of(rows.data.x.numpy()))
    np.testing.assert_allclose(found, rows.start_routing(["logrank"], 1, [0]), rtol=1e-10, atol=1e-10)


def test_recipes_get_their_starts_in_order_and_each_is_proposed_once(monkeypatch):
    rows = []
    for n, p in ((60, 3), (50, 2)):
        time, event = outcomes(n, seed=p)
        rows.append(TrainingRows(SurvivalData(pd.DataFrame(normal(n, p, p)).add_prefix("x"), time, event)))
    candidate = Candidate("weibull", 2, 1.0, 1.0, 1.0)
    kinds = (("logrank", "random"), ("kmeans", "random", "kmeans"))
    recipes = [Recipe(get_family("weibull"), candidate, starts, seed=7) for starts in kinds]
    design = design_of(*(r.data.x.numpy() for r in rows))
    found = propose(rows, recipes, design)
    assert found.shape == (2, 5, 3, 4)
    for of_set, r in zip(found, rows, strict=True):
        own = r.data.x.shape[1] + 1
        for table, start, seed in zip(of_set, sum(kinds, ()), (7, 8, 7, 8, 9), strict=True):
            if start != "kmeans":
                expected = r.start_routing([start], 2, [seed])[0]
                np.testing.assert_allclose(table[:, :own], expected, rtol=1e-10, atol=1e-10)
        assert not of_set[..., own:].any()
    together = kmeans_starts(design, 2, (7, 9))
    torch.testing.assert_close(found[:, [2, 4]], together)
    monkeypatch.delattr("softsurv.soft.stacked_starts.kmeans_starts")
    monkeypatch.setattr("softsurv.soft.stacked_starts._start", lambda *a: pytest.fail("proposed again"))
    assert torch.equal(propose(rows, recipes, design), found)
