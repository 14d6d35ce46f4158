"""Search spaces: what is suggested, left out, parsed and refused."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, SurvivalData
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.tune import Choice, Range, StudyObjective, default_space, parse_space
from softsurv.tune.spaces import lasting, suggest


def fixed(**parameters):
    return optuna.trial.FixedTrial(parameters)


def test_parameters_that_mean_nothing_are_left_out():
    space = default_space("soft")
    shallow = suggest(fixed(leaf="weibull", depth=0, l2=1.0), space)
    assert shallow == {"leaf": "weibull", "depth": 0, "l2": 1.0}
    spline = suggest(fixed(leaf="spline_po", depth=0, l2=1.0, n_knots=3), space)
    assert spline["n_knots"] == 3


@pytest.mark.parametrize("given", [{"solver": "lbfgs"}, {"init": ["random"]}, {"max_terms": None}])
def test_soft_trees_are_of_rules_unless_dense_ones_are_asked_for(given):
    assert "max_terms" in default_space("soft", given={"depth": [1]})
    assert default_space("soft", given={"depth": [1]})["max_terms"] == Range(1, 3)
    assert default_space("soft", given=given)["max_terms"] is None
    assert "routing_l2" in default_space("soft", given=given)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_suggestion_of_rules_is_accepted_by_the_estimator(seed):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    chosen = suggest(study.ask(), default_space("soft"))
    parameters = SoftParameters(**SoftSurvivalTree(**chosen).get_params(deep=False))
    assert parameters.has_rules
    assert chosen["depth"] == 0 or parameters.rule_grid().depth == chosen["depth"]


@pytest.mark.parametrize(("given", "scaled"), [({}, ["l2"]), ({"max_terms": None}, ["l2", "routing_l2"])])
def test_more_columns_than_rows_ask_for_stronger_penalties_of_slopes(given, scaled):
    """The range ended below the ridge that the default takes."""
    rng, n, columns = np.random.default_rng(0), 40, 400
    X = pd.DataFrame(rng.normal(size=(n, columns))).add_prefix("gene")
    data = SurvivalData(X, rng.exponential(size=n), np.ones(n))
    usual, wide = default_space("soft", given=given), default_space("soft", given=given, data=data)
    single = SoftSurvivalTree(depth=0, leaf="weibull").fit(data).candidate_.ridge
    assert usual["l2"].low < 0.3 < usual["l2"].high
    assert wide["l2"].low < single < wide["l2"].high
    assert [name for name in usual if usual[name] != wide[name]] == scaled
    for name in scaled:
        assert wide[name].high / usual[name].high == wide[name].low / usual[name].low > 10
    assert default_space("soft", given=given, data=data.take(range(n))) == wide
    few = SurvivalData(X.iloc[:, :10], data.time, data.event)
    assert default_space("soft", given=given, data=few) == usual
    assert StudyObjective(data, space=given).space["l2"] == wide["l2"]
    assert StudyObjective(data, space=given | {"l2": 2.0}).space["l2"] == 2.0


def test_levels_count_as_the_columns_that_they_become():
    rng, n = np.random.default_rng(0), 80
    X = pd.DataFrame({f"city{k}": rng.choice(list("abcdefghijklmnop"), n) for k in range(30)})
    data = SurvivalData(X, rng.exponential(size=n), np.ones(n))
    single = SoftSurvivalTree(depth=0, leaf="weibull").fit(data).candidate_.ridge
    space = default_space("soft", data=data)
    assert space["l2"].low < single < space["l2"].high
    assert space["l2"] != default_space("soft")["l2"]
    assert default_space("soft", data=SurvivalData(X[["city0"]], data.time, data.event)) == default_space("soft")


def test_a_fixed_depth_counts_wherever_it_stands():
    space = {"shrinkage": Range(0.1, 1.0), "depth": 0, "leaf": "weibull", "l2": 1.0}
    assert suggest(fixed(), space) == {"depth": 0, "leaf": "weibull", "l2": 1.0}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_every_soft_suggestion_is_accepted_by_the_estimator(seed):
    from softsurv.tune import soft_setting

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    chosen = suggest(study.ask(), default_space("soft", ("fairness",)))
    assert chosen["fairness"] > 0
    assert soft_setting(SoftSurvivalTree(**chosen)) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth=2", ("depth", 2)),
        ("leaf=weibull,spline_po", ("leaf", Choice(("weibull", "spline_po")))),
        ("max_leaves=none,4", ("max_leaves", Choice((None, 4)))),
        ("l2=1e-3..10", ("l2", Range(1e-3, 10.0, log=True))),
        ("l1=0..10.5", ("l1", Range(0.0, 10.5))),
        ("n_restarts=1..5", ("n_restarts", Range(1, 5))),
        ("preprocess=false", ("preprocess", False)),
    ],
)
def test_parameters_from_text(text, expected):
    assert parse_space(text) == expected


@pytest.mark.parametrize("text", ["depth", "=3", "depth=", "leaf=a..b", "l2=5..1"])
def test_bad_text_is_one_sentence(text):
    with pytest.raises(InvalidParameterError, match="must"):
        parse_space(text)


def test_fixed_values_are_those_of_the_refit():
    """A study measures the arguments that it refits with; ``l1`` acts on the slopes of a single leaf too."""
    space = {"depth": 0, "l1": 0.5, "leaf": "weibull", "l2": 1.0, "max_terms": None, "shrinkage": 1.0}
    assert suggest(fixed(), space) == space
    assert suggest(fixed(l1=0.5), {"depth": 0, "l1": Range(0.1, 1.0)}) == {"depth": 0, "l1": 0.5}


@pytest.mark.parametrize("max_terms", [2, [1, 2], Range(1, 3), np.int64(2)])
def test_a_number_of_terms_asks_for_rules_where_fairness_is_measured(max_terms):
    space = default_space("soft", ("harrell_c", "fairness"), {"max_terms": max_terms})
    assert "slope_shrinkage" in space
    assert "init" not in space


def test_ranges_of_numpy_numbers_are_of_integers_where_both_ends_are():
    whole_numbers = Range(np.int64(0), np.int64(1))
    assert type(whole_numbers.suggest(fixed(depth=1), "depth")) is int
    assert whole_numbers == Range(0, 1)
    assert type(Range(np.float32(0), 1).high) is float


def test_bad_specs():
    for low, high in (("a", "b"), (None, 1), (False, True)):
        with pytest.raises(InvalidParameterError, match="must have finite low <= high, got"):
            Range(low, high)
    with pytest.raises(InvalidParameterError, match="at least one value"):
        Choice(())
    with pytest.raises(InvalidParameterError, match="low > 0"):
        Range(0.0, 1.0, log=True)


def test_only_the_ends_of_ranges_may_change_in_a_study():
    kept = lasting({"a": [1, None], "b": Range(1, 4), "c": Range(1, 9), "d": np.int64(3), "e": {"x": 1}, "f": print})
    assert kept == {
        "a": {"one of": [1, None]},
        "b": {"from a range of": "int", "log": False},
        "c": kept["b"],
        "d": 3,
        "e": {"x": 1},
        "f": "builtin_function_or_method",
    }


def hard_tree(cut):
    X = pd.DataFrame({"x": np.arange(20.0)})
    tree = OptimalSurvivalTree(max_depth=1, thresholds=[cut], min_samples_leaf=1, complexity=0)
    return tree.fit(X, time=np.where(X["x"] < 9, 1.0, 5.0) + X["x"] / 100, event=np.ones(20))


@pytest.mark.parametrize(
    ("made", "of", "not_of"),
    [
        (lambda x: np.array([x, np.nan]), 1.0, 2.0),
        (lambda x: pd.DataFrame({"a": [1.0, x]}), 1.0, 2.0),
        (hard_tree, 8.5, 4.5),
        (lambda cut: hard_tree(cut).tree_, 8.5, 4.5),
        (lambda depth: OptimalSurvivalTree(max_depth=depth), 2, 3),
        (lambda x: {"x": np.full(2, x)}, 1.0, 2.0),
    ],
)
def test_fixed_arrays_and_trees_are_compared_by_content(made, of, not_of):
    one, same, other = made(of), made(of), made(not_of)
    assert lasting({"a": one}) == lasting({"a": same}) != lasting({"a": other})
    assert lasting({"a": [one]}) == lasting({"a": [same]}) != lasting({"a": [other]})
