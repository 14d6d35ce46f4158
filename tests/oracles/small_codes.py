"""Small random tables of codes for the exact search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


def small_codes(seed, max_rows=12):
    """Codes, numbers of codes and kinds of three features, and the generator."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, max_rows))
    n_codes = rng.integers(2, 4, 3)
    codes = np.column_stack([rng.integers(0, m, n) for m in n_codes]).astype(np.int32)
    return rng, codes, n_codes, rng.random(3) < 0.4


def agree(a, b):
    return a == pytest.approx(b, rel=1e-9, abs=1e-9)
