"""SoftSurvivalTree: predictions of every leaf family, scikit-learn's conventions, training that stops, wrong input."""

from __future__ import annotations

import pickle
import re
import signal
import threading

import lifelines
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.metrics import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
    integrated_brier_score,
)
from sksurv.util import Surv

import softsurv.estimators.soft as soft_module
from softsurv import SoftSurvivalTree, SurvivalData
from softsurv.budget import Budget
from softsurv.data.datasets import load_dataset
from softsurv.errors import DataWarning, EvaluationWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.hazards import family_names, get_family
from softsurv.metrics import harrell_c
from softsurv.persistence import load_model
from softsurv.results import Status

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


def make_rows(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two groups whose risk runs against each other in x, a number with gaps and a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "side": rng.choice(["left", "right"], n),
            "noise": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    slope = np.where(X["side"] == "left", 1.0, -1.0)
    time = 8 * rng.weibull(1.6, n) * np.exp(-slope * X["x"]) + 0.01
    censoring = rng.exponential(25.0, n)
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring))


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def trees(rows):
    """One fitted tree for each leaf family, made when asked for."""
    fitted: dict[str, SoftSurvivalTree] = {}

    def tree(family: str = "loglogistic") -> SoftSurvivalTree:
        if family not in fitted:
            fitted[family] = SoftSurvivalTree(depth=2, leaf=family, **FIXED).fit(*rows)
        return fitted[family]

    return tree


# -- predictions ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["hbp", "soft"])
@pytest.mark.parametrize("family", family_names())
def test_survival_starts_at_one_and_falls(trees, rows, family, path):
    survival = trees(family).predict_survival_function(rows[0], TIMES, path=path)
    assert survival.shape == (120, 5)
    assert survival.dtype == np.float64
    assert np.all(survival[:, 0] == 1)
    assert np.all((survival >= 0) & (survival <= 1))
    assert np.all(np.diff(survival) <= 0)
    assert_allclose(survival, np.exp(-trees(family).predict_cumulative_hazard_function(rows[0], TIMES, path=path)))


@pytest.mark.parametrize("family", family_names())
def test_the_hazard_is_the_slope_of_the_cumulative_hazard(trees, rows, family):
    tree, at, step = trees(family), np.array([0.7, 4.0, 11.0]), 1e-5
    both = [tree.predict_cumulative_hazard_function(rows[0], at * (1 + s)) for s in (step, -step)]
    assert_allclose(tree.predict_hazard_function(rows[0], at), (both[0] - both[1]) / (2 * step * at), rtol=1e-5)


@pytest.mark.parametrize("path", ["hbp", "soft"])
@pytest.mark.parametrize("family", family_names())
def test_quantiles_lie_on_the_curve(trees, rows, family, path):
    tree, X = trees(family), rows[0].iloc[:15]
    for share in (0.1, 0.5):
        quantile = tree.predict_quantile(X, share, path=path)
        reached = np.isfinite(quantile)
        assert reached.any()
        survival = tree.predict_survival_function(X, np.where(reached, quantile, 1.0), path=path)
        assert_allclose(np.diag(survival)[reached], 1 - share, atol=1e-9)
    assert np.array_equal(tree.predict_median(X, path=path), quantile)


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_the_expectation_is_the_area_under_the_curve(trees, rows, path):
    grid = np.linspace(0, 12, 20_001)
    survival = trees().predict_survival_function(rows[0], grid, path=path)
    expected = np.trapezoid(survival, grid, axis=1)
    assert_allclose(trees().predict_expectation(rows[0], 12.0, path=path), expected, rtol=1e-5)


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_conditional_survival_is_the_ratio(trees, rows, path):
    late = np.array([2.0, 5.0, 9.0])
    survival = trees().predict_survival_function(rows[0], late, path=path)
    conditional = trees().predict_conditional_survival(rows[0], 2.0, late, path=path)
    assert_allclose(conditional, survival / survival[:, :1], rtol=1e-9)


@pytest.mark.parametrize("family", family_names())
def test_the_soft_path_is_the_mixture_of_all_leaves(trees, rows, family):
    tree = trees(family)
    x = torch.tensor(tree.preprocessor_.transform(rows[0]).to_numpy())
    probability, grid = tree.leaf_probability(rows[0]), torch.tensor(TIMES[1:])
    expected = np.zeros((120, 4))
    with torch.no_grad():
        for leaf in range(probability.shape[1]):
            everyone = torch.full((1, 120), leaf)
            z, _ = tree.tree_.predictor(x, grid, everyone)
            curve = torch.exp(-torch.exp(tree.tree_.family.link.log_cumulative_hazard(z)))[0].numpy()
            expected += probability[:, leaf : leaf + 1] * curve
    assert_allclose(tree.predict_survival_function(rows[0], TIMES[1:], path="soft"), expected, atol=1e-12)


