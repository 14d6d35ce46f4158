"""What torchrun tells each process that it starts."""

import pytest

from softsurv.soft.streaming.launched import is_first, is_launched


@pytest.mark.parametrize(
    ("size", "rank", "launched", "first"),
    [(None, None, False, True), ("1", "0", False, True), ("2", "0", True, True), ("2", "1", True, False)],
)
def test_one_of_several_and_the_one_that_speaks(monkeypatch, size, rank, launched, first):
    for name, value in (("WORLD_SIZE", size), ("RANK", rank)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert is_launched() is launched
    assert is_first() is first
