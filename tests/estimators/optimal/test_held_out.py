"""Losses of held-out rows: by the leaves' sums as row by row."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv import OptimalSurvivalTree
from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.estimators.optimal.held_out import HeldOutRows
from softsurv.estimators.optimal.leaves import leaf_curves
from softsurv.estimators.optimal.rows import Rows, went_through
from softsurv.estimators.optimal.search import RelativeRiskSearch
from softsurv.estimators.optimal.shrinkage import with_risk
from softsurv.exact.memory import Room
from softsurv.metrics.concordance import harrell_c

STRENGTHS = (0.0, 3.0, 40.0)


def searched(make_rows, causes=False, **columns):
    """A search over some rows, and others beside it."""
    binarizer, parts, p = Binarizer(5), [], OptimalSurvivalTree(min_samples_leaf=5)
    for seed in (0, 1):
        X, y = make_rows(150, seed)
        weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
        entry = np.where(X["x"] > 0.5, 0.3 * y["time"], 0.0)
        outcome = {"y": y}
        if causes:
            outcome = {"time": y["time"], "cause": np.where(y["event"], 1 + (X["x"] > 0), 0)}
        data = survival_data(X, weight=weight, entry=entry, **outcome)
        parts.append(Rows.of(data, binarizer if parts else binarizer.fit(data.X)))
    search = RelativeRiskSearch(parts[0], p, "adaptive", Room(1e9))
    return search, HeldOutRows(search, parts[1])


@pytest.mark.parametrize("causes", [False, True])
def test_the_likelihood_is_that_of_the_rows_one_by_one(make_rows, causes):
    search, held_out = searched(make_rows, causes)
    for size in search.path(2, 4, np.inf)[0]:
        fast = held_out.losses(size.tree, STRENGTHS, "likelihood", size.leaf_sums)
        for strength, loss in zip(STRENGTHS, fast, strict=True):
            theta = with_risk(search.rows, size.tree, search.leaf_sums(size.tree), strength).value
            total = np.zeros(held_out.rows.n)
            for k, (one, baseline) in enumerate(zip(held_out.rows.by_cause, search.baselines, strict=True)):
                risk, met = theta[held_out.rows.leaf_of(size.tree), k], went_through(baseline, one)
                total += risk * met - one.event * np.log(risk)
            assert loss == pytest.approx(np.average(total, weights=held_out.rows.weight), rel=1e-12)


def test_a_weight_counts_in_the_concordance_as_so_many_rows(make_rows):
    search, held_out = searched(make_rows)
    rows, tree = held_out.rows, search.path(2, 4, np.inf)[0][-1].tree
    again = np.repeat(np.arange(rows.n), rows.weight.astype(int))
    leaf, entry = rows.leaf_of(tree)[again], rows.entry[again]
    shrunk = with_risk(search.rows, tree, search.leaf_sums(tree), 3.0)
    curves = leaf_curves(search.rows, shrunk, search.leaf, 3.0).of_rows(leaf)
    expected = 1.0 - harrell_c(rows.time[again], rows.event[again], curves, entry=entry)
    assert held_out.losses(tree, [3.0], "concordance") == [pytest.approx(expected, rel=1e-12)]


def test_sums_of_leaves_that_are_known_change_nothing(make_rows):
    search, held_out = searched(make_rows)
    for size in search.path(2, 4, np.inf)[0]:
        np.testing.assert_allclose(size.leaf_sums, search.leaf_sums(size.tree), rtol=1e-12)
        known = held_out.losses(size.tree, STRENGTHS, "likelihood", size.leaf_sums)
        np.testing.assert_allclose(known, held_out.losses(size.tree, STRENGTHS, "likelihood"), rtol=1e-12)


def test_a_single_leaf_is_judged_by_what_the_training_rows_say(rows):
    """Minus the log-likelihood of a relative risk of one: the mean hazard that rows went through."""
    data = survival_data(*rows)
    p = OptimalSurvivalTree(min_samples_leaf=1, shrinkage=0.0)
    search = RelativeRiskSearch(Rows.of(data, Binarizer(5).fit(data.X)), p, "nelson_aalen", Room(1e9))
    held_out, single = HeldOutRows(search, search.rows), search.best(0, None, np.inf, None).tree
    (loss,) = held_out.losses(single, [0.0], "likelihood")
    assert single.value[0, 0] == pytest.approx(1.0)
    assert loss == pytest.approx(went_through(search.baselines[0], search.rows).mean())
    assert held_out.losses(single, [0.0], "concordance") == [pytest.approx(0.5)]
