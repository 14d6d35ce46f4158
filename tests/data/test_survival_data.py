"""SurvivalData: every rule at the door, and what its methods promise."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv.util import Surv

from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, InvalidSurvivalDataError

INF = np.inf


def frame(n: int = 4) -> pd.DataFrame:
    return pd.DataFrame({"age": np.arange(n) + 40.0, "sex": (["F", "M"] * n)[:n]})


def make(**changes) -> SurvivalData:
    columns = {"X": frame(), "time": [5.0, 3.0, 8.0, 2.0], "event": [True, False, True, False]}
    return SurvivalData(**(columns | changes))


def test_stores_tensors_of_the_promised_kinds():
    data = make(
        time=[5, 3, 8, 2], event=[1, 0, 1, 0], entry=[0, 1, 2, 0], weight=[1, 2, 0, 1], group=["b", "a", "b", "b"]
    )
    assert data.time.dtype == data.entry.dtype == data.weight.dtype == torch.float64
    assert data.event.dtype == torch.bool
    assert data.group.tolist() == [1, 0, 1, 1]
    assert data.group_names == ("a", "b")
    assert (data.n, len(data), data.n_events, data.feature_names) == (4, 4, 2, ["age", "sex"])
    assert repr(data) == "SurvivalData(n=4, p=2, events=2)"


def test_y_is_what_scikit_survival_makes():
    data = make()
    expected = Surv.from_arrays(event=data.event.numpy(), time=data.time.numpy())
    assert data.y.dtype == expected.dtype
    assert np.array_equal(data.y, expected)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"time": [5, -1, 8, -2]}, r"time must be finite and >= 0, got -1 at row 1 and 1 more; drop the row"),
        ({"time": [5, 3, np.nan, 2]}, "time must be finite and >= 0, got nan at row 2"),
        ({"time": [5, 3, 8, INF]}, "time must be finite and >= 0, got inf at row 3"),
        ({"time": [0, 0, 0, 0]}, "time must be > 0 in at least one row"),
        ({"time": ["5", 3, 8, 2]}, "time must be numbers, got '5' at row 0"),
        ({"time": [True, False, True, True]}, "swapped with event"),
        ({"time": pd.to_timedelta([5, 3, 8, 2], unit="D")}, "got timedelta64.*; divide by a unit"),
        ({"time": [5, 3, 8]}, "time must have one value per row of X, 4, got 3"),
        ({"time": np.ones((4, 1))}, r"one-dimensional, got shape \(4, 1\)"),
        ({"time": 7}, "one value per row, got 7"),
        ({"event": [1, 2, 1, 2]}, "event must be bool or 0/1 .*got 1, 2; pass a comparison, such as event == 2"),
        ({"event": ["dead", "alive", "dead", "dead"]}, "got 'dead', 'alive'; pass a comparison"),
        ({"event": [1, 0.5, 0, 0]}, "event must be bool or 0/1"),
        ({"event": [1, None, 0, 0]}, "event must be known, got .* at row 1"),
        ({"event": pd.array([True, None, False, True], "boolean")}, "event must be known, got <NA> at row 1"),
        ({"entry": [0, 3, 0, 0]}, "entry must be below time, got 3 at row 1"),
        ({"entry": [0, -1, 0, 0]}, "entry must be finite and >= 0, got -1 at row 1"),
        ({"weight": [1, 1, -2, 1]}, "weight must be finite and >= 0, got -2 at row 2"),
        ({"weight": [0, 0, 0, 0]}, "weight must be > 0 in at least one row"),
        ({"upper": [INF, 2, INF, INF]}, "upper must be above time where event is False, got 2 at row 1"),
        ({"upper": [9, INF, INF, INF]}, "upper must be inf or equal to time where event is True, got 9 at row 0"),
        ({"upper": [INF, np.nan, INF, INF]}, "use inf for right censoring"),
        ({"group": ["a", None, "b", "a"]}, "group must be known, got (None|nan) at row 1"),
        ({"group": [0, 1, 2, 0], "group_names": ("a", "b")}, "group must be a code in 0..1, got 2 at row 2"),
        ({"X": frame(3)}, "time must have one value per row of X, 3, got 4"),
        ({"X": np.ones((4, 2))}, "X must be a pandas DataFrame, got ndarray"),
        ({"X": frame(0), "time": [], "event": []}, "X must have at least one row"),
        ({"X": frame().assign(age=[1, INF, 2, 3])}, "infinite value in column 'age' at row 1"),
        ({"X": frame().set_axis(["a", "a"], axis=1)}, "unique column names, got 'a' twice"),
    ],
)
def test_what_cannot_be_used_is_one_sentence_with_row_and_remedy(changes, match):
    with pytest.raises(InvalidSurvivalDataError, match=match) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)


def test_zero_times_are_allowed_and_said():
    with pytest.warns(DataWarning, match="time is 0 in 2 of 4 rows: soft trees, .* half .*; optimal trees take 0"):
        data = make(time=[0, 3, 0, 2])
    assert data.time.tolist() == [0, 3, 0, 2]
    assert data.summary()["zero_times"] == data.n_zero_times == 2
    data.take([0, 1])  # no second warning


def test_left_censored_rows_are_no_zero_times():
    data = make(time=[5, 0, 8, 2], upper=[INF, 4, INF, 6])
    assert data.n_zero_times == 0
    assert data.n_events == 2
    assert data.summary()["interval_censored"] == 2


def test_zero_entry_is_no_truncation_even_at_time_zero():
    with pytest.warns(DataWarning):
        data = make(time=[0, 3, 8, 2], entry=[0, 1, 0, 0])
    assert data.summary()["late_entries"] == 1


def test_upper_of_an_event_may_equal_its_time():
    assert make(upper=[5, INF, 8, INF]).n_events == 2


def test_duplicate_rows_are_kept_and_counted():
    data = SurvivalData(pd.DataFrame({"a": [1, 1, 1]}), time=[2, 2, 3], event=[1, 1, 1])
    assert data.n == 3
    assert data.summary()["duplicate_rows"] == 1


def test_no_events_is_an_error_only_where_events_are_needed():
    data = make(event=[0, 0, 0, 0])
    with pytest.raises(InvalidSurvivalDataError, match="event must be True in at least one row, got none in 4 rows"):
        data.require_events()
    assert make().require_events().n_events == 2
    make(event=[0, 0, 0, 0], upper=[9, INF, INF, INF]).require_events()  # an event within an interval counts


def test_x_is_a_tensor_where_features_are_numeric_and_complete():
    data = make(X=pd.DataFrame({"a": [1, 2, 3, 4], "b": [True, False, True, False]}))
    assert data.x.dtype == torch.float64
    assert data.x.tolist() == [[1, 1], [2, 0], [3, 1], [4, 0]]
    with pytest.raises(InvalidSurvivalDataError, match=r"in column 'sex'; encode it first with .*Preprocessor"):
        make().x  # noqa: B018
    with pytest.raises(InvalidSurvivalDataError, match=r"missing value in column 'a' at row 2 \(2 in all\).*Preproc"):
        make(X=pd.DataFrame({"a": [1, 2, None, None]})).x  # noqa: B018


def test_without_features_x_has_no_columns():
    assert make(X=pd.DataFrame(index=range(4))).x.shape == (4, 0)


def test_the_callers_table_is_neither_changed_nor_watched():
    X = pd.DataFrame({0: [1.0, 2, 3, 4]})
    data = make(X=X)
    X.loc[0, 0] = 99.0
    assert data.feature_names == ["0"]
    assert data.x[0, 0] == 1
    assert list(X.columns) == [0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize(
    "rows",
    [[2, 0], np.array([2, 0]), torch.tensor([2, 0]), np.array([True, False, True, False]), slice(0, 3, 2)],
    ids=["list", "array", "tensor", "mask", "slice"],
)
def test_take_carries_every_column(rows):
    data = make(entry=[0, 1, 2, 0], weight=[1, 2, 3, 4], group=["b", "a", "b", "c"], upper=[INF, 9, INF, INF], name="q")
    part = data.take(rows)
    index = np.arange(4)[np.asarray(rows) if not isinstance(rows, slice) else rows]
    pd.testing.assert_frame_equal(part.X, data.X.iloc[index])
    for field in ("time", "event", "entry", "weight", "group", "upper"):
        assert torch.equal(getattr(part, field), getattr(data, field)[torch.as_tensor(index)])
    assert part.group_names == data.group_names
    assert part.name == "q"
    assert np.array_equal(part.y, data.y[index])  # not the cached y of the whole


def test_take_nothing_is_refused():
    with pytest.raises(InvalidSurvivalDataError, match="rows must select at least one row"):
        make().take([])


def test_split_is_stratified_and_seeded():
    rng = np.random.default_rng(0)
    data = SurvivalData(
        pd.DataFrame({"a": np.arange(100.0)}), time=rng.exponential(size=100), event=np.arange(100) < 30
    )
    train, test = data.split(test_size=0.2, seed=1)
    assert (test.n, test.n_events, train.n, train.n_events) == (20, 6, 80, 24)
    assert sorted(train.X["a"].tolist() + test.X["a"].tolist()) == list(range(100))
    assert data.split(test_size=0.2, seed=1)[1].fingerprint() == test.fingerprint()
    assert data.split(test_size=0.2, seed=2)[1].fingerprint() != test.fingerprint()


def test_split_counts_events_within_intervals_as_events():
    upper = np.where(np.arange(40) < 10, 50.0, INF)
    data = SurvivalData(pd.DataFrame({"a": np.arange(40)}), time=np.ones(40), event=np.zeros(40), upper=upper)
    _, test = data.split(test_size=0.2, seed=0)
    assert int(test.upper.isfinite().sum()) == 2


def test_with_features_replaces_x_alone():
    data = make(weight=[1, 2, 3, 4])
    other = data.with_features(pd.DataFrame({"z": [1.0, 2, 3, 4]}))
    assert other.feature_names == ["z"]
    assert other.x.shape == (4, 1)
    assert torch.equal(other.weight, data.weight)
    with pytest.raises(InvalidSurvivalDataError, match="X must have 4 rows"):
        data.with_features(frame(3))


def test_to_moves_tensors():
    data = make(weight=[1, 2, 3, 4]).to("meta")
    assert {data.time.device.type, data.event.device.type, data.weight.device.type} == {"meta"}
    assert data.entry is None
    assert make().to("cpu").fingerprint() == make().fingerprint()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_cuda_device():
    data = make(X=pd.DataFrame({"a": [1.0, 2, 3, 4]}), upper=[INF, 9, INF, INF]).to("cuda")
    part = data.take(torch.tensor([2, 0], device="cuda"))
    assert part.x.device.type == part.time.device.type == "cuda"
    assert part.fingerprint() == data.to("cpu").take([2, 0]).fingerprint()
    assert part.summary()["events"] == 2


def test_fingerprint_depends_on_content_alone():
    data = make()
    same = make(
        X=frame().astype({"sex": "category"}).set_index(pd.Index([9, 8, 7, 6])), time=np.array([5, 3, 8, 2]), name="x"
    )
    assert same.fingerprint() == data.fingerprint()
    others = [
        make(time=[5, 3, 8, 2.5]),
        make(event=[1, 1, 1, 0]),
        make(weight=[1, 1, 1, 1]),
        make(entry=[1, 1, 1, 1]),
        make(X=frame().rename(columns={"age": "Age"})),
        make(X=frame()[["sex", "age"]]),
        make(X=frame().assign(sex=["F", "M", "F", None])),
        make(group=["a", "b", "a", "b"]),
        make(group=["a", "c", "a", "c"]),
        data.take([1, 0, 2, 3]),
    ]
    prints = {data.fingerprint(), *(other.fingerprint() for other in others)}
    assert len(prints) == len(others) + 1


def test_summary_is_json_and_counts_right():
    summary = make(X=frame().assign(bmi=[20, None, 30, None]), name="demo").summary()
    assert json.loads(json.dumps(summary)) == summary
    assert summary | {
        "name": "demo", "n": 4, "p": 3, "events": 2, "censoring_percent": 50.0, "time_min": 2.0, "time_median": 4.0,
        "time_max": 8.0, "categorical": ["sex"], "missing_cells": 2, "duplicate_rows": 0, "groups": [],
    } == summary  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(st.floats(0.1, 1e6), st.booleans()), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_permuting_and_back_is_the_same_data(rows, seed):
    time, event = zip(*rows, strict=True)
    data = SurvivalData(pd.DataFrame({"a": np.arange(len(rows))}), time=list(time), event=list(event))
    order = np.random.default_rng(seed).permutation(len(rows))
    assert data.take(order).take(np.argsort(order)).fingerprint() == data.fingerprint()
    assert data.n_events == sum(event)


def test_many_columns_of_objects_are_the_numbers_they_hold():
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.integers(0, 9, (6, 150)).astype(float)).add_prefix("g")
    numbers.iloc[2, 3] = np.nan
    objects = numbers.astype(object)
    objects.iloc[2, 3], objects["g5"] = None, pd.Series(list(map(int, numbers["g5"])), dtype=object)
    kept = {"event": np.ones(6), "time": np.arange(1.0, 7.0)}
    pd.testing.assert_frame_equal(SurvivalData(objects, **kept).X, numbers)
    with_words = objects.assign(word=list("ababab"), sex=pd.Categorical(list("mfmfmf")))
    read = SurvivalData(with_words[["word", "sex", *numbers]], **kept).X  # beside words column by column
    pd.testing.assert_frame_equal(read[list(numbers)], numbers)
    assert list(read.columns[:2]) == ["word", "sex"]
    mixed = objects.assign(sex=pd.Categorical(list("mfmfmf")))[["sex", *numbers]]
    pd.testing.assert_frame_equal(SurvivalData(mixed, **kept).X[list(numbers)], numbers)
    objects.iloc[4, 7] = "unknown"
    objects["g7"] = [1.5, 2.5, 3.5, 4.5, "unknown", 6.5]
    with pytest.raises(InvalidSurvivalDataError, match="column 'g7' must hold numbers or categories"):
        SurvivalData(objects, **kept)


def test_text_of_another_encoding_has_a_fingerprint():
    """Python reads bytes that are no UTF-8 as halves of characters."""
    tables = [pd.DataFrame({"a\udce9": ["x\udce9", text]}) for text in ("y\udce9", "y\udce8")]
    data = [SurvivalData(X, [1.0, 2.0], [1, 0], group=["\udce9", "m"]) for X in tables]
    assert data[0].fingerprint() == data[0].take([0, 1]).fingerprint() != data[1].fingerprint()
