"""The order of rows and columns that a fit works in depends on the content alone."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest

from softsurv.data import canonical, sorting, threads
from softsurv.data.canonical import column_order, distinct_rows, row_order
from softsurv.data.readers import survival_data
from softsurv.data.survival_data import SurvivalData


def table(rng, n=60):
    """Rows with ties in every column, so that all of them are needed to tell rows apart."""
    X = pd.DataFrame({"b": rng.integers(0, 3, n).astype(float), "a": rng.choice(["u", "v"], n), "c": rng.random(n)})
    X.loc[::7, "b"] = np.nan
    X.loc[3::11, "a"] = None
    return SurvivalData(X, rng.integers(1, 4, n).astype(float), rng.random(n) < 0.6, weight=rng.integers(1, 3, n))


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_any_order_are_put_into_one(seed):
    rng = np.random.default_rng(seed)
    data = table(rng)
    shuffled = data.take(rng.permutation(data.n))
    one, other = (d.take(row_order(d, ["a", "b", "c"])) for d in (data, shuffled))
    assert one.fingerprint() == other.fingerprint()


def test_rows_are_ordered_as_by_a_plain_sort():
    data = table(np.random.default_rng(7))

    def key(k):
        a, b = data.X["a"].iloc[k], data.X["b"].iloc[k]
        known = (pd.isna(a), "" if pd.isna(a) else a, np.inf if np.isnan(b) else b, data.X["c"].iloc[k])
        return (float(data.time[k]), bool(data.event[k]), float(data.weight[k]), *known)

    assert row_order(data, ["a", "b", "c"]).tolist() == sorted(range(data.n), key=key)


def test_equal_rows_keep_the_order_given():
    data = SurvivalData(pd.DataFrame({"a": [1.0, 0.0, 1.0]}), [2.0, 2.0, 2.0], [True, True, True])
    assert row_order(data, ["a"]).tolist() == [1, 0, 2]


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_an_array_are_ordered_by_content(seed):
    rng = np.random.default_rng(seed)
    values, time = rng.integers(0, 2, (50, 8)).astype(float), rng.integers(1, 5, 50).astype(float)
    rows, columns = rng.permutation(50), rng.permutation(8)
    event = np.ones(50, bool)
    places = [f"x{k}" for k in range(8)]
    one = SurvivalData(pd.DataFrame(values, columns=places), time, event)
    other = SurvivalData(pd.DataFrame(values[rows][:, columns], columns=places), time[rows], event)
    first, second = ([int(k[1:]) for k in column_order(d.X, d)] for d in (one, other))
    assert first == columns[second].tolist()


@pytest.mark.parametrize(
    ("few_spans", "head", "by_digest"),
    [(canonical.FEW_SPANS, 40, False), (canonical.FEW_SPANS, 9, False), (canonical.FEW_SPANS, 1, True), (-1, 40, True)],
)
def test_columns_of_an_array_are_ordered_by_their_values_by_outcome_and_size(few_spans, head, by_digest, monkeypatch):
    """By the first values where they tell all columns apart, else by a digest; an outcome is never cut in two."""
    monkeypatch.setattr(canonical, "FEW_SPANS", few_spans)
    monkeypatch.setattr(canonical, "HEAD", head)
    rng = np.random.default_rng(3)
    values, time, event = (
        rng.integers(0, 4, (40, 6)).astype(float),
        np.r_[0.5, 0.6, rng.integers(1, 6, 38)],
        rng.random(40) < 0.6,
    )
    values[::9, 2], values[3, 4] = np.nan, -0.0
    values[:2] = 1.0  # two rows tell no columns apart
    data = SurvivalData(pd.DataFrame(values, columns=[f"x{k}" for k in range(6)]), time, event)

    def content(name):
        column = np.where(np.isnan(values[:, int(name[1:])]), np.inf, values[:, int(name[1:])]) + 0.0
        ordered = sorted(zip(time, event, column, strict=True))
        if by_digest:
            return hashlib.blake2b(np.array([value for _, _, value in ordered]).tobytes()).digest()
        last = ordered[min(head, 40) - 1][:2]
        return np.array([value for *outcome, value in ordered if tuple(outcome) <= last]).tobytes()

    assert column_order(data.X, data) == sorted(data.X.columns, key=content)


def test_names_order_the_columns_of_a_frame():
    assert column_order(pd.DataFrame({"b": [1], "a": [2]})) == ["a", "b"]


@pytest.mark.parametrize("few_cells", [0, canonical.FEW_CELLS])
def test_columns_of_zeros_and_ones_are_compared_one_after_the_other(few_cells, monkeypatch):
    monkeypatch.setattr(canonical, "FEW_CELLS", few_cells)
    rng = np.random.default_rng(3)
    names = [f"b{k:03d}" for k in range(130)]
    X = pd.DataFrame(rng.integers(0, 2, (80, 130)), columns=names)
    X.iloc[:, :125] = X.iloc[rng.integers(0, 6, 80), :125].to_numpy()  # ties, some up to the last columns
    X["b060"] = rng.choice([0.0, 2.5, np.nan], 80)
    X["b061"] = X["b061"].astype(bool)
    data = SurvivalData(X, np.ones(80), np.ones(80, bool))
    keys = [tuple(np.inf if np.isnan(value) else value for value in row) for row in X.to_numpy(dtype=float)]
    assert row_order(data, names).tolist() == sorted(range(80), key=lambda k: keys[k])


@pytest.mark.parametrize("n", [1, 2, 60])
def test_columns_that_are_read_as_codes_order_rows_as_their_text_does(n):
    rng = np.random.default_rng(n)
    plain = table(rng, n)
    X = plain.X.assign(d=rng.choice(["u", "v", None], n), e=rng.choice([0.5, 1.5], n))
    typed = X.assign(**{name: X[name].astype(pd.CategoricalDtype(["w", "v", "u"])) for name in ("a", "d")})
    as_text, as_codes = plain._derive({"X": X}), plain._derive({"X": typed})
    assert set(as_codes.number_block().labels) == {"a", "d"}
    assert row_order(as_codes, list("abcde")).tolist() == row_order(as_text, list("abcde")).tolist()


def test_an_order_is_the_callers_own():
    data = SurvivalData(pd.DataFrame({"a": [1.0, 0.0, 1.0]}), [3.0, 2.0, 1.0], [True, True, True])
    row_order(data, ["a"])[:] = 0
    assert row_order(data, ["a"]).tolist() == [2, 1, 0]


@pytest.mark.parametrize("twins", [False, True])
def test_causes_order_rows_by_their_events_whatever_their_codes_and_names(twins):
    """Twins have as many events, at other times."""
    rng = np.random.default_rng(0)
    X, time, cause = pd.DataFrame({"a": rng.normal(size=60)}), rng.integers(1, 5, 60).astype(float), np.arange(60) % 3
    cause[:5] = 1 if not twins else cause[:5]
    named = {"cause_names": ["relapse", "death"]}
    one = row_order(survival_data(X, time=time, cause=cause, **named), ["a"]).tolist()
    for names in (["death", "relapse"], ["a", "b"], ["b", "a"]):
        swapped = survival_data(X, time=time, cause=np.array([0, 2, 1])[cause], cause_names=names)
        assert row_order(swapped, ["a"]).tolist() == one
    assert row_order(survival_data(X, time=7 * time, cause=cause, **named), ["a"]).tolist() == one


def test_causes_with_the_same_times_order_rows_by_their_names():
    X, time, cause = pd.DataFrame({"a": [3.0, 2.0, 1.0, 0.0]}), [1.0, 1.0, 2.0, 2.0], np.array([1, 2, 1, 2])
    one = survival_data(X, time=time, cause=cause, cause_names=["relapse", "death"])
    other = survival_data(X, time=time, cause=np.array([0, 2, 1])[cause], cause_names=["death", "relapse"])
    assert row_order(one, ["a"]).tolist() == row_order(other, ["a"]).tolist()


@pytest.mark.parametrize("cells", [1 << 20, 20, 1])
@pytest.mark.parametrize("collide", [False, True])
def test_equal_rows_are_one_kind_in_an_order_of_their_own(monkeypatch, collide, cells):
    monkeypatch.setattr(canonical, "CELLS_AT_ONCE", cells)
    if collide:
        monkeypatch.setattr(pd.util, "hash_array", lambda values: np.zeros(len(values), np.uint64))
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 2, (60, 3)) * 0.5
    x[x == 0] = rng.choice([0.0, -0.0], (x == 0).sum())
    first, place = distinct_rows(x)
    np.testing.assert_array_equal(x[first][place], x)
    assert len(first) == len({tuple(row) for row in (x + 0.0).tolist()})
    order = rng.permutation(60)
    again, places = distinct_rows(x[order])
    np.testing.assert_array_equal(x[order][again], x[first])
    np.testing.assert_array_equal(places, place[order])
    none, everyone = distinct_rows(np.zeros((4, 0)))
    assert (none.tolist(), everyone.tolist()) == ([0], [0] * 4)


def in_full(data):
    """Order of all rows by `numpy.lexsort` of their outcome and features, of numbers and text."""
    X, fields = data.X, []
    for name in ("time", "event", "cause", "entry", "upper", "weight", "group", "subject"):
        if (values := getattr(data, name)) is not None:
            fields.append(values.numpy().astype(float))
    if data.cause is not None:
        names = {name: k for k, name in enumerate(sorted(data.cause_names), start=1)}
        fields[2] = np.array([0, *map(names.get, data.cause_names)])[data.cause.numpy()]
    for name in sorted(X):
        text = X[name].dtype.kind not in "biuf"
        level = {one: k for k, one in enumerate(sorted(set(X[name].dropna())))} if text else {}
        fields.append(X[name].map(level).astype(float).fillna(np.inf) if text else X[name].astype(float).fillna(np.inf))
    return np.lexsort([np.asarray(values) + 0.0 for values in fields[::-1]])


@pytest.mark.parametrize("times", ["distinct", "few ties", "days", "one"])
@pytest.mark.parametrize("known", ["event", "weight", "entry", "upper", "cause", "group", "subject"])
def test_a_large_table_is_ordered_as_by_one_sort_of_all_its_columns(times, known, monkeypatch):
    rng, n = np.random.default_rng(5), 5000
    monkeypatch.setattr(canonical, "FEW_CELLS", 0)
    monkeypatch.setattr(canonical, "AT_A_TIME", 2)
    monkeypatch.setattr(sorting, "MANY_ROWS", n)
    monkeypatch.setattr(sorting, "RUN_ROWS", 100)
    monkeypatch.setattr(threads, "MANY_CELLS", 1)
    X = pd.DataFrame({"a": rng.choice(["u", "v", None], n), "b": rng.choice([-0.0, 0.0, 1.5, np.nan], n)})
    X["c"], X["d"] = rng.integers(0, 2, n), pd.Categorical(rng.choice(["y", "x"], n), ["y", "x"])
    X["e"] = rng.integers(0, 3, n)
    X.iloc[n // 2 :] = X.iloc[: n // 2].to_numpy()  # many equal rows
    X["d"] = pd.Categorical(X["d"], ["y", "x"])
    time = {
        "distinct": rng.permutation(n) + 1.5,
        "few ties": rng.integers(1, 20 * n, n) / 7 + 1,
        "days": rng.integers(1, 40, n).astype(float),
        "one": np.ones(n),
    }[times]
    event, given = rng.random(n) < 0.5, {}
    if known == "cause":
        codes = np.where(event, rng.integers(1, 3, n), 0)
        given = {"cause": codes, "cause_names": ("relapse", "death")}
    elif known == "upper":
        given = {"upper": np.where(event, np.inf, time + rng.integers(1, 3, n))}
    elif known != "event":
        values = {"weight": rng.integers(1, 3, n), "entry": rng.choice([0.0, 0.5], n), "group": rng.integers(0, 3, n)}
        given = {known: values.get(known, np.arange(n)[::-1])}
    data = SurvivalData(X, time, event, **given)
    np.testing.assert_array_equal(row_order(data, list("abcde")), in_full(data))
