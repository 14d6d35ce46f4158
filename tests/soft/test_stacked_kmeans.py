"""k-means starts of many seeds and sets of rows at once, against those of scikit-learn one by one."""

from functools import partial

import numpy as np
import pytest
import sklearn.linear_model
import torch
from oracles.designs import design_of, encoded, normal
from sklearn.metrics import davies_bouldin_score

from softsurv.soft import stacked_kmeans, starts
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.stacked_kmeans import DesignRows, cluster, davies_bouldin, first_best, kmeans_starts, routing_of
from softsurv.soft.starts import kmeans_routing, node_seeds

SEEDS = (0, 1, 5)


@pytest.fixture(autouse=True)
def as_on_a_device():
    with operators_alone():
        yield


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
