"""Time limits, interruption and progress of OptimalSurvivalTree."""

from __future__ import annotations

import math
import signal
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import softsurv.estimators.optimal.tree as optimal_module
from softsurv import OptimalSurvivalTree
from softsurv.results import Status


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


def test_a_path_cut_off_names_no_best_trees(make_rows):
    """With "ibs" the best trees so far stood in ``path_`` as the best of their sizes."""
    how = {"max_leaves": 12, "thresholds": 30, "min_samples_leaf": 1}
    with pytest.warns(ConvergenceWarning, match="time limit"):
        tree = OptimalSurvivalTree("ibs", 4, **how, time_limit=0.5).fit(*make_rows(600))
    assert [size.objective for size in tree.path_] == [tree.objective_]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_ctrl_c_keeps_the_best_so_far(make_rows, monkeypatch):
    X, y = make_rows(300)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    tree = OptimalSurvivalTree(max_depth=7, thresholds="all", time_limit=300.0)
    best = optimal_module.RelativeRiskSearch.best

    def heard(self, *given):
        timer.start()  # not before the search begins: a busy machine may take long until then
        return best(self, *given)

    monkeypatch.setattr(optimal_module.RelativeRiskSearch, "best", heard)
    with pytest.warns(ConvergenceWarning, match="the search was interrupted with objective"):
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
