"""Binarizer: cut points, levels, missing values, unseen levels, 0/1 columns, JSON and wrong input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from softsurv.data.binarize import Binarizer
from softsurv.data.encoding import read_columns
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, ModelFileError

RAW = pd.DataFrame(
    {
        "age": [40.0, 50.0, np.nan, 60.0, 50.0, 45.0],
        "grade": ["I", "II", "III", "II", None, "II"],
        "smoker": [True, False, True, True, False, False],
        "constant": 1,
        "empty": np.nan,
    }
)

numbers = st.lists(
    st.one_of(st.integers(-4, 4).map(float), st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=40
)


def test_codes_count_the_cuts_below():
    binarizer = Binarizer("all").fit(RAW)
    # the missing age is the mean, 49; the missing grade the most frequent one, II
    assert binarizer.columns_[0].cuts == (42.5, 47.0, 49.5, 55.0)
    assert binarizer.codes(RAW).tolist() == [[0, 0, 1], [3, 1, 0], [2, 2, 1], [4, 1, 1], [3, 1, 0], [1, 1, 0]]
    assert binarizer.nominal.tolist() == [False, True, False]
    assert binarizer.n_codes.tolist() == [5, 3, 2]
    assert binarizer.dropped_ == {"constant": "constant", "empty": "all missing"}


def test_binary_columns_answer_the_rule_of_their_name():
    binarizer = Binarizer([47.0, 55.0]).fit(RAW[["age", "grade"]])
    assert binarizer.names == ["age <= 47", "age <= 55", "grade = I", "grade = II", "grade = III"]
    expected = np.column_stack(
        [
            RAW["age"].fillna(49) <= 47,
            RAW["age"].fillna(49) <= 55,
            *(RAW["grade"].fillna("II") == level for level in ("I", "II", "III")),
        ]
    )
    assert np.array_equal(binarizer.binary(RAW), expected)
    assert binarizer.binary(RAW).dtype == np.uint8


@settings(max_examples=60, deadline=None)
@given(numbers)
def test_all_thresholds_lose_nothing(values):
    frame = pd.DataFrame({"x": values})
    binarizer = Binarizer("all").fit(frame)
    codes = binarizer.codes(frame)
    if frame["x"].nunique() < 2:
        assert codes.shape == (len(frame), 0)
        return
    filled = np.where(frame["x"].isna(), np.nanmean(values), frame["x"])
    assert np.array_equal(codes[:, 0], np.unique(filled, return_inverse=True)[1])


@settings(max_examples=60, deadline=None)
@given(numbers, st.integers(1, 12))
def test_quantiles_divide_the_rows_evenly(values, wanted):
    frame = pd.DataFrame({"x": values})
    everything, some = Binarizer("all").fit(frame), Binarizer(wanted).fit(frame)
    if not everything.columns_:
        assert not some.columns_
        return
    cuts, possible = some.columns_[0].cuts, everything.columns_[0].cuts
    assert set(cuts) <= set(possible)
    assert len(cuts) <= wanted
    assert cuts == possible or len(possible) > wanted
    filled = some.filled(frame)[0]["x"]
    share = 1 / (wanted + 1)
    for code in np.unique(some.codes(frame)):
        inside = filled[some.codes(frame)[:, 0] == code]
        # a bin holds no more than its share, the value on its edge aside
        assert (inside < inside.max()).sum() <= share * filled.size + 1e-9 or cuts == possible


def test_quantiles_of_distinct_values():
    frame = pd.DataFrame({"x": np.arange(110.0)})
    assert Binarizer(10).fit(frame).columns_[0].cuts == tuple(9.5 + 10 * k for k in range(10))


def test_two_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    binarizer = Binarizer("all").fit([[low], [high]])
    assert binarizer.codes([[low], [high]]).tolist() == [[0], [1]]


def test_rare_levels_are_merged():
    frame = pd.DataFrame({"job": list("aaaabbbbccde")})
    binarizer = Binarizer(max_levels=3).fit(frame)
    assert binarizer.names == ["job = a", "job = b", "job in a, b"]
    assert binarizer.codes(frame)[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert binarizer.n_codes.tolist() == [3]
    assert np.array_equal(binarizer.binary(frame)[:, 2], frame["job"].isin(["a", "b"]))


def test_levels_and_cuts_below_a_share_are_left_out():
    frame = pd.DataFrame({"job": ["a"] * 60 + ["b"] * 38 + ["c", "d"], "x": np.arange(100.0)})
    binarizer = Binarizer("all", min_share=0.01).fit(frame)
    assert binarizer.columns_[0].levels == ("a", "b", "c", "d")
    binarizer = Binarizer("all", min_share=0.02).fit(frame)
    assert (binarizer.columns_[0].levels, binarizer.columns_[0].other) == (("a", "b"), True)
    assert binarizer.columns_[1].cuts[0] == 1.5
    assert binarizer.columns_[1].cuts[-1] == 97.5
    binarizer = Binarizer("all", min_share=0.03).fit(frame)
    assert (binarizer.columns_[0].levels, binarizer.columns_[0].other) == (("a",), True)


def test_two_levels_need_one_split():
    binarizer = Binarizer().fit(pd.DataFrame({"sex": ["F", "M", "M"]}))
    assert binarizer.names == ["sex = F"]


def test_an_unseen_level_goes_with_the_rest():
    binarizer = Binarizer(max_levels=3).fit(pd.DataFrame({"job": list("aaaabbbbccde")}))
    with pytest.warns(DataWarning, match="1 level.s. not seen in training, in 1 row"):
        assert binarizer.codes(pd.DataFrame({"job": ["zz", "a"]})).tolist() == [[2], [0]]
    plain = Binarizer().fit(pd.DataFrame({"job": list("abc")}))
    with pytest.warns(DataWarning, match="not seen"):
        assert plain.binary(pd.DataFrame({"job": ["zz"]})).tolist() == [[0, 0, 0]]


def test_missing_values_later_are_filled_from_training():
    binarizer = Binarizer("all").fit(RAW)
    later = pd.DataFrame({"age": [None], "grade": [None], "smoker": [None], "constant": [1], "empty": [None]})
    # smoker: mean 0.5, which lies between no and yes, at the cut
    with pytest.warns(DataWarning, match="none missing in training: 'smoker' in 1 row"):
        assert binarizer.codes(later).tolist() == [[2, 1, 0]]


def test_explicit_thresholds_stay_where_they_are():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "z": [0.0, 1.0, 2.0, 3.0]})
    binarizer = Binarizer({"x": [3.9, 2, -5]}).fit(frame)
    assert [column.cuts for column in binarizer.columns_] == [(2.0, 3.9), (0.5, 1.5, 2.5)]
    assert binarizer.codes(frame)[:, 0].tolist() == [0, 0, 1, 2]
    assert Binarizer({"x": 1, "z": "all"}).fit(frame).n_codes.tolist() == [2, 4]


def test_columns_without_a_split_are_dropped():
    binarizer = Binarizer([100.0]).fit(pd.DataFrame({"x": [1.0, 2.0], "z": [90.0, 110.0]}))
    assert binarizer.dropped_ == {"x": "no split left"}
    assert binarizer.names == ["z <= 100"]


def test_nothing_to_split_gives_no_columns():
    frame = pd.DataFrame({"x": [1.0, 1.0]})
    assert Binarizer().fit(frame).codes(frame).shape == (2, 0)
    assert Binarizer().fit(frame).binary(frame).shape == (2, 0)


def test_columns_are_found_by_name_and_arrays_by_place():
    binarizer = Binarizer("all").fit(RAW)
    assert np.array_equal(binarizer.codes(RAW[RAW.columns[::-1]]), binarizer.codes(RAW))
    array = np.array([[1.0, 5.0], [2.0, 4.0]])
    assert Binarizer().fit(array).codes(array).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("thresholds", [3, "all", [45.0, 52.0], {"age": [45.0]}])
def test_the_state_survives_json(thresholds):
    binarizer = Binarizer(thresholds, max_levels=2).fit(RAW)
    again = Binarizer.from_dict(json.loads(json.dumps(binarizer.to_dict())))
    assert again.get_params() == binarizer.get_params()
    assert again.columns_ == binarizer.columns_
    assert again.sources_ == binarizer.sources_
    assert np.array_equal(again.codes(RAW), binarizer.codes(RAW))


def test_a_damaged_state():
    state = Binarizer().fit(RAW).to_dict()
    with pytest.raises(ModelFileError, match="binarizer state must have format 1, got 7"):
        Binarizer.from_dict(state | {"format": 7})
    del state["columns"]
    with pytest.raises(ModelFileError, match="incomplete or damaged: 'columns'"):
        Binarizer.from_dict(state)


def test_it_clones():
    binarizer = Binarizer({"age": [1.0]}, max_levels=4, min_share=0.1)
    assert clone(binarizer).get_params() == binarizer.get_params()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"thresholds": 0}, "thresholds must be an integer >= 1"),
        ({"thresholds": True}, 'thresholds must be an integer >= 1, "all", a list'),
        ({"thresholds": "some"}, "got 'some'"),
        ({"thresholds": [1.0, np.inf]}, "got .*inf"),
        ({"thresholds": {"age": "few"}}, "thresholds must be an integer"),
        ({"thresholds": {"weight": 3}}, "thresholds must name columns of X, got 'weight'; X has 'age'"),
        ({"thresholds": {"grade": 3}}, "got 'grade', which holds categories; leave it out"),
        ({"max_levels": 1}, "max_levels must be an integer >= 2 or None, got 1"),
        ({"min_share": 0.5}, r"min_share must be a share of the rows in \[0, 0\.5\), got 0\.5"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence) as caught:
        Binarizer(**arguments).fit(RAW)
    assert "\n" not in str(caught.value)


def test_wrong_data():
    binarizer = Binarizer().fit(RAW)
    with pytest.raises(InvalidSurvivalDataError, match="none named 'age'"):
        binarizer.codes(RAW.drop(columns="age"))
    with pytest.raises(InvalidSurvivalDataError, match="column 'age' must be numbers"):
        binarizer.codes(RAW.assign(age="old"))


@given(st.lists(st.floats(-1e9, 1e9) | st.integers(-(10**12), 10**12).map(float), min_size=2, max_size=30, unique=True))
@settings(max_examples=100, deadline=None)
def test_a_printed_rule_is_the_rule(values):
    """Read back from its text a cut sends every training value where the tree does."""
    raw = pd.DataFrame({"x": values})
    binarizer = Binarizer("all").fit(raw)
    read = [float(name.removeprefix("x <= ")) for name in binarizer.names]
    assert read == list(binarizer.columns_[0].cuts)
    left = [sum(value <= cut for value in values) for cut in read]
    assert left == list(range(1, len(values)))


def test_cuts_are_as_short_as_can_be():
    raw = pd.DataFrame({"a": [1.0, 2.0, 2.5], "b": [1 / 3, 2 / 3, 2 / 3], "day": [20230591, 20230600, 20231231]})
    names = Binarizer("all").fit(raw).names
    assert names == ["a <= 1.5", "a <= 2.25", "b <= 0.5", "day <= 20230596", "day <= 20230900"]


@pytest.mark.parametrize("missing", ["impute", "route"])
@pytest.mark.parametrize("limits", [{}, {"max_levels": 2}, {"min_share": 0.15}])
def test_columns_that_are_read_as_codes_give_what_their_text_gives(missing, limits):
    """Categories in an order of their own, one that no row has, and 1 beside "1"."""
    rng = np.random.default_rng(3)
    categories = ["z", 1, "unused", "1", "b"]
    code = rng.choice([-1, 0, 1, 3, 4], 80, p=[0.1, 0.3, 0.3, 0.1, 0.2])
    raw = pd.DataFrame({"level": pd.Categorical.from_codes(code, categories, ordered=True), "n": rng.normal(size=80)})
    by_codes, by_text = (Binarizer(missing=missing, **limits) for _ in range(2))
    block = read_columns(raw)
    table, n = by_codes.fit_filled(raw, block=block)
    plain, _ = by_text.fit_filled(raw)
    assert list(block.labels) == ["level"]
    assert by_codes.to_dict() == by_text.to_dict()
    assert by_codes.sources_ == by_text.sources_
    assert table["level"].tolist() == plain["level"].tolist()
    assert np.array_equal(by_codes.codes_of(table, n, block), by_text.codes(raw))


def test_columns_of_a_mapping_are_found_by_name():
    """A mapping counted as a table without names: in another order its columns were taken for each other."""
    table = {"age": [40.0, 50.0, 60.0], "dose": [9.0, 8.0, 7.0]}
    binarizer = Binarizer("all").fit(table)
    turned = {name: table[name] for name in reversed(table)}
    assert binarizer.codes(turned).tolist() == binarizer.codes(table).tolist() == [[0, 2], [1, 1], [2, 0]]
