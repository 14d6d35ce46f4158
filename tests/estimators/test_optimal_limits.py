"""Cross-validation, time limits and interruption of OptimalSurvivalTree."""

from __future__ import annotations

import math
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sksurv.util import Surv

import softsurv.estimators.optimal as optimal_module
from softsurv import OptimalSurvivalTree
from softsurv.nonparametric import nelson_aalen
from softsurv.results import Status


# -- tuning and limits ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("objective", ["relative_risk", "ibs"])
def test_cross_validation_chooses_depth_and_leaves(objective, make_rows):
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


def test_the_held_out_loss_is_that_of_refitted_trees(make_rows):
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
def test_a_time_limit_keeps_the_best_so_far(objective, make_rows):
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
def test_ctrl_c_keeps_the_best_so_far(make_rows):
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
