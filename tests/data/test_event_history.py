"""What data know of causes and subjects: one cause at a time, whole subjects in folds, rows that belong together."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import histories

from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidSurvivalDataError

TABLE = histories.TABLE.assign(who=["b", "b", "a", "c", "c"], **{"from": [0.0, 3.0, 0.5, 0.0, 2.0]})
"""The first subject by name comes second, and later."""

read = partial(histories.read, TABLE)


def test_one_cause_at_a_time():
    data = read(cause_names=("relapse", "death"))
    assert data.of_cause("death").event.tolist() == [False, True, False, False, False]
    assert data.of_cause(1).event.tolist() == [False, False, True, False, False]
    assert data.of_cause(1).cause is None
    with pytest.raises(InvalidSurvivalDataError, match=r"one of the names \['relapse', 'death'\], got 'cancer'"):
        data.of_cause("cancer")


def test_folds_and_splits_keep_subjects_whole():
    rng = np.random.default_rng(0)
    n, rows = 60, 3
    subject = np.repeat(np.arange(n), rows)
    start = np.tile(np.arange(rows, dtype=float), n)
    event = np.zeros(n * rows, dtype=bool)
    event[rows - 1 :: rows] = rng.random(n) < 0.5
    data = survival_data({"x": rng.random(n * rows)}, start=start, stop=start + 1, event=event, id=subject)
    parts = [*data.folds(5, seed=1)]
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(n * rows))
    for train, test in parts:
        assert not set(subject[train]) & set(subject[test])
    train, test = data.split(seed=3)
    assert not set(train.subject.tolist()) & set(test.subject.tolist())
    assert train.n + test.n == data.n


def test_rows_that_only_cut_a_history_are_joined():
    table = {
        "who": ["a", "b", "a", "a", "b", "b", "b"],
        "from": [0.0, 1.0, 2.0, 3.0, 2.0, 6.0, 7.0],
        "to": [2.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0],
        "died": [0, 0, 0, 1, 0, 0, 0],
        "x": [1.0, np.nan, 1.0, 2.0, np.nan, np.nan, np.nan],
    }
    with pytest.warns(DataWarning, match="not under observation from 5"):
        data = survival_data(pd.DataFrame(table), start="from", stop="to", event="died", id="who")
    joined = data.joined()
    assert joined.entry.tolist() == [0.0, 1.0, 3.0, 6.0]
    assert joined.time.tolist() == [3.0, 5.0, 4.0, 8.0]
    assert joined.event.tolist() == [False, False, True, False]
    assert joined.X["x"].tolist()[::2] == [1.0, 2.0]
    assert joined.joined() is joined
    constant = pd.DataFrame({"x": [1, 1, 1]})
    again = survival_data(constant, start=[0, 1, 2], stop=[1, 2, 3], event=[1, 0, 1], id=["a"] * 3, recurrent=True)
    assert again.joined().time.tolist() == [1.0, 3.0]


def test_subjects_are_counted_and_have_one_beginning_and_one_end():
    data = read()
    assert (data.n_subjects, data.n_failed_subjects, data.n_causes) == (3, 2, 2)
    assert data.subject_codes.tolist() == [1, 1, 0, 2, 2]  # sorted: a, b, c
    assert data.first_times.tolist() == [0.5, 0.0, 0.0]
    assert data.last_times.tolist() == [4.0, 5.0, 6.0]


def test_codes_of_a_part_have_no_gap():
    part = read().take([0, 1, 3, 4])
    assert part.subject_codes.tolist() == [0, 0, 1, 1]
    assert (part.n_subjects, part.n_failed_subjects) == (2, 1)
    assert part.last_times.tolist() == [5.0, 6.0]


def test_rows_of_weight_0_do_not_count():
    data = survival_data({"x": [1, 2, 3]}, time=[1.0, 2, 3], event=[1, 0, 1], weight=[2.0, 0.0, 1.0])
    assert data.that_count().X["x"].tolist() == [1, 3]
    assert data.that_count().weight.tolist() == [2.0, 1.0]
    plain = data.take([0, 2])
    assert plain.that_count() is plain


def test_each_row_is_a_subject_where_none_is_named():
    data = survival_data({"x": [1, 2, 3]}, time=[3.0, 1.0, 2.0], event=[1, 0, 1])
    assert (data.n_subjects, data.n_failed_subjects, data.n_causes) == (3, 2, 1)
    assert data.subject_codes is None
    assert data.first_times.tolist() == [0.0, 0.0, 0.0]
    assert data.last_times.tolist() == [3.0, 1.0, 2.0]
    assert data.joined() is data
    assert data.by_cause() == (data,)
    assert data.summary()["causes"] == {}
    with pytest.raises(InvalidSurvivalDataError, match="cause needs data with causes; pass cause="):
        data.cause_code(1)


def test_the_data_of_all_causes_share_out_the_events():
    data = read()
    parts = data.by_cause()
    assert len(parts) == 2
    assert torch.equal(parts[0].event | parts[1].event, data.event)
    assert not (parts[0].event & parts[1].event).any()


def test_a_history_cut_of_one_row_is_a_plain_row_again():
    """Where nobody is late, neither subject nor entry is left, and the causes stay."""
    table = TABLE.assign(x=[1.0, 1.0, 3.0, 4.0, 4.0], **{"from": [0.0, 3.0, 0.0, 0.0, 2.0]})
    joined = histories.read(table).joined()
    assert (joined.subject, joined.entry) == (None, None)
    assert joined.time.tolist() == [5.0, 4.0, 6.0]
    assert joined.cause.tolist() == [2, 1, 0]
    late = histories.read(table.assign(**{"from": [0.0, 3.0, 0.5, 0.0, 2.0]})).joined()
    assert late.subject is None
    assert late.entry.tolist() == [0.0, 0.5, 0.0]
