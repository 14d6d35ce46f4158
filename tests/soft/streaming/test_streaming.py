"""Streamed training against training in memory: objective, preprocessing, sampling, fits, checkpoints, refusals."""

from __future__ import annotations

import os
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.streamed import tree
from sklearn.exceptions import ConvergenceWarning

from softsurv.data.chunk_columns import fit_preprocessor
from softsurv.data.chunks import Table
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, ModelFileError
from softsurv.estimators import stream
from softsurv.estimators.stream import fit_stream, parse_bytes, predict_stream
from softsurv.soft.streaming import fit as stream_fit
from softsurv.soft.streaming.checkpoint import read_checkpoint, write_checkpoint
from softsurv.soft.streaming.distributed import RunningSum

pytestmark = pytest.mark.filterwarnings("ignore:the training of the tree took all its")
"""Most fits here are cut short on purpose."""


# -- reading ---------------------------------------------------------------------------------------------------------
def test_a_preprocessor_fitted_by_chunks_equals_one_fitted_at_once(frame, parquet):
    whole = Preprocessor().fit(frame.drop(columns=["t", "died"])).to_dict()
    by_chunks = fit_preprocessor(Table(parquet, "t", "died", chunk_rows=50).chunks()).to_dict()
    for ours, theirs in zip(by_chunks["sources"], whole["sources"], strict=True):
        assert ours.pop("fill") == pytest.approx(theirs.pop("fill"))
    assert by_chunks == whole


def test_csv_and_parquet_give_the_same_rows(frame, parquet, tmp_path):
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    found = []
    for table in (Table(parquet, "t", "died"), Table(path, "t", "died")):
        parts = [c.X.assign(t=c.time, died=c.event) for c in table.chunks()]
        found.append(pd.concat(parts, ignore_index=True).astype({"kind": str}))
    pd.testing.assert_frame_equal(*found, check_dtype=False)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_readers_share_a_table_without_gap_or_overlap(frame, parquet, tmp_path, kind, size):
    path = parquet
    if kind == "csv":
        path = tmp_path / "rows.csv"
        frame.to_csv(path, index=False)
    table = Table(path, "t", "died", chunk_rows=64)
    found = {c.first_row: len(c.time) for rank in range(size) for c in table.chunks(rank, size)}
    alone = {c.first_row: len(c.time) for c in table.chunks()}
    assert found == alone
    assert sum(found.values()) == len(frame)
    firsts = sorted(found)
    assert all(a + found[a] == b for a, b in pairwise(firsts))


def test_a_folder_of_files_is_one_table(frame, tmp_path):
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part{number}.parquet")
    table = Table(tmp_path, "t", "died")
    assert np.concatenate([c.time for c in table.chunks()]).tolist() == frame["t"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": -1.0}, "time must be finite and >= 0"),
        ({"died": 2}, "event must be bool or 0/1"),
        ({"u": np.inf}, "finite or missing"),
    ],
)
def test_bad_cells_are_named(frame, tmp_path, change, message):
    for column, value in change.items():
        frame[column] = frame[column].astype(float)
        frame.loc[7, column] = value
    path = tmp_path / "bad.parquet"
    frame.to_parquet(path)
    with pytest.raises(InvalidSurvivalDataError, match=message):
        fit_preprocessor(Table(path, "t", "died").chunks())


def test_bad_tables_are_one_sentence(parquet, tmp_path):
    with pytest.raises(InvalidSurvivalDataError, match="time must name a column"):
        list(Table(parquet, "tt", "died").chunks())
    with pytest.raises(InvalidSurvivalDataError, match="existing files"):
        list(Table(tmp_path / "no.csv", "t", "died").chunks())
    (tmp_path / "rows.xlsx").write_text("")
    with pytest.raises(InvalidSurvivalDataError, match="one kind"):
        list(Table(tmp_path / "rows.xlsx", "t", "died").chunks())
    path = tmp_path / "ragged.csv"
    path.write_text("t,died,x\n1,1,2\n1,0\n")
    with pytest.raises(InvalidSurvivalDataError, match="readable table"):
        list(Table(path, "t", "died").chunks())


# -- the objective ---------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40), st.randoms())
def test_running_sums_do_not_depend_on_order(values, random):
    def total(numbers):
        running = RunningSum(torch.zeros(1, dtype=torch.float64))
        for number in numbers:
            running.add(torch.tensor([number], dtype=torch.float64))
        return float(running.value)

    shuffled = list(values)
    random.shuffle(shuffled)
    scale = sum(abs(v) for v in values) or 1.0
    assert total(shuffled) == pytest.approx(total(values), abs=1e-25 * scale)


# -- fits ------------------------------------------------------------------------------------------------------------


