"""Soft trees with causes: measures and predictions in compiled loops are those of tables of rows and times."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.data.readers import survival_data
from softsurv.estimators.soft import causes
from softsurv.metrics import concordance
from softsurv.trees import causes_in_leaves
from softsurv.trees.causes_in_leaves import CausesInLeaves


def weighted_rows(late, n=300):
    """Rows of two causes with weights, some of them equal; where ``late``, half of them enter late."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.integers(-3, 4, (n, 2)) / 2.0, columns=["u", "v"])
    fast, slow = 8 * rng.weibull(1.3, n) * np.exp(-X["u"]), 8 * rng.weibull(0.9, n) * np.exp(X["v"])
    left = rng.uniform(2, 20, n)
    time = np.minimum(np.minimum(fast, slow), left).to_numpy()
    entry = {"entry": np.where(rng.random(n) < 0.5, 0.0, 0.5 * time)} if late else {}
    cause = np.select([time == fast, time == slow], [1, 2], 0)
    return survival_data(X, time=time, cause=cause, weight=rng.uniform(0.5, 2.0, n), **entry)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("leaf", ["weibull", "spline_po", "lognormal"])
def test_measures_and_predictions_in_compiled_loops_are_those_of_tables(leaf, late, monkeypatch):
    """A table of all rows at all events took 71 s for the score of 20,000 rows with five causes."""
    data = weighted_rows(late)
    tree = SoftSurvivalTree(depth=1, leaf=leaf, max_terms=1, l2=0.3, shrinkage=10.0).fit(data)

    def measured():
        found = tree.evaluate(data)
        return [tree.score(data), found["uno_c"], *(v for one in found["causes"].values() for v in one.values())]

    def predicted():
        how = [(path, times) for path in ("hbp", "soft") for times in (None, [0.0, 1.0, 30.0])]
        return [tree.predict_cumulative_incidence(data.X, times, path=path) for path, times in how]

    with monkeypatch.context() as patch:
        patch.setattr(causes_in_leaves, "FEW_CELLS", 0)
        patch.setattr(causes_in_leaves, "FEW_PAIRS", 0)
        patch.setattr(concordance, "_count_varying", None)
        patch.setattr(causes, "incidences", None)
        fast = [measured(), *predicted(), tree.predict_restricted_time_lost(data.X)]
    monkeypatch.setattr(CausesInLeaves, "of", lambda *_: None)
    slow = [measured(), *predicted(), tree.predict_restricted_time_lost(data.X)]
    for got, expected in zip(fast, slow, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
