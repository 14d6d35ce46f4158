"""Preprocessor: learned on the training part alone, applied by name, undone in the data's own units."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from softsurv.data import blocks, encoding, threads
from softsurv.data.preprocess import Preprocessor
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, ModelFileError

TRAIN = pd.DataFrame(
    {
        "age": [40.0, 60.0, None, 50.0],
        "stage": ["I", "II", "III", None],
        "sex": ["F", "M", "M", "M"],
        "smoker": [True, False, True, True],
    }
)


def test_numbers_are_imputed_by_the_training_mean_and_scaled_by_the_training_range():
    fitted = Preprocessor().fit(TRAIN[["age"]])
    assert fitted.transform(TRAIN[["age"]])["age"].tolist() == [0.0, 1.0, 0.5, 0.5]
    later = fitted.transform(pd.DataFrame({"age": [30.0, 80.0, None]}))
    assert later["age"].tolist() == [-0.5, 2.0, 0.5]  # outside the range: not clipped


def test_a_table_of_several_blocks_is_encoded_as_one_of_one_block(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 7)), columns=list("abcdefg"))
    X = X.mask(rng.random(X.shape) < 0.2).assign(h=rng.choice(["x", "y", "z"], 30), i=rng.integers(0, 9, 30))
    fitted = Preprocessor().fit(X)
    together = fitted.transform(X)
    for cells, long in ((1, 99), (70, 99), (70, 1)):  # a column at a time, and two; parts of long columns
        monkeypatch.setattr(blocks, "BLOCK_CELLS", cells)
        monkeypatch.setattr(encoding, "LONG_COLUMN", long)
        monkeypatch.setattr(threads, "MANY_CELLS", 1)
        monkeypatch.setattr(threads, "row_parts", lambda n: [slice(0, 13), slice(13, n)])
        pd.testing.assert_frame_equal(fitted.transform(X), together, check_exact=True)
        assert Preprocessor().fit(X).to_dict() == fitted.to_dict()


def test_levels_are_imputed_by_the_training_mode_and_one_hot_encoded():
    encoded = Preprocessor().fit_transform(TRAIN)
    assert list(encoded.columns) == ["age", "stage=I", "stage=II", "stage=III", "sex=M", "smoker"]
    assert encoded["sex=M"].tolist() == [0, 1, 1, 1]
    assert encoded.loc[3, ["stage=I", "stage=II", "stage=III"]].tolist() == [1, 0, 0]  # tie: the first level
    assert encoded["smoker"].tolist() == [1, 0, 1, 1]
    assert set(encoded.dtypes) == {np.dtype(np.float64)}


@pytest.mark.parametrize(
    ("drop_first", "names"),
    [
        ("binary", ["stage=I", "stage=II", "stage=III", "sex=M"]),
        (True, ["stage=II", "stage=III", "sex=M"]),
        (False, ["stage=I", "stage=II", "stage=III", "sex=F", "sex=M"]),
    ],
)
def test_which_levels_are_left_out(drop_first, names):
    assert Preprocessor(drop_first=drop_first).fit(TRAIN[["stage", "sex"]]).get_feature_names_out().tolist() == names


def test_levels_are_encoded_in_alphabetical_order_told_in_their_own_and_unused_ones_vanish():
    grade = pd.Categorical(["high", "low", "mid"], categories=["none", "low", "mid", "high"], ordered=True)
    fitted = Preprocessor().fit(pd.DataFrame({"grade": grade}))
    assert fitted.get_feature_names_out().tolist() == ["grade=high", "grade=low", "grade=mid"]
    assert fitted.sources_[0].levels == ("low", "mid", "high")


@pytest.mark.parametrize("categories", [["a", "b"], ["b", "a"]])
def test_the_order_of_a_categorical_type_drops_no_other_level(categories):
    arm = pd.Categorical(["a", "b", None, "b", "a"], categories=categories)
    fitted = Preprocessor().fit(pd.DataFrame({"arm": arm}))
    assert fitted.get_feature_names_out().tolist() == ["arm=b"]
    assert fitted.sources_[0].fill == "a"  # as frequent as b


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    raw = pd.DataFrame({f"n{j}": rng.normal(size=50) for j in range(3)} | {"c": rng.choice(list("abcd"), 50)})
    raw = raw.mask(rng.random(raw.shape) < 0.1)
    raw["c"] = raw["c"].astype(object).where(raw["c"].notna(), np.nan)
    numbers = make_pipeline(SimpleImputer(strategy="mean"), MinMaxScaler())
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False))
    peer = ColumnTransformer([("n", numbers, ["n0", "n1", "n2"]), ("c", levels, ["c"])]).fit(raw[:30])
    ours = Preprocessor().fit(raw[:30])
    np.testing.assert_allclose(ours.transform(raw[30:]), peer.transform(raw[30:]), atol=1e-12)


def test_constant_and_empty_columns_are_left_out_and_recorded():
    raw = TRAIN.assign(one=1.0, word="x", nothing=None, gap=[2.0, None, 2.0, 2.0])
    fitted = Preprocessor().fit(raw)
    assert fitted.dropped_ == {"one": "constant", "word": "constant", "nothing": "all missing", "gap": "constant"}
    assert not {"one", "word", "nothing", "gap"} & {column.source for column in fitted.columns_}
    later = fitted.transform(raw.assign(one=7.0))
    assert np.array_equal(later, fitted.transform(raw))


def test_a_table_of_constants_gives_no_columns():
    assert Preprocessor().fit_transform(pd.DataFrame({"a": [1, 1]})).shape == (2, 0)


def test_one_row_is_enough_to_transform_and_constant_to_fit():
    assert Preprocessor().fit(TRAIN).transform(TRAIN[:1]).shape == (1, 6)
    assert Preprocessor().fit(TRAIN[:1]).columns_ == []


def test_unseen_levels_are_zeros_with_a_warning_naming_column_and_count():
    fitted = Preprocessor().fit(TRAIN)
    with pytest.warns(DataWarning) as caught:
        encoded = fitted.transform(TRAIN.assign(stage=["IV", "V", "IV", "I"], sex=["X", "F", "M", "M"]))
    stage, sex = (str(w.message) for w in caught)
    assert "column 'stage' has 2 level(s) not seen in training, in 3 row(s): 'IV', 'V'" in stage
    assert stage.endswith("they count like none of the levels known")
    assert sex.endswith("they count like 'F'")
    assert encoded.loc[0, ["stage=I", "stage=II", "stage=III", "sex=M"]].tolist() == [0, 0, 0, 0]


def test_levels_match_by_text_whatever_the_type():
    fitted = Preprocessor().fit(pd.DataFrame({"code": pd.Categorical([1, 2, 3])}))
    wanted = fitted.transform(pd.DataFrame({"code": pd.Categorical([3, 1])})).to_numpy()
    for values in ([3, 1], [3.0, 1.0], ["3", "1"]):
        assert np.array_equal(fitted.transform(pd.DataFrame({"code": values})), wanted)


def test_booleans_with_gaps_and_numbers_as_objects_are_numbers():
    raw = pd.DataFrame({"flag": [True, None, False], "n": np.array([1, None, 3], dtype=object)})
    assert Preprocessor().fit_transform(raw).to_numpy().tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert Preprocessor().fit_transform(raw.convert_dtypes()).to_numpy().tolist() == [[1, 0], [0.5, 0.5], [0, 1]]


def test_without_imputation_missing_stays_missing():
    encoded = Preprocessor(impute=False).fit_transform(TRAIN)
    assert np.isnan(encoded.loc[2, "age"])
    assert encoded.loc[3, ["stage=I", "stage=II", "stage=III"]].isna().all()
    assert encoded.isna().to_numpy().sum() == 4


def test_without_scaling_numbers_keep_their_units():
    assert Preprocessor(scale=False).fit_transform(TRAIN)["age"].tolist() == [40, 60, 50, 50]


def test_missing_indicators_on_request():
    fitted = Preprocessor(add_indicator=True).fit(TRAIN)
    encoded = fitted.transform(TRAIN)
    assert encoded["age is missing"].tolist() == [0, 0, 1, 0]
    assert encoded["stage is missing"].tolist() == [0, 0, 0, 1]
    assert "sex is missing" not in encoded
    assert {column.kind for column in fitted.columns_} == {"number", "level", "missing"}


def test_a_number_is_never_taken_from_the_test_part():
    fitted = Preprocessor().fit(TRAIN)
    before = fitted.to_dict()
    with pytest.warns(DataWarning):
        fitted.transform(TRAIN.assign(age=1e6, stage="IX"))
    assert fitted.to_dict() == before


def test_columns_are_found_by_name():
    fitted = Preprocessor().fit(TRAIN)
    shuffled = TRAIN[["smoker", "sex", "age", "stage"]].assign(extra="ignored")
    pd.testing.assert_frame_equal(fitted.transform(shuffled), fitted.transform(TRAIN))
    pd.testing.assert_frame_equal(fitted.transform(pl.from_pandas(TRAIN)), fitted.transform(TRAIN))


def test_arrays_are_taken_by_position_and_the_index_is_kept():
    array = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 6.0]])
    fitted = Preprocessor().fit(array)
    assert fitted.get_feature_names_out().tolist() == ["x0", "x1"]
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.transform(array).to_numpy().tolist() == [[0, 0], [0.5, 1], [1, 0.5]]
    named = Preprocessor().fit(pd.DataFrame(array, columns=["a", "b"], index=[7, 8, 9]))
    assert named.feature_names_in_.tolist() == ["a", "b"]
    assert named.n_features_in_ == 2
    with pytest.warns(DataWarning, match="taken by position, as 'a', 'b'"):
        assert named.transform(array).to_numpy().tolist() == fitted.transform(array).to_numpy().tolist()
    assert named.transform(pd.DataFrame({"a": [1.0], "b": [5.0]}, index=["p"])).index.tolist() == ["p"]


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (TRAIN.drop(columns=["age", "sex"]), "every column seen in training, got none named 'age', 'sex'"),
        (TRAIN.assign(age="old"), "column 'age' must be numbers, got 'old' at row 0"),
        (TRAIN.assign(age=np.inf), "infinite value in column 'age' at row 0"),
        (TRAIN.assign(age=np.array([1, 2, np.inf, None], object)), "column 'age' must be finite or missing, got inf"),
        (np.ones((2, 3)), "X must have 4 features as in training, got 3"),
    ],
)
def test_wrong_tables_at_transform_get_one_sentence(table, match):
    with pytest.raises(InvalidSurvivalDataError, match=match):
        Preprocessor().fit(TRAIN).transform(table)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (TRAIN.assign(day=pd.Timestamp("2020-01-01")), "column 'day' must hold numbers or categories, got datetime64"),
        (TRAIN.assign(gap=np.timedelta64(2, "D")), "column 'gap' must hold numbers or categories"),
        (
            TRAIN.assign(day=pd.period_range("2020", periods=4)),
            "column 'day' must hold numbers or categories, got period",
        ),
        (TRAIN.assign(cell=[[1]] * 4), "column 'cell' must hold numbers or categories, got list"),
        (TRAIN.assign(big=[1.7e308, -1.7e308, 0, 0]), "column 'big' must have a finite range"),
        (TRAIN.assign(z=1j), "column 'z' must hold numbers or categories, got complex128"),
        (TRAIN.assign(big=[1e308, -1e308, 0, 0]), "column 'big' must have a finite range"),
        (TRAIN.assign(big=1.7e308), "column 'big' must have a finite range"),
        (TRAIN.assign(**{"stage=I": [1, 2, 3, 4]}), "two encoded columns 'stage=I'; rename one"),
    ],
)
def test_wrong_tables_at_fit_get_one_sentence(table, match):
    with pytest.raises(InvalidSurvivalDataError, match=match):
        Preprocessor().fit(table)


def test_categories_can_be_refused():
    with pytest.raises(InvalidSurvivalDataError, match="got categories in column 'stage'; use encode='onehot'"):
        Preprocessor(encode=None).fit(TRAIN)
    assert Preprocessor(encode=None).fit_transform(TRAIN[["age"]]).shape == (4, 1)


@pytest.mark.parametrize(
    "setting", [{"impute": 1}, {"scale": "yes"}, {"encode": "ordinal"}, {"drop_first": "all"}, {"add_indicator": None}]
)
def test_wrong_settings_are_named(setting):
    (name,) = setting
    with pytest.raises(InvalidParameterError, match=f"{name} must be"):
        Preprocessor(**setting).fit(TRAIN)


def test_columns_can_be_said_in_the_datas_own_units():
    fitted = Preprocessor().fit(TRAIN)
    by_name = {column.name: column for column in fitted.columns_}
    age, sex = by_name["age"], by_name["sex=M"]
    assert (age.source, age.level, age.offset, age.scale) == ("age", None, 40.0, 20.0)
    assert (sex.source, sex.level, sex.offset, sex.scale) == ("sex", "M", 0.0, 1.0)
    encoded = fitted.transform(TRAIN)
    assert [age.to_units(v) for v in encoded["age"]] == [40, 60, 50, 50]


def test_refitting_forgets():
    fitted = Preprocessor().fit(TRAIN).fit(np.array([[1.0], [2.0]]))
    assert fitted.n_features_in_ == 1
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.to_dict() == Preprocessor().fit(np.array([[1.0], [2.0]])).to_dict()


def test_follows_scikit_learn():
    fitted = clone(Preprocessor(drop_first=False))
    assert fitted.get_params()["drop_first"] is False
    with pytest.raises(NotFittedError):
        fitted.transform(TRAIN)
    pipe = Pipeline([("prepare", Preprocessor()), ("scale", MinMaxScaler())]).fit(TRAIN)
    assert pipe[:-1].get_feature_names_out().tolist() == list(Preprocessor().fit_transform(TRAIN).columns)


CELLS = st.one_of(st.none(), st.floats(-1e9, 1e9), st.integers(-1000, 1000))
WORDS = st.one_of(st.none(), st.sampled_from(["a", "b", "c d", "é", "1", ""]))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, WORDS, st.booleans()), min_size=1, max_size=12),
    parameters=st.fixed_dictionaries(
        {"drop_first": st.sampled_from(["binary", True, False]), "add_indicator": st.booleans(), "scale": st.booleans()}
    ),
)
def test_training_part_is_complete_scaled_and_survives_json_exactly(rows, parameters):
    raw = pd.DataFrame(rows, columns=["number", "word", "flag"])
    fitted = Preprocessor(**parameters).fit(raw)
    encoded = fitted.transform(raw)
    assert not encoded.isna().to_numpy().any()
    if parameters["scale"]:
        assert ((encoded >= 0) & (encoded <= 1)).to_numpy().all()
    state = fitted.to_dict()
    copied = json.loads(json.dumps(state))
    assert copied == state
    again = Preprocessor.from_dict(copied)
    assert again.to_dict() == state
    pd.testing.assert_frame_equal(again.transform(raw), encoded, check_exact=True)


@pytest.mark.parametrize(
    ("change", "match"), [({"format": 2}, "must have format 1, got 2"), ({"sources": None}, "incomplete or damaged")]
)
def test_a_damaged_state_is_refused(change, match):
    state = Preprocessor().fit(TRAIN).to_dict()
    with pytest.raises(ModelFileError, match=match):
        Preprocessor.from_dict(state | change)
    with pytest.raises(ModelFileError, match="incomplete"):
        Preprocessor.from_dict({key: value for key, value in state.items() if key != "columns"})


def test_the_state_holds_no_training_rows():
    ages = np.random.default_rng(0).normal(50, 10, size=200)
    text = json.dumps(Preprocessor().fit(pd.DataFrame({"age": ages})).to_dict())
    inside = [age for age in ages if repr(float(age)) in text]
    assert len(inside) <= 1  # the smallest value, as the offset of the scale


def test_columns_that_are_no_features_may_hold_anything():
    table = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})
    encoder = Preprocessor().fit(table)
    more = table.assign(until=np.inf, day=pd.Timestamp("2020-01-01"), c=[[1], [2], [3]])
    pd.testing.assert_frame_equal(encoder.transform(more), encoder.transform(table))
    with pytest.raises(InvalidSurvivalDataError, match="infinite value in column 'a' at row 2"):
        encoder.transform(more.assign(a=[1.0, 2.0, np.inf]))