def test_depth_zero_and_a_weight_column(frame, tmp_path):
    frame["w8"] = np.random.default_rng(0).integers(1, 4, len(frame)).astype(float)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    model = fit_stream(tree(depth=0), Table(path, "t", "died", weight="w8", drop=["u"]), sample_rows=100)
    inside = tree(depth=0).fit(frame.drop(columns="u"), time="t", event="died", sample_weight="w8")
    assert model.report_.objective == pytest.approx(inside.report_.objective, abs=1e-6)
    assert model.feature_names_in_.tolist() == inside.feature_names_in_.tolist()


def test_predictions_by_chunks_equal_those_at_once(frame, parquet):
    model = fit_stream(tree(), Table(parquet, "t", "died"), max_sweeps=1)
    parts = list(predict_stream(model, Table(parquet, "t", "died", chunk_rows=50), times=[0.5, 1.0]))
    assert max(len(part) for part in parts) == 50
    found = pd.concat(parts)
    assert found["risk"].to_numpy() == pytest.approx(model.predict(frame))
    assert found["leaf"].tolist() == model.apply(frame).tolist()
    assert found["survival_1"].to_numpy() == pytest.approx(model.predict_survival_function(frame, [1.0])[:, 0])


def test_long_curves_are_thinned(parquet, monkeypatch):
    monkeypatch.setattr(stream, "CURVE_POINTS", 20)
    model = fit_stream(tree(), Table(parquet, "t", "died"), max_sweeps=1)
    assert model.censoring_.times.size == 20
    assert all(curve.times.size <= 20 for curve in model.leaf_table_.curves)
    assert model.censoring_.times[-1] == model.horizon_


def test_zero_times_are_floored_with_a_note(frame, tmp_path):
    frame.loc[3, "t"] = 0.0
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    with pytest.warns(DataWarning, match="time is 0 in 1 of 500"):
        model = fit_stream(tree(depth=0), Table(path, "t", "died"), max_sweeps=1)
    with pytest.warns(DataWarning):
        inside = tree(depth=0).fit(frame, time="t", event="died")
    assert model.tree_.time_scale[0].tolist() == pytest.approx(inside.tree_.time_scale[0].tolist())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"depth": None}, "depth must be given"),
        ({"shrinkage": None}, "shrinkage must be given"),
        ({"solver": "nodec"}, "solver must be 'lbfgs'"),
        ({"l1": 1.0}, "l1 must be 0"),
        ({"preprocess": False}, "preprocess must be True"),
    ],
)
def test_what_cannot_be_streamed_is_refused(parquet, changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        fit_stream(tree(**changes), Table(parquet, "t", "died"))


def test_a_table_without_events_is_refused(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.assign(died=False).to_parquet(path)
    with pytest.raises(InvalidSurvivalDataError, match="got none in 500 rows"):
        fit_stream(tree(), Table(path, "t", "died"))


@pytest.mark.parametrize(
    ("given", "expected"), [(100, 100), ("2GB", 2 * 10**9), ("1.5 mb", 1_500_000), ("7", 7), ("1KB", 1000)]
)
def test_bytes_from_text(given, expected):
    assert parse_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "lots", "-1", -1, True, "1.5.", "2PB"])
def test_bad_bytes(given):
    with pytest.raises(InvalidParameterError, match="memory must be"):
        parse_bytes(given)


# -- a table that changes between the passes -------------------------------------------------------------------------
def changed_values(path, frame):
    frame.assign(u=frame["u"] + 1).to_parquet(path)


def new_rows(path, frame):
    pd.concat([frame, frame.head(9)]).to_parquet(path)


def truncated(path, frame):
    frame.head(60).to_parquet(path)


def new_level(path, frame):
    frame.assign(kind=frame["kind"].replace("a", "z")).to_parquet(path)


def new_file(path, frame):
    frame.to_parquet(path.parent / "second.parquet")


@pytest.mark.filterwarnings("ignore::softsurv.errors.DataWarning")
@pytest.mark.parametrize("change", [changed_values, new_rows, truncated, new_level, new_file])
def test_a_table_that_changes_between_the_passes_is_refused(frame, tmp_path, monkeypatch, change):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    learn = stream.fit_preprocessor

    def between(*arguments):
        encoder = learn(*arguments)
        change(path, frame)
        return encoder

    monkeypatch.setattr(stream, "fit_preprocessor", between)
    with pytest.raises(InvalidSurvivalDataError, match="source must stay as it is while it is read twice"):
        fit_stream(tree(), Table(tmp_path, "t", "died", chunk_rows=64), max_sweeps=1)