def test_both_paths_are_one_in_a_single_leaf(rows):
    tree = SoftSurvivalTree(**SINGLE).fit(*rows)
    hard, mixed = (tree.predict_survival_function(rows[0], TIMES, path=path) for path in ("hbp", "soft"))
    assert_allclose(hard, mixed, atol=1e-12)
    assert set(tree.apply(rows[0])) == {0}


def test_a_row_falls_into_the_leaf_that_its_branches_lead_to(trees, rows):
    tree = trees()
    left, leaf = tree.routing_probability(rows[0]), tree.apply(rows[0])
    assert_allclose(tree.leaf_probability(rows[0]).sum(1), 1.0)
    for row in range(120):
        node = 0
        while node < left.shape[1]:
            node = 2 * node + (1 if left[row, node] >= 0.5 else 2)
        assert leaf[row] == node - left.shape[1]


def test_risk_agrees_with_the_order_of_survival(trees, rows):
    risk = trees().predict(rows[0])
    hazard = np.log(trees().predict_cumulative_hazard_function(rows[0], trees().unique_times_))
    worse = (hazard[:, None] > hazard[None]).all(2)
    assert worse.any()
    assert np.all((risk[:, None] > risk[None])[worse])


def test_far_times_stay_finite(trees, rows):
    for family in family_names():
        far = trees(family).predict_survival_function(rows[0], [1e-12, 1e12])
        assert np.isfinite(far).all()
        assert np.isfinite(trees(family).predict(rows[0])).all()


def test_a_hazard_belongs_to_one_leaf(trees, rows):
    with pytest.raises(InvalidParameterError, match="a hazard belongs to one leaf"):
        trees().predict_hazard_function(rows[0], [1.0], path="soft")


def test_scores_are_those_of_the_predicted_curves(trees, rows):
    X, y = make_rows(seed=5)
    tree = trees()
    result = tree.evaluate(X, y)
    assert set(result) >= {"harrell_c", "uno_c", "cd_auc", "ibs", "n", "events", "range"}
    with np.errstate(divide="ignore"):
        log_hazard = lambda times: np.log(tree.predict_cumulative_hazard_function(X, times))  # noqa: E731
        expected = harrell_c(y["time"], y["event"], log_hazard)
    assert result["harrell_c"] == pytest.approx(expected, abs=1e-12)
    assert tree.score(X, y) == result["harrell_c"]
    assert result["harrell_c"] > 0.6  # the sides cross: no single linear score ranks them


# -- reading the tree -----------------------------------------------------------------------------------------------
def test_the_leaf_table_counts_the_training_rows(trees, rows):
    table, leaf = trees().leaf_table_, trees().apply(rows[0])
    assert table.n.tolist() == np.bincount(leaf, minlength=4).tolist()
    assert int(table.events.sum()) == int(rows[1]["event"].sum())


def test_text_and_dot_name_every_occupied_leaf(trees, rows):
    text, dot = trees().export_text(), trees().export_dot()
    for leaf in np.unique(trees().apply(rows[0])):
        size = trees().leaf_table_.n[leaf]
        assert re.search(rf"leaf {leaf}: n {size}, events \d+, median", text)
        assert re.search(rf"leaf {leaf}\\nn {size}, events", dot)
    assert dot.startswith("digraph")
    assert dot.count("{") == dot.count("}")
    assert "side=right" in text or "x" in text


# -- scikit-learn's conventions -------------------------------------------------------------------------------------
def test_parameters_survive_cloning():
    tree = SoftSurvivalTree(depth=3, leaf="weibull", l2=0.3, random_state=9)
    assert clone(tree).get_params() == tree.get_params()
    assert tree.set_params(depth=1).depth == 1


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
    assert tree.encoded_names_ == ["x", "side=right", "noise"]
    numbers = SoftSurvivalTree(**SINGLE).fit(rows[0][["x"]].to_numpy(), rows[1])
    assert not hasattr(numbers, "feature_names_in_")


