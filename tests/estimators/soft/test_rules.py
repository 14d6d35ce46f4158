"""Trees of rules as users call them: the printed rule is the model, every split matters, truths are found."""

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.printed_tree import PrintedTree
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from softsurv import SoftSurvivalTree, SurvivalData, load_dataset
from softsurv.data.catalogue import DATASETS
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError, SoftsurvError
from softsurv.estimators.saved import load_model
from softsurv.explore.view import tree_view
from softsurv.sparse.again import rules_again
from softsurv.sparse.finish import LEAST_DIFFERENCE

QUICK = {"leaf": "loglogistic", "device": "cpu"}
TYPES = "float64", "float32"
DENSE = {"depth": 2, "l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.1, "n_restarts": 1, "max_terms": None}


def two_groups(n=300, seed=0):
    """Two groups by the sum of two features, hazard ratio 8; five features of noise, one of them a category."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 5)), columns=list("abcde"))
    X["kind"] = random.choice(["x", "y", "z"], n)
    group = X["a"] + X["b"] > 0
    time = random.exponential(size=n) / np.where(group, 8.0, 1.0)
    end = random.exponential(2.0, size=n)
    return SurvivalData(X, np.minimum(time, end) + 1e-6, time <= end), group.to_numpy()


def agrees(tree, X):
    printed = PrintedTree(tree.export_text(), X.columns)
    rows = X.to_dict("records")
    return np.array([printed.leaf(row) for row in rows]) == tree.apply(X)


@pytest.mark.parametrize("unit", [1e-10, 1e-290, 1e90])
def test_the_unit_of_the_features_changes_no_rule(unit):
    rng = np.random.default_rng(1)
    X, kind = pd.DataFrame(rng.normal(size=(150, 3)).round(3), columns=list("abc")), rng.choice(list("uvw"), 150)
    time, event = rng.exponential(np.exp(0.9 * X["a"] + (kind == "u"))) + 0.05, rng.random(150) < 0.75
    tree, same = (
        SoftSurvivalTree(depth=1, leaf="weibull", l2=0.3, shrinkage=10.0, max_terms=3).fit(
            rows.assign(kind=kind), (event, time)
        )
        for rows in (X, unit * X)
    )
    (rule,), (other,) = tree.tree_.rules, same.tree_.rules
    assert (other.columns, other.coefficients) == (rule.columns, rule.coefficients)
    assert other.threshold == pytest.approx(unit * rule.threshold, rel=1e-9, abs=0.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::softsurv.errors.DataWarning")  # levels that the few training rows do not show
@pytest.mark.parametrize("max_terms", [1, 3, None])
@pytest.mark.parametrize("name", sorted(name for name, info in DATASETS.items() if info.paper))
def test_the_printed_rule_is_the_model(name, max_terms):
    try:
        data = load_dataset(name)
    except SoftsurvError as error:
        pytest.skip(f"{name} is not at hand: {error}")
    few = data.take(np.random.default_rng(0).permutation(data.n)[:300])
    how = DENSE if max_terms is None else {"depth": 2, "max_terms": max_terms, "l2": 0.3, "shrinkage": 5.0}
    tree = SoftSurvivalTree(**how, leaf="weibull").fit(few)
    rows = data.X.iloc[:2000]
    complete = [name for name in rows if not few.X[name].isna().any()]  # the text tells what training had to fill
    rows = rows[~rows[complete].isna().any(axis=1)]
    assert len(rows) > 0.5 * min(data.n, 2000)
    assert agrees(tree, rows).all()


@pytest.mark.parametrize("leaf", ["loglogistic", "spline_po"])
def test_single_precision_finds_rules_as_good(leaf):
    """Slopes and curvatures are differences, which are taken in double precision."""
    data, _ = two_groups()
    double, single = (SoftSurvivalTree(depth=1, leaf=leaf, device="cpu", dtype=d).fit(data) for d in TYPES)
    assert single.tree_.leaves.dtype == torch.float32
    rules = single.tree_.rules + double.tree_.rules
    assert len({frozenset(rule.columns) for rule in rules}) == 1
    assert single.report_.objective == pytest.approx(double.report_.objective, rel=1e-3)
    assert leaf != "loglogistic" or rules[0] == rules[1]  # no two cuts are nearly as good


@pytest.mark.parametrize("max_terms", [1, 3])
def test_rows_at_the_threshold_go_where_the_rule_says_in_single_precision(max_terms):
    """Rounding of the encoded features put half of the rows at a threshold on its wrong side."""
    data, _ = two_groups()
    X = data.X[list("ab")].round(1)
    tree = SoftSurvivalTree(depth=2, max_terms=max_terms, l2=1.0, shrinkage=1.0, dtype="float32", **QUICK)
    tree.fit(X, (data.event.numpy(), data.time.numpy()))
    grid = np.round(np.arange(-30, 31) / 10, 1)
    every = pd.DataFrame(np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2), columns=["a", "b"])
    assert any(rule is not None for rule in tree.tree_.rules)
    assert agrees(tree, every).all()


def test_the_oracle_sees_a_rule_that_is_not_the_model():
    data, _ = two_groups()
    tree = SoftSurvivalTree(depth=1, **QUICK).fit(data)
    text = tree.export_text()
    first = text.split("\n")[0]
    shifted = first.rpartition(" ")[0] + " 0.9"
    printed = PrintedTree(text.replace(first, shifted), data.X.columns)
    leaf = np.array([printed.leaf(row) for row in data.X.to_dict("records")])
    assert (leaf != tree.apply(data.X)).mean() > 0.05


def test_missing_values_are_read_as_the_text_says():
    data, _ = two_groups()
    X = data.X.mask(np.random.default_rng(1).random(data.X.shape) < 0.1)
    tree = SoftSurvivalTree(depth=2, **QUICK).fit(X, (data.event.numpy(), data.time.numpy()))
    assert "Missing values: " in tree.export_text()
    assert agrees(tree, X).all()


def test_a_rotated_split_is_found_and_readable():
    data, group = two_groups()
    tree = SoftSurvivalTree(**QUICK).fit(data)
    leaf = tree.apply(data.X)
    first = leaf == leaf[np.flatnonzero(group)[0]]
    assert max(np.mean(first == group), np.mean(first != group)) > 0.85
    rule = tree.tree_.rules[0]
    assert len(rule.columns) <= 3
    assert {"a", "b"} <= {tree.encoded_names_[k] for k in rule.columns}


def test_noise_is_one_leaf_and_says_why():
    random = np.random.default_rng(3)
    X = pd.DataFrame(random.normal(size=(300, 6)))
    tree = SoftSurvivalTree(**QUICK).fit(X, (random.random(300) < 0.7, random.exponential(size=300)))
    assert tree.depth_ == 0
    assert "no setting predicts held-out rows better than one curve" in tree.export_text()


def test_every_split_matters():
    data = load_dataset("whas500")
    tree = SoftSurvivalTree(depth=2, **QUICK).fit(data.X, data.y)
    times = np.quantile(tree.unique_times_, np.linspace(0.02, 1, 20))
    module, x = tree.tree_, tree._prepare(data.X).x
    for node, rule in enumerate(module.rules):
        if rule is None:
            continue
        flipped = module.routing.detach().clone()
        before = module.survival_function(x, tree._place(_tensor(times)))[0].detach().numpy()
        module.routing.data[0, node] *= -1
        after = module.survival_function(x, tree._place(_tensor(times)))[0].detach().numpy()
        module.routing.data.copy_(flipped)
        assert np.abs(before - after).max() >= 0.8 * LEAST_DIFFERENCE  # other times than those of the fit


def _tensor(values):
    import torch

    return torch.as_tensor(values)


def test_a_split_that_changes_nothing_is_taken_out_and_said():
    data, _ = two_groups()
    tree = SoftSurvivalTree(depth=1, shrinkage=1e7, slope_shrinkage=1e7, **QUICK).fit(data)
    assert tree.depth_ == 0
    assert len(tree.report_.details["collapsed"]) == 1
    assert "Taken out: " in tree.export_text()


def test_saved_and_cloned_trees_are_the_same(tmp_path):
    data, _ = two_groups()
    tree = SoftSurvivalTree(depth=2, **QUICK).fit(data)
    tree.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.export_text() == tree.export_text()
    np.testing.assert_array_equal(loaded.predict(data.X), tree.predict(data.X))
    again = clone(tree).fit(data)
    assert again.export_text() == tree.export_text()


def test_row_order_does_not_name_other_rules():
    data, _ = two_groups()
    tree = SoftSurvivalTree(depth=1, **QUICK).fit(data)
    assert tree.candidate_.max_terms in (1, 3)
    assert tree.candidate_.leaves == 2


def test_weights_count_as_repeated_rows_in_the_split():
    data, _ = two_groups(n=200)
    weight = np.where(np.arange(200) < 50, 2.0, 1.0)
    tree = SoftSurvivalTree(depth=1, **QUICK).fit(data.X, (data.event.numpy(), data.time.numpy()), sample_weight=weight)
    assert tree.depth_ == 1


def test_dense_arguments_ask_for_a_dense_tree():
    data, _ = two_groups(n=150)
    assert SoftSurvivalTree(depth=1, l2=1.0, shrinkage=1.0, routing_l2=0.1).fit(data).tree_.rules == ()
    with pytest.raises(InvalidParameterError, match="max_terms=None"):
        SoftSurvivalTree(depth=1, max_terms=2, solver="nodec").fit(data)
    with pytest.raises(InvalidParameterError, match="depth must be at most 3"):
        SoftSurvivalTree(depth=4, max_terms=2).fit(data)
    with pytest.raises(InvalidParameterError, match="prefer must be"):
        SoftSurvivalTree(prefer="forest").fit(data)
    with pytest.raises(InvalidParameterError, match="max_terms must be"):
        SoftSurvivalTree(max_terms=0).fit(data)


@pytest.mark.parametrize("export", ["export_text", "export_dot"])
def test_an_unfitted_tree_says_so(export):
    with pytest.raises(NotFittedError):
        getattr(SoftSurvivalTree(), export)()


def test_the_simplest_may_be_preferred():
    data = load_dataset("whas500")
    tree = SoftSurvivalTree(prefer="simplest", **QUICK).fit(data.X, data.y)
    losses = tree.selection_
    assert losses["chosen"].sum() == 1
    assert tree.depth_ <= 1


def test_late_entry_and_intervals_make_rules_too():
    data, _ = two_groups()
    time, event = data.time.numpy(), data.event.numpy()
    tree = SoftSurvivalTree(depth=1, **QUICK).fit(data.X, (event, time), entry=0.2 * time)
    assert tree.depth_ == 1
    upper = np.where(event, 1.3 * time, np.inf)
    tree = SoftSurvivalTree(depth=1, **QUICK).fit(data.X, (np.zeros_like(event), 0.8 * time), upper=upper)
    assert tree.depth_ == 1


@pytest.mark.parametrize("preprocess", [True, False])
def test_columns_are_found_by_name_and_a_table_without_names_is_warned_of(preprocess):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((80, 3)), columns=["a", "b", "c"])
    y = (np.arange(80) % 2 == 0, rng.exponential(np.exp(x["a"].to_numpy())))
    tree = SoftSurvivalTree(depth=0, l2=1.0, leaf="weibull", preprocess=preprocess).fit(x, y)
    expected = tree.predict(x)
    np.testing.assert_array_equal(tree.predict(x[["c", "a", "b"]]), expected)
    with pytest.warns(DataWarning, match="taken by position, as 'a', 'b', 'c'"):
        np.testing.assert_array_equal(tree.predict(x.to_numpy()), expected)
    with pytest.raises(InvalidSurvivalDataError, match="none named 'b'"):
        tree.predict(x[["a", "c"]])
    unnamed = SoftSurvivalTree(depth=0, l2=1.0, leaf="weibull", preprocess=preprocess).fit(x.to_numpy(), y)
    np.testing.assert_allclose(unnamed.predict(x.to_numpy()), expected, rtol=1e-9)  # no warning: neither has names


def test_a_file_has_names(tmp_path):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((80, 2)), columns=["a", "b"])
    tree = SoftSurvivalTree(depth=0, l2=1.0, leaf="weibull").fit(x, (np.ones(80, bool), rng.exponential(size=80)))
    x[["b", "a"]].to_csv(tmp_path / "swapped.csv", index=False)
    np.testing.assert_allclose(tree.predict(tmp_path / "swapped.csv"), tree.predict(x), rtol=1e-12)


def test_a_table_that_asks_for_many_leaves_has_more_than_eight_unless_a_depth_is_given(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.random((1200, 4)), columns=[*"abcd"])
    cell = (X > 0.5).to_numpy() @ 2 ** np.arange(4)
    time = np.exp(rng.permutation(np.linspace(-4, 4, 16))[cell]) * rng.exponential(1, 1200)
    data = SurvivalData(X, time, np.ones(1200, bool))
    how = {"leaf": "weibull", "max_terms": 1, "l2": 1e4}
    tree = SoftSurvivalTree(**how).fit(data.X, data.y)
    assert tree.candidate_.leaves > 8
    assert len(tree.tree_.rules) == 15  # branch nodes of a tree of depth 4
    assert agrees(tree, X.iloc[:200]).all()
    tree.save(tmp_path / "model")
    assert load_model(tmp_path / "model").export_text() == tree.export_text()
    view = tree_view(tree)
    encoded = data.with_features(pd.DataFrame(view.encode(X)))
    again = rules_again(encoded, view.columns, [tree.tree_.family], tree.candidate_)
    assert sum(rule is not None for rule in again) > 7
    assert SoftSurvivalTree(**how, depth=3).fit(data.X, data.y).candidate_.leaves <= 8
