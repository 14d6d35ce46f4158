"""The tree of corrections as the start of a dense tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import OptimalModelTree, SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft.tree import encoded_rows
from softsurv.hazards import get_family
from softsurv.soft.starts import SHARPNESS, logrank_routing
from softsurv.sparse.exact import exact_start
from softsurv.stopping import StopSignal
from softsurv.trees.soft_text import encoded_columns

DENSE = {"leaf": "weibull", "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    """Where neither feature alone says anything, a greedy tree finds no split."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400), "site": rng.choice(list("xyz"), 400)})
    apart = (X["a"] > 0) != (X["b"] > 0)
    time = rng.exponential(np.where(apart, 1.0, 12.0)) + 0.01
    end = rng.exponential(20.0, 400) + 0.01
    return survival_data(X, time=np.minimum(time, end), event=time <= end)


def started(data, depth):
    """Routing of the start of a dense tree (B, P + 1), and the encoded rows (N, P)."""
    encoder, encoded = encoded_rows(data, True, list(data.X.columns))
    columns = encoded_columns(encoder, [])
    return exact_start(encoded, columns, get_family("weibull"), depth, StopSignal()), encoded.x.numpy()


def leaves(routing, x):
    """Heap place of each row, by the signs of the splits."""
    at = np.zeros(len(x), dtype=int)
    for _ in range(int(np.log2(len(routing) + 1))):
        left = routing[at, 0] + (routing[at, 1:] * x).sum(1) >= 0
        at = np.where(left, 2 * at + 1, 2 * at + 2)
    return at


def test_rows_start_where_the_exact_tree_sends_them(data):
    routing, x = started(data, 2)
    exact = OptimalModelTree(max_depth=2, complexity=0.0).fit(data).apply(data)
    groups = leaves(routing, x)
    assert len(np.unique(groups)) == exact.max() + 1
    assert all(len(np.unique(groups[exact == k])) == 1 for k in np.unique(exact))
    score = routing[:, :1] + routing[:, 1:] @ x.T
    np.testing.assert_allclose(score.std(1), SHARPNESS, rtol=1e-9)


def test_a_deeper_tree_goes_left_below_the_exact_one(data):
    few = data.take(np.arange(60))
    routing, _x = started(few, 5)
    assert routing.shape[0] == 31
    below = (routing[:, 1:] == 0).all(1)
    assert below.any()
    assert (routing[below, 0] > 0).all()


def test_it_sees_what_a_greedy_tree_does_not(data):
    truth = (data.X["a"] > 0) != (data.X["b"] > 0)
    routing, x = started(data, 2)
    greedy = logrank_routing(x, data.time.numpy(), data.event.numpy(), 2)
    pure = [pd.crosstab(leaves(table, x), truth).max(axis=1).sum() / data.n for table in (routing, greedy)]
    assert pure[0] > 0.85
    assert pure[0] > pure[1] + 0.1


def test_random_starts_follow(data):
    alone = SoftSurvivalTree(2, init="exact", n_restarts=1, **DENSE).fit(data).report_
    more = SoftSurvivalTree(2, init="exact", n_restarts=3, **DENSE).fit(data).report_
    assert more.details["objectives"][0] == pytest.approx(alone.objective, rel=1e-6)
    assert len(more.details["objectives"]) == 3
    assert more.objective == min(more.details["objectives"])


@pytest.mark.parametrize("setting", [{"depth": 0}, {"depth": 1, "preset": "paper", "max_iter": 1}])
def test_it_goes_with_every_depth_and_with_the_preset(data, setting):
    tree = SoftSurvivalTree(init="exact", **{**DENSE, **setting}).fit(data)
    assert tree.depth_ == setting["depth"]
    assert torch.isfinite(tree.tree_.leaves).all()


def test_rules_have_no_start(data):
    with pytest.raises(InvalidParameterError, match="init is there for dense splits alone"):
        SoftSurvivalTree(max_terms=2, init="exact").fit(data)
