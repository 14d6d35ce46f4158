"""Starts: soft splits against hard routing, the log-rank tree, k-means labels, and awkward features."""

import threading

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import davies_bouldin_score
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from softsurv.data.survival_data import SurvivalData
from softsurv.numerics import with_intercept
from softsurv.soft import starts as starts_module
from softsurv.soft.starts import (
    KMEANS_RATE,
    LOGRANK_RATE,
    initial_leaves,
    kmeans_routing,
    logrank_routing,
    presumed_outcomes,
    random_routing,
    routing_from_labels,
    rows_in_time,
    soft_splits,
    start_routing,
)
from softsurv.stopping import StopSignal
from softsurv.trees.routing import hbp_leaf, linear


def leaves_of(routing, x, depth):
    """HBP leaf of each row under one routing table (B, P + 1)."""
    split = linear(torch.as_tensor(np.asarray(routing))[None], with_intercept(torch.tensor(x))[None])
    return hbp_leaf(split, depth)[0].numpy()


def walk(x, feature, threshold, depth):
    """Leaf of each row by hard comparisons."""
    leaf = []
    for row in x:
        node = 0
        for _ in range(depth):
            left = feature[node] < 0 or row[feature[node]] <= threshold[node]
            node = 2 * node + (1 if left else 2)
        leaf.append(node - (2**depth - 1))
    return np.array(leaf)


@given(
    x=arrays(
        float, (20, 3), elements=st.one_of(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(-3, 3).map(float))
    ),
    feature=arrays(int, 7, elements=st.integers(-1, 2)),
    row=arrays(int, 7, elements=st.integers(0, 19)),
)
@settings(max_examples=60, deadline=None)
def test_soft_splits_send_every_row_where_the_hard_ones_do(x, feature, row):
    threshold = x[row, np.maximum(feature, 0)]
    found = leaves_of(soft_splits(x, feature, threshold), x, 3)
    np.testing.assert_array_equal(found, walk(x, feature, threshold, 3))


def test_soft_splits_far_from_the_origin_and_of_constant_features():
    x = np.column_stack([1e8 + np.arange(10.0), np.full(10, 7.0)])
    table = soft_splits(x, np.array([0, 1, 1]), np.array([1e8 + 4.0, 7.0, 6.0]))
    assert np.isfinite(table).all()
    assert leaves_of(table, x, 2).tolist() == [0] * 5 + [3] * 5


