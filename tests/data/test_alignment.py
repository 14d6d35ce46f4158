"""Columns of a table in the order of training, by name or by place."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.alignment import align_columns
from softsurv.data.frames import as_frame
from softsurv.errors import DataWarning, InvalidSurvivalDataError

VALUES = [[1.0, 2.0], [3.0, 4.0]]
NAMED = pd.DataFrame(VALUES, columns=["a", "b"])


def test_columns_are_found_by_name_whatever_their_order():
    shuffled = NAMED.assign(more=1.0)[["more", "b", "a"]]
    found = align_columns(shuffled, ["a", "b"], named=True, trained_with_names=True)
    pd.testing.assert_frame_equal(found, NAMED)
    with pytest.raises(InvalidSurvivalDataError, match="got none named 'c', 'd'; add or rename columns"):
        align_columns(shuffled, ["a", "c", "d"], named=True, trained_with_names=True)


def test_columns_without_names_are_taken_by_place_with_a_warning():
    array = as_frame(np.array(VALUES))
    with pytest.warns(DataWarning, match="taken by position, as 'a', 'b'; pass a table with these names"):
        found = align_columns(array, ["a", "b"], named=False, trained_with_names=True)
    pd.testing.assert_frame_equal(found, NAMED)
    assert list(align_columns(NAMED, ["x0", "x1"], named=True, trained_with_names=False)) == ["x0", "x1"]
    with pytest.raises(InvalidSurvivalDataError, match="X must have 3 features as in training, got 2"):
        align_columns(array, ["a", "b", "c"], named=False, trained_with_names=True)


def test_columns_are_aligned_by_their_names_as_text():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]])  # named 0, 1, 2
    found = align_columns(frame, ["2", "0"], named=True, trained_with_names=True)
    assert found.columns.tolist() == ["2", "0"]
    assert found.to_numpy().tolist() == [[3.0, 1.0]]