def test_columns_are_found_by_name(trees, rows):
    shuffled = rows[0][["noise", "x", "side"]].assign(other=1)
    assert np.array_equal(trees().predict(shuffled), trees().predict(rows[0]))


# -- forms of input -------------------------------------------------------------------------------------------------
def test_every_form_of_the_data_gives_one_tree(rows, tmp_path):
    X, y = rows
    table = X.assign(t=y["time"], e=y["event"])
    table.to_parquet(tmp_path / "rows.parquet")
    expected = SoftSurvivalTree(**SINGLE).fit(X, y).predict(X)

    def risk(*data, **columns):
        return SoftSurvivalTree(**SINGLE).fit(*data, **columns).predict(X)

    assert np.array_equal(risk(X, (y["event"], y["time"])), expected)
    assert np.array_equal(risk(SurvivalData(X, y["time"], y["event"])), expected)
    assert np.array_equal(risk(table, time="t", event="e"), expected)
    assert np.array_equal(risk(str(tmp_path / "rows.parquet"), time="t", event="e"), expected)
    assert np.array_equal(risk(pl.from_pandas(X), y), expected)
    assert np.array_equal(risk(X.to_dict("list"), y), expected)


def test_predictions_take_survival_data_and_polars(trees, rows):
    X, y = rows
    expected = trees().predict(X)
    assert np.array_equal(trees().predict(SurvivalData(X, y["time"], y["event"])), expected)
    assert np.array_equal(trees().predict(pl.from_pandas(X)), expected)


def test_an_unseen_level_is_said(trees, rows):
    with pytest.warns(DataWarning, match=r"column 'side' has 1 level\(s\) not seen in training"):
        trees().predict(rows[0].assign(side="middle"))


def test_without_preprocessing_features_stay_as_they_are(rows):
    x = rows[0][["x"]].to_numpy()
    tree = SoftSurvivalTree(**SINGLE, preprocess=False).fit(x, rows[1])
    assert tree.preprocessor_ is None
    assert tree.encoded_names_ == ["x0"]
    with pytest.raises(InvalidParameterError, match="X must have 1 features as in training, got 2"):
        tree.predict(np.hstack([x, x]))
    with pytest.raises(InvalidSurvivalDataError, match="X must be numeric"):
        SoftSurvivalTree(**SINGLE, preprocess=False).fit(rows[0][["side"]], rows[1])


# -- weights, entry, intervals --------------------------------------------------------------------------------------
def test_a_weight_counts_as_copies_of_a_row(rows):
    X, y = rows
    copies = np.random.default_rng(0).integers(1, 4, len(X))
    index = np.repeat(np.arange(len(X)), copies)
    X = X.drop(columns="noise")  # its mean, imputed, is unweighted
    # the ridge is divided by the number of rows, weights are scaled to a mean of one
    weighted = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X, y, sample_weight=copies)
    repeated = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X.iloc[index], y[index])
    assert_allclose(
        weighted.predict_survival_function(X, TIMES), repeated.predict_survival_function(X, TIMES), atol=1e-6
    )


def test_late_entry_raises_the_early_hazard(rows):
    """Rows that enter late were not at risk before: ignoring that makes early survival too good."""
    X, y = rows
    plain = SoftSurvivalTree(**SINGLE).fit(X, y)
    late = SoftSurvivalTree(**SINGLE).fit(X, y, entry=0.9 * y["time"])
    assert late.predict_survival_function(X, [1.0]).mean() < plain.predict_survival_function(X, [1.0]).mean()


def test_intervals_speak_where_exact_times_are_unknown(rows):
    X, y = rows
    exact = SoftSurvivalTree(**SINGLE).fit(X, y)
    narrow = np.where(y["event"], y["time"] * 1.001, np.inf)
    events = np.zeros(len(y), dtype=bool)
    events[:1] = y["event"][:1] = True
    narrow[0] = np.inf
    tree = SoftSurvivalTree(**SINGLE).fit(X, (events, y["time"]), upper=narrow)
    assert_allclose(tree.predict_survival_function(X, TIMES), exact.predict_survival_function(X, TIMES), atol=0.02)


