"""The likelihood that rules cost against a dense tree."""

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.sparse import lost
from softsurv.sparse.lost import LostLikelihood


def groups(seed=0, n=400):
    """Two groups by the sum of six features: no rule of one feature has them."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 6)), columns=list("abcdef"))
    hazard = np.where(X.sum(axis=1) > 0, 8.0, 1.0)
    return X, (np.ones(n, bool), random.exponential(size=n) / hazard)


def test_rules_of_one_feature_lose_what_a_dense_split_sees():
    X, y = groups()
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull", l2=1e4, shrinkage=40.0, slope_shrinkage=1e4).fit(X, y)
    found = tree.report_.details["lost_likelihood"]
    assert found["one_curve"] < found["rules"] < found["dense"]
    gain = found["dense"] - found["one_curve"]
    assert found["share"] == pytest.approx((found["dense"] - found["rules"]) / gain)
    assert found["share"] > 0.3
    assert f"lose {found['share']:.0%} of the log-likelihood" in str(tree.summary())


def test_the_likelihood_of_the_rules_is_that_of_the_tree():
    X, y = groups(n=200)
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull").fit(X, y)
    scale = float(tree.tree_.time_scale[0, 1])
    per_time = tree.log_likelihood(X, y) + np.log(y[1]) + np.log(scale)
    assert tree.report_.details["lost_likelihood"]["rules"] == pytest.approx(per_time.mean(), abs=1e-6)


def test_it_is_left_out_where_it_takes_long(monkeypatch):
    X, y = groups(n=200)
    monkeypatch.setattr(lost, "MOST_CELLS", 100)
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull").fit(X, y)
    assert "lost_likelihood" not in tree.report_.details


def test_the_share_is_none_of_no_gain():
    assert LostLikelihood(-1.0, -1.0, -1.2).share == 0
    assert LostLikelihood(-2.0, -1.5, -1.0).share == 0.5
