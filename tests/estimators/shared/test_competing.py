"""Predictions by cause and along changing covariates, on a tree whose hazards are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.known_hazards import KnownHazards
from scipy.integrate import quad

from softsurv.data.readers import survival_data
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, InvalidTimesError
from softsurv.estimators.shared.competing import EARLIEST

SHAPES = np.array([1.5, 0.7, 1.0])
TIMES = np.array([0.0, 0.01, 1.0, 3.0, 8.0, 60.0])
ROWS = np.array([[2.0], [7.0], [30.0]])


class CausesStub(KnownHazards):
    """H_k = (t / (x k))^shape_k for three causes, with the one feature x."""

    _knows = ("causes",)

    def _cause_hazards(self, prepared, times):
        return (times[:, None] / (prepared[:, None, None] * np.arange(1, 4))) ** SHAPES

    def _hazard(self, prepared, times):
        return (SHAPES / times[:, None] * self._cause_hazards(prepared, times)).sum(-1)


@pytest.fixture(scope="module")
def stub():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 20, size=(90, 1))
    cause = np.resize([1, 2, 0, 3], 90)
    return CausesStub().fit(X, time=X[:, 0] * rng.weibull(1.5, 90), cause=cause, cause_names=["a", "b", "c"])


def true_incidence(x, t, k):
    """The integral of S h_k, with the substitution u = H_k, in which the integrand is smooth at 0."""
    scale, shape = x * (k + 1), SHAPES[k]

    def survival(u):
        return np.exp(-((scale * u ** (1 / shape) / (x * np.arange(1, 4))) ** SHAPES).sum())

    return quad(survival, 0, (t / scale) ** shape, epsabs=1e-12, limit=200)[0]


def test_the_incidence_is_the_integral_of_survival_times_the_hazard(stub):
    found = stub.predict_cumulative_incidence(ROWS, TIMES)
    truth = [[[true_incidence(x, t, k) for k in range(3)] for t in TIMES] for x in ROWS[:, 0]]
    np.testing.assert_allclose(found, truth, atol=1e-5)
    for k, name in enumerate("abc"):
        np.testing.assert_array_equal(stub.predict_cumulative_incidence(ROWS, TIMES, cause=name), found[..., k])
        np.testing.assert_array_equal(stub.predict_cumulative_incidence(ROWS, TIMES, cause=k + 1), found[..., k])


def test_state_probabilities_sum_to_one_at_any_time(stub):
    found = stub.predict_state_probabilities(ROWS, [0.0, 1e-30, 1e-3, 5.0, 1e4, 1e200])
    np.testing.assert_allclose(found.sum(-1), 1.0, rtol=0, atol=1e-12)
    assert (found >= 0).all()
    np.testing.assert_allclose(found[:, 0], [[1, 0, 0, 0]] * 3, atol=0)
    np.testing.assert_allclose(found[..., 0], stub.predict_survival_function(ROWS, [0.0, 1e-30, 1e-3, 5.0, 1e4, 1e200]))


def test_a_prediction_does_not_depend_on_the_other_times_and_rows(stub):
    together = stub.predict_cumulative_incidence(np.repeat(ROWS, 500, 0), TIMES)[[0, 500, 1000]]
    apart = np.concatenate([stub.predict_cumulative_incidence(ROWS, [t]) for t in TIMES], 1)
    np.testing.assert_array_equal(together, apart)


def test_a_quantile_is_where_the_incidence_reaches_it(stub):
    final = stub.predict_cumulative_incidence(ROWS, [1e9], cause="b")[0, 0]
    assert 0 < final < 1
    found = stub.predict_quantile(ROWS, 0.5 * final, cause="b")
    risen = np.diagonal(stub.predict_cumulative_incidence(ROWS, found, cause="b"))
    np.testing.assert_allclose(risen, 0.5 * final, rtol=1e-4)
    assert np.isinf(stub.predict_quantile(ROWS, min(0.999, 1.01 * final), cause="b")).all()


def test_a_quantile_far_below_the_training_times_is_found():
    x = np.array([[1e-9], [1e-20], [1e-60]])  # scales in units of the training times
    rows = CausesStub().fit(ROWS, time=[1.0, 2.0, 3.0], cause=[1, 2, 3], cause_names=["a", "b", "c"])
    found = rows.predict_quantile(x, 0.1, cause="a")
    truth = rows.predict_quantile([[1.0]], 0.1, cause="a")[0]
    np.testing.assert_allclose(found[:2], truth * x[:2, 0], rtol=0.05)  # one step from 0: shares as if constant
    for row, time in zip(x[:2], found[:2], strict=True):
        np.testing.assert_allclose(rows.predict_cumulative_incidence([row], [time], cause="a"), 0.1, rtol=1e-4)
    assert found[2] == 3.0 * EARLIEST


def test_time_lost_to_the_causes_and_time_left_sum_to_the_horizon(stub):
    lost = stub.predict_restricted_time_lost(ROWS, 12.0)
    np.testing.assert_allclose(lost.sum(1) + stub.predict_expectation(ROWS, 12.0), 12.0, rtol=1e-8)
    np.testing.assert_array_equal(stub.predict_restricted_time_lost(ROWS, 12.0, cause="c"), lost[:, 2])
    area = quad(lambda t: true_incidence(7.0, t, 0), 0, 12)[0]
    np.testing.assert_allclose(lost[1, 0], area, rtol=1e-4)
    with pytest.raises(InvalidTimesError, match="horizon must be a finite time > 0"):
        stub.predict_restricted_time_lost(ROWS, 0.0)


def test_the_risk_of_a_cause_ranks_by_its_incidence(stub):
    risk = stub.predict(ROWS, cause="a")
    assert (np.diff(risk) < 0).all()
    assert not np.allclose(risk, stub.predict(ROWS))


def test_a_path_of_one_row_is_as_if_it_stayed_so(stub):
    alone = stub.predict_path(ROWS, start=np.zeros(3), stop=np.full(3, 0.5), times=TIMES, cause=2)
    np.testing.assert_allclose(alone, stub.predict_cumulative_incidence(ROWS, TIMES, cause=2), atol=1e-6)
    free = stub.predict_path(ROWS, start=np.zeros(3), stop=np.full(3, 0.5), times=TIMES)
    np.testing.assert_allclose(free, stub.predict_survival_function(ROWS, TIMES), rtol=1e-10)


def test_a_path_adds_up_the_hazards_of_its_rows(stub):
    X = np.array([[7.0], [2.0], [30.0]])  # the rows of subject "v", then one of "u"
    path = {"start": [1.0, 3.0, 0.0], "stop": [3.0, 4.0, 9.0], "id": ["v", "v", "u"]}
    found = stub.predict_path(X, **path, times=[0.5, 1.0, 2.0, 3.0, 10.0])
    seven, two = (stub.predict_cumulative_hazard_function([[x]], [1.0, 2.0, 3.0, 10.0])[0] for x in (7.0, 2.0))
    hazard = [0, 0, seven[1] - seven[0], seven[2] - seven[0], seven[2] - seven[0] + two[3] - two[2]]
    np.testing.assert_allclose(found[0], np.exp(-np.array(hazard)), rtol=1e-9)
    np.testing.assert_allclose(found[1], stub.predict_survival_function([[30.0]], [0.5, 1.0, 2.0, 3.0, 10.0])[0])
    causes = sum(stub.predict_path(X, **path, times=TIMES, cause=k) for k in (1, 2, 3))
    np.testing.assert_allclose(causes + stub.predict_path(X, **path, times=TIMES), 1.0, atol=1e-12)


def test_a_path_that_only_cuts_a_row_changes_nothing(stub):
    cut = stub.predict_path(
        np.full((3, 1), 7.0), start=[0.0, 2.0, 5.0], stop=[2.0, 5.0, 9.0], id=[4, 4, 4], times=TIMES, cause="a"
    )
    np.testing.assert_allclose(cut, stub.predict_cumulative_incidence([[7.0]], TIMES, cause="a"), atol=1e-6)


def test_many_paths_in_chunks_are_those_one_by_one(stub, monkeypatch):
    X = np.linspace(1, 20, 12)[:, None]
    path = {"start": np.tile([0.0, 2.0], 6), "stop": np.tile([2.0, 3.0], 6), "id": np.repeat(np.arange(6), 2)}
    whole = stub.predict_path(X, **path, times=TIMES, cause="a")
    monkeypatch.setattr("softsurv.estimators.shared.tables.CELLS", 1)
    np.testing.assert_allclose(stub.predict_path(X, **path, times=TIMES, cause="a"), whole, atol=1e-12)


def test_paths_that_start_at_many_times_hold_no_table_of_rows_and_starts(stub, monkeypatch):
    """Each row adds its start to the times of its chunk: the paths of 40,000 rows took 6 GB."""
    n = 500
    path = {"start": np.tile([0.0, 2.0], n) + np.arange(2 * n) / n, "stop": np.full(2 * n, 9.0)}
    path |= {"id": np.repeat(np.arange(n), 2)}
    path["stop"][::2] = path["start"][1::2]
    X = np.linspace(1, 20, 2 * n)[:, None]
    whole = stub.predict_path(X, **path, times=TIMES, cause="a")
    asked, hazards = [], type(stub)._cause_hazards

    def note(self, prepared, times):
        asked.append(len(prepared) * len(times) * 3)
        return hazards(self, prepared, times)

    monkeypatch.setattr(type(stub), "_cause_hazards", note)
    monkeypatch.setattr("softsurv.estimators.shared.tables.CELLS", 100_000)
    parts = stub.predict_path(X, **path, times=TIMES, cause="a")
    np.testing.assert_allclose(parts, whole, atol=2e-6)  # the starts of fewer rows cut the steps of the lattice
    assert max(asked) <= 110_000  # and the first time, and what was rounded


def test_unknown_causes_and_trees_of_one_kind_are_refused(stub):
    with pytest.raises(InvalidSurvivalDataError, match=r"one of the names \['a', 'b', 'c'\], got 'd'"):
        stub.predict_cumulative_incidence(ROWS, TIMES, cause="d")
    one = CausesStub().fit(ROWS, time=[1.0, 2.0, 3.0], event=[1, 1, 0])
    for ask in (
        lambda: one.predict(ROWS, cause=1),
        lambda: one.predict_quantile(ROWS, 0.5, cause=1),
        lambda: one.predict_cumulative_incidence(ROWS),
        lambda: one.predict_state_probabilities(ROWS),
        lambda: one.predict_restricted_time_lost(ROWS),
        lambda: one.predict_path(ROWS, start=np.zeros(3), stop=np.ones(3), cause=1),
    ):
        with pytest.raises(InvalidParameterError, match="this tree was fitted to one"):
            ask()
    with pytest.raises(InvalidParameterError, match="stop must say until when"):
        one.predict_path(ROWS, start=np.zeros(3))


def test_a_tree_that_cannot_use_histories_refuses_them():
    rows = survival_data([[1.0], [2.0]], start=[0.0, 1.0], stop=[1.0, 3.0], event=[0, 1], id=[5, 5])
    with pytest.raises(InvalidParameterError, match="takes one row a subject, got data with subjects"):
        CausesStub().fit(rows)


class YearsStub(CausesStub):
    """H_k = share_k ((t - 2000) / x)^2, from the year 2000 on."""

    def _cause_hazards(self, prepared, times):
        since = np.maximum(times - 2000.0, 0.0)
        return (since / prepared[:, None])[..., None] ** 2 * np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("cause", [1, 2, 3])
def test_the_time_lost_to_a_cause_where_time_is_a_calendar_year(cause):
    """All of the curve lies within one step of log time."""
    years = YearsStub().fit([[5.0]] * 4, time=[2004.0, 2007, 2009, 2015], cause=[1, 2, 3, 0])
    found = years.predict_restricted_time_lost(np.array([[2.0], [7.0]]), cause=cause)
    whole = [quad(lambda u, x=x: -np.expm1(-((u / x) ** 2)), 0.0, 15.0)[0] for x in (2.0, 7.0)]
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2][cause - 1] * np.array(whole), rtol=1e-4)
