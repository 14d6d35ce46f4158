"""Event histories: causes, subjects with several rows, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from oracles.histories import read

from softsurv import SurvivalData
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidSurvivalDataError


def test_causes_and_subjects_are_read_and_leave_the_features():
    data = read(cause_names=("relapse", "death"))
    assert data.feature_names == ["x"]
    assert data.cause.tolist() == [0, 2, 1, 0, 0]
    assert data.event.tolist() == [False, True, True, False, False]
    assert (data.n_causes, data.n_subjects) == (2, 3)
    assert data.summary()["causes"] == {"relapse": 1, "death": 1}
    assert repr(data) == "SurvivalData(n=5, p=1, events=2, causes=2, subjects=3)"


def test_a_summary_counts_subjects_where_they_have_several_rows():
    """Seven rows of three subjects: 'b' comes late, 'c' is censored."""
    who, begin = ["a", "b", "a", "c", "b", "c", "c"], [0.0, 1.0, 2.0, 0.0, 4.0, 3.0, 6.0]
    table = {"x": range(7), "from": begin, "to": [2.0, 4.0, 5.0, 3.0, 9.0, 6.0, 7.0], "why": [0, 0, 1, 0, 2, 0, 0]}
    facts = read(pd.DataFrame(table | {"who": who})).summary()
    assert (facts["n"], facts["subjects"], facts["events"], facts["late_entries"]) == (7, 3, 2, 1)
    assert (facts["censoring_percent"], facts["time_min"], facts["time_median"]) == (33.3, 5.0, 7.0)


def test_labels_are_causes_in_sorted_or_categorical_order():
    labels = pd.Series(["death", None, "relapse", "0"])
    data = survival_data({"x": [1, 2, 3, 4]}, time=[1.0, 2, 3, 4], cause=labels)
    assert data.cause_names == ("death", "relapse")
    assert data.cause.tolist() == [1, 0, 2, 0]
    ordered = labels.replace("0", None).astype(pd.CategoricalDtype(["relapse", "death"]))
    data = survival_data({"x": [1, 2, 3, 4]}, time=[1.0, 2, 3, 4], cause=ordered)
    assert data.cause_names == ("relapse", "death")
    assert data.cause.tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize(
    "codes",
    [[np.nan, 2.0, 1.0], pd.array([None, 2, 1], dtype="Int64"), pd.array([None, 2, 1], dtype="double[pyarrow]")],
    ids=["float", "Int64", "pyarrow"],
)
def test_a_missing_code_is_a_censored_row(codes):
    """As a missing label is, and as the pages say."""
    data = survival_data({"x": [1, 2, 3]}, time=[1.0, 2, 3], cause=codes)
    assert (data.cause.tolist(), data.cause_names) == ([0, 2, 1], ("1", "2"))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
def test_codes_that_are_objects_are_codes(missing):
    """As labels they would be in the order of their texts, 10 before 2."""
    codes = np.array([*range(1, 11), missing, 0], dtype=object)
    data = survival_data({"x": range(12)}, time=np.arange(1.0, 13.0), cause=codes)
    assert (data.cause.tolist(), data.cause_names[1]) == ([*range(1, 11), 0, 0], "2")
    with pytest.raises(InvalidSurvivalDataError, match="got up to 3 but never 1"):
        survival_data({"x": [1, 2, 3]}, time=[1.0, 2, 3], cause=np.array([0, 2, 3], dtype=object))


@pytest.mark.parametrize(
    ("code", "names", "sentence"),
    [
        (10**12, (), "got up to 1000000000000 but never 2"),  # a list of all codes up to this one has no room
        (1e20, (), r"whole number, 0 for censored, got 1e\+20 at row 2"),  # beyond int64
        (1e20, ("a", "b"), r"whole number, 0 for censored, got 1e\+20 at row 2"),
    ],
)
def test_a_code_far_too_large_is_named(code, names, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        survival_data({"x": [1, 2, 3]}, time=[1.0, 2, 3], cause=[0, 1, code], cause_names=names)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"start": [0, 2, 0, 0, 2]}, r"\(0, 3\] at row 0 and \(2, 5\] at row 1 of subject 'a'; .* no history"),
        ({"cause": [1, 0, 1, 0, 2]}, r"an event at row 0 of subject 'a' and more time at row 1; set recurrent=True"),
        ({"cause": [0, 3, 1, 0, 0]}, "got up to 3 but never 2"),
        ({"cause": [0, 1.5, 1, 0, 0]}, "a whole number, 0 for censored, got 1.5 at row 1 of subject 'a'; number"),
        ({"cause": [0, 3, 1, 0, 0], "cause_names": ("a", "b")}, "the number of names, got 3 at row 1 of subject 'a'"),
        ({"entry": "from"}, "entry and start name the same column"),
        ({"id": ["a", "a", None, "c", "c"]}, "id must be known, got (None|nan) at row 2;"),
        ({"event": [0, 0, 1, 0, 0]}, "exactly where event is False, got 2 at row 1 of subject 'a'"),
        ({"upper": [np.inf] * 4 + [7.0]}, "upper must be inf where causes are given, got 7 at row 4 of subject 'c'"),
        ({"start": [0, 5, 0, 0, 2]}, "start must be below stop, got 5 at row 1 of subject 'a'; a subject"),
        ({"cause_names": ("a", "a")}, "cause_names must differ, got 'a' twice"),
        ({"cause_names": "ab"}, "cause_names must be a list of names, one for each code, got 'ab'"),
        ({"cause_names": 2}, "cause_names must be a list of names, one for each code, got 2"),
        ({"recurrent": "no"}, "recurrent must be True or False, got 'no'"),
        ({"cause": [0, 1, 1, 0]}, "cause must have one value per row of X, 5, got 4"),
        (
            {"cause": ["", "x", "y", "", ""], "cause_names": ("y",)},
            r"\['y'\] or 0 for censored, got 'x' at row 1 of subj",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes, sentence):
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        read(**changes)


@pytest.mark.parametrize("recurrent", [False, True])
def test_an_event_in_an_interval_ends_the_history(recurrent):
    """The rows of an unchanged subject become one: an interval before the last row would be lost unseen."""
    history = {"start": [0, 3, 0], "stop": [3.0, 5.0, 4.0], "event": [0, 0, 1], "id": ["a", "a", "b"]}
    table, inf = pd.DataFrame({"x": [1, 1, 2]}), np.inf
    with pytest.raises(InvalidSurvivalDataError, match=r"up to 3\.5 at row 0 of subject 'a' and more time"):
        survival_data(table, **history, upper=[3.5, inf, inf], recurrent=recurrent)
    read_ = survival_data(table, **history, upper=[inf, 6.0, inf], recurrent=recurrent)
    assert read_.joined().upper.tolist() == [6.0, inf]


@pytest.mark.parametrize("label", ["censored", "Censor", "none", "no event", "alive"])
@pytest.mark.parametrize("kind", [np.array, pd.Categorical])
def test_a_label_of_censored_rows_is_no_cause(label, kind):
    """R's first level is that of censored rows, whatever its name: such a table would have an event in every row."""
    rows = {"X": {"x": [1, 2, 3]}, "time": [1.0, 2.0, 3.0], "cause": kind(["death", label, "relapse"])}
    with pytest.raises(InvalidSurvivalDataError, match=f"'' or missing in censored rows, got '{label}'; replace"):
        survival_data(**rows)
    assert survival_data(**rows, cause_names=["death", label, "relapse"]).event.all()  # the user says that it is one


