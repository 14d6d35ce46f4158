"""The relative-risk trees against pystreed on real data (extra ``peers``)."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.results import Status

pytest.importorskip("pystreed")
pytest.importorskip("SurvSet")
from _exact_data import coded, fit_pystreed, objective_of, pystreed_leaves

pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["veteran", "uis", "Aids2", "GBSG2"])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_never_worse_and_equal_where_it_proves_optimality(name, depth):
    data = coded(name)
    model = fit_pystreed(data, depth)
    theirs = objective_of(data, pystreed_leaves(data, model))
    ours = data.search().solve(depth).report
    assert model.fit_result.is_optimal()
    assert ours.status == Status.OPTIMAL
    assert ours.objective <= theirs + 1e-6
    assert ours.objective == pytest.approx(theirs, abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_deeper_trees_are_better_where_leaves_without_events_matter():
    """pystreed charges a leaf without events 1/2 in some places and 0 (eq. 20) in others; at depth 5 it shows."""
    data = coded("Aids2")
    model = fit_pystreed(data, 5)
    theirs = objective_of(data, pystreed_leaves(data, model))
    ours = data.search().solve(5).report
    assert model.fit_result.is_optimal()
    assert ours.objective < theirs - 0.05


@pytest.mark.filterwarnings("ignore")
def test_every_threshold_of_a_continuous_feature():
    data = coded("veteran", "all", None, 0.0)
    leaf = pystreed_leaves(data, fit_pystreed(data, 3))
    assert data.search().solve(3).report.objective <= objective_of(data, leaf) + 1e-6
    assert np.unique(leaf).size <= 8
