"""Cuts of a block of columns: zeros and ones by counting, the same as by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.data.cuts import block_cuts, sorted_cuts


@pytest.mark.parametrize("wanted", [1, 3, "all"])
@pytest.mark.parametrize("least", [1, 4])
def test_zeros_and_ones_are_cut_as_other_numbers_are(wanted, least):
    rng = np.random.default_rng(0)
    rare = np.zeros(40)
    rare[:3] = 1.0
    block = np.stack([rng.integers(0, 2, 40), rare, 1 - rare, np.zeros(40), np.ones(40), rng.integers(0, 5, 40)])
    found, expected = block_cuts(block, wanted, least), sorted_cuts(block, wanted, least)
    assert found == expected
    assert found[0] == (0.5,)
    assert found[1] == ((0.5,) if least == 1 else ())
    assert found[3] == ()
