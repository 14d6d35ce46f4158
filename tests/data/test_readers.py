"""survival_data(): every form of table and outcome gives the same data; mistakes get one sentence."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidSurvivalDataError

AGE, BMI = [61.0, 47.0, 70.0, 52.0], [22.5, 31.0, 27.5, 19.0]
TIME, EVENT = [5.0, 3.0, 8.0, 2.0], [True, False, True, False]
X = pd.DataFrame({"age": AGE, "bmi": BMI})
WHOLE = X.assign(T=TIME, E=EVENT)
REFERENCE = survival_data(X, (EVENT, TIME)).fingerprint()


def structured(*fields: tuple[str, list]) -> np.ndarray:
    y = np.empty(4, dtype=[(name, np.asarray(values).dtype) for name, values in fields])
    for name, values in fields:
        y[name] = values
    return y


@pytest.mark.parametrize(
    "table",
    [X, pl.from_pandas(X), pl.from_pandas(X).lazy(), {"age": AGE, "bmi": BMI}, X.convert_dtypes()],
    ids=["pandas", "polars", "lazy", "dict", "nullable"],
)
def test_tables_with_names(table):
    assert survival_data(table, (EVENT, TIME)).fingerprint() == REFERENCE


@pytest.mark.parametrize(
    "table",
    [X.to_numpy(), X.to_numpy().tolist(), torch.tensor(X.to_numpy())],
    ids=["numpy", "list", "torch"],
)
def test_tables_without_names_get_some(table):
    data = survival_data(table, (EVENT, TIME))
    assert data.feature_names == ["x0", "x1"]
    assert data.x.tolist() == X.to_numpy().tolist()


@pytest.mark.parametrize(
    "y",
    [
        (EVENT, TIME),
        [EVENT, TIME],
        (np.array([1, 0, 1, 0]), np.array(TIME)),
        (np.array([1.0, 0.0, 1.0, 0.0]), torch.tensor(TIME)),
        (pd.array(EVENT, dtype="boolean"), pd.array(TIME, dtype="Float64")),
        (pd.Series([1, 0, 1, 0], dtype="Int64"), pd.Series(TIME)),
        (np.array(EVENT, dtype=object), np.array(TIME, dtype=object)),
        (pl.Series(EVENT), pl.Series(TIME)),
        (torch.tensor(EVENT), TIME),
        structured(("event", EVENT), ("time", TIME)),
        structured(("days", TIME), ("dead", EVENT)),
        pd.DataFrame({"days": TIME, "dead": EVENT}),
        pl.DataFrame({"dead": EVENT, "days": TIME}),
    ],
    ids=lambda y: type(y).__name__,
)
def test_every_form_of_outcome(y):
    assert survival_data(X, y).fingerprint() == REFERENCE


def test_column_names_are_taken_out_of_the_features():
    for data in (survival_data(WHOLE, time="T", event="E"), survival_data(WHOLE, ("E", "T"))):
        assert data.fingerprint() == REFERENCE
    assert survival_data(pl.from_pandas(WHOLE), time="T", event="E").fingerprint() == REFERENCE
    assert survival_data(X, time=TIME, event=EVENT).fingerprint() == REFERENCE
    assert list(WHOLE.columns) == ["age", "bmi", "T", "E"]


def test_every_optional_column_by_name_or_by_array():
    extra = {
        "entry": [0, 1, 0, 1],
        "weight": [1, 2, 1, 2],
        "group": ["f", "m", "f", "m"],
        "upper": [np.inf, 9, np.inf, np.inf],
    }
    by_name = survival_data(WHOLE.assign(**extra), time="T", event="E", **{key: key for key in extra})
    by_array = survival_data(X, (EVENT, TIME), **extra)
    assert by_name.fingerprint() == by_array.fingerprint()
    assert by_name.feature_names == ["age", "bmi"]
    assert by_name.group_names == ("f", "m")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_files(tmp_path, suffix):
    path = tmp_path / f"patients.{suffix}"
    WHOLE.to_parquet(path) if suffix == "parquet" else WHOLE.to_csv(path, index=False)
    for source in (path, str(path)):
        data = survival_data(source, time="T", event="E")
        assert data.fingerprint() == REFERENCE
        assert data.name.startswith("patients")


def test_survival_data_is_passed_through():
    data = survival_data(X, (EVENT, TIME))
    assert survival_data(data) is data
    with pytest.raises(InvalidSurvivalDataError, match="y must be left out where X is SurvivalData"):
        survival_data(data, (EVENT, TIME))
    for unread in ({"recurrent": True}, {"cause_names": ["a"]}, {"categorical": ["age"]}, {"missing_values": [-9]}):
        with pytest.raises(InvalidSurvivalDataError, match=f"{next(iter(unread))} must be left out where X is Surv"):
            survival_data(data, **unread)
    again = survival_data(X, (EVENT, TIME), recurrent=True)
    assert survival_data(again, recurrent=True) is again


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ((TIME, [1, 0, 1, 0]), r"they look swapped: the order is \(event, time\)"),
        ((TIME, EVENT), r"they look swapped: the order is \(event, time\)"),
        ((EVENT, EVENT), "time must be numbers, got true/false values; is time swapped with event?"),
        (([1, 2, 1, 2], TIME), r"pass a comparison, such as event == 2"),
        (structured(("event", [1, 0, 1, 0]), ("time", TIME)), "exactly one bool field, the event, got 0 among"),
        (structured(("a", EVENT), ("b", EVENT)), "exactly one bool field, the event, got 2 among"),
        (pd.DataFrame({"a": TIME, "b": TIME, "c": EVENT}), "two fields, event and time, got"),
        (np.array(TIME), "y must hold event and time, got ndarray"),
        (7, "y must hold event and time, got int; pass a structured array"),
        (("E", TIME), "event must name a column of X, got 'E'; X has the columns 'age', 'bmi'"),
        ((EVENT, pd.Series(TIME, index=[3, 2, 1, 0])), r"same index in another order; use time.loc\[X.index\]"),
        (None, "time must be given; pass a structured array"),
    ],
)
def test_wrong_outcomes_get_one_sentence(y, match):
    with pytest.raises(InvalidSurvivalDataError, match=match) as caught:
        survival_data(X, y)
    assert "\n" not in str(caught.value)


def test_an_outcome_given_twice_is_refused():
    with pytest.raises(InvalidSurvivalDataError, match="y must be left out where time=, event= or cause= are given"):
        survival_data(WHOLE, (EVENT, TIME), time="T", event="E")


def test_a_series_with_another_index_is_taken_by_position():
    data = survival_data(X, (EVENT, pd.Series(TIME, index=list("abcd"))))
    assert data.fingerprint() == REFERENCE


def test_a_repeated_column_name_cannot_be_the_outcome():
    doubled = pd.concat([WHOLE, WHOLE[["T"]]], axis=1)
    with pytest.raises(InvalidSurvivalDataError, match="must name one column, got 'T' twice"):
        survival_data(doubled, time="T", event="E")


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (np.ones(4), "X must be two-dimensional, one row per subject"),
        ([[1, 2], [3]], "X must be a table, got rows of unequal length"),
        ("nowhere.csv", "X must be an existing file, got 'nowhere.csv'"),
        ("table.xlsx", "X must be a .csv or .parquet file"),
    ],
)
def test_wrong_tables_get_one_sentence(table, match):
    with pytest.raises(InvalidSurvivalDataError, match=match):
        survival_data(table, (EVENT, TIME))


def test_unreadable_files_get_one_sentence(tmp_path):
    semicolons, empty, broken = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.parquet"
    WHOLE.to_csv(semicolons, sep=";", index=False)
    empty.write_text("")
    broken.write_bytes(b"not parquet")
    for path, match in ((semicolons, "comma separated"), (empty, "readable table"), (broken, "readable table")):
        with pytest.raises(InvalidSurvivalDataError, match=match) as caught:
            survival_data(path, time="T", event="E")
        assert "\n" not in str(caught.value)


def test_importing_the_data_modules_is_light():
    code = (
        "import sys, softsurv.data.readers, softsurv.data.datasets, softsurv.data.partition;"
        "heavy = {'torch', 'pandas', 'sklearn', 'sksurv', 'SurvSet', 'pyarrow', 'polars'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- odd arrays -----------------------------------------------------------------------------------------------------
def test_masked_values_are_missing():
    X = np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=[[0, 1], [0, 0], [1, 0]])
    data = survival_data(X, time=[1, 2, 3], event=[1, 0, 1])
    assert data.X.isna().to_numpy().tolist() == X.mask.tolist()
    ages = np.ma.masked_array([40, 50, 60], mask=[False, True, False])
    assert survival_data({"age": ages}, time=[1, 2, 3], event=[1, 0, 1]).X["age"].isna().tolist() == [
        False,
        True,
        False,
    ]
    with pytest.raises(InvalidSurvivalDataError, match="time must be finite and >= 0, got nan at row 1"):
        survival_data({"x": [1, 2, 3]}, time=np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]), event=[1, 0, 1])


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", "<f8"])
def test_any_byte_order_is_read(dtype):
    values = np.arange(1, 4).astype(dtype)
    for X in (values[:, None], {"x0": values}, pd.DataFrame({"x0": values})):
        data = survival_data(X, time=values, event=[1, 0, 1])
        assert data.X["x0"].tolist() == [1, 2, 3]
        assert data.time.tolist() == [1, 2, 3]
        assert data.X["x0"].dtype.isnative


def test_bfloat16_is_read():
    torch = pytest.importorskip("torch")
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.bfloat16)
    for X in (values[:, None], {"x0": values}):
        data = survival_data(X, time=values, event=[1, 0, 1])
        assert data.X["x0"].tolist() == data.time.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("X", [[[1, 2], [3]], {"a": [1, 2], "b": [1, 2, 3]}])
def test_rows_of_unequal_length_are_one_sentence(X):
    with pytest.raises(InvalidSurvivalDataError, match="X must be a table, got rows of unequal length"):
        survival_data(X, time=[1, 2], event=[1, 0])


@pytest.mark.parametrize("X", [{"a": [10**400] * 3}, [[10**400]] * 3, np.array([[10**400]] * 3, dtype=object)])
def test_whole_numbers_beyond_all_doubles_are_one_sentence(X):
    with pytest.raises(InvalidSurvivalDataError, match=r"up to 1.8e308, got a larger|must be finite or missing"):
        survival_data(X, (np.ones(3, dtype=bool), np.arange(1.0, 4.0)))


@pytest.mark.parametrize("name", ["time", "weight", "entry"])
@pytest.mark.parametrize("as_column", [list, lambda values: pd.Series(values, dtype=object)])
def test_whole_numbers_beyond_all_doubles_of_other_columns_are_one_sentence(name, as_column):
    columns = {"time": [1.0, 2.0], "event": [True, True], name: as_column([10**400, 1])}
    with pytest.raises(InvalidSurvivalDataError, match=rf"{name} must hold numbers up to 1\.8e308, got a larger"):
        survival_data({"x": [1.0, 2.0]}, **columns)


def test_a_ragged_outcome_is_one_sentence():
    with pytest.raises(InvalidSurvivalDataError, match="time must be one value per row, got rows of unequal length"):
        survival_data({"x": [1, 2]}, time=[[1, 2], [3]], event=[1, 0])


def test_an_index_that_overlaps_is_refused():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[0, 1, 2])
    time = pd.Series([1.0, 2.0, 3.0], index=[2, 3, 4])
    with pytest.raises(InvalidSurvivalDataError, match="got an index that shares some rows with that of X and not all"):
        survival_data(X, time=time, event=[1, 0, 1])
    assert survival_data(X, time=time.set_axis([7, 8, 9]), event=[1, 0, 1]).n == 3


def test_weights_whose_sum_overflows_are_refused():
    with pytest.raises(InvalidSurvivalDataError, match=r"weight must have a finite sum, got up to 1e\+308"):
        survival_data({"x": [1.0, 2.0]}, time=[1, 2], event=[1, 0], weight=[1e308, 1e308])


@pytest.mark.parametrize(
    "table", [lambda x: x.to_numpy(), lambda x: x.to_numpy().tolist(), lambda x: {"x": x["x"].array}]
)
def test_an_index_says_nothing_about_rows_without_names(table):
    """A scaler gives an array, and the outcome of a fold keeps its index."""
    fold = [5, 0, 3]
    outcome = pd.DataFrame({"died": [True, False, True], "days": [1.0, 2.0, 3.0]}, index=fold)
    for y in (outcome, (outcome["died"], outcome["days"])):
        data = survival_data(table(pd.DataFrame({"x": [1.0, 2.0, 3.0]})), y)
        assert data.time.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidSurvivalDataError, match="an index that shares some rows with that of X and not all"):
        survival_data({"x": pd.Series([1.0, 2.0, 3.0])}, outcome)


def test_names_of_causes_need_causes():
    with pytest.raises(InvalidSurvivalDataError, match="cause_names name the codes of a cause; pass cause= in the"):
        survival_data({"a": [1.0, 2.0]}, time=[1.0, 2.0], event=[True, False], cause_names=["death"])


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"categorical": "stage"}, r"\['stage'\]"),
        ({"missing_values": "?"}, r"\['\?'\]"),
        ({"missing_values": 9}, r"\[9\]"),
        ({"categorical": None}, r"\[\]"),
    ],
)
def test_one_value_in_the_place_of_a_list_is_told(given, remedy):
    X = pd.DataFrame({"stage": [1, 2]})
    with pytest.raises(InvalidSurvivalDataError, match=rf"{next(iter(given))} must be a list, got .*; write {remedy}$"):
        survival_data(X, ([True, False], [1.0, 2.0]), **given)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ({"time": [1.0, 9999, 3], "event": [1, 1, 0]}, "time is one of missing_values in 1 row"),
        ({"stop": [1.0, 9999, 9999], "event": [1, 1, 0]}, "stop is one of missing_values in 2 row"),
        ({"time": [1.0, 2, 3], "cause": ["a", "unknown", ""]}, "cause is one of missing_values in 1 row"),
    ],
)
def test_outcomes_that_are_missing_values_of_features_are_told(outcome, told):
    table = {"size": [3, 9999, 5], **outcome}
    named = {name: name for name in outcome}
    with pytest.warns(DataWarning, match=told):
        data = survival_data(table, **named, missing_values=[9999, "unknown"])
    assert data.X["size"].isna().tolist() == [False, True, False]
    survival_data(table, **named, missing_values=[0])
