"""Training rows as the exact solvers take them, and the hazard that each went through."""

import numpy as np
import pandas as pd
import pytest

from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, InvalidSurvivalDataError
from softsurv.estimators.optimal.rows import (
    Rows,
    baseline_of,
    branches_of_plan,
    exposure,
    warn_of_early_end,
    went_through,
)
from softsurv.estimators.optimal.tree import OptimalSurvivalTree
from softsurv.exact.brier.nodes import TreePlan
from softsurv.trees.hard_tree import HardTree

X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "arm": ["a", "b", "c", "a"]})
TIME, EVENT = [0.0, 2.0, 3.0, 4.0], [True, True, False, True]


def rows_of(**columns):
    data = survival_data(X, **({"time": TIME, "event": EVENT} | columns))
    return Rows.of(data, Binarizer().fit(X))


@pytest.mark.filterwarnings("ignore:time is 0")
def test_rows_are_those_of_the_data():
    rows = rows_of(weight=[1.0, 2.0, 1.0, 1.0])
    assert (rows.n, rows.codes.shape[0]) == (4, 4)
    assert rows.weight.tolist() == [1, 2, 1, 1]
    assert (rows.entry, rows.cause, rows.subject) == (None, None, None)
    assert rows.by_cause == (rows,)
    assert rows_of().weight.tolist() == [1.0] * 4
    assert rows_of(entry=[0.0] * 4).entry is None  # nobody is late


@pytest.mark.filterwarnings("ignore:time is 0")
def test_another_order_holds_for_all_columns():
    data = survival_data(X, time=TIME, event=EVENT, weight=[1.0, 2.0, 3.0, 4.0])
    binarizer, order = Binarizer().fit(X), np.array([3, 0, 2, 1])
    table, _ = binarizer.filled(X.iloc[order])
    turned, plain = Rows.coded(data, binarizer, table, order), Rows.of(data, binarizer)
    for name in ("codes", "time", "event", "weight"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(plain, name)[order])


def test_causes_are_rows_of_one_event_each():
    data = survival_data(X, time=[1.0, 2.0, 3.0, 4.0], cause=["fire", "", "flood", "fire"])
    first, second = Rows.of(data, Binarizer().fit(X)).by_cause
    assert first.event.tolist() == [True, False, False, True]
    assert second.event.tolist() == [False, False, True, False]
    assert first.cause is second.cause is None


def test_events_in_intervals_are_refused():
    with pytest.raises(InvalidSurvivalDataError, match=r"upper must be inf .* got interval censoring; fit a SoftSurv"):
        rows_of(time=[1.0, 2.0, 3.0, 4.0], event=[True, True, False, True], upper=[np.inf, np.inf, 5.0, np.inf])


@pytest.mark.filterwarnings("ignore:time is 0")
def test_who_is_there_from_the_start_went_through_the_hazard_at_0():
    """At risk are 4, then 3, 2 and 1; the third row entered at 1."""
    rows = rows_of(entry=[0.0, 0.0, 1.0, 0.0])
    hazard = baseline_of(rows)
    steps = {0.0: 1 / 3, 2.0: 1 / 3, 4.0: 1.0}
    for row, (start, end) in enumerate(zip([-1.0, -1.0, 1.0, -1.0], TIME, strict=True)):
        expected = sum(rise for time, rise in steps.items() if start < time <= end)
        assert went_through(hazard, rows)[row] == pytest.approx(expected)


def test_no_exposure_is_0():
    """A row censored before the first event would otherwise cost nothing and explain nothing."""
    rows = rows_of(time=[1.0, 2.0, 3.0, 4.0], event=[False, True, True, True])
    assert exposure(baseline_of(rows), rows)[0] == pytest.approx(1 / 5)
    np.testing.assert_allclose(exposure(baseline_of(rows), rows)[1:], went_through(baseline_of(rows), rows)[1:])
    small = rows_of(time=[1.0, 2.0, 3.0, 4.0], event=[False, True, True, True], weight=[1e-9] * 4)
    assert exposure(baseline_of(small), small)[0] == pytest.approx(1 / 5)


def test_a_plan_on_zeros_and_ones_is_a_tree_in_the_data_s_units():
    binarizer = Binarizer("all").fit(X[["x"]])  # columns: x <= 1.5, x <= 2.5, x <= 3.5
    plan = TreePlan(1, zero=None, one=TreePlan(0, None, None))
    tree = HardTree.grow(binarizer.sources_, branches_of_plan(plan, binarizer))
    columns = binarizer.binary(X[["x"]])
    expected = np.where(columns[:, 1] == 1, np.where(columns[:, 0] == 1, 0, 1), 2)
    np.testing.assert_array_equal(tree.apply(X[["x"]]), expected)
    assert branches_of_plan(None, binarizer) is None


LATE = {"time": [2.0, 5.0, 8.0, 9.0], "entry": [0.0, 3.0, 4.0, 6.0], "event": [True, True, False, True]}


def test_late_entry_that_ends_the_curve_early_is_told():
    with pytest.warns(DataWarning, match="at time 2 all who are at risk .* the curve of all rows .* times up to 2,"):
        warn_of_early_end(rows_of(**LATE))
    with pytest.warns(DataWarning, match="at time 2 all who are at risk .* the curve of a leaf .* up to 5,"):
        warn_of_early_end(rows_of(**LATE), np.array([1, 0, 1, 0]))
    twice = {"entry": [0.0, 3.0, 6.0, 8.5], "time": [2.0, 5.0, 8.0, 9.0], "event": [True] * 4}
    with pytest.warns(DataWarning, match="at time 2 all who are at risk .* with times up to 8, and"):
        warn_of_early_end(rows_of(**twice))  # it ends at the first, and rows up to the last are to go
    warn_of_early_end(rows_of(**LATE | {"entry": [0.0, 1.0, 4.0, 6.0]}))  # no time without a survivor but the last
    warn_of_early_end(rows_of(time=[2.0, 5.0, 8.0, 9.0], event=[True] * 4))
    spells = {"start": [0.0, 3.0, 4.0, 6.0], "stop": [3.0, 5.0, 6.0, 9.0], "id": [0, 0, 1, 1]}
    histories = survival_data(X, event=[False, True, False, True], **spells)
    warn_of_early_end(Rows.of(histories, Binarizer().fit(X)))


def test_a_fit_with_late_entry_tells_it():
    rng = np.random.default_rng(0)
    entry, lasted = np.r_[0.0, rng.uniform(3, 5, 60)], np.r_[2.0, rng.uniform(1, 9, 60)]
    x = pd.DataFrame({"x": rng.normal(size=61)})
    for settings, whose in (({}, "all rows"), ({"leaf": "km", "shrinkage": 0.0}, "a leaf")):
        with pytest.warns(DataWarning, match=f"the curve of {whose}"):
            OptimalSurvivalTree(max_depth=1, **settings).fit(x, (np.full(61, True), entry + lasted), entry=entry)