def test_the_likelihood_is_the_one_trained_on(rows):
    """Without penalties: minus the objective per row, less the constants that training leaves out (eq. 2)."""
    X, y = rows
    rng = np.random.default_rng(3)
    entry = np.where(rng.random(len(X)) < 0.5, 0.0, 0.8 * y["time"])
    interval = ~y["event"] & (rng.random(len(X)) < 0.6)
    upper = np.where(interval, y["time"] + 3, np.inf)
    weight = rng.uniform(0.5, 2.0, len(X))
    known = {"entry": entry, "upper": upper, "sample_weight": weight}
    tree = SoftSurvivalTree(depth=0, l2=0.0, device="cpu").fit(X, y, **known)
    constants = y["event"] * (np.log(y["time"]) + float(tree.tree_.clock[0, 1].log()))
    trained = -(weight * constants).sum() - weight.sum() * tree.report_.objective
    assert tree.log_likelihood(X, y, **known).sum() == pytest.approx(trained, rel=1e-9)
    data = SurvivalData(X, y["time"], y["event"], entry=entry, upper=upper, weight=weight)
    assert_allclose(tree.log_likelihood(data), tree.log_likelihood(X, y, **known))
    survival, late, at_upper = (
        np.diag(tree.predict_survival_function(X, t)) for t in (y["time"], entry, np.where(interval, upper, 1.0))
    )
    hazard = np.diag(tree.predict_hazard_function(X, y["time"]))
    expected = np.where(
        y["event"], np.log(hazard * survival), np.log(np.where(interval, survival - at_upper, survival))
    )
    assert_allclose(tree.log_likelihood(data), weight * (expected - np.log(late)), atol=1e-9)


def test_the_likelihood_is_that_of_lifelines(rows):
    X, y = rows[0][["x"]], rows[1]
    entry = np.where(np.arange(len(X)) % 2, 0.0, 0.7 * y["time"])
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.0, device="cpu").fit(X, y, entry=entry)
    table = X.assign(time=y["time"], event=y["event"], entry=entry)
    theirs = lifelines.WeibullAFTFitter().fit(table, "time", "event", entry_col="entry")
    assert tree.log_likelihood(X, y, entry=entry).sum() == pytest.approx(theirs.log_likelihood_, rel=1e-6)
    lower = np.floor(y["time"] / 4) * 4
    upper = np.where(y["event"], lower + 4, np.inf)
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.0, device="cpu")
    lower[~y["event"]] = np.maximum(lower[~y["event"]], 4.0)  # no right-censoring at 0, where lifelines has no floor
    tree.fit(X, (np.zeros(len(X), bool), lower), upper=upper)
    table = X.assign(lower=lower, upper=upper)
    theirs = lifelines.WeibullAFTFitter().fit_interval_censoring(table, "lower", "upper")
    found = tree.log_likelihood(X, (np.zeros(len(X), bool), lower), upper=upper).sum()
    assert found == pytest.approx(theirs.log_likelihood_, rel=1e-6)


def test_scores_compare_rows_under_observation_together(rows):
    X, y = rows
    tree, entry = SoftSurvivalTree(**SINGLE).fit(X, y), 0.9 * y["time"]
    data = SurvivalData(X, y["time"], y["event"], entry=entry)
    expected = harrell_c(y["time"], y["event"], tree.predict(X), entry=entry)
    assert expected != tree.score(X, y)
    assert tree.score(X, y, entry=entry) == tree.score(data) == pytest.approx(expected)
    with pytest.warns(EvaluationWarning, match="not corrected for late entry"):
        result = tree.evaluate(data)
    with pytest.warns(EvaluationWarning, match="not corrected for late entry"):
        assert tree.evaluate(X, y, entry=entry) == result
    assert result["harrell_c"] == tree.score(data)
    for measure in (tree.score, tree.evaluate):
        with pytest.warns(EvaluationWarning, match="ignore sample weights") as caught:
            measure(SurvivalData(X, y["time"], y["event"], weight=np.arange(1.0, 121.0)))
        assert caught[0].filename == __file__
        with pytest.warns(EvaluationWarning, match="lie in an interval"):
            measure(SurvivalData(X, y["time"], y["event"], upper=np.where(y["event"], np.inf, 99.0)))


# -- the same again -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("changes", [{"depth": 2}, {"depth": 1, "init": "kmeans"}, {"depth": 1, "solver": "nodec"}])
def test_same_seed_same_tree(rows, changes):
    first, second = (SoftSurvivalTree(**(FIXED | changes), random_state=4).fit(*rows) for _ in range(2))
    assert torch.equal(first.tree_.routing, second.tree_.routing)
    assert torch.equal(first.tree_.leaves, second.tree_.leaves)
    assert first.report_.trace == second.report_.trace