@pytest.mark.parametrize("row", [3, 299])
def test_content_that_changes_behind_the_same_size_and_time_is_refused(frame, tmp_path, monkeypatch, row):
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False, float_format="%.6f")
    learn = stream.fit_preprocessor

    def between(*arguments):
        encoder, facts = learn(*arguments), path.stat()
        lines = path.read_bytes().splitlines(keepends=True)
        digits = [k for k, byte in enumerate(lines[row]) if byte in b"12345678"]
        lines[row] = lines[row][: digits[0]] + b"9" + lines[row][digits[0] + 1 :]
        with path.open("r+b") as file:
            file.write(b"".join(lines))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        return encoder

    monkeypatch.setattr(stream, "fit_preprocessor", between)
    with pytest.raises(InvalidSurvivalDataError, match="read twice, got other values in the rows from"):
        fit_stream(tree(), Table(path, "t", "died", chunk_rows=64), max_sweeps=1)


# -- checkpoints -----------------------------------------------------------------------------------------------------
def test_a_run_that_goes_on_from_a_checkpoint_equals_one_without_a_stop(parquet, tmp_path, monkeypatch):
    table = Table(parquet, "t", "died", chunk_rows=64)
    file = tmp_path / "run.ckpt"
    whole = fit_stream(tree(routing_l2=0.01), table, max_sweeps=4)
    assert len(whole.report_.trace) > 2
    swept = stream_fit.minimise
    calls = []

    def dies(*args):
        calls.append(1)
        if len(calls) == 4:  # the single leaf, then two sweeps
            raise KeyboardInterrupt
        return swept(*args)

    monkeypatch.setattr(stream_fit, "minimise", dies)
    with pytest.raises(KeyboardInterrupt):
        fit_stream(tree(routing_l2=0.01), table, max_sweeps=4, checkpoint=file)
    monkeypatch.setattr(stream_fit, "minimise", swept)
    resumed = fit_stream(tree(routing_l2=0.01), table, max_sweeps=4, checkpoint=file)
    assert resumed.report_.trace == whole.report_.trace
    assert torch.equal(resumed.tree_.leaves, whole.tree_.leaves)
    assert torch.equal(resumed.tree_.routing, whole.tree_.routing)


@pytest.mark.parametrize("sweep", [1, 3])
def test_a_sweep_cut_short_is_not_converged_and_leaves_nothing_half(parquet, tmp_path, monkeypatch, sweep):
    """A sweep without a step gains nothing; a run went on from that, or towards half a single leaf."""
    table, file = Table(parquet, "t", "died", chunk_rows=64), tmp_path / "run.ckpt"
    whole = fit_stream(tree(routing_l2=0.01), table, max_sweeps=4)
    swept, calls = stream_fit.minimise, []

    def interrupted(objective, point, steps, metric, budget):
        calls.append(1)
        if len(calls) == sweep:  # the single leaf comes first
            budget.interrupted = True
        return swept(objective, point, steps, metric, budget)

    monkeypatch.setattr(stream_fit, "minimise", interrupted)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        stopped = fit_stream(tree(routing_l2=0.01), table, max_sweeps=4, checkpoint=file)
    assert stopped.report_.status == "interrupted"
    assert file.exists() == (sweep > 1)
    monkeypatch.setattr(stream_fit, "minimise", swept)
    resumed = fit_stream(tree(routing_l2=0.01), table, max_sweeps=5, checkpoint=file)
    assert resumed.report_.objective < whole.report_.objective + 2e-5


def test_a_checkpoint_of_another_job_is_refused(parquet, tmp_path):
    file = tmp_path / "run.ckpt"
    table = Table(parquet, "t", "died")
    fit_stream(tree(), table, max_sweeps=1, checkpoint=file)
    with pytest.raises(InvalidParameterError, match="another file"):
        fit_stream(tree(l2=2.0), table, max_sweeps=1, checkpoint=file)


def test_checkpoints_are_whole_or_refused(tmp_path):
    file = tmp_path / "run.ckpt"
    assert read_checkpoint(file, {}) is None
    write_checkpoint(file, {"rows": 3}, {"x": torch.arange(3.0)}, {"passes": 2})
    write_checkpoint(file, {"rows": 3}, {"x": torch.ones(2)}, {"passes": 5})
    state = read_checkpoint(file, {"rows": 3})
    assert state.values == {"passes": 5}
    assert state.tensors["x"].tolist() == [1.0, 1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(ModelFileError, match="damaged"):
        read_checkpoint(file, {"rows": 3})


def test_two_columns_of_one_name_are_refused_in_chunks():
    rows = pd.DataFrame(np.zeros((3, 2)), columns=["x", "x"])
    with pytest.raises(InvalidSurvivalDataError, match="source must have unique column names, got 'x' twice"):
        fit_preprocessor(iter([SimpleNamespace(X=rows)]))
