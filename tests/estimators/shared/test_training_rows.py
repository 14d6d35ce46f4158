"""What a tree remembers of its training table, and what it says of rows unlike it."""

import numpy as np
import pandas as pd
import pytest

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_model
from softsurv.errors import DataWarning, InvalidSurvivalDataError
from softsurv.estimators.shared.training_rows import outside

TREES = [
    lambda: SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1, l2=0.3, shrinkage=10.0),
    lambda: OptimalSurvivalTree(max_depth=1),
]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 120)
    months = rng.exponential(50 / np.where(age > 50, 4.0, 1.0)) + 0.1
    return pd.DataFrame(
        {"age": age, "arm": rng.choice(["a", "b"], 120), "months": months, "died": rng.random(120) < 0.7}
    )


@pytest.mark.parametrize("make", TREES)
@pytest.mark.parametrize("named", [{"time": "months", "event": "died"}, {"y": ("died", "months")}])
def test_a_tree_knows_its_outcome_columns_also_from_a_file(make, named, table, tmp_path):
    tree = make().fit(table, **named)
    expected = tree.evaluate(table, time="months", event="died")
    assert tree.evaluate(table) == expected
    tree.save(tmp_path)
    assert load_model(tmp_path).evaluate(table) == expected


@pytest.mark.parametrize("make", TREES)
def test_a_tree_knows_its_column_of_weights_where_a_table_has_it(make, table, tmp_path):
    table = table.assign(w=np.random.default_rng(1).choice([0.1, 5.0], len(table)))
    tree = make().fit(table, time="months", event="died", sample_weight="w")
    tree.save(tmp_path)
    plain = table.drop(columns="w")
    for model in (tree, load_model(tmp_path)):
        assert model.evaluate(table) == tree.evaluate(table, sample_weight="w") != tree.evaluate(plain)
        assert model.evaluate(table, sample_weight=None) == model.evaluate(plain)


@pytest.mark.parametrize("make", TREES)
def test_rows_of_weight_0_are_not_evaluated(make, table):
    tree = make().fit(table, time="months", event="died")
    weight = np.ones(len(table))
    weight[np.argsort(table["months"])[-30:]] = 0.0  # the last times, which the default grid ends at
    expected = tree.evaluate(table[weight > 0], sample_weight=weight[weight > 0])
    assert tree.evaluate(table, sample_weight=weight) == expected
    assert expected["n"] == 90
    with pytest.raises(InvalidSurvivalDataError, match="at least one row"):
        tree.evaluate(table, sample_weight=np.zeros(len(table)))


@pytest.mark.filterwarnings("ignore:uno_c, cd_auc")
@pytest.mark.parametrize("make", TREES)
def test_a_tree_knows_that_its_events_recur(make, tmp_path):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 3)
    stop = (rng.exponential(20.0, (60, 3)) + 1).round().cumsum(axis=1)
    start = np.hstack([np.zeros((60, 1)), stop[:, :-1]])
    table = pd.DataFrame({"id": who, "from": start.ravel(), "to": stop.ravel(), "z": rng.normal(size=180)})
    table["again"] = rng.random(180) < 0.7
    told = {"start": "from", "stop": "to", "event": "again", "id": "id", "recurrent": True}
    tree = make().fit(table, **told)
    tree.save(tmp_path)
    for model in (tree, load_model(tmp_path)):
        assert model.evaluate(table)["harrell_c"] == tree.evaluate(table, **told)["harrell_c"]
        assert model.score(table) == tree.evaluate(table)["harrell_c"]


@pytest.mark.parametrize("make", TREES)
def test_far_values_are_told_once_a_call_at_the_line_of_the_user(make, table, tmp_path):
    tree = make().fit(table, time="months", event="died")
    tree.save(tmp_path)
    odd = table.head(4).assign(age=[400.0, 50.0, 81.0, -300.0])
    for model in (tree, load_model(tmp_path)):
        for ask in (model.predict, model.predict_median, model.predict_survival_function):
            with pytest.warns(DataWarning, match="far outside the training range, of 4 rows: age in 2") as told:
                ask(odd)
            assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("make", TREES)