def test_no_seed_is_seed_zero(rows):
    first, second = (SoftSurvivalTree(depth=1, **FIXED, random_state=seed).fit(*rows) for seed in (None, 0))
    assert torch.equal(first.tree_.leaves, second.tree_.leaves)


def test_the_global_generators_are_left_alone(rows):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    SoftSurvivalTree(depth=1, **FIXED).fit(*rows)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002


@pytest.mark.parametrize(("depth", "tolerance"), [(0, 1e-6), (1, 1e-3)])
def test_the_order_of_rows_does_not_matter(rows, depth, tolerance):
    X, y = rows
    order = np.random.default_rng(2).permutation(len(X))
    first = SoftSurvivalTree(depth=depth, **FIXED).fit(X, y)
    second = SoftSurvivalTree(depth=depth, **FIXED).fit(X.iloc[order], y[order])
    assert_allclose(
        first.predict_survival_function(X, TIMES), second.predict_survival_function(X, TIMES), atol=tolerance
    )


def test_single_precision_agrees(rows):
    double = SoftSurvivalTree(**SINGLE).fit(*rows)
    single = SoftSurvivalTree(**SINGLE, dtype="float32").fit(*rows)
    assert single.tree_.leaves.dtype == torch.float32
    assert_allclose(
        single.predict_survival_function(rows[0], TIMES), double.predict_survival_function(rows[0], TIMES), atol=2e-3
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_devices_agree(rows):
    on_cpu, on_gpu = (SoftSurvivalTree(**(FIXED | {"depth": 1, "device": d})).fit(*rows) for d in ("cpu", "cuda"))
    assert_allclose(
        on_cpu.predict_survival_function(rows[0], TIMES), on_gpu.predict_survival_function(rows[0], TIMES), atol=1e-4
    )


# -- training -------------------------------------------------------------------------------------------------------
def test_without_arguments_depth_and_penalties_are_chosen():
    X, y = make_rows(80)
    tree = SoftSurvivalTree(device="cpu", n_restarts=2).fit(X, y)
    table = tree.selection_
    assert table["chosen"].sum() == 1
    assert table["loss"].is_monotonic_increasing
    chosen = table[table["chosen"]].iloc[0]
    assert chosen["depth"] == tree.candidate_.depth
    assert 0 <= tree.depth_ <= 3


def test_nothing_is_chosen_where_everything_is_given(trees):
    assert trees().selection_.empty
    assert (trees().depth_, trees().candidate_.family) == (2, "loglogistic")


def test_a_crossing_needs_a_split():
    X, y = make_rows(300)
    single = SoftSurvivalTree(**SINGLE).fit(X, y)
    split = SoftSurvivalTree(depth=1, **FIXED).fit(X, y)
    test = make_rows(300, seed=1)
    assert split.score(*test) > single.score(*test) + 0.1


@pytest.mark.parametrize("init", ["random", "kmeans", "logrank", "auto"])
@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
def test_training_lowers_the_objective_from_every_start(rows, solver, init):
    tree = SoftSurvivalTree(depth=1, solver=solver, init=init, **FIXED).fit(*rows)
    trace = tree.report_.trace
    assert np.all(np.diff(trace) <= 1e-12)
    assert tree.report_.objective <= trace[0]
    assert tree.report_.status in (Status.CONVERGED, Status.ITERATION_LIMIT)


def test_the_best_start_by_objective_is_kept(trees):
    report = trees().report_
    assert len(report.details["objectives"]) == 2
    assert report.objective == min(report.details["objectives"])


def test_the_published_settings(rows):
    tree = SoftSurvivalTree(depth=1, preset="paper", device="cpu").fit(*rows)
    assert len(tree.report_.details["objectives"]) == 20
    assert tree.selection_.empty
    assert (tree.candidate_.shrinkage, tree.candidate_.routing_l2) == (0.0, 0.0)


def test_a_family_of_ones_own_settings(rows):
    tree = SoftSurvivalTree(depth=0, leaf=get_family("spline_po", n_knots=4), l2=0.5, device="cpu").fit(*rows)
    assert tree.tree_.family.settings() == {"n_knots": 4}
    named = SoftSurvivalTree(depth=0, leaf="spline_po", n_knots=4, l2=0.5, device="cpu").fit(*rows)
    assert np.array_equal(tree.predict(rows[0]), named.predict(rows[0]))


def test_a_time_limit_keeps_the_best_so_far(rows):
    tree = SoftSurvivalTree(depth=3, solver="nodec", **FIXED, time_limit=0.0).fit(*rows)
    assert tree.report_.status == Status.TIME_LIMIT
    assert np.isfinite(tree.predict_survival_function(rows[0], TIMES)).all()


def test_a_time_limit_holds_for_the_choice_too(rows):
    tree = SoftSurvivalTree(device="cpu", time_limit=0.0).fit(*rows)
    assert tree.report_.status == Status.TIME_LIMIT
    assert tree.depth_ == 0


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_ctrl_c_keeps_the_best_so_far(rows, monkeypatch):
    class Interrupted(Budget):
        """Ctrl-C arrives once training looks at its budget for the fifth time."""

        looks = 0

        @property
        def status(self):
            Interrupted.looks += 1
            if Interrupted.looks == 5:
                signal.raise_signal(signal.SIGINT)
            return super().status

    monkeypatch.setattr(soft_module, "Budget", Interrupted)
    before = signal.getsignal(signal.SIGINT)
    tree = SoftSurvivalTree(depth=2, max_iter=5000, **FIXED).fit(*rows)
    assert tree.report_.status == Status.INTERRUPTED
    assert np.isfinite(tree.predict_survival_function(rows[0], TIMES)).all()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_progress_bar_is_on_request(rows, capsys):
    SoftSurvivalTree(depth=1, **FIXED).fit(*rows)
    assert capsys.readouterr() == ("", "")
    SoftSurvivalTree(depth=1, **FIXED, progress=True).fit(*rows)
    assert "training" in capsys.readouterr().err


# -- odd data -------------------------------------------------------------------------------------------------------
def predicts(tree, X):
    """Whether every prediction is finite where it has to be."""
    survival = tree.predict_survival_function(X, TIMES)
    return bool(np.isfinite(survival).all() and np.isfinite(tree.predict(X)).all())


@pytest.mark.parametrize("family", family_names())
def test_one_event_is_enough(rows, family):
    X, y = rows
    event = np.arange(len(y)) == 3
    assert predicts(SoftSurvivalTree(**SINGLE, leaf=family).fit(X, (event, y["time"])), X)


@pytest.mark.parametrize("family", family_names())
def test_all_times_equal(rows, family):
    X, y = rows
    tree = SoftSurvivalTree(**SINGLE, leaf=family).fit(X, (y["event"], np.full(len(y), 3.0)))
    assert predicts(tree, X)


def test_no_censoring_and_many_ties(rows):
    X, y = rows
    tree = SoftSurvivalTree(depth=1, **FIXED).fit(X, (np.ones(len(y), bool), np.ceil(y["time"] / 5)))
    assert predicts(tree, X)


def test_zero_times_are_floored_and_said(rows):
    X, y = rows
    time = y["time"].copy()
    time[:3] = 0.0
    with pytest.warns(DataWarning, match="time is 0 in 3 of 120 rows"):
        tree = SoftSurvivalTree(**SINGLE).fit(X, (y["event"], time))
    assert predicts(tree, X)


@pytest.mark.filterwarnings("ignore:time is 0")
def test_zero_times_are_scored_as_trained(rows, tmp_path):
    X, y = rows
    time, event = np.floor(y["time"] / 4), y["event"].copy()
    assert (event & (time == 0)).sum() > 20
    tree = SoftSurvivalTree(**SINGLE).fit(X, (event, time))
    floored = np.where(time > 0, time, 0.5)
    assert tree.time_floor_ == 0.5
    assert tree.score(X, (event, time)) == tree.score(X, (event, floored))
    assert tree.evaluate(X, (event, time)) == tree.evaluate(X, (event, floored))
    earlier = np.where(np.arange(len(X)) == 7, 0.2, time)  # below the floor, yet after the zeros
    moved = np.where(earlier > 0, earlier, 0.1)
    assert tree.evaluate(X, (event, earlier)) == tree.evaluate(X, (event, moved))
    assert_allclose(tree.log_likelihood(X, (event, time)), tree.log_likelihood(X, (event, floored)))
    few = X.iloc[:1], ([True], [0.0])
    some = X.iloc[:2], ([True, True], [0.0, 3.0])
    assert tree.log_likelihood(*some)[0] == tree.log_likelihood(few[0], ([True], [0.5]))[0]
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").time_floor_ == 0.5
    arrays, meta = tree._state()
    del meta["time_floor"]  # as before floors were saved
    tree._restore(arrays, meta)
    assert tree.time_floor_ == 0.5


@pytest.mark.filterwarnings("ignore:time is 0")
def test_an_event_at_zero_alone_still_ranks(rows):
    X, y = rows
    event, time = np.arange(len(X)) == 0, y["time"].copy()
    time[0] = 0.0
    tree = SoftSurvivalTree(**SINGLE).fit(X, (event, time))
    assert tree.unique_times_.tolist() == [time[time > 0].min()]
    assert np.isfinite(tree.predict(X)).all()


def test_intervals_alone_still_rank(rows):
    X, y = rows
    lower = np.floor(y["time"]) + 1
    tree = SoftSurvivalTree(**SINGLE).fit(X, (np.zeros(len(X), bool), lower), upper=lower + 1)
    assert tree.unique_times_.tolist() == np.unique(lower + 1).tolist()
    assert np.isfinite(tree.predict(X)).all()


def test_one_event_cannot_be_cross_validated(rows):
    with pytest.raises(
        InvalidSurvivalDataError, match=r"at least 2 rows to choose depth and penalties.*got 1; collect"
    ):
        SoftSurvivalTree().fit(rows[0], (np.arange(120) == 5, rows[1]["time"]))


def test_a_single_row():
    with pytest.warns(ConvergenceWarning, match="rescale the features"):  # the density at one time has no bound
        tree = SoftSurvivalTree(**SINGLE, preprocess=False).fit([[1.0]], ([True], [2.0]))
    assert predicts(tree, [[1.0]])


def test_constant_features_give_one_curve(rows):
    with pytest.warns(DataWarning, match="every feature is constant, so all rows get one curve"):
        tree = SoftSurvivalTree(**SINGLE).fit(rows[0].assign(x=1, side="left", noise=0), rows[1])
    assert np.unique(tree.predict(rows[0].assign(side="left"))).size == 1


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_time_does_not_matter(rows, scale):
    X, y = rows
    plain = SoftSurvivalTree(depth=1, **FIXED).fit(X, y)
    scaled = SoftSurvivalTree(depth=1, **FIXED).fit(X, (y["event"], y["time"] * scale))
    assert_allclose(
        scaled.predict_survival_function(X, TIMES * scale), plain.predict_survival_function(X, TIMES), atol=1e-4
    )
    assert_allclose(scaled.predict_median(X) / scale, plain.predict_median(X), rtol=1e-3)


# -- one sentence for every wrong input -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"depth": -1}, "depth must be"),
        ({"depth": 1.5}, "depth must be"),
        ({"depth": 40}, "depth must be"),
        ({"leaf": "cauchy"}, "leaf must be one of exponential, .*, got 'cauchy'"),
        ({"leaf": "spline_ph", "n_knots": -1}, "n_knots must be an integer >= 0, got -1"),
        ({"solver": "adam"}, "solver must be one of 'lbfgs', 'nodec', got 'adam'"),
        ({"init": "zeros"}, "init must be one of 'auto', 'random', 'kmeans', 'logrank', got 'zeros'"),
        ({"n_restarts": 0}, "n_restarts must be an integer >= 1, got 0"),
        ({"n_restarts": True}, "n_restarts must be an integer >= 1, got True"),
        ({"max_iter": 2.0}, r"max_iter must be an integer >= 1, got 2\.0"),
        ({"l2": -1.0}, r"l2 must be a finite number >= 0, got -1\.0"),
        ({"shrinkage": np.inf}, "shrinkage must be a finite number >= 0, got inf"),
        ({"routing_l2": "much"}, "routing_l2 must be a finite number >= 0, got 'much'"),
        ({"l1": np.nan}, "l1 must be a finite number >= 0, got nan"),
        ({"fairness": -0.1}, "fairness must be a finite number >= 0"),
        ({"time_limit": -5}, "time_limit must be a finite number >= 0, got -5"),
        ({"device": "abacus"}, 'device must be "auto", "cpu" or "cuda", got \'abacus\''),
        ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32', got 'float16'"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"random_state": "seed"}, "random_state must be an integer >= 0, got 'seed'"),
        ({"preset": "book"}, "preset must be one of None, 'paper', got 'book'"),
        ({"preset": "paper"}, 'preset="paper" needs a depth'),
    ],
    ids=str,
)
def test_a_wrong_argument(rows, arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence) as caught:
        SoftSurvivalTree(**arguments).fit(*rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X, y: (X, None), "time must be given; pass a structured array"),
        (lambda X, y: (X, y["time"]), "y must hold event and time"),
        (lambda X, y: (X[:50], y), "must have one value per row of X, 50, got 120"),
        (lambda X, y: (X, (y["time"], y["event"])), "swapped"),
        (lambda X, y: (X, (y["event"], -y["time"])), "time must be finite and >= 0, got -"),
        (lambda X, y: (X, (np.zeros(120, bool), y["time"])), "event must be True in at least one row"),
        (lambda X, y: (X, (y["event"] * 2, y["time"])), r"event must be bool or 0/1 \(1 = event observed\)"),
        (lambda X, y: (X.assign(x=np.inf), y), "X must be finite or missing, got an infinite value in column 'x'"),
        (lambda X, y: (X.iloc[:0], y[:0]), "X must have at least one row, got none"),
        (lambda X, y: (X["x"], y), "X must be two-dimensional"),
        (lambda X, y: (X.assign(day=pd.Timestamp("2020-01-01")), y), "day"),
    ],
)
def test_wrong_data(rows, change, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence) as caught:
        SoftSurvivalTree(**SINGLE).fit(*change(*rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", [{"path": "hard"}, {"route": "soft"}])
def test_a_wrong_choice_of_path(trees, rows, how):
    with pytest.raises(InvalidParameterError, match=r"path must be|predictions take path=, got route"):
        trees().predict(rows[0], **how)


def test_fairness_needs_groups(rows):
    with pytest.raises((InvalidParameterError, InvalidSurvivalDataError), match="group"):
        SoftSurvivalTree(depth=1, **FIXED, fairness=1.0).fit(*rows)


def test_predicting_without_a_feature(trees, rows):
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'x'; add or rename columns"):
        trees().predict(rows[0].drop(columns="x"))


def test_a_fit_cut_off_by_max_iter_does_not_claim_to_have_converged() -> None:
    data = load_dataset("veterans")
    given = {"depth": 1, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 1.0, "n_restarts": 1}
    with pytest.warns(ConvergenceWarning, match="took all its 1 rounds without converging; raise max_iter"):
        cut = SoftSurvivalTree(**given, max_iter=1).fit(data.X, data.y)
    assert cut.report_.status is Status.ITERATION_LIMIT
    ended = SoftSurvivalTree(**given, max_iter=2000).fit(data.X, data.y)
    assert ended.report_.status is Status.CONVERGED
    assert ended.report_.objective < cut.report_.objective


def test_the_default_number_of_rounds_is_no_defect():
    """Early stopping on purpose: more rounds fit closer and predict no better."""
    data = load_dataset("veterans")
    given = {"depth": 2, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 1.0}
    assert SoftSurvivalTree(**given).fit(data).report_.status is Status.ITERATION_LIMIT  # and warns of nothing


def test_a_feature_in_other_units_is_said(rows):
    x = np.column_stack([rows[0]["x"], 1e8 * np.random.default_rng(0).random(120), np.arange(120) % 7])
    with pytest.warns(ConvergenceWarning, match="did not converge in 300 rounds; rescale the features"):
        SoftSurvivalTree(**SINGLE, preprocess=False).fit(x, rows[1])


@pytest.mark.parametrize("given", [{}, {"depth": 1}, {"depth": 1, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0}])
def test_rows_of_no_weight_change_nothing(rows, given):
    """Not the folds, not the knots, not the splits that the features suggest."""
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.5, 2, 120) * (np.arange(120) % 3 > 0)
    y = y.copy()
    y["time"][weight == 0] *= 40
    kept = weight > 0
    settings = {"leaf": "spline_ph", "n_restarts": 2} | given
    with_them = SoftSurvivalTree(**settings).fit(X, y, sample_weight=weight)
    without = SoftSurvivalTree(**settings).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert np.array_equal(with_them.unique_times_, without.unique_times_)
    assert with_them.horizon_ == without.horizon_
    assert_allclose(with_them.predict_survival_function(X), without.predict_survival_function(X), atol=1e-12)
    assert list(with_them.feature_names_in_) == list(X.columns)


def test_weights_of_zero_alone_are_refused(rows):
    weight = np.where(rows[1]["event"], 0.0, 1.0)
    with pytest.raises(InvalidSurvivalDataError, match="event must be True"):
        SoftSurvivalTree(**SINGLE).fit(*rows, sample_weight=weight)
