"""Fits in several threads: of objects of their own as one after the other, of one and the same object one at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from softsurv import OptimalClassificationTree, OptimalRegressionTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import ConcurrentFitError, InvalidParameterError
from softsurv.estimators.shared.one_fit import one_fit_at_a_time

N_THREADS = 4


def outcomes(n=150):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    risk = X[:, 0] * (X[:, 1] > 0) + X[:, 2]
    label = (risk + rng.normal(size=n) > 0).astype(int)
    return X, label, (rng.random(n) < 0.7, rng.exponential(np.exp(-risk)) + 1e-3)


X, LABEL, SURVIVAL = outcomes()

MODELS = [
    (OptimalClassificationTree(max_depth=3), LABEL),
    (OptimalClassificationTree("mcc", max_depth=3, thresholds=3), LABEL),
    (OptimalClassificationTree("auc", max_depth=2, thresholds=3), LABEL),
    (OptimalRegressionTree(max_depth=3), X[:, 1] * LABEL),
    (OptimalSurvivalTree(max_depth=3), SURVIVAL),
    (OptimalSurvivalTree("ibs", max_depth=2, thresholds=3), SURVIVAL),
]


def fitted_at_once(jobs):
    """Results of jobs that all start together, an error in the place of a result."""
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait()
        try:
            return job()
        except ConcurrentFitError as error:
            return error

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda one: getattr(one, "objective", ""))
def test_objects_of_their_own_are_fitted_as_one_after_the_other(model, y):
    parts = [np.arange(len(X)) % N_THREADS != k for k in range(N_THREADS)]

    def fit(rows):
        return clone(model).fit(X[rows], tuple(one[rows] for one in y) if isinstance(y, tuple) else y[rows])

    together = fitted_at_once([lambda rows=rows: fit(rows) for rows in parts])
    for one, rows in zip(together, parts, strict=True):
        alone = fit(rows)
        assert one.tree_.to_dict() == alone.tree_.to_dict()
        assert one.objective_ == alone.objective_


def test_one_object_is_a_whole_tree_of_one_of_its_fits():
    model = OptimalClassificationTree(max_depth=3)
    answers = [LABEL, np.where(LABEL, "yes", "no")]
    alone = [clone(model).fit(X, y).to_dict()["tree"] for y in answers]
    results = fitted_at_once([lambda y=y: model.fit(X, y) for y in answers * 2])
    refused = [one for one in results if isinstance(one, ConcurrentFitError)]
    assert len(refused) < len(results)
    assert all("is being fitted in another thread" in str(error) for error in refused)
    assert model.tree_.to_dict() in alone
    assert set(model.predict(X)) <= set(model.classes_)


class Slow:
    """Its fit waits until it is told to go on."""

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    @one_fit_at_a_time
    def fit(self, inner=False):
        if inner:
            return "inner"
        self.inside.set()
        self.go_on.wait(10)
        return self.fit(inner=True)

    @one_fit_at_a_time
    def fail(self):
        raise ValueError("it failed")


def test_a_second_thread_is_refused_while_the_first_is_inside():
    slow = Slow()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(slow.fit)
        slow.inside.wait(10)
        with pytest.raises(ConcurrentFitError, match="this Slow is being fitted in another thread; fit sklearn"):
            slow.fit()
        slow.go_on.set()
        assert first.result() == "inner"  # a fit may call itself
    assert slow.fit() == "inner"


def test_a_fit_that_fails_gives_the_object_free():
    slow = Slow()
    slow.go_on.set()
    with pytest.raises(ValueError, match="it failed"):
        slow.fail()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(slow.fit).result() == "inner"


def test_a_soft_tree_is_fitted_by_one_thread_at_a_time(monkeypatch):
    """Attributes are set before and after training: those of two fits would be mixed."""
    slow, read = Slow(), SoftSurvivalTree._read

    def waiting(self, *rows, **columns):
        slow.inside.set()
        slow.go_on.wait(10)
        return read(self, *rows, **columns)

    monkeypatch.setattr(SoftSurvivalTree, "_read", waiting)
    model = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=1.0)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(model.fit, X, SURVIVAL)
        slow.inside.wait(10)
        with pytest.raises(ConcurrentFitError, match="this SoftSurvivalTree is being fitted in another thread"):
            model.fit(X[:, :2], SURVIVAL)
        slow.go_on.set()
        assert first.result().n_features_in_ == 4


@pytest.mark.parametrize(
    "model",
    [OptimalSurvivalTree(max_depth=1), SoftSurvivalTree(depth=1, leaf="weibull", l2=1.0, shrinkage=1.0, max_terms=1)],
    ids=["optimal", "soft"],
)
def test_a_fit_that_is_refused_leaves_the_earlier_tree(model):
    """Its names and outcomes would belong to other rows than the tree."""
    before = clone(model).fit(pd.DataFrame(X, columns=list("abcd")), SURVIVAL)
    expected, known = before.predict(pd.DataFrame(X, columns=list("abcd"))), set(vars(before))
    event, time = SURVIVAL
    before.set_params(time_limit=-1.0)
    with pytest.raises(InvalidParameterError):
        before.fit(X[:, :2], SURVIVAL)
    before.set_params(time_limit=None)
    with pytest.raises(ValueError, match="event"):
        before.fit(X[:, :2], (np.zeros_like(event), time))
    with pytest.raises(ValueError, match="weight"):
        before.fit(pd.DataFrame(X[:, :2], columns=["e", "f"]), SURVIVAL, sample_weight=np.full(len(X), -1.0))
    assert before.feature_names_in_.tolist() == list("abcd")
    assert set(vars(before)) == known
    np.testing.assert_array_equal(before.predict(pd.DataFrame(X, columns=list("abcd"))), expected)
    fresh = clone(model)
    with pytest.raises(ValueError, match="event"):
        fresh.fit(X[:, :2], (np.zeros_like(event), time))
    assert not hasattr(fresh, "n_features_in_")
