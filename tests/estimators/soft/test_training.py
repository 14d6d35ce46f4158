"""Training: repeatable, chosen inside, limited, interrupted, and what it says when it was cut off."""

from __future__ import annotations

import re
import signal
import threading
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import softsurv.estimators.soft.tree as soft_module
from softsurv import SoftSurvivalTree
from softsurv import stopping as stopping_module
from softsurv.data.datasets import load_dataset
from softsurv.hazards import get_family
from softsurv.results import Status
from softsurv.stopping import StopSignal

FIXED = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2, "device": "cpu"}
SINGLE = {"depth": 0, "l2": 0.5, "device": "cpu"}
TIMES = np.array([0.0, 0.3, 2.0, 8.0, 30.0])


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


def test_without_arguments_depth_and_penalties_are_chosen(make_rows):
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


def test_a_crossing_needs_a_split(make_rows):
    X, y = make_rows(300)
    single = SoftSurvivalTree(**SINGLE).fit(X, y)
    split = SoftSurvivalTree(depth=1, **FIXED).fit(X, y)
    test = make_rows(300, seed=1)
    assert split.score(*test) > single.score(*test) + 0.1


@pytest.mark.parametrize("init", ["random", "kmeans", "logrank", "exact", "auto"])
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
    with pytest.warns(ConvergenceWarning, match="^the training of the tree ended at its time limit .*; raise time_li"):
        tree = SoftSurvivalTree(depth=3, solver="nodec", **FIXED, time_limit=0.0).fit(*rows)
    assert tree.report_.status == Status.TIME_LIMIT
    assert np.isfinite(tree.predict_survival_function(rows[0], TIMES)).all()


@pytest.mark.parametrize(
    "given",
    [
        {"max_terms": None},
        {"max_terms": None, "depth": 2},
        {"solver": "nodec", "depth": 2},
        {"max_terms": None, "depth": 2, "l2": 0.3, "shrinkage": 1.0, "routing_l2": 0.1},
        {"leaf": "loglogistic"},
        {"leaf": "loglogistic", "depth": 0, "max_terms": 1},
    ],
)
def test_no_time_at_all_still_gives_a_fitted_leaf(rows, given):
    """It was the first guess of the fit: medians half as long, under a warning that the tree may not be the best."""
    leaf = SoftSurvivalTree(depth=0, l2=0.3, leaf="loglogistic", device="cpu").fit(*rows)
    with pytest.warns(ConvergenceWarning, match="time limit") as told:
        cut = SoftSurvivalTree(**given, device="cpu", time_limit=0.0).fit(*rows)
    assert not [one for one in told if "before a single leaf was fitted" in str(one.message)]
    assert_allclose(cut.predict_median(rows[0]), leaf.predict_median(rows[0]), rtol=1e-3)
    assert cut.report_.details.get("leaves_alike", False) is (given.get("depth") == 2)


@pytest.mark.parametrize("given", [{"max_terms": None}, {"leaf": "loglogistic"}])
def test_a_leaf_that_there_was_no_time_to_fit_is_told(rows, given, monkeypatch):
    monkeypatch.setattr(stopping_module, "GRACE_SECONDS", 0.0)
    with pytest.warns(ConvergenceWarning, match="a single leaf was fitted to its end, so predictions may be far"):
        SoftSurvivalTree(**given, device="cpu", time_limit=0.0).fit(*rows)


def test_a_time_limit_holds_for_the_choice_too(rows):
    with pytest.warns(ConvergenceWarning, match=r"the choice of a tree ended at its time limit with \d+ settings"):
        tree = SoftSurvivalTree(device="cpu", time_limit=0.0).fit(*rows)
    assert tree.report_.status == Status.TIME_LIMIT
    assert tree.depth_ == 0


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({}, ", or give depth and leaf$"),
        ({"depth": 1, "leaf": "weibull"}, ", or give l2 and shrinkage$"),
        ({"depth": 1, "leaf": "weibull", "l2": 1.0}, ", or give shrinkage$"),
    ],
)
def test_a_choice_that_ends_early_asks_for_what_is_not_given(rows, given, advice):
    with pytest.warns(ConvergenceWarning, match=f"settings compared; raise time_limit{advice}"):
        SoftSurvivalTree(device="cpu", time_limit=0.0, max_terms=1, **given).fit(*rows)


def test_ctrl_c_while_settings_are_compared_gives_a_fitted_leaf(rows):
    class Interrupted(StopSignal):
        """There was a Ctrl-C before the first look at it."""

        interrupted = True

    leaf = SoftSurvivalTree(depth=0, l2=0.3, leaf="loglogistic", device="cpu").fit(*rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft_module, "StopSignal", Interrupted)
        with pytest.warns(ConvergenceWarning, match="the choice of a tree was interrupted, so the tree may not be"):
            cut = SoftSurvivalTree(max_terms=None, device="cpu").fit(*rows)
    assert cut.report_.status == Status.INTERRUPTED
    assert_allclose(cut.predict_median(rows[0]), leaf.predict_median(rows[0]), rtol=1e-6)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_ctrl_c_keeps_the_best_so_far(rows, monkeypatch):
    class Interrupted(StopSignal):
        """Ctrl-C arrives once training looks at its budget for the fifth time."""

        looks = 0

        @property
        def status(self):
            Interrupted.looks += 1
            if Interrupted.looks == 5:
                signal.raise_signal(signal.SIGINT)
            return super().status

    monkeypatch.setattr(soft_module, "StopSignal", Interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.warns(ConvergenceWarning, match="^the training of the tree was interrupted"):
        tree = SoftSurvivalTree(depth=2, max_iter=5000, **FIXED).fit(*rows)
    assert tree.report_.status == Status.INTERRUPTED
    assert np.isfinite(tree.predict_survival_function(rows[0], TIMES)).all()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_progress_bar_is_on_request(rows, capsys):
    SoftSurvivalTree(depth=1, **FIXED).fit(*rows)
    assert capsys.readouterr() == ("", "")
    SoftSurvivalTree(depth=1, **FIXED, progress=True).fit(*rows)
    shown = capsys.readouterr().err
    assert "training" in shown
    assert re.search(r"[1-9]\d*/\d+ \[.* rounds at most", shown), shown


@pytest.mark.parametrize("dense", [False, True])
def test_the_progress_bar_counts_every_candidate(rows, capsys, dense):
    """Candidates that there are too few rows for count as tried, so the bar ends at its total."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SoftSurvivalTree(depth=1, leaf="weibull", max_terms=None if dense else 1, progress=True).fit(*rows)
    counts = re.findall(r"(\d+)/(\d+) \[[^\]]* candidates", capsys.readouterr().err)
    assert counts
    assert counts[-1][0] == counts[-1][1]


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
