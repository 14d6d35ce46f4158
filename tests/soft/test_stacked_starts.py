"""Starts of many seeds and sets of rows at once, against those of scikit-learn and scikit-survival one by one."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import torch
from sklearn.metrics import davies_bouldin_score

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.hazards import get_family
from softsurv.soft import stacked_kmeans, stacked_logrank, starts
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.recipe import Candidate, Recipe
from softsurv.soft.stacked_kmeans import DesignRows, cluster, davies_bouldin, first_best, kmeans_starts, routing_of
from softsurv.soft.stacked_logrank import logrank_start
from softsurv.soft.stacked_starts import propose
from softsurv.soft.starts import TrainingRows, kmeans_routing, logrank_routing, node_seeds
from softsurv.trees.soft_tree import with_intercept

SEEDS = (0, 1, 5)


@pytest.fixture(autouse=True)
def as_on_a_device():
    with operators_alone():
        yield


def design_of(*tables):
    """Tables (N, P) as padded designs (G, N, Q)."""
    n, p = (max(table.shape[axis] for table in tables) for axis in (0, 1))
    padded = torch.zeros(len(tables), n, p + 1, dtype=torch.float64)
    for design, table in zip(padded, tables, strict=True):
        design[: len(table), : table.shape[1] + 1] = with_intercept(torch.tensor(table))
    return padded


def encoded(name):
    data = load_dataset(name)
    return data.with_features(Preprocessor().fit(data.X).transform(data.X))


def normal(n=150, p=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.fixture
def solved_to_the_end(monkeypatch):
    """scikit-learn's regressions, which stop at a gradient of 1e-4 otherwise."""
    exact = partial(sklearn.linear_model.LogisticRegression, tol=1e-14, solver="newton-cholesky")
    monkeypatch.setattr(sklearn.linear_model, "LogisticRegression", exact)


@pytest.mark.parametrize(
    "x", [normal(), 3 * normal(120, 3) + 50, encoded("gbsg2").x.numpy()], ids=["plain", "far", "gbsg2"]
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_clusterings_are_those_of_scikit_learn(x, depth):
    design = design_of(x)
    draws = torch.tensor(stacked_kmeans._draws(3, depth, 4))
    labels = cluster(DesignRows.of(design), depth, draws)
    index = davies_bouldin(DesignRows.of(design), labels, 2**depth)
    rng = np.random.default_rng(3)
    for found, score in zip(labels.numpy(), index, strict=True):
        expected = starts._cluster(x, depth, node_seeds(depth, rng))
        np.testing.assert_array_equal(found, expected)
        assert float(score) == pytest.approx(davies_bouldin_score(x, expected), rel=1e-10)


@pytest.mark.parametrize("depth", [1, 2])
def test_starts_of_sets_of_rows_together_are_those_of_each(depth, solved_to_the_end):
    tables = [normal(), normal(110, 3, 1)]
    found = kmeans_starts(design_of(*tables), depth, SEEDS)
    for of_set, x in zip(found, tables, strict=True):
        own = x.shape[1] + 1
        np.testing.assert_allclose(of_set[..., :own], kmeans_routing(x, depth, SEEDS), rtol=1e-6, atol=1e-7)
        assert not of_set[..., own:].any()


def test_regressions_are_solved_to_the_end():
    """The gradient of C sum log loss + |w|^2 / 2 over C times the rows."""
    x, label = normal(), np.arange(150) % 4
    table = routing_of(design_of(x), torch.tensor(label)[None], 2)[0]
    for node, here, left in ((0, label >= 0, label < 2), (1, label < 2, label == 0), (2, label >= 2, label == 2)):
        rows = np.column_stack([np.ones(150), x])[here]
        p = 1 / (1 + np.exp(-rows @ table[node].numpy()))
        gradient = rows.T @ (p - left[here]) / len(rows)
        gradient[1:] += table[node, 1:].numpy() / (10 * len(rows))
        assert np.abs(gradient).max() < 1e-9


def test_few_seeds_at_once_give_the_same(monkeypatch):
    design = design_of(normal())
    whole = kmeans_starts(design, 2, SEEDS)
    monkeypatch.setattr(stacked_kmeans, "CELLS", 1)
    torch.testing.assert_close(kmeans_starts(design, 2, SEEDS), whole, rtol=1e-6, atol=1e-6)


def test_of_clusterings_equal_but_for_their_names_the_first_is_taken():
    index = torch.tensor([[2.0, 1.0 + 1e-12, 1.0], [torch.inf] * 3, [0.0, 0.0, 1.0]])
    assert first_best(index).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "x",
    [
        np.ones((30, 2)),
        np.repeat(normal(3, 2), [20, 6, 4], 0),
        (np.arange(30) % 2)[:, None].astype(float),
        normal(3, 2),
    ],
    ids=["constant", "duplicates", "binary", "three rows"],
)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_awkward_features_give_finite_starts(x, depth, solved_to_the_end):
    found = kmeans_starts(design_of(x), depth, (0, 1))[0]
    assert found.shape == (2, 2**depth - 1, x.shape[1] + 1)
    assert torch.isfinite(found).all()
    np.testing.assert_allclose(found, kmeans_routing(x, depth, (0, 1)), rtol=1e-5, atol=1e-5)


def outcomes(n, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    time = rng.exponential(size=n) + 0.01
    return np.ceil(4 * time) / 4 if ties else time, rng.random(n) < 0.6


def on_device(x, time, event, depth):
    tensors = (torch.tensor(v) for v in (x, time, event, np.unique(time[event])))
    return logrank_start(*tensors, depth).numpy()


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("cells", [2**24, 500])
def test_the_logrank_tree_is_that_of_scikit_survival(depth, ties, cells, monkeypatch):
    monkeypatch.setattr(stacked_logrank, "CELLS", cells)
    x, (time, event) = normal(200), outcomes(200, ties=ties)
    x[:, 1] = np.round(x[:, 1])
    expected = logrank_routing(x, time, event, depth)
    np.testing.assert_allclose(on_device(x, time, event, depth), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["gbsg2", "whas500", "veterans"])
def test_the_logrank_tree_of_real_rows(name):
    data = encoded(name)
    known = data.x.numpy(), data.time.numpy(), data.event.numpy()
    np.testing.assert_allclose(on_device(*known, 2), logrank_routing(*known, 2), rtol=1e-10, atol=1e-10)


def test_a_logrank_tree_without_anything_to_split():
    time, event = outcomes(40)
    x = np.ones((40, 2))
    np.testing.assert_array_equal(on_device(x, time, event, 2), logrank_routing(x, time, event, 2))
    never = np.zeros(40, dtype=bool)
    assert not on_device(normal(40), time, never, 2).any()


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
