"""Exports and saved state of OptimalSurvivalTree, and scikit-learn's conventions."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from softsurv import OptimalSurvivalTree, SurvivalData, load_model
from softsurv.errors import DataWarning
from softsurv.estimators.optimal import search as optimal_search
from softsurv.exact.search import Search
from softsurv.explore import leaf_summary

KINDS = [("relative_risk", "nelson_aalen"), ("relative_risk", "km"), ("ibs", "km"), ("ibs", "ipcw")]
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def test_importances_are_shares_of_the_gain(trees, rows, deviance):
    X, y = rows
    stump = OptimalSurvivalTree(max_depth=1).fit(X, y)
    assert np.array_equal(stump.feature_importances_ > 0, X.columns == stump.tree_.sources[stump.tree_.feature[0]].name)
    tree = trees()
    assert tree.feature_importances_.shape == (3,)
    assert tree.feature_importances_.sum() == pytest.approx(1.0)
    # depth two, root first: what the root's split takes off, and the rest
    root = tree.tree_.left[0], tree.tree_.right[0]
    whole = deviance(y, np.zeros(len(y)))
    halves = deviance(y, np.isin(tree.apply(X), tree.tree_.leaf[root[0] : root[1]]))
    name = tree.tree_.sources[tree.tree_.feature[0]].name
    others = [tree.tree_.sources[f].name for f in tree.tree_.feature[1:] if f >= 0]
    if name not in others:
        share = (whole - halves) / (whole - tree.objective_)
        assert tree.feature_importances_[list(X.columns).index(name)] == pytest.approx(share)


def test_exports_name_columns_and_leaves(trees, rows):
    tree = trees()
    text = tree.export_text()
    assert text.count("leaf ") == tree.tree_.n_leaves
    assert text.splitlines()[-1] == "Relative risk: the hazard against that of all training rows."
    assert text.count("relative risk") == tree.tree_.n_leaves
    assert "median" in text
    assert tree.export_dot().startswith("digraph tree {")
    scope: dict = {}
    exec(tree.export_python(), scope)
    assert [scope["leaf_of"](row) for row in rows[0].to_dict("records")] == tree.apply(rows[0]).tolist()
    state = json.loads(json.dumps(tree.to_dict(), allow_nan=False))
    assert len(state["leaves"]) == tree.tree_.n_leaves
    assert state["report"]["status"] == "optimal"
    assert len(leaf_summary(tree)) == tree.tree_.n_leaves


@pytest.mark.parametrize(("objective", "kind"), KINDS)
def test_saved_and_loaded(trees, rows, tmp_path, objective, kind):
    X, _ = rows
    tree = trees(objective, kind)
    tree.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert np.array_equal(again.apply(X), tree.apply(X))
    assert np.array_equal(again.predict(X), tree.predict(X))
    assert np.array_equal(again.predict_survival_function(X, TIMES), tree.predict_survival_function(X, TIMES))
    assert np.array_equal(again.predict_quantile(X, 0.25), tree.predict_quantile(X, 0.25))
    assert np.array_equal(again.predict_hazard_function(X, [3.0]), tree.predict_hazard_function(X, [3.0]))
    assert again.export_text() == tree.export_text()
    assert again.to_dict() == tree.to_dict()
    assert (again.objective_, again.gap_, again.status_) == (tree.objective_, tree.gap_, tree.status_)
    assert [size.objective for size in again.path_] == [size.objective for size in tree.path_]
    assert np.array_equal(again.feature_importances_, tree.feature_importances_)
    assert again.get_params() == tree.get_params()


# -- scikit-learn's conventions -------------------------------------------------------------------------------------
def test_parameters_survive_cloning(rows):
    tree = OptimalSurvivalTree("ibs", max_depth=3, thresholds={"x": [0.5]}, n_jobs=2)
    assert clone(tree).get_params() == tree.get_params()
    plain = OptimalSurvivalTree(max_depth=1)
    before = dict(plain.get_params())
    assert plain.fit(*rows) is plain
    assert plain.get_params() == before


def test_in_a_pipeline_and_a_grid_search(rows):
    X, y = rows
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", OptimalSurvivalTree(max_depth=2))]).fit(X[["x"]], y)
    assert pipeline.predict(X[["x"]]).shape == (120,)
    search = GridSearchCV(
        OptimalSurvivalTree(max_depth=1), {"max_depth": [1, 2], "objective": ["relative_risk", "ibs"]}
    )
    search.fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert np.all(cross_val_score(OptimalSurvivalTree(max_depth=2), X, y, cv=3) > 0.5)


def test_a_fitted_tree_can_be_sent_to_another_process(trees, rows):
    again = pickle.loads(pickle.dumps(trees()))
    assert np.array_equal(again.predict(rows[0]), trees().predict(rows[0]))


def test_every_form_of_input(rows):
    X, y = rows
    expected = OptimalSurvivalTree(max_depth=2).fit(X, y)
    table = X.assign(t=y["time"], e=y["event"])
    data = SurvivalData(X, time=y["time"], event=y["event"])
    for given in (
        OptimalSurvivalTree(max_depth=2).fit(table, time="t", event="e"),
        OptimalSurvivalTree(max_depth=2).fit(data),
        OptimalSurvivalTree(max_depth=2).fit(pl.from_pandas(X), (y["event"], y["time"])),
    ):
        assert given.objective_ == expected.objective_
        assert given.feature_names_in_.tolist() == list(X.columns)
    assert np.array_equal(expected.predict(data), expected.predict(X[X.columns[::-1]]))
    numbers = OptimalSurvivalTree(max_depth=1).fit(X[["x"]].to_numpy(), y)
    assert not hasattr(numbers, "feature_names_in_")
    assert numbers.apply(X[["x"]].to_numpy()).shape == (120,)
    assert "x0 <= " in numbers.export_text()


def test_missing_and_unseen_values(trees, rows):
    X, _ = rows
    gaps = X.iloc[:2].assign(x=[np.nan, 0.0], side=[None, "left"])
    filled = gaps.assign(x=[X["x"].mean(), 0.0], side=[X["side"].mode()[0], "left"])
    with pytest.warns(DataWarning, match="none missing in training: 'side' in 1 row.*; 'x' in 1 row"):
        assert np.array_equal(trees().apply(gaps), trees().apply(filled))
    with pytest.warns(DataWarning, match="not seen in training"):
        assert trees().apply(X.iloc[:1].assign(side="elsewhere")).shape == (1,)


def test_the_path_is_worked_out_when_asked_for(rows, monkeypatch):
    X, y = rows
    solved = []
    solve = Search.solve

    def spy(self, depth, leaves=None, **how):
        solved.append(leaves)
        return solve(self, depth, leaves, **how)

    monkeypatch.setattr(Search, "solve", spy)
    tree = OptimalSurvivalTree(max_depth=3).fit(X, y)
    assert solved == [None]
    sizes = tree.path_
    assert solved == [None, *range(1, tree.tree_.n_leaves)]
    assert sizes[-1].objective == tree.objective_
    assert tree.path_ is sizes
    again = OptimalSurvivalTree(max_depth=3).fit(X, y, sample_weight=np.where(X["x"] > 0, 1.0, 2.0))
    assert again.path_[-1].objective == again.objective_ != sizes[-1].objective


def test_a_cache_too_large_to_keep_gives_the_same_path(rows, monkeypatch):
    kept = OptimalSurvivalTree(max_depth=3).fit(*rows)
    monkeypatch.setattr(optimal_search, "KEPT_BYTES", 0)
    released = OptimalSurvivalTree(max_depth=3).fit(*rows)
    assert [size.objective for size in released.path_] == [size.objective for size in kept.path_]


def test_a_pickled_copy_has_the_path_that_was_asked_for(rows):
    tree = OptimalSurvivalTree(max_depth=2).fit(*rows)
    early = pickle.dumps(tree)
    assert len(early) < 60_000  # neither rows nor search
    with pytest.raises(AttributeError, match="path_ was not worked out before this tree was pickled"):
        _ = pickle.loads(early).path_
    expected = [size.objective for size in tree.path_]
    late = pickle.loads(pickle.dumps(tree))
    assert [size.objective for size in late.path_] == expected
    for copy in (pickle.loads(early), late):
        assert copy.to_dict() == tree.to_dict()
        assert np.array_equal(copy.feature_importances_, tree.feature_importances_)
        assert np.array_equal(
            copy.predict_survival_function(rows[0], TIMES), tree.predict_survival_function(rows[0], TIMES)
        )


def test_a_pickled_copy_is_saved_without_the_path_that_it_has_not(rows, tmp_path):
    """Saving worked out the path, for which the copy has no rows: an error, and nothing was saved."""
    tree = OptimalSurvivalTree(max_depth=2).fit(*rows)
    pickle.loads(pickle.dumps(tree)).save(tmp_path / "copy")
    again = load_model(tmp_path / "copy")
    assert again.to_dict() == tree.to_dict()
    with pytest.raises(AttributeError, match="path_ was not worked out before this tree was pickled"):
        _ = again.path_
    again.save(tmp_path / "again")


def test_leaves_that_predict_time_lost_export_it(rows):
    X, y = rows
    tree = OptimalSurvivalTree(max_depth=2, leaf="km").fit(X, y)
    leaves, risk = tree.to_dict()["leaves"], dict(zip(tree.apply(X).tolist(), tree.predict(X).tolist(), strict=True))
    assert [leaf["time_lost"] for leaf in leaves] == pytest.approx([risk[k] for k in range(len(leaves))])
    assert "relative_risk" not in leaves[0]
    assert all(f"time lost {value:.4g}" in tree.export_python() for value in risk.values())
    assert "relative risk" not in tree.export_python()


def test_a_single_leaf_that_was_chosen_says_why():
    rng = np.random.default_rng(1)
    X, time = pd.DataFrame(rng.normal(size=(200, 3))).add_prefix("x"), rng.exponential(size=200)
    said = "A single leaf was chosen by cross-validation: no split is clearly better on held-out rows."
    chosen = OptimalSurvivalTree().fit(X, (np.ones(200, dtype=bool), time))
    assert chosen.tree_.n_leaves == 1
    assert said in chosen.export_text()
    given = OptimalSurvivalTree(max_depth=0).fit(X, (np.ones(200, dtype=bool), time))
    split = OptimalSurvivalTree().fit(X, (np.ones(200, dtype=bool), time * np.exp(3 * (X["x0"] > 0))))
    assert split.tree_.n_leaves > 1
    assert not any(said in tree.export_text() for tree in (given, split))