def test_a_table_that_is_refused_gets_no_word_on_its_values(make, table):
    """Warnings are errors here: far values were told before the refusal, and an infinite value was one of them."""
    tree = make().fit(table, time="months", event="died")
    with pytest.raises(InvalidSurvivalDataError, match="infinite value in column 'age'"):
        tree.predict(table.head(3).assign(age=[400.0, np.inf, 50.0]))


def test_a_feature_that_is_the_outcome_is_told(table):
    X = table.assign(followed=table["months"]).drop(columns=["months", "died"])
    with pytest.warns(DataWarning, match="'followed' equals the time of the outcome"):
        TREES[1]().fit(X, (table["died"], table["months"]))


def test_a_feature_that_is_known_with_the_event_alone_is_told(table):
    died = table["died"].astype(bool)
    text = pd.Series(np.where(died, "seal", None))
    for found in (np.where(died, 1.0, np.nan), text, text.astype("category"), pd.array(died).astype("Int64")):
        with pytest.warns(DataWarning, match="'found' is there in the rows with an event and missing in all others"):
            TREES[1]().fit(table.assign(found=pd.Series(found).where(died)), time="months", event="died")
    almost = pd.Series(1.0, table.index).where(died)
    almost.iloc[-1] = np.nan if died.iloc[-1] else 1.0
    TREES[1]().fit(table.assign(found=almost), time="months", event="died")  # warnings are errors here


def test_outside_counts_rows_and_leaves_missing_values_alone():
    X = pd.DataFrame({"a": [0.0, 5.0, np.nan, 11.0], "b": ["1", "x", "30", None]})
    assert outside(X, {"a": (0.0, 10.0), "b": (0.0, 20.0), "gone": (0.0, 1.0)}) == {"a": 1, "b": 1}
    assert outside(X, {"a": (0.0, 10.0)}, far=1.0) == {}


def test_outside_counts_the_same_whatever_holds_the_numbers():
    rng = np.random.default_rng(0)
    plain = pd.DataFrame(rng.normal(size=(30, 150)).round(1)).add_prefix("g").mask(rng.random((30, 150)) < 0.1)
    ranges = dict.fromkeys(plain, (-1.0, 1.0))
    slow = {name: int(((plain[name] < -1) | (plain[name] > 1)).sum()) for name in plain}
    expected = {name: count for name, count in slow.items() if count}
    assert expected
    for same in (plain, plain.astype(object), plain.astype("Float64"), plain.astype("float32")):
        assert outside(same, ranges) == expected


def test_predict_names_a_column_that_is_there_twice(table):
    tree = TREES[0]().fit(table, time="months", event="died")
    twice = pd.concat([table, table[["age"]]], axis=1)
    with pytest.raises(InvalidSurvivalDataError, match="unique column names, got 'age' twice"):
        tree.predict(twice)


def test_ranges_are_of_known_numbers_of_every_type():
    X = pd.DataFrame(
        {
            "whole": [3, 1, 2],
            "gaps": [np.nan, -1.5, 4.0],
            "nullable": pd.array([None, 7, 5], dtype="Int64"),
            "flag": [True, False, True],
            "text": ["a", "b", "c"],
            "one": [2.0, 2.0, np.nan],
            "none": pd.array([None, None, None], dtype="Float64"),
        }
    )
    tree = TREES[0]().fit(X, ([True, True, False], [1.0, 2.0, 3.0]))
    assert tree.ranges_ == {"whole": (1.0, 3.0), "gaps": (-1.5, 4.0), "nullable": (5.0, 7.0)}


def test_a_nullable_feature_that_is_the_outcome_is_told(table):
    died = table["died"].astype("Int64")
    with pytest.warns(DataWarning, match="'known' equals the event"):
        TREES[1]().fit(table.drop(columns=["months", "died"]).assign(known=died), (table["died"], table["months"]))
