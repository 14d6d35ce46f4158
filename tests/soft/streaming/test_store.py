"""Rows by chunks, in memory or in a file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from softsurv.soft.streaming.distributed import Ranks
from softsurv.soft.streaming.store import ChunkRows, ChunkStore, chosen, gather_outcomes, join_rows


def test_a_sample_depends_on_row_numbers_only():
    whole = chosen(3, 0, 100_000, 0.1)
    parts = np.concatenate([chosen(3, first, 12_500, 0.1) for first in range(0, 100_000, 12_500)])
    assert (whole == parts).all()
    assert abs(whole.mean() - 0.1) < 0.005
    assert (chosen(4, 0, 100_000, 0.1) != whole).any()
    assert chosen(0, 0, 1000, 1.0).all()
    assert not chosen(0, 0, 1000, 0.0).any()


def chunks_of(rng, sizes=(3, 5, 2)):
    return [
        (rng.normal(size=(n, 2)), rng.integers(0, 4, n).astype(float), rng.random(n) < 0.5, rng.random(n))
        for n in sizes
    ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("held", [0, 1, 3])
def test_chunks_are_read_as_they_were_written(tmp_path, dtype, held):
    """So many fit into memory; the others lie in the file."""
    chunks, size = chunks_of(np.random.default_rng(0)), 8 if dtype == torch.float64 else 4
    memory = [0, 3 * 3 * size, 10 * 3 * size][[0, 1, 3].index(held)]
    with ChunkStore(memory, tmp_path, dtype) as store:
        for chunk in chunks:
            store.append(*chunk)
        assert len(store) == 3
        assert store.in_memory == sum(3 * len(chunk[0]) * size for chunk in chunks[:held])
        assert store.on_disk == sum(3 * len(chunk[0]) * size for chunk in chunks[held:])
        for number in (2, 0, 1, 2):
            x = chunks[number][0]
            expected = np.column_stack([np.ones(len(x)), x]).astype(np.float64 if size == 8 else np.float32)
            np.testing.assert_array_equal(store.design(number), expected)
            rows = store.rows(number, 0.25)
            time = chunks[number][1]
            np.testing.assert_array_equal(rows.log_time, np.log(np.where(time > 0, time, 0.25)))
            np.testing.assert_array_equal(rows.weight, chunks[number][3])


def test_threads_read_where_the_system_cannot_read_at_a_place(tmp_path, monkeypatch):
    """Windows has no `os.preadv`: a table beyond the memory given ended in an AttributeError there."""
    monkeypatch.delattr(os, "preadv", raising=False)
    chunks = chunks_of(np.random.default_rng(1), sizes=[2000] * 8)
    with ChunkStore(0, tmp_path) as store, ThreadPoolExecutor(4) as pool:
        for chunk in chunks:
            store.append(*chunk)
        numbers = [*range(8)] * 5
        for number, design in zip(numbers, pool.map(store.design, numbers), strict=True):
            np.testing.assert_array_equal(design[:, 1:], chunks[number][0])


def test_the_file_is_gone_on_closing(tmp_path):
    with ChunkStore(0, tmp_path) as store:
        store.append(np.ones((2, 1)), np.ones(2), np.ones(2, bool), None)
        np.testing.assert_array_equal(store.rows(0, 1.0).weight, np.ones(2))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        store.design(0)


def test_outcomes_do_not_depend_on_how_chunks_are_shared():
    chunks = chunks_of(np.random.default_rng(1))
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        store = ChunkStore(10**6)
        for k in order:
            store.append(*chunks[k])
        found.append(gather_outcomes(store, Ranks()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (np.diff(found[0][0]) >= 0).all()


def test_parts_are_joined_by_the_numbers_of_their_rows():
    parts = [
        ChunkRows(
            np.full((len(n), 1), n[0], float), np.array(n, float), np.ones(len(n), bool), np.ones(len(n)), np.array(n)
        )
        for n in ([4, 9], [1], [7, 0])
    ]
    joined = join_rows(parts)
    assert joined.number.tolist() == [0, 1, 4, 7, 9]
    assert joined.log_time.tolist() == [0.0, 1.0, 4.0, 7.0, 9.0]
    assert joined.design[:, 0].tolist() == [7.0, 1.0, 4.0, 7.0, 4.0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.7, 1.0])
def test_a_sample_is_as_large_as_its_share(share):
    taken = chosen(3, 0, 20_000, share).mean()
    assert taken == pytest.approx(share, abs=0.02)
    assert not (chosen(3, 0, 1000, 0.5) == chosen(4, 0, 1000, 0.5)).all()
