"""OptimalSurvivalTree: objectives by their definitions, predictions, scikit-learn's conventions, wrong input."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.util import Surv

import softsurv.estimators.optimal as optimal_module
from softsurv import OptimalSurvivalTree, SurvivalData, load_dataset, load_model
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.exact.objectives.brier import IbsScore
from softsurv.explore import leaf_summary
from softsurv.nonparametric import StepFunction, kaplan_meier, nelson_aalen, quantile, restricted_mean
from softsurv.results import Status

TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])
KINDS = [("relative_risk", "nelson_aalen"), ("relative_risk", "km"), ("ibs", "km"), ("ibs", "ipcw")]


def make_rows(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups whose risk runs against each other in x, a number with gaps and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(2),
            "side": rng.choice(["left", "middle", "right"], n),
            "noise": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    slope = np.where(X["side"] == "left", 1.0, -1.0)
    time = (8 * rng.weibull(1.6, n) * np.exp(-slope * X["x"])).round(1) + 0.1
    censoring = rng.exponential(25.0, n).round(1) + 0.1
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring))


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def trees(rows):
    """A fitted tree of depth two for each objective and leaf, made when asked for."""
    fitted: dict[tuple[str, str], OptimalSurvivalTree] = {}

    def tree(objective: str = "relative_risk", leaf: str = "nelson_aalen") -> OptimalSurvivalTree:
        if (objective, leaf) not in fitted:
            fitted[objective, leaf] = OptimalSurvivalTree(objective, max_depth=2, leaf=leaf).fit(*rows)
        return fitted[objective, leaf]

    return tree


def deviance(y, leaf, weight=None):
    """Eq. 20 of paper `surtree`, row by row."""
    w = np.ones(len(y)) if weight is None else weight
    hazard = nelson_aalen(y["time"], y["event"], w)(y["time"])
    hazard = np.where(hazard > 0, hazard, 1 / (w.sum() + 1))
    total = 0.0
    for k in np.unique(leaf):
        here = leaf == k
        es, hs = (w * y["event"])[here].sum(), (w * hazard)[here].sum()
        total -= sum(w[i] * math.log(hazard[i]) for i in np.flatnonzero(here & y["event"]))
        total -= es * math.log(es / hs) if es else 0.0
    return total


def brier(y, leaf, kind="km", weight=None):
    """Eq. 4 of paper `osst` without complexity."""
    score = IbsScore.from_columns(y["time"], y["event"], weight)
    return sum(score.leaf_loss(np.flatnonzero(leaf == k), kind) for k in np.unique(leaf))


def all_partitions(X):
    """Leaf of each row for every tree of depth <= 2 on every possible split."""
    splits = [X["x"] <= cut for cut in np.unique(X["x"])[:-1]]
    splits += [X["side"] == level for level in np.unique(X["side"])]
    nothing = pd.Series(True, index=X.index)
    for root, left, right in itertools.product([nothing, *splits], repeat=3):
        yield np.where(root, np.where(left, 0, 1), np.where(right, 2, 3))


# -- optimality -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_no_tree_of_depth_two_is_better(objective, seed):
    X, y = make_rows(10, seed)
    X = X[["x", "side"]]
    tree = OptimalSurvivalTree(objective, max_depth=2, thresholds="all").fit(X, y)
    loss = deviance if objective == "relative_risk" else brier
    assert tree.status_ is Status.OPTIMAL
    assert tree.gap_ == pytest.approx(0.0, abs=1e-9)
    by_leaves: dict[int, float] = {}
    seen: dict[bytes, float] = {}
    for leaf in all_partitions(X):
        key = np.unique(leaf, return_inverse=True)[1].tobytes()
        if key not in seen:
            seen[key] = loss(y, leaf)
        k = np.unique(leaf).size
        by_leaves[k] = min(by_leaves.get(k, np.inf), seen[key])
    assert tree.objective_ == pytest.approx(min(by_leaves.values()), abs=1e-9)
    path = OptimalSurvivalTree(objective, max_depth=2, max_leaves=4, thresholds="all").fit(X, y).path_
    best = np.minimum.accumulate([by_leaves[k] for k in sorted(by_leaves)])
    assert_allclose([size.objective for size in path][: len(best)], best[: len(path)], atol=1e-9)


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
@pytest.mark.parametrize("complexity", [0.0, 0.004])
def test_the_objective_is_that_of_the_tree(rows, objective, leaf, complexity):
    X, y = rows
    tree = OptimalSurvivalTree(objective, max_depth=3, max_leaves=5, leaf=leaf, complexity=complexity).fit(X, y)

    def scored(leaves):
        return deviance(y, leaves) if objective == "relative_risk" else brier(y, leaves, leaf)

    for size in [*tree.path_, None]:
        one, objective_ = (tree.tree_, tree.objective_) if size is None else (size.tree, size.objective)
        expected = scored(one.apply(X)) + complexity * one.n_leaves
        assert objective_ == pytest.approx(expected, rel=1e-9)
    assert [size.max_leaves for size in tree.path_] == list(range(1, len(tree.path_) + 1))
    assert all(size.tree.n_leaves <= size.max_leaves for size in tree.path_)
    assert np.all(np.diff([size.objective for size in tree.path_]) <= 1e-12) or complexity > 0
    assert tree.objective_ == pytest.approx(min(size.objective for size in tree.path_))


def test_limits_hold(rows):
    X, y = rows
    tree = OptimalSurvivalTree(max_depth=3, max_leaves=4, min_samples_leaf=17).fit(X, y)
    assert tree.tree_.n_leaves <= 4
    assert tree.tree_.depth <= 3
    assert tree.leaf_table_.n.min() >= 17
    costly = OptimalSurvivalTree(max_depth=3, complexity=1e3).fit(X, y)
    assert costly.tree_.n_leaves == 1
    assert costly.objective_ == pytest.approx(1e3 + deviance(y, np.zeros(len(y))))


def test_a_limit_on_depth_is_not_needed_for_the_brier_score(rows):
    tree = OptimalSurvivalTree("ibs", max_depth=None, complexity=0.02).fit(*rows)
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_ <= OptimalSurvivalTree("ibs", max_depth=3, complexity=0.02).fit(*rows).objective_ + 1e-9


def test_finer_thresholds_are_never_worse(rows):
    objectives = [OptimalSurvivalTree(max_depth=2, thresholds=k).fit(*rows).objective_ for k in (1, 10, "all")]
    assert objectives[2] <= min(objectives[:2]) + 1e-9


@pytest.mark.parametrize(("objective", "leaf"), KINDS)
def test_the_unit_of_weights_changes_nothing(objective, leaf):
    """Weights that add up to one are no sign of a sample of one: constants that count subjects count the same ones."""
    X, y = make_rows(150, seed=3)
    y["event"][X["x"] < -0.3] = False  # a leaf without events
    y["event"][np.argsort(y["time"])[:20]] = False  # rows before the first event
    settings = {"max_depth": 2, "objective": objective, "leaf": leaf}
    one = OptimalSurvivalTree(**settings).fit(X, y)
    for unit in (1 / len(y), 40.0):
        scaled = OptimalSurvivalTree(**settings).fit(X, y, sample_weight=np.full(len(y), unit))
        assert_allclose(scaled.predict_survival_function(X, TIMES), one.predict_survival_function(X, TIMES), atol=1e-9)


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_weights_are_copies(rows, objective):
    X, y = rows
    copies = np.random.default_rng(0).integers(0, 3, len(y))
    index = np.repeat(np.arange(len(y)), copies)
    kept = X.iloc[index]
    settings = {"objective": objective, "max_depth": 2, "thresholds": "all"}
    weighted = OptimalSurvivalTree(**settings).fit(X[["x", "side"]], y, sample_weight=copies)
    repeated = OptimalSurvivalTree(**settings).fit(kept[["x", "side"]], y[index])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    assert_allclose(
        weighted.predict_survival_function(kept, TIMES), repeated.predict_survival_function(kept, TIMES), atol=1e-9
    )


def test_late_entry_raises_the_early_hazard(rows):
    X, y = rows
    plain = OptimalSurvivalTree(max_depth=1).fit(X, y)
    for leaf in ("nelson_aalen", "km"):
        late = OptimalSurvivalTree(max_depth=1, leaf=leaf).fit(X, y, entry=0.8 * y["time"])
        assert late.predict_survival_function(X, [1.0]).mean() < plain.predict_survival_function(X, [1.0]).mean()


def test_threads_find_the_same_tree(rows):
    one, two = (OptimalSurvivalTree(max_depth=4, n_jobs=k).fit(*rows) for k in (1, 2))
    assert one.tree_.to_dict() == two.tree_.to_dict()
    assert one.objective_ == two.objective_


# -- reference models -----------------------------------------------------------------------------------------------
def test_a_reference_makes_the_result_conditional(rows):
    X, y = rows
    numbers = X[["x"]].assign(left=X["side"] == "left")
    forest = RandomSurvivalForest(30, min_samples_leaf=5, random_state=0)
    settings = {"objective": "ibs", "max_depth": 2, "complexity": 0.01}
    exact = OptimalSurvivalTree(**settings).fit(numbers, y)
    inner = OptimalSurvivalTree("ibs", max_depth=3, complexity=0.01)
    grid = np.unique(y["time"])
    curves = np.tile(kaplan_meier(y["time"], y["event"])(grid), (len(y), 1))
    fitted = clone(forest).fit(numbers, y)
    for reference in (forest, fitted, inner, curves):
        tree = OptimalSurvivalTree(**settings, reference=reference).fit(numbers, y)
        assert tree.status_ is Status.CONDITIONALLY_OPTIMAL
        distance = tree.report_.details["guaranteed_distance"]
        assert exact.objective_ - 1e-9 <= tree.objective_ <= exact.objective_ + distance + 1e-9
        assert tree.lower_bound_ <= exact.objective_ + 1e-9
    clones = OptimalSurvivalTree(**settings, reference=fitted)
    assert clone(clones).fit(numbers, y).objective_ == pytest.approx(
        OptimalSurvivalTree(**settings, reference=forest).fit(numbers, y).objective_
    )
    with pytest.raises(InvalidParameterError, match=r"reference must have shape \(N, T\)"):
        OptimalSurvivalTree(**settings, reference=curves[:, 1:]).fit(numbers, y)
    with pytest.raises(InvalidParameterError, match="a model with predict_survival_function, got StandardScaler"):
        OptimalSurvivalTree(**settings, reference=StandardScaler()).fit(numbers, y)


def test_a_reference_sees_encoded_categories(rows):
    tree = OptimalSurvivalTree("ibs", max_depth=1, reference=RandomSurvivalForest(5, random_state=0)).fit(*rows)
    assert tree.status_ is Status.CONDITIONALLY_OPTIMAL


def test_a_reference_is_not_saved(rows, tmp_path):
    tree = OptimalSurvivalTree("ibs", max_depth=1, reference=RandomSurvivalForest(5, random_state=0)).fit(*rows)
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").reference is None
    assert tree.reference is not None


# -- predictions ----------------------------------------------------------------------------------------------------
def curves_of(tree, y, leaf):
    """Survival curves of the leaves by their definitions."""
    if tree.leaf_ == "nelson_aalen":
        baseline = nelson_aalen(y["time"], y["event"])
        hazard = np.where(baseline(y["time"]) > 0, baseline(y["time"]), 1 / (len(y) + 1))
        out = []
        for k in range(tree.tree_.n_leaves):
            es, hs = y["event"][leaf == k].sum(), hazard[leaf == k].sum()
            theta = es / hs if es else 0.5 / hs
            out.append(StepFunction(baseline.times, np.exp(-theta * baseline.values), 1.0))
        return out
    if tree.leaf_ == "km":
        return [kaplan_meier(y["time"][leaf == k], y["event"][leaf == k]) for k in range(tree.tree_.n_leaves)]
    score = IbsScore.from_columns(y["time"], y["event"])
    return [
        StepFunction(np.unique(y["time"]), score.curve(np.flatnonzero(leaf == k), "ipcw", monotone=True), 1.0)
        for k in range(tree.tree_.n_leaves)
    ]


@pytest.mark.parametrize(("objective", "kind"), KINDS)
def test_predictions_are_those_of_the_leaf(trees, rows, objective, kind):
    X, y = rows
    tree = trees(objective, kind)
    leaf = tree.apply(X)
    assert np.array_equal(np.unique(leaf), np.arange(tree.tree_.n_leaves))
    curves = curves_of(tree, y, leaf)
    grid = np.sort(np.concatenate([TIMES, np.unique(y["time"]), np.unique(y["time"]) - 1e-9]))
    grid = grid[grid >= 0]
    expected = np.array([curves[k](grid) for k in leaf])
    assert_allclose(tree.predict_survival_function(X, grid), expected, atol=1e-12)
    with np.errstate(divide="ignore"):
        assert_allclose(tree.predict_cumulative_hazard_function(X, grid), -np.log(expected), atol=1e-12)
    for share in (0.1, 0.25, 0.5, 0.9):
        assert np.array_equal(tree.predict_quantile(X, share), [quantile(curves[k], share) for k in leaf])
    for horizon in (3.0, tree.horizon_):
        area = [restricted_mean(curves[k], horizon) for k in leaf]
        assert_allclose(tree.predict_expectation(X, horizon), area, rtol=1e-12)
    if kind == "nelson_aalen":
        assert_allclose(tree.predict(X), tree.tree_.value[leaf, 0])
    else:
        assert_allclose(tree.predict(X), tree.horizon_ - tree.predict_expectation(X))


@pytest.mark.parametrize(("objective", "kind"), KINDS)
def test_the_hazard_adds_up_to_the_cumulative_hazard_at_the_steps(trees, rows, objective, kind):
    X, _ = rows
    tree = trees(objective, kind)
    steps = np.unique(np.concatenate([hazard.times for hazard in tree.curves_.hazards]))
    grid = np.concatenate([[0.0], steps])
    middle = 0.5 * (grid[1:] + grid[:-1])
    area = np.cumsum(tree.predict_hazard_function(X, middle) * np.diff(grid), axis=1)
    cumulative = tree.predict_cumulative_hazard_function(X, steps)
    for k, hazard in enumerate(tree.curves_.hazards):
        row = np.flatnonzero(tree.apply(X) == k)[0]
        at = np.isin(steps, hazard.times) & np.isfinite(cumulative[row])
        assert_allclose(area[row, at], cumulative[row, at], rtol=1e-9)
    assert np.all(tree.predict_hazard_function(X, [tree.horizon_ + 1]) == 0)


def test_a_leaf_without_events_has_half_an_event():
    X = pd.DataFrame({"x": [0.0] * 6 + [1.0] * 6})
    y = Surv.from_arrays([True] * 6 + [False] * 6, [1.0, 2, 3, 4, 5, 6] * 2)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    hazard = nelson_aalen(y["time"], y["event"])(y["time"])
    assert tree.leaf_table_.events.tolist() == [6, 0]
    assert_allclose(tree.tree_.value[:, 0], [6 / hazard[:6].sum(), 0.5 / hazard[6:].sum()])
    assert 0 < tree.predict_survival_function(X, [6.0])[-1, 0] < 1


def test_step_functions_and_scores(trees, rows):
    X, y = rows
    tree = trees()
    curve = tree.predict_survival_function(X.iloc[:3], return_array=False)[0]
    assert_allclose(curve(tree.unique_times_), tree.predict_survival_function(X.iloc[:1])[0])
    result = tree.evaluate(X, y)
    assert result["harrell_c"] == tree.score(X, y) > 0.6
    assert 0 < result["ibs"] < 0.25


def test_leaves_count_the_rows(trees, rows):
    X, y = rows
    tree = trees()
    assert tree.leaf_table_.n.tolist() == np.bincount(tree.apply(X)).tolist()
    assert tree.leaf_table_.events.sum() == y["event"].sum()


def test_importances_are_shares_of_the_gain(trees, rows):
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


# -- the tree to read -----------------------------------------------------------------------------------------------
def test_exports_name_columns_and_leaves(trees, rows):
    tree = trees()
    text = tree.export_text()
    assert text.count("leaf ") == tree.tree_.n_leaves
    assert "relative risk" in text
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
    assert np.array_equal(trees().apply(gaps), trees().apply(filled))
    with pytest.warns(DataWarning, match="not seen in training"):
        assert trees().apply(X.iloc[:1].assign(side="elsewhere")).shape == (1,)


# -- tuning and limits ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_cross_validation_chooses_depth_and_leaves(objective):
    X, y = make_rows(200)
    tree = OptimalSurvivalTree(objective, max_depth=3, tune="cv").fit(X, y)
    table = tree.selection_
    assert table["chosen"].sum() == 1
    assert table["chosen"].iloc[0]
    assert table["loss"].is_monotonic_increasing
    tried = {tuple(size) for size in table[["max_depth", "max_leaves"]].to_numpy()}
    assert tried == {(d, k) for d in range(4) for k in range(d + 1, 2**d + 1)}
    assert tree.tree_.depth <= table["max_depth"].iloc[0]
    assert tree.tree_.n_leaves <= table["max_leaves"].iloc[0]
    assert tree.tree_.n_leaves > 1  # the data cross over
    again = OptimalSurvivalTree(objective, max_depth=3, tune="cv").fit(X, y)
    assert again.selection_.equals(table)


def test_cross_validation_leaves_noise_alone():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
    y = Surv.from_arrays(rng.random(150) < 0.7, rng.exponential(5, 150))
    tuned = OptimalSurvivalTree(max_depth=3, tune="cv").fit(X, y)
    assert tuned.tree_.n_leaves < OptimalSurvivalTree(max_depth=3).fit(X, y).tree_.n_leaves


def test_the_held_out_loss_is_that_of_refitted_trees():
    """One search per fold gives what fitting every size anew gives."""
    from softsurv.data.partition import stratified_folds

    X, y = make_rows(90)
    tree = OptimalSurvivalTree(max_depth=2, tune="cv", random_state=3).fit(X, y)
    losses = []
    for train, test in stratified_folds(y["event"], 5, 3):
        part = OptimalSurvivalTree(max_depth=2, max_leaves=3).fit(X.iloc[train], y[train])
        theta = part.predict(X.iloc[test])
        hazard = nelson_aalen(y["time"][train], y["event"][train])(y["time"][test])
        losses.append(np.mean(theta * hazard - y["event"][test] * np.log(theta)))
    size = tree.selection_.set_index(["max_depth", "max_leaves"])
    assert size.loc[(2, 3), "loss"] == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_a_time_limit_keeps_the_best_so_far(objective):
    X, y = make_rows(300)
    with pytest.warns(ConvergenceWarning, match="the search ended at its time limit with objective .* lower bound"):
        tree = OptimalSurvivalTree(objective, max_depth=5, thresholds="all", time_limit=0.05).fit(X, y)
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.lower_bound_ <= tree.objective_
    assert tree.gap_ == tree.objective_ - tree.lower_bound_
    assert np.isfinite(tree.predict(X)).all()
    assert len(tree.path_) >= 1


def test_a_time_limit_holds_for_the_choice_too(rows):
    with pytest.warns(ConvergenceWarning, match=r"cross-validation ended early \(time_limit\)"):
        tree = OptimalSurvivalTree(max_depth=6, thresholds="all", tune="cv", time_limit=1.0).fit(*rows)
    assert tree.report_.details["selection"] == "time_limit"
    assert tree.selection_["loss"].notna().all()


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_ctrl_c_keeps_the_best_so_far():
    X, y = make_rows(300)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    tree = OptimalSurvivalTree(max_depth=7, thresholds="all", time_limit=30.0)
    timer.start()
    with pytest.warns(ConvergenceWarning, match="ended at its interrupted|interrupted"):
        tree.fit(X, y)
    timer.join()
    assert tree.status_ is Status.INTERRUPTED
    assert tree.lower_bound_ <= tree.objective_
    assert np.isfinite(tree.predict(X)).all()


def test_the_progress_bar_is_on_request(rows, capsys):
    OptimalSurvivalTree(max_depth=3).fit(*rows)
    assert capsys.readouterr().err == ""
    OptimalSurvivalTree(max_depth=3, progress=True).fit(*rows)
    assert "searching" in capsys.readouterr().err


# -- odd data -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("objective", "leaf"), KINDS)
@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, (np.arange(len(y)) == 3, y["time"])),
        lambda X, y: (X, (y["event"], np.full(len(y), 3.0))),
        lambda X, y: (X, (np.ones(len(y), bool), np.ceil(y["time"] / 5))),
        lambda X, y: (X.iloc[:1], ([True], [2.0])),
        lambda X, y: (X.iloc[:2], ([True, False], [2.0, 2.0])),
    ],
    ids=["one event", "equal times", "ties", "one row", "two rows"],
)
@pytest.mark.filterwarnings("ignore:no feature can be split")
def test_odd_data(rows, objective, leaf, change):
    X, y = change(*rows)
    tree = OptimalSurvivalTree(objective, max_depth=2, leaf=leaf).fit(X, y)
    survival = tree.predict_survival_function(X, TIMES)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 0)
    assert np.isfinite(tree.predict(X)).all()
    assert tree.status_ is Status.OPTIMAL


def test_zero_times_are_said(rows):
    X, y = rows
    time = y["time"].copy()
    time[:3] = 0.0
    with pytest.warns(DataWarning, match="time is 0 in 3 of 120 rows"):
        tree = OptimalSurvivalTree(max_depth=2).fit(X, (y["event"], time))
    assert np.all(tree.predict_survival_function(X, [0.0]) <= 1)


def test_constant_features_give_one_curve(rows):
    with pytest.warns(DataWarning, match="no feature can be split, so all rows get one curve; check X"):
        tree = OptimalSurvivalTree().fit(rows[0].assign(x=1, side="left", noise=0), rows[1])
    assert tree.tree_.n_leaves == 1
    assert np.array_equal(tree.feature_importances_, np.zeros(3))


@pytest.mark.parametrize("name", ["gbsg2", "veterans", "whas500"])
def test_real_data(name):
    train, test = load_dataset(name).split(seed=0)
    tree = OptimalSurvivalTree(max_depth=3, min_samples_leaf=10, min_share=0.01).fit(train)
    assert tree.status_ is Status.OPTIMAL
    y = {"time": train.time.numpy(), "event": train.event.numpy()}
    structured = Surv.from_arrays(y["event"], y["time"])
    assert tree.objective_ == pytest.approx(deviance(structured, tree.apply(train)), rel=1e-9)
    assert tree.score(test.X, test.y) > 0.55


# -- one sentence for every wrong input -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"objective": "auc"}, "objective must be one of 'relative_risk', 'ibs', got 'auc'"),
        (
            {"leaf": "ipcw"},
            "leaf must be one of 'auto', 'nelson_aalen', 'km' for objective='relative_risk', got 'ipcw'",
        ),
        ({"objective": "ibs", "leaf": "nelson_aalen"}, "leaf must be one of 'auto', 'km', 'ipcw' for objective='ibs'"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
        ({"max_depth": 11}, "max_depth must be an integer from 0 to 10 for objective='relative_risk', got 11"),
        ({"max_depth": None}, "max_depth must be an integer from 0 to 10 for objective='relative_risk', got None"),
        ({"max_leaves": 0}, "max_leaves must be an integer >= 1, got 0"),
        ({"min_samples_leaf": 0.5}, r"min_samples_leaf must be an integer >= 1, got 0\.5"),
        ({"min_samples_leaf": 500}, "min_samples_leaf must be at most the number of rows, 120, got 500"),
        ({"complexity": -0.1}, r"complexity must be a finite number >= 0, got -0\.1"),
        ({"complexity": np.nan}, "complexity must be a finite number >= 0, got nan"),
        ({"thresholds": "few"}, "thresholds must be an integer >= 1"),
        ({"time_limit": -1}, "time_limit must be a finite number of seconds >= 0, got -1"),
        ({"memory_limit": 10}, r"memory_limit must be a finite number of bytes >= 1e\+06, got 10"),
        ({"n_jobs": 0}, "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
        ({"tune": "grid"}, "tune must be one of None, 'cv', got 'grid'"),
        ({"objective": "ibs", "tune": "cv", "max_depth": None}, 'max_depth must be given where tune="cv"'),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"reference": np.zeros(3)}, "reference must be None for objective='relative_risk'"),
    ],
    ids=str,
)
def test_a_wrong_argument(rows, arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence) as caught:
        OptimalSurvivalTree(**arguments).fit(*rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X, y: OptimalSurvivalTree().fit(X, (np.zeros(120, bool), y["time"])), "event must be True in at least"),
        (lambda X, y: OptimalSurvivalTree().fit(X, y, sample_weight=np.where(y["event"], 0, 1)), "event must be True"),
        (
            lambda X, y: OptimalSurvivalTree("ibs").fit(X, y, entry=y["time"] / 2),
            'entry must be left out for objective="',
        ),
        (lambda X, y: OptimalSurvivalTree().fit(X.assign(x=np.inf), y), "X must be finite or missing"),
        (lambda X, y: OptimalSurvivalTree().fit(X.assign(day=pd.Timestamp("2020-01-01")), y), "day"),
        (
            lambda X, y: OptimalSurvivalTree().fit(
                SurvivalData(X, time=y["time"], event=y["event"], upper=np.where(y["event"], np.inf, y["time"] + 1))
            ),
            "upper must be inf in every row for an optimal tree",
        ),
    ],
)
def test_wrong_data(rows, call, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence) as caught:
        call(*rows)
    assert "\n" not in str(caught.value)


def test_wrong_predictions(trees, rows):
    with pytest.raises(InvalidParameterError, match="predictions of an optimal tree take no path; leave it out"):
        trees().predict(rows[0], path="soft")
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0"):
        trees().predict_expectation(rows[0], 0.0)
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'x'"):
        trees().predict(rows[0].drop(columns="x"))
    for method in ("predict", "apply", "predict_median", "predict_expectation"):
        with pytest.raises(NotFittedError):
            getattr(OptimalSurvivalTree(), method)(rows[0])
    with pytest.raises(NotFittedError):
        OptimalSurvivalTree().export_text()


def test_the_time_limit_counts_from_the_call(rows, monkeypatch):
    """Reading and coding the rows are on the clock, compiling is not."""
    seen = []
    best = optimal_module.RelativeRiskSearch.best

    def spy(self, depth, leaves, seconds, progress):
        seen.append(seconds)
        return best(self, depth, leaves, seconds, progress)

    monkeypatch.setattr(optimal_module.RelativeRiskSearch, "best", spy)
    OptimalSurvivalTree(max_depth=1, time_limit=5.0).fit(*rows)
    OptimalSurvivalTree(max_depth=1, time_limit=None).fit(*rows)
    assert 0 < seen[0] < 5.0
    assert seen[1] == math.inf


def test_conditional_survival_where_nobody_is_left(rows):
    X, y = rows
    y = y.copy()
    y["event"] = True
    tree = OptimalSurvivalTree(max_depth=1, leaf="km").fit(X, y)
    after = y["time"].max() + 1
    assert_allclose(tree.predict_conditional_survival(X[:2], after, [0.0, after, after + 1]), [[1, 1, 0]] * 2)
