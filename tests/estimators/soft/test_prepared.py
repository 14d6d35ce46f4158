"""Encoded rows as predictions take them."""

import torch

from softsurv.estimators.soft.prepared import PreparedRows


def test_a_part_of_the_rows_keeps_their_path():
    rows = PreparedRows(torch.arange(6.0).reshape(3, 2), "soft")
    assert len(rows) == 3
    for chosen, values in (
        (slice(1, None), [[2, 3], [4, 5]]),
        ([2, 0], [[4, 5], [0, 1]]),
        ([True, False, False], [[0, 1]]),
    ):
        part = rows[chosen]
        assert part.path == "soft"
        assert part.x.tolist() == values
    assert len(rows[:0]) == 0
    assert PreparedRows(rows.x).path == "hbp"
