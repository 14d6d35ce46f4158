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

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.chunk_columns import fit_preprocessor
from softsurv.data.chunks import Table
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, ModelFileError
from softsurv.estimators import stream
from softsurv.estimators.stream import fit_stream, parse_bytes, predict_stream
from softsurv.hazards import family_names, get_family
from softsurv.soft.objective import Objective
from softsurv.soft.penalties import Penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.streaming import fit as stream_fit
from softsurv.soft.streaming.axis import make_axis
from softsurv.soft.streaming.checkpoint import read_checkpoint, write_checkpoint
from softsurv.soft.streaming.distributed import Ranks, RunningSum
from softsurv.soft.streaming.objective import StreamedObjective
from softsurv.soft.streaming.placed import PlacedChunks
from softsurv.soft.streaming.store import ChunkStore, chosen, gather_outcomes


def make_frame(n=500, seed=0):
    """Numbers, categories, missing values, a constant column; times with ties and one zero."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    kind = rng.choice(["a", "b", "c"], n)
    time = np.round(rng.exponential(np.exp(-x[:, 0] * (x[:, 1] > 0) - (kind == "a"))), 3)
    censoring = np.round(rng.exponential(2.0, n), 3)
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(kind=kind, flag=rng.random(n) < 0.3, same=1.0)
    frame.loc[rng.random(n) < 0.1, "w"] = np.nan
    frame.loc[rng.random(n) < 0.1, "kind"] = None
    frame = frame.assign(t=np.minimum(time, censoring), died=time <= censoring)
    frame.loc[frame.index[3], "t"] = 0.25
    return frame


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def parquet(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=130)
    return path


ARGUMENTS = {"depth": 2, "leaf": "weibull", "l2": 1.0, "shrinkage": 30.0, "routing_l2": 1.0, "n_restarts": 1}


def tree(**changes):
    return SoftSurvivalTree(**(ARGUMENTS | changes))


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
def stored(data, chunk_rows, memory, order=None):
    """The rows of numeric data in a store."""
    store = ChunkStore(memory)
    x, time, event = data.x.numpy(), data.time.numpy(), data.event.numpy()
    weight = None if data.weight is None else data.weight.numpy()
    firsts = list(range(0, data.n, chunk_rows))
    for first in firsts if order is None else [firsts[k] for k in order]:
        part = slice(first, first + chunk_rows)
        store.append(x[part], time[part], event[part], None if weight is None else weight[part])
    return store


def numeric_data(n=200, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 4))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    weights = rng.random(n) if weighted else None
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(n) < 0.7, weight=weights)


@pytest.mark.parametrize("family", family_names())
@pytest.mark.parametrize("memory", [10**9, 3000, 0])
def test_value_and_gradient_equal_those_in_memory(family, memory):
    data, leaf = numeric_data(weighted=True), get_family(family)
    problem = make_problem(data, leaf)
    generator = torch.Generator().manual_seed(0)
    size = 5 + leaf.n_shape
    routing = torch.randn(1, 3, 5, generator=generator, dtype=torch.float64)
    leaves = 0.3 * torch.randn(1, 4, size, generator=generator, dtype=torch.float64)
    one = torch.full((1,), 0.01, dtype=torch.float64)
    anchor = torch.ones(1, 1, size, dtype=torch.float64)
    penalties = Penalties(one, 2 * one, 3 * one, anchor, 4 * one)
    expected = Objective(problem, 2, penalties).value_and_gradient(routing, leaves)
    with stored(data, 37, memory) as store:
        assert store.in_memory <= memory
        assert store.on_disk + store.in_memory == data.n * 5 * 8
        axis = make_axis(leaf, *gather_outcomes(store, Ranks()))
        for workers in (1, 2):
            objective = StreamedObjective(PlacedChunks(store, axis, routing), 2, penalties, Ranks(), workers)
            for ours, theirs in zip(objective.value_and_gradient(routing, leaves), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_order_of_chunks_changes_no_digit():
    data, leaf = numeric_data(), get_family("weibull")
    routing, leaves = torch.ones(1, 1, 5, dtype=torch.float64), torch.full((1, 2, 6), 0.1, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    penalties = Penalties(zero, zero, zero, torch.zeros(1, 1, 6, dtype=torch.float64), zero)
    values = []
    for order in (None, [7, 1, 5, 0, 6, 3, 2, 4], [4, 2, 3, 6, 0, 5, 1, 7]):
        with stored(data, 25, 10**9, order) as store:
            axis = make_axis(leaf, *gather_outcomes(store, Ranks()))
            objective = StreamedObjective(PlacedChunks(store, axis, routing), 1, penalties, Ranks())
            values.append(objective.value_and_gradient(routing, leaves))
    for value in values[1:]:
        assert all(torch.equal(a, b) for a, b in zip(value, values[0], strict=True))


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


def test_a_sample_depends_on_row_numbers_only():
    whole = chosen(3, 0, 100_000, 0.1)
    parts = np.concatenate([chosen(3, first, 12_500, 0.1) for first in range(0, 100_000, 12_500)])
    assert (whole == parts).all()
    assert abs(whole.mean() - 0.1) < 0.005
    assert (chosen(4, 0, 100_000, 0.1) != whole).any()
    assert chosen(0, 0, 1000, 1.0).all()
    assert not chosen(0, 0, 1000, 0.0).any()


# -- fits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("memory", ["1GB", 0])
def test_a_streamed_fit_equals_one_in_memory(frame, parquet, memory, tmp_path):
    data = survival_data(frame, time="t", event="died")
    inside = tree(max_iter=400).fit(data)
    model = fit_stream(tree(max_iter=400), Table(parquet, "t", "died", chunk_rows=64), memory=memory, max_sweeps=10)
    assert model.report_.objective == pytest.approx(inside.report_.objective, abs=1e-4)
    assert model.report_.details["rows"] == len(frame)
    assert model.preprocessor_.get_feature_names_out().tolist() == inside.preprocessor_.get_feature_names_out().tolist()
    assert model.censoring_.values == pytest.approx(inside.censoring_.values)
    assert model.unique_times_.tolist() == inside.unique_times_.tolist()
    assert model.spread_ == pytest.approx(inside.spread_)
    assert model.leaf_table_.n.sum() == len(frame)
    assert model.leaf_table_.n.tolist() == np.bincount(model.apply(data.X)).tolist()
    assert model.evaluate(data)["harrell_c"] == pytest.approx(inside.evaluate(data)["harrell_c"], abs=0.02)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(data.X) == pytest.approx(model.predict(data.X))
    assert loaded.export_text() == model.export_text()


def test_depth_zero_and_a_weight_column(frame, tmp_path):
    frame["w8"] = np.random.default_rng(0).integers(1, 4, len(frame)).astype(float)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    model = fit_stream(tree(depth=0), Table(path, "t", "died", weight="w8", drop=["u"]), sample_rows=100)
    inside = tree(depth=0).fit(frame.drop(columns="u"), time="t", event="died", sample_weight="w8")
    assert model.report_.objective == pytest.approx(inside.report_.objective, abs=1e-6)
    assert model.feature_names_in_.tolist() == inside.feature_names_in_.tolist()


def test_a_small_sample_starts_a_full_fit(parquet, frame):
    table = Table(parquet, "t", "died", chunk_rows=64)
    model = fit_stream(tree(), table, sample_rows=120, max_sweeps=4)
    assert list(model.report_.trace) == sorted(model.report_.trace, reverse=True)
    assert model.leaf_table_.n.sum() == len(frame)


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


def test_a_spent_budget_ends_after_the_sweep(parquet):
    model = fit_stream(tree(time_limit=0.0), Table(parquet, "t", "died"), max_sweeps=5)
    assert model.report_.status == "time_limit"
    assert len(model.report_.trace) == 1


def test_two_columns_of_one_name_are_refused_in_chunks():
    rows = pd.DataFrame(np.zeros((3, 2)), columns=["x", "x"])
    with pytest.raises(InvalidSurvivalDataError, match="source must have unique column names, got 'x' twice"):
        fit_preprocessor(iter([SimpleNamespace(X=rows)]))
