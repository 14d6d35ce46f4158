"""Measures of a fitted tree on folds with causes and on subjects with several rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.known_hazards import KnownHazards

from softsurv.data.readers import survival_data
from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidTimesError
from softsurv.metrics import auc_incidence, cause_specific_concordance, integrated_brier_score_incidence


class Exponential(KnownHazards):
    """Hazards x and 1 - x of two causes per unit of time, or their sum: 1, where there is one kind of event."""

    _knows = ("causes", "subjects")

    def _cause_hazards(self, prepared, times):
        return np.stack([np.outer(prepared, times), np.outer(2 - prepared, times) / 4], -1)


def table(seed, n=150):
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(0.1, 1.9, n), 1)
    time = np.round(rng.exponential(1.0, n) + 0.05, 2)
    cause = np.where(rng.random(n) < 0.3, 0, np.where(rng.random(n) < x / 2, 1, 2))
    return pd.DataFrame({"x": x, "time": time, "why": cause})


def cut(rows, ends):
    """Every history in two rows, at a time before its end; the second one in front, as tables often are not sorted."""
    who = np.arange(len(rows))
    first = rows.assign(start=0.0, stop=ends, why=0, who=who)
    second = rows.assign(start=ends, stop=rows["time"], who=who)
    return pd.concat([second, first], ignore_index=True).drop(columns="time")


def flat(result):
    """All numbers of a result, in the order of its keys."""
    numbers = []
    for value in result.values():
        numbers += flat(value) if isinstance(value, dict) else np.atleast_1d(value).tolist()
    return numbers


@pytest.fixture(scope="module")
def tree():
    return Exponential().fit(table(0), time="time", cause="why", cause_names=("relapse", "death"))


def test_causes_are_measured_one_by_one(tree):
    rows = table(1)
    result = tree.evaluate(rows, time="time", cause="why")
    time, cause = rows["time"].to_numpy(), rows["why"].to_numpy()
    grid = np.linspace(*result["range"], result["n_times"])
    assert list(result["causes"]) == ["relapse", "death"]
    all_events = survival_data(rows.assign(event=cause > 0).drop(columns="why"), time="time", event="event")
    plain = tree.evaluate(all_events)
    assert {k: v for k, v in result.items() if k != "causes"} == plain
    for code, name in enumerate(result["causes"], start=1):
        found = result["causes"][name]
        curves = tree.predict_cumulative_incidence(rows[["x"]], grid, name)
        assert found["events"] == (cause == code).sum()
        assert found["ibs"] == integrated_brier_score_incidence(time, cause, curves, grid, tree.censoring_, code)
        assert found["auc"] == auc_incidence(time, cause, curves, grid, tree.censoring_, code)[1]
        own = cause_specific_concordance(
            time, cause, lambda t, k=code: tree._incidences(rows["x"].to_numpy(), t)[..., k - 1], code
        )
        assert found["concordance"] == own
    assert result["causes"]["relapse"]["concordance"] > 0.6  # higher x, more relapses


def test_times_of_ones_own_choose_the_grid(tree):
    rows = table(1)
    result = tree.evaluate(rows, time="time", cause="why", times=[0.5, 1.0, 1.5])
    curves = tree.predict_cumulative_incidence(rows[["x"]], [0.5, 1.0, 1.5], 2)
    expected = integrated_brier_score_incidence(rows["time"], rows["why"], curves, [0.5, 1.0, 1.5], tree.censoring_, 2)
    assert result["causes"]["death"]["ibs"] == expected


def test_names_of_the_fold_find_those_of_the_tree(tree):
    rows = table(2)
    labels = rows["why"].map({0: None, 1: "relapse", 2: "death"})  # sorted: death is 1 here
    named = survival_data(rows[["x"]], time=rows["time"], cause=labels)
    assert named.cause_names == ("death", "relapse")
    assert tree.evaluate(named) == tree.evaluate(rows, time="time", cause="why")
    strange = survival_data(rows[["x"]], time=rows["time"], cause=labels.replace("death", "other"))
    with pytest.raises(InvalidParameterError, match=r"one of those of the tree \['relapse', 'death'\], got 'other'"):
        tree.evaluate(strange)


def test_a_cause_without_events_is_not_measured(tree):
    rows = table(1).query("why != 2")
    found = tree.evaluate(rows, time="time", cause="why")["causes"]["death"]
    assert (found["concordance"], found["auc"], found["events"]) == (None, None, 0)
    assert found["ibs"] > 0


def test_a_tree_of_one_kind_of_event_refuses_causes():
    rows = table(0)
    tree = Exponential().fit(rows[["x"]], time=rows["time"], event=rows["why"] > 0)
    with pytest.raises(InvalidParameterError, match="fitted to one kind of event, got data with the causes"):
        tree.evaluate(survival_data(rows, time="time", cause="why"))


@pytest.mark.parametrize("share", [0.5, 0.31])
def test_cut_histories_have_the_scores_of_whole_ones(tree, share):
    rows = table(3)
    ends = np.round(rows["time"] * share, 2).clip(lower=0.01)  # such ends fall on events of other subjects
    pieces = cut(rows, ends)
    whole = tree.evaluate(rows, time="time", cause="why")
    outcome = {"start": "start", "stop": "stop", "cause": "why", "id": "who"}
    parts = tree.evaluate(pieces, **outcome)
    np.testing.assert_allclose(flat(parts), flat(whole), atol=1e-12)
    one = pieces.assign(x=pieces["x"] + np.where(pieces.index == 0, 1e-9, 0.0))  # a change that changes no rank
    with pytest.warns(EvaluationWarning, match="need one row for each subject"):
        at_risk = tree.evaluate(one, **outcome)
    assert at_risk["harrell_c"] == pytest.approx(whole["harrell_c"], abs=1e-3)
    assert (at_risk["uno_c"], at_risk["subjects"], at_risk["n"]) == (None, 150, 151)
    assert at_risk["causes"]["death"]["ibs"] is None
    assert tree.score(survival_data(one, **outcome)) == at_risk["harrell_c"]


def test_changing_covariates_are_compared_at_each_event(tree):
    """The definition: the event's row against the row of each other subject that is at risk then."""
    rows = table(4, 60)
    pieces = cut(rows, np.round(rows["time"] * 0.5, 2).clip(lower=0.01))
    rng = np.random.default_rng(0)
    pieces["x"] = np.round(rng.uniform(0.1, 1.9, len(pieces)), 1)
    concordant = comparable = 0.0
    for i in np.flatnonzero(pieces["why"] > 0):
        at = pieces["stop"][i]
        others = pieces[(pieces["start"] < at) & (pieces["stop"] >= at) & (pieces["who"] != pieces["who"][i])]
        last = pieces.groupby("who")["stop"].max()[others["who"]].to_numpy()
        others = others[last > at]
        hazard = {
            k: np.exp(tree._log_cumulative_hazard(np.array([v]), np.array([at]))[0, 0]) for k, v in others["x"].items()
        }
        own = np.exp(tree._log_cumulative_hazard(pieces["x"].to_numpy()[[i]], np.array([at]))[0, 0])
        comparable += len(others)
        concordant += sum((own > value) + 0.5 * (own == value) for value in hazard.values())
    with pytest.warns(EvaluationWarning, match="need one row for each subject"):
        found = tree.evaluate(pieces, start="start", stop="stop", cause="why", id="who")
    assert found["harrell_c"] == pytest.approx(concordant / comparable, abs=1e-12)


def test_options_of_measures_that_are_left_out_are_refused(tree):
    pieces = cut(table(3), table(3)["time"] / 2)
    pieces["x"] = np.linspace(0.1, 1.9, len(pieces))
    with pytest.raises(InvalidParameterError, match="n_times belongs to measures that need one row for each subject"):
        tree.evaluate(pieces, start="start", stop="stop", cause="why", id="who", n_times=5)


def test_options_that_no_measure_has_are_one_sentence(tree):
    with pytest.raises(TypeError, match="evaluate has no argument 'scales'; did you mean 'scale'"):
        tree.evaluate(table(1), time="time", cause="why", scales="time")
    with pytest.raises(InvalidTimesError, match="times must be numbers, got 'x'"):
        tree.evaluate(table(1), time="time", cause="why", times="x")
