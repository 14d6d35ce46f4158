"""Fits and predictions of tables read by chunks: sizes of memory in words, and agreement with a table in memory."""

import numpy as np
import pandas as pd
import pytest
from oracles.simulated import simulate

from softsurv import OptimalSurvivalTree, SoftSurvivalTree
from softsurv.data.chunks import Table
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.stream import fit_stream, parse_bytes, predict_stream
from softsurv.hazards import get_family
from softsurv.metrics import harrell_c

SETTINGS = {"depth": 0, "leaf": "weibull", "max_terms": None, "l2": 1.0, "device": "cpu"}


@pytest.fixture(scope="module")
def frame():
    data = simulate(150, 2)
    return data.X.assign(t=data.time.numpy(), died=data.event.numpy())


@pytest.fixture
def table(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    return Table(tmp_path / "rows.parquet", "t", "died", chunk_rows=40)


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("1.5kb", 1500), (" 2 GB ", 2 * 10**9), (2e9, 2 * 10**9), (7, 7)])
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["1 GiB", "GB", "1e9", "-1", -1, "3M", False, None])
def test_sizes_that_are_none_are_told(text):
    with pytest.raises(InvalidParameterError, match='memory must be bytes or text such as "2GB", got'):
        parse_bytes(text)


def test_a_streamed_leaf_is_that_of_a_table_in_memory(frame, table):
    X, y = frame[["x0", "x1"]], (frame["died"], frame["t"])
    streamed = fit_stream(SoftSurvivalTree(**SETTINGS), table, memory=0)
    whole = SoftSurvivalTree(**SETTINGS).fit(X, y)
    np.testing.assert_allclose(streamed.predict_median(X), whole.predict_median(X), rtol=1e-3)
    assert streamed.report_.details["rows"] == 150
    assert streamed.horizon_ == whole.horizon_
    np.testing.assert_array_equal(streamed.unique_times_, whole.unique_times_)
    np.testing.assert_allclose(streamed.censoring_(frame["t"]), whole.censoring_(frame["t"]))
    assert streamed.leaf_table_.n.tolist() == [150]


def test_what_a_streamed_tree_says_is_that_of_a_table_in_memory(tmp_path):
    """The line of a leaf had the median of the leaf's times as the predicted one, sizes of features knew no weights,
    and nothing told what a missing value counts as."""
    rng = np.random.default_rng(0)
    x0, x1 = rng.normal(size=(2, 300))
    time, weight = rng.exponential(np.exp(2 * x1 * np.sign(x0))), np.where(x0 > 0.5, 5.0, np.arange(300) % 3)
    given = pd.DataFrame({"x0": x0, "x1": np.where(np.arange(300) % 7 > 0, x1, np.nan)})
    given = given.assign(t=time, died=rng.random(300) < 0.7, w=weight)
    given.to_parquet(tmp_path / "rows.parquet")
    settings = SETTINGS | {"depth": 1, "shrinkage": 1.0, "routing_l2": 0.1, "n_restarts": 2}
    table = Table(tmp_path / "rows.parquet", "t", "died", "w", chunk_rows=40)
    streamed = fit_stream(SoftSurvivalTree(**settings), table, memory=0)
    whole = SoftSurvivalTree(**settings).fit(given[["x0", "x1"]], (given["died"], given["t"]), sample_weight=weight)
    assert len(whole.leaf_table_.predicted) == 2
    np.testing.assert_allclose(streamed.leaf_table_.predicted, whole.leaf_table_.predicted, rtol=1e-2)
    np.testing.assert_allclose(streamed.spread_, whole.spread_, rtol=1e-10)
    said = "Missing values: x1 counts as"
    assert said in whole.export_text()
    assert said in streamed.export_text()


def test_a_streamed_fit_forgets_an_earlier_one(frame, table):
    """Causes, ranges, names of the outcome and starts of the earlier fit belong to other rows."""
    fresh = fit_stream(SoftSurvivalTree(**SETTINGS), table)
    cause = np.where(frame["died"], np.where(frame["x0"] > 0, "up", "down"), None)
    again = SoftSurvivalTree(**SETTINGS).fit(frame[["x0", "x1", "t"]], time="t", cause=cause)
    fit_stream(again, table)
    assert vars(again).keys() == vars(fresh).keys()
    assert again.cause_names_ == ()
    assert again.export_text() == fresh.export_text()
    with pytest.raises(InvalidParameterError, match="this tree was fitted to one"):
        again.predict_cumulative_incidence(frame, [1.0], cause="up")
    with pytest.raises(InvalidParameterError, match="evaluate_starts needs the starts"):
        again.evaluate_starts(frame[["x0", "x1"]], (frame["died"], frame["t"]))


def test_features_that_repeat_the_outcome_are_told(frame, tmp_path):
    frame.assign(again=frame["t"], status=frame["died"] * 1).to_parquet(tmp_path / "rows.parquet")
    table = Table(tmp_path / "rows.parquet", "t", "died", chunk_rows=40)
    with pytest.warns(DataWarning) as told:
        fit_stream(SoftSurvivalTree(**SETTINGS), table)
    assert [str(one.message).partition(" in every")[0] for one in told] == [
        "the feature 'again' equals the time of the outcome",
        "the feature 'status' equals the event of the outcome",
    ]