def test_a_column_that_is_not_there_is_named_as_the_user_names_it():
    rows = {"start": [0.0, 1.0], "stop": [1.0, 2.0], "event": [0, 1], "id": [1, 1]}
    for name in ("start", "stop", "id"):
        with pytest.raises(InvalidSurvivalDataError, match=f"{name} must name a column of X, got 'none'"):
            survival_data({"x": [1, 2]}, **rows | {name: "none"})


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        (
            {"stop": [1, np.nan, 2, 4]},
            "stop must be finite and >= 0, got nan at row 1 of subject '1'; drop the row or shift the time",
        ),
        ({"stop": [1, 2, 2]}, "stop must have one value per row"),
        ({"start": [0, 3, 0, 2]}, "start must be below stop, got 3 at row 1"),
        ({"stop": [True, False, True, False]}, "stop must be numbers, got true/false values; is stop swapped"),
        ({"event": [3, 4, 5, 6], "stop": [0, 1, 1, 1]}, "event must be bool or 0/1, got 3 at row 0, while stop holds"),
        ({"id": [1, 1, None, 2]}, "id must be known, got None at row 2"),
        ({"upper": [np.inf, 2, 1, np.inf]}, "upper must be above stop where event"),
    ],
)
def test_errors_call_columns_as_the_user_does(changes, begin):
    given = {"start": [0, 1, 0, 2], "stop": [1, 2, 2, 4], "event": [0, 1, 0, 1], "id": [1, 1, 2, 2]} | changes
    with pytest.raises(InvalidSurvivalDataError) as caught:
        survival_data({"age": [61, 61, 47, 47]}, **given)
    assert str(caught.value).startswith(begin)
    given = {"time" if name == "stop" else "entry" if name == "start" else name: one for name, one in given.items()}
    with pytest.raises(InvalidSurvivalDataError, match=begin.replace("stop", "time").replace("start", "entry")[:30]):
        survival_data({"age": [61, 61, 47, 47]}, **given)