def survival(tools, n=200, p=4, seed=0):
    data = tools.simulate(n, p, seed)
    return data.x.numpy(), data.time.numpy(), data.event.numpy()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_logrank_start_routes_as_scikit_survivals_tree(tools, depth):
    x, time, event = survival(tools)
    theirs = SurvivalTree(max_depth=depth, min_samples_leaf=10, random_state=0, low_memory=True)
    theirs.fit(x.astype(np.float32), Surv.from_arrays(event, time))
    label = theirs.apply(x.astype(np.float32))
    found = leaves_of(logrank_routing(x, time, event, depth), x, depth)
    pairs = set(zip(label.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len(set(label)) == len(set(found))


def test_logrank_start_without_anything_to_split(tools):
    x, time, event = survival(tools, 40, 2)
    assert (logrank_routing(x, time, np.zeros(40, bool), 2) == 0).all()
    assert logrank_routing(x, time, event, 0).shape == (0, 3)
    constant = logrank_routing(np.ones_like(x), time, event, 2)
    assert len(set(leaves_of(constant, np.ones_like(x), 2))) == 1


def test_logrank_start_uses_the_rows_with_weight_only(tools):
    x, time, event = survival(tools)
    weight = (np.arange(200) < 120).astype(float)
    found = logrank_routing(x, time, event, 2, weight)
    np.testing.assert_array_equal(found, logrank_routing(x[:120], time[:120], event[:120], 2))


def test_intervals_are_events_at_their_middle(tools):
    data = tools.simulate(200, 4, 0)
    time, event = data.time.numpy(), data.event.numpy()
    upper = np.where(event, np.floor(time) + 1, np.inf)
    rounded = SurvivalData(data.X, np.where(event, np.floor(time), time), np.zeros(200, bool), upper=upper)
    presumed, failed = presumed_outcomes(rounded)
    np.testing.assert_array_equal(failed, event)
    np.testing.assert_array_equal(presumed, np.where(event, np.floor(time) + 0.5, time))
    assert logrank_routing(data.x.numpy(), presumed, failed, 2).any()


def four_clusters(seed=0):
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(np.arange(4), 25))
    centres = np.array([[0.0, 0.0], [0.0, 6.0], [40.0, 0.0], [40.0, 6.0]])
    return centres[label] + 0.3 * rng.standard_normal((100, 2)), label


def test_kmeans_start_finds_nested_clusters():
    x, label = four_clusters()
    for table in kmeans_routing(x, 2, [0, 1]):
        found = leaves_of(table.numpy(), x, 2)
        assert len(set(zip(label.tolist(), found.tolist(), strict=True))) == 4
        assert davies_bouldin_score(x, found) == pytest.approx(davies_bouldin_score(x, label))


def test_clusterings_share_the_time_that_there_is(monkeypatch):
    """Each takes a part of the rows; without a limit, or with time enough, all of them."""
    taken = []

    def seen(x, depth, seeds, budget):
        taken.append(len(x))
        return random_routing(x, depth, seeds)

    monkeypatch.setattr(starts_module, "kmeans_routing", seen)
    n, p = 400, 3
    rng = np.random.default_rng(0)
    data = SurvivalData(pd.DataFrame(rng.normal(size=(n, p))).add_prefix("x"), rng.exponential(size=n), np.ones(n))
    enough = 2 * n * p / KMEANS_RATE
    for seconds in (None, enough, enough / 4, 0.0):
        start_routing(["kmeans", "random", "kmeans"], data, 1, [0, 1, 2], seconds)
    assert taken == [n, n, n, n, n // 4, n // 4, 50, 50]


def test_a_clustering_ends_with_the_best_in_time(monkeypatch):
    x, over, tried = four_clusters()[0], StopSignal(), []
    whole = starts_module._cluster
    monkeypatch.setattr(starts_module, "_cluster", lambda *args: tried.append(1) or whole(*args))
    assert kmeans_routing(x, 1, [0], budget=over).shape == (1, 1, x.shape[1] + 1)
    over.interrupted = True
    kmeans_routing(x, 1, [0], budget=over)
    assert len(tried) == starts_module.KMEANS_REPEATS + 1


def test_what_an_exhausted_budget_leaves_are_random_starts(tools, monkeypatch):
    data, over = tools.simulate(60, 3), StopSignal()
    over.interrupted = True
    entered, release = threading.Event(), threading.Event()

    def endless(*_):
        entered.set()
        release.wait(60.0)

    monkeypatch.setattr(starts_module, "logrank_routing", endless)
    monkeypatch.setattr(starts_module, "kmeans_routing", lambda *_: pytest.fail("begun"))
    found = start_routing(["logrank", "kmeans", "random"], data, 1, [3, 4, 5], budget=over)
    entered.wait(60.0)
    release.set()
    np.testing.assert_array_equal(found, random_routing(data.x.numpy(), 1, [3, 4, 5]))


def test_labels_are_reproduced_where_a_line_parts_them():
    x, _ = four_clusters()
    label = 2 * (x[:, 0] > 20) + (x[:, 1] > 3)
    np.testing.assert_array_equal(leaves_of(routing_from_labels(x, label, 2), x, 2), label)


def test_nodes_without_two_classes_stay_level():
    x, _ = four_clusters()
    table = routing_from_labels(x, np.zeros(100, dtype=int), 2)
    assert (table == 0).all()


AWKWARD = {
    "constant column": np.column_stack([np.random.default_rng(0).standard_normal(40), np.full(40, 3.0)]),
    "all constant": np.full((40, 2), 3.0),
    "one binary": (np.arange(40) % 2)[:, None].astype(float),
    "duplicates": np.repeat(np.random.default_rng(0).standard_normal((3, 2)), [20, 15, 5], 0),
    "no features": np.zeros((40, 0)),
    "large": 1e9 * np.random.default_rng(0).standard_normal((40, 2)) + 1e10,
    "tiny": 1e-9 * np.random.default_rng(0).standard_normal((40, 2)),
    "three rows": np.random.default_rng(0).standard_normal((3, 2)),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("start", ["random", "kmeans", "logrank"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_awkward_features_give_finite_starts(name, start, depth):
    x = AWKWARD[name]
    rng = np.random.default_rng(1)
    time, event = rng.exponential(size=len(x)), np.arange(len(x)) % 3 > 0
    if start == "logrank":
        table = torch.tensor(logrank_routing(x, time, event, depth))[None]
    else:
        table = {"random": random_routing, "kmeans": kmeans_routing}[start](x, depth, [0, 5])
    assert table.shape == (1 if start == "logrank" else 2, 2**depth - 1, x.shape[1] + 1)
    assert table.dtype == torch.float64
    assert torch.isfinite(table).all()


def test_random_starts_split_the_rows_at_every_node(tools):
    x, _, _ = survival(tools)
    for scaled in (x, 1e3 * x + 5e3):
        tables = random_routing(scaled, 2, range(10))
        split = linear(tables, with_intercept(torch.tensor(scaled))[None])
        share = (split >= 0).double().mean(-1)
        assert (share > 0).all()
        assert (share < 1).all()


@pytest.mark.parametrize("start", [random_routing, kmeans_routing])
def test_same_seed_same_start_and_seeds_do_not_interfere(tools, start):
    x, _, _ = survival(tools)
    tables = start(x, 2, [3, 4])
    torch.testing.assert_close(start(x, 2, [4])[0], tables[1], rtol=0, atol=0)
    if start is random_routing:
        assert (tables[0] != tables[1]).any()


def test_leaves_start_about_the_single_leaf():
    single = torch.tensor(np.random.default_rng(0).standard_normal((3, 1, 5)))
    leaves = initial_leaves(single, 2, [0, 1, 0], spread=0.01)
    assert leaves.shape == (3, 4, 5)
    assert float((leaves - single).abs().max()) < 0.05
    torch.testing.assert_close(leaves[0] - single[0], leaves[2] - single[2])
    torch.testing.assert_close(initial_leaves(single, 2, [0, 1, 0], spread=0.0), single.expand(-1, 4, -1))


def test_a_short_time_leaves_the_logrank_start_fewer_rows(tools):
    x, time, event = survival(tools, 400)
    assert rows_in_time(400, 4, None) is None
    assert rows_in_time(400, 4, 60.0) is None
    few = rows_in_time(400, 4, 4 * 100**2 / LOGRANK_RATE)
    assert few.sum() in (99, 100)
    assert set(few) == {0.0, 1.0}
    data = tools.simulate(400, 4)
    found = start_routing(["logrank"], data, 2, [0], 4 * 100**2 / LOGRANK_RATE)[0]
    np.testing.assert_array_equal(found, logrank_routing(x[few > 0], time[few > 0], event[few > 0], 2))
    assert rows_in_time(10**6, 10**4, 1.0).sum() >= 50
    assert 4_990 <= rows_in_time(200_000, 40, None).sum() == rows_in_time(200_000, 40, 1e9).sum() <= 5_000
    assert rows_in_time(40_000, 10, 1.0).sum() < 4_000
