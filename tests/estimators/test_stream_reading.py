"""The two readings of a streamed table: what repeats the outcome, and that both find the same."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.chunks import Chunk, Place
from softsurv.errors import InvalidSurvivalDataError
from softsurv.estimators.stream_reading import CountedChunks, in_all


def chunks(frame, size=10):
    for first in range(0, len(frame), size):
        rows = frame.iloc[first : first + size]
        yield Chunk(Place(first), rows.drop(columns=["t", "d"]), rows["t"].to_numpy(), rows["d"].to_numpy())


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"t": rng.exponential(size=25), "d": rng.random(25) < 0.5})
    nearly = np.where(np.arange(25) < 24, table["t"], 9.0)
    followed = table["t"].astype("Float64")
    return table.assign(
        age=rng.normal(size=25), again=table["t"], nearly=nearly, died=table["d"] * 1, followed=followed
    )


def read(frame):
    counted = CountedChunks(chunks(frame))
    assert sum(len(chunk.time) for chunk in counted) == counted.rows == len(frame)
    return counted


def test_what_equals_the_outcome_in_every_chunk_is_found(frame):
    assert read(frame).repeats == [("again", "time"), ("followed", "time"), ("died", "event")]
    assert read(frame[["t", "d", "age", "nearly"]]).repeats == []


def test_processes_keep_what_all_of_them_found():
    a, b = ("a", "time"), ("b", "event")
    assert in_all([[a, b], None, [b]]) == [b]  # a process without rows has found nothing
    assert in_all([None]) == []


def test_another_table_in_the_second_reading_is_refused(frame):
    counted = read(frame)
    assert len(list(counted.again(chunks(frame)))) == 3
    changed = frame.assign(age=frame["age"].where(frame.index != 12, 7.0))
    with pytest.raises(InvalidSurvivalDataError, match="other values in the rows from 10"):
        list(counted.again(chunks(changed)))
    with pytest.raises(InvalidSurvivalDataError, match="no rows from 20"):
        list(counted.again(chunks(frame.head(20))))
