"""Cuts of a block of columns: zeros and ones by counting, the same as by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.data.cuts import block_cuts, sorted_cuts, to_digits


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


@pytest.mark.parametrize("digits", [6, 9, 10, 11, 16])
def test_numbers_of_few_digits_are_those_of_their_text(digits):
    rng = np.random.default_rng(digits)
    size = 10.0 ** rng.uniform(-30, 30, 20_000)
    ties = (rng.integers(10**5, 10**6, 20_000) + 0.5) * 10.0 ** rng.integers(-20, 20, 20_000)
    odd = [0.0, -0.0, 999999.5, 9999994.9999, 1e-310, 5e-324, 1e308, 1e22, 1e23, 0.1, 1 / 3, 123456.5]
    values = np.concatenate([rng.standard_normal(20_000) * size, rng.standard_normal(20_000), ties, -ties, odd])
    np.testing.assert_array_equal(to_digits(values, digits), [float(f"{value:.{digits}g}") for value in values])
