"""SoftSurvivalTree by the conventions of scikit-learn and scikit-survival, and what a fit refuses and keeps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.metrics import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
    integrated_brier_score,
)

from softsurv import SoftSurvivalTree

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}


def test_parameters_survive_cloning():
    tree = SoftSurvivalTree(depth=3, leaf="weibull", l2=0.3, random_state=9)
    assert clone(tree).get_params() == tree.get_params()
    assert tree.set_params(depth=1).depth == 1


@pytest.mark.parametrize("max_terms", [1, 3])
def test_the_unit_of_a_feature_changes_no_leaf_even_where_its_squares_overflow(rows, max_terms):
    X, y = rows[0][["x"]].assign(other=np.cos(np.arange(120)), third=np.sin(np.arange(120))), rows[1]
    far = X * [1e200, 1, 1]
    how = {"depth": 1, "max_terms": max_terms, "leaf": "weibull", "device": "cpu"}
    near = SoftSurvivalTree(**how).fit(X, y).apply(X)
    assert len(set(near)) == 2
    np.testing.assert_array_equal(SoftSurvivalTree(**how).fit(far, y).apply(far), near)


def test_fitting_leaves_the_arguments_alone(rows):
    tree = SoftSurvivalTree(**SINGLE)
    before = dict(tree.get_params())
    assert tree.fit(*rows) is tree
    assert tree.get_params() == before


def test_in_a_pipeline(rows):
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", SoftSurvivalTree(depth=1, **FIXED))])
    numbers = rows[0][["x"]]
    pipeline.fit(numbers, rows[1])
    assert pipeline.score(numbers, rows[1]) > 0.4
    assert pipeline.predict(numbers).shape == (120,)


def test_in_a_grid_search(rows):
    search = GridSearchCV(SoftSurvivalTree(**SINGLE), {"l2": [0.1, 10.0], "leaf": ["weibull", "lognormal"]}, cv=2)
    search.fit(*rows)
    assert search.best_params_["leaf"] in ("weibull", "lognormal")
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_cross_validation_scores_are_concordances(rows):
    scores = cross_val_score(SoftSurvivalTree(depth=1, **FIXED), *rows, cv=3)
    assert np.all((scores > 0.5) & (scores < 1))


def test_scorers_of_scikit_survival_carry_over(rows):
    scorer = as_concordance_index_ipcw_scorer(SoftSurvivalTree(**SINGLE)).fit(*rows)
    assert 0.4 < scorer.score(*rows) < 1
    times = np.quantile(rows[1]["time"], [0.2, 0.5, 0.7])
    assert 0.4 < as_cumulative_dynamic_auc_scorer(SoftSurvivalTree(**SINGLE), times).fit(*rows).score(*rows) < 1


def test_the_brier_scorer_of_scikit_survival_takes_step_functions(rows):
    """The class and the scorer that README prints."""

    class StepTree(SoftSurvivalTree):
        def predict_survival_function(self, X):
            return super().predict_survival_function(X, return_array=False)

    times = np.quantile(rows[1]["time"][rows[1]["event"]], [0.2, 0.5, 0.8])
    scorer = as_integrated_brier_score_scorer(StepTree(**SINGLE), times).fit(*rows)
    survival = SoftSurvivalTree(**SINGLE).fit(*rows).predict_survival_function(rows[0], scorer.estimator_.unique_times_)
    at = np.searchsorted(scorer.estimator_.unique_times_, times, side="right") - 1
    assert scorer.score(*rows) == pytest.approx(-integrated_brier_score(rows[1], rows[1], survival[:, at], times))
    tree = SoftSurvivalTree(**SINGLE)
    scores = cross_val_score(tree, *rows, cv=3, scoring=lambda tree, X, y: -tree.evaluate(X, y)["ibs"])
    assert np.all((scores < 0) & (scores > -0.25))


def test_a_fitted_tree_can_be_sent_to_another_process(trees, rows):
    again = pickle.loads(pickle.dumps(trees()))
    assert np.array_equal(again.predict(rows[0]), trees().predict(rows[0]))


def test_names_of_features(rows):
    tree = SoftSurvivalTree(**SINGLE).fit(*rows)
    assert tree.feature_names_in_.tolist() == ["x", "side", "noise"]
    assert tree.n_features_in_ == 3
    assert tree.encoded_names_ == ["noise", "side=right", "x"]  # alphabetical: the order of columns changes no fit
    numbers = SoftSurvivalTree(**SINGLE).fit(rows[0][["x"]].to_numpy(), rows[1])
    assert not hasattr(numbers, "feature_names_in_")


def test_columns_are_found_by_name(trees, rows):
    shuffled = rows[0][["noise", "x", "side"]].assign(other=1)
    assert np.array_equal(trees().predict(shuffled), trees().predict(rows[0]))


def test_measures_do_not_depend_on_the_order_of_the_rows(rows):
    """Equal rows tie, whatever the last digits of their places in a table would be."""
    X, y = rows[0][["x"]].round(1).assign(z=np.arange(120) % 3 / 3), rows[1]
    tree = SoftSurvivalTree(depth=1, max_terms=None, leaf="weibull", **FIXED).fit(X, y)
    order = np.random.default_rng(0).permutation(120)
    ordered, shuffled = tree.evaluate(X, y), tree.evaluate(X.iloc[order], y[order])
    assert tree.score(X.iloc[order], y[order]) == tree.score(X, y) == ordered["harrell_c"]
    for name in ("harrell_c", "ibs"):
        assert shuffled[name] == pytest.approx(ordered[name], abs=1e-14)


def test_measures_by_cause_do_not_depend_on_the_order_of_the_rows(rows):
    X = rows[0][["x"]].round(1)
    table = X.assign(t=rows[1]["time"], cause=np.where(rows[1]["event"], 1 + np.arange(120) % 2, 0))
    tree = SoftSurvivalTree(depth=1, max_terms=None, leaf="weibull", **FIXED).fit(table, time="t", cause="cause")
    shuffled = table.iloc[np.random.default_rng(0).permutation(120)]
    ours, theirs = (tree.evaluate(part, time="t", cause="cause")["causes"] for part in (table, shuffled))
    for cause, found in ours.items():
        for name, value in found.items():
            assert theirs[cause][name] == pytest.approx(value, abs=1e-12)