def test_names_of_causes_are_text():
    data = survival_data({"x": [1, 2, 3]}, time=[1.0, 2, 3], cause=[1, 2, 0], cause_names=[10, 20])
    assert data.cause_names == ("10", "20")
    assert data.fingerprint()


def test_gaps_are_said_and_recurrent_events_allowed():
    with pytest.warns(DataWarning, match=r"subject 'a' is not under observation from 3 \(row 0\) to 4 \(row 1\)"):
        read(start=[0, 4, 0, 0, 2])
    again = read(cause=[1, 0, 1, 0, 1], recurrent=True)
    assert again.recurrent
    assert again.n_events == 3


def test_the_fingerprint_and_pickling_know_causes():
    import pickle

    data = read()
    assert data.fingerprint() != read(cause=[0, 1, 2, 0, 0]).fingerprint()
    assert data.fingerprint() != data.of_cause(1).fingerprint()
    assert pickle.loads(pickle.dumps(data)).fingerprint() == data.fingerprint()
    assert isinstance(data.take([0, 1]), SurvivalData)
    assert data.take([1]).cause_names == data.cause_names


def visits(n=30, rows=3):
    """Rows of subjects one after the other: sex and the year of birth are those of a subject."""
    start = np.tile(np.arange(rows, dtype=float), n)
    who = np.repeat([f"p{k}" for k in range(n)], rows)
    event = np.arange(n * rows) % (2 * rows) == rows - 1
    sex, born = np.repeat(np.arange(n) % 2, rows), np.repeat(1940 + np.arange(n) // 2, rows)
    return pd.DataFrame({"born": born, "sex": sex, "who": who, "from": start, "to": start + 1, "event": event})


def test_subjects_that_nobody_named_are_told():
    how = {"start": "from", "stop": "to", "event": "event"}
    with pytest.warns(DataWarning, match="rows of one 'who' follow one another in time, and it counts as a feature"):
        survival_data(visits(), **how)
    survival_data(visits(), **how, id="who")  # a warning would be an error
    survival_data(visits().drop(columns="who"), **how)


def test_rows_of_a_subject_that_meet_but_for_rounding_meet():
    rng = np.random.default_rng(0)
    gaps = rng.exponential(2.0, (60, 3)) + 0.01
    stop = gaps.cumsum(axis=1)
    start = stop - gaps  # off by rounding, in both directions
    assert ((start[:, 1:] < stop[:, :-1]).any(), (start[:, 1:] > stop[:, :-1]).any()) == (True, True)
    rows = pd.DataFrame({"who": np.repeat(np.arange(60), 3), "z": rng.normal(size=180)})
    entry = start.ravel()
    given = entry.copy()
    data = SurvivalData(rows[["z"]], stop.ravel(), np.zeros(180, bool), entry=entry, subject=rows["who"])
    np.testing.assert_array_equal(data.entry.numpy().reshape(60, 3)[:, 1:], stop[:, :-1])
    np.testing.assert_array_equal(entry, given)
