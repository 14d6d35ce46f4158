"""Warnings of what training did not show."""

import warnings

import pandas as pd
import pytest

from softsurv.data.binarize import Binarizer
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning

TRAIN = pd.DataFrame({"age": [40.0, 50.0, 60.0], "grade": ["I", "II", "II"], "size": [1.0, None, 3.0]})
LATER = TRAIN.assign(age=[40.0, None, None], grade=[None, "I", "II"], size=[None, None, 3.0])
TOLD = "none missing in training: 'age' in 2 row(s), taken as 50; 'grade' in 1 row(s), taken as 'II'"


@pytest.mark.parametrize("apply", [Preprocessor().fit(TRAIN).transform, Binarizer().fit(TRAIN).codes])
def test_columns_whose_first_missing_values_are_filled_are_told_once(apply):
    with pytest.warns(DataWarning) as caught:
        apply(LATER)
    assert [str(one.message).endswith(TOLD) for one in caught] == [True]


@pytest.mark.parametrize("rows", [TRAIN, TRAIN.assign(size=None)])
def test_nothing_is_told_of_complete_columns_and_of_those_incomplete_in_training(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Preprocessor().fit(TRAIN).transform(rows).notna().all().all()


def test_categories_declared_as_such_and_many_columns_are_told_too():
    declared = TRAIN.astype({"grade": "category"})
    with pytest.warns(DataWarning, match="'grade' in 1 row"):
        Preprocessor().fit(declared).transform(declared.assign(grade=LATER["grade"].astype("category")))
    wide = pd.DataFrame({f"x{k}": [0.0, k + 1.0] for k in range(6)})
    with pytest.warns(DataWarning, match="'x3' in 2 row.s., taken as 2; and 2 more column"):
        Preprocessor().fit(wide).transform(wide * float("nan"))


def test_values_that_are_kept_missing_are_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Preprocessor(impute=False).fit(TRAIN).transform(LATER).isna().any().all()
