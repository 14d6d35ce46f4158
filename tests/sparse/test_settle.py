"""Penalties of each cause: one that is even has one hazard in all leaves, one that differs does not."""

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.sparse.settle import ALIKE


def two_causes(n=500, seed=0):
    """Cause 1 has six times the hazard where a > 0; cause 2 is the same for all rows."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.uniform(-1, 1, (n, 3)), columns=list("abc"))
    times = random.exponential(size=(n, 3)) / np.column_stack([np.where(X["a"] > 0, 3.0, 0.5), np.full((n, 2), 0.7)])
    return X, times.min(1), np.array([1, 2, 0])[times.argmin(1)]


@pytest.fixture(scope="module")
def fitted():
    X, time, cause = two_causes()
    return SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull").fit(X, time=time, cause=cause)


def test_each_cause_has_a_setting_of_its_own(fitted):
    differs, even = fitted.report_.details["causes"]
    assert fitted.export_text().startswith("a > ")
    assert differs["shrinkage"] < even["shrinkage"] == ALIKE[0]
    levels = [tree.leaves[0, :, 0].detach().numpy() for tree in fitted.cause_trees_]
    assert abs(np.subtract(*levels[1])) < 0.01 < 0.5 < abs(np.subtract(*levels[0]))


def test_without_causes_the_setting_is_that_of_the_choice():
    X, time, cause = two_causes(200)
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull").fit(X, (cause == 1, time))
    assert "causes" not in tree.report_.details


def test_the_shrinkage_that_is_asked_for_is_that_of_every_cause():
    X, time, cause = two_causes(200)
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull", shrinkage=10.0).fit(X, time=time, cause=cause)
    assert [one["shrinkage"] for one in tree.report_.details["causes"]] == [10.0, 10.0]