def test_typical_rows_are_those_of_the_leaves(frame, tmp_path):
    """The sample holds all rows of a small table: medians and levels are those of the rows of each leaf."""
    frame = frame.assign(site=np.resize(["b", "a", "b"], len(frame)))
    frame.to_parquet(tmp_path / "rows.parquet")
    settings = SETTINGS | {"depth": 1, "shrinkage": 1.0, "routing_l2": 0.1}
    tree = fit_stream(SoftSurvivalTree(**settings), Table(tmp_path / "rows.parquet", "t", "died"))
    typical, leaf = tree.summary().typical, tree.apply(frame)
    assert typical.index.tolist() == [0, 1]
    for k in range(2):
        own = frame[leaf == k]
        np.testing.assert_allclose(typical.loc[k, ["x0", "x1"]].astype(float), own[["x0", "x1"]].median(), atol=0.1)
        assert typical.loc[k, "site"] == own["site"].mode()[0]


def test_predictions_come_chunk_by_chunk_with_the_survival_asked_for(frame, table):
    model = SoftSurvivalTree(**SETTINGS).fit(frame[["x0", "x1"]], (frame["died"], frame["t"]))
    parts = list(predict_stream(model, table, times=[0.5, 2.0]))
    assert [len(part) for part in parts] == [40, 40, 40, 30]
    found = pd.concat(parts, ignore_index=True)
    assert found.columns.tolist() == ["risk", "leaf", "survival_0.5", "survival_2"]
    np.testing.assert_allclose(found["risk"], model.predict(frame))
    np.testing.assert_allclose(
        found[["survival_0.5", "survival_2"]], model.predict_survival_function(frame, [0.5, 2.0])
    )
    assert harrell_c(frame["t"], frame["died"], found["risk"].to_numpy()) > 0.5
    by_path = list(predict_stream(model, table.source))
    assert [part.columns.tolist() for part in by_path] == [["risk", "leaf"]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"depth": None}, "depth must be given to stream, got None"),
        ({"l2": None}, "l2 must be given to stream, got None; choose it on a sample"),
        ({"fairness": 1.0}, "fairness must be 0 to stream, got 1.0"),
        (
            {"depth": 1, "shrinkage": 1.0, "routing_l2": 1.0, "init": "exact"},
            "init must be the name of a start to stream",
        ),
    ],
)
def test_what_needs_all_rows_at_once_is_refused_before_reading(changes, sentence, tmp_path):
    with pytest.raises(InvalidParameterError, match=sentence):
        fit_stream(SoftSurvivalTree(**(SETTINGS | changes)), Table(tmp_path / "not there.csv", "t", "died"))


def test_outcomes_are_checked_over_all_chunks(frame, tmp_path):
    def fit(**columns):
        frame.assign(**columns).to_parquet(tmp_path / "rows.parquet")
        return fit_stream(SoftSurvivalTree(**SETTINGS), Table(tmp_path / "rows.parquet", "t", "died", chunk_rows=40))

    with pytest.raises(InvalidSurvivalDataError, match="event must be True in at least one row, got none in 150 rows"):
        fit(died=False)
    with pytest.raises(InvalidSurvivalDataError, match="got only zeros"):
        fit(t=0.0)
    with pytest.warns(DataWarning, match="time is 0 in 1 of 150 rows; half the smallest positive time"):
        fit(t=frame["t"].where(frame.index > 0, 0.0))


def test_rows_of_weight_0_leave_no_trace(frame, tmp_path):
    """Their times, levels and ranges were learned, and they counted as rows where penalties are shared out."""
    weight = np.where(frame["t"] > frame["t"].quantile(0.9), 0.0, 2.0)
    level = np.where(weight == 0, "late", np.where(frame["x0"] > 0, "up", "down"))
    given = frame.assign(w=weight, level=level)
    given.to_parquet(tmp_path / "all.parquet")
    given[given["w"] > 0].to_parquet(tmp_path / "some.parquet")
    every, some = (
        fit_stream(SoftSurvivalTree(**SETTINGS), Table(tmp_path / f"{name}.parquet", "t", "died", "w", chunk_rows=40))
        for name in ("all", "some")
    )
    assert every.horizon_ == some.horizon_
    assert every.preprocessor_.to_dict() == some.preprocessor_.to_dict()
    assert every.report_.objective == pytest.approx(some.report_.objective, rel=1e-6)
    given.assign(w=0.0).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(InvalidSurvivalDataError, match="weight must be > 0 in at least one row, got only zeros"):
        fit_stream(SoftSurvivalTree(**SETTINGS), Table(tmp_path / "none.parquet", "t", "died", "w"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sample_rows": 99}, "sample_rows must be an integer >= 100, got 99"),
        ({"max_sweeps": 0}, "max_sweeps must be an integer >= 1, got 0"),
        ({"folder": "not there"}, "folder must be an existing folder, got 'not there'"),
        ({"checkpoint": "."}, r"checkpoint must be a file, got the folder '\.'; add a file name"),
        ({"table": "rows.csv"}, "table must be a Table to stream, got str"),
        ({"model": OptimalSurvivalTree()}, "model must be a SoftSurvivalTree to stream, got OptimalSurvivalTree"),
    ],
)
def test_wrong_arguments_are_told_before_reading(wrong, sentence, table):
    given = {"model": SoftSurvivalTree(**SETTINGS), "table": table} | wrong
    with pytest.raises(InvalidParameterError, match=sentence):
        fit_stream(given.pop("model"), given.pop("table"), **given)


def test_a_leaf_family_given_as_an_object_goes_on_from_a_checkpoint(table, tmp_path):
    """It is known by its name and settings: another object of the same family is the same job."""

    def fit(n_knots, **how):
        leaf = get_family("spline_ph", n_knots=n_knots)
        tree = SoftSurvivalTree(**(SETTINGS | {"leaf": leaf}))
        return fit_stream(tree, table, checkpoint=tmp_path / "job", **how)

    first = fit(1).report_
    again = fit(1).report_
    assert (again.trace, again.objective) == (first.trace, first.objective)
    with pytest.raises(InvalidParameterError, match="is of a job with leaf"):
        fit(2)
