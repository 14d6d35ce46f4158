"""A soft tree that starts from a hard one: the same rows in the same leaves, before training moves them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.data.binarize import Binarizer
from softsurv.data.preprocess import Preprocessor
from softsurv.data.rules import Rule
from softsurv.errors import InvalidParameterError
from softsurv.estimators.soft.hard_start import routing_from_tree
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.soft.fit import fit_tree
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Training
from softsurv.trees.hard_tree import Branch, HardTree
from softsurv.trees.routing import hbp_leaf
from softsurv.trees.soft_tree import SURE

numbers = st.floats(-9, 9).map(lambda value: round(value, 3))  # scaling to [0, 1] keeps such values apart
PENALTIES = {"l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1, "device": "cpu"}


def soft_leaf(weights, x, depth):
    """HBP leaf of each row by the package's own routing."""
    split = torch.as_tensor(np.column_stack([np.ones(len(x)), x]) @ weights.T).T[None]
    return hbp_leaf(split, depth)[0].numpy()


def expected_leaf(tree, depth):
    """Leaf of the padded tree for each leaf of the hard one: below it everything goes left."""
    out = []
    for leaf in range(tree.n_leaves):
        steps = [0 if left else 1 for _, left in tree.path(leaf)]
        out.append(int("".join(map(str, steps + [0] * (depth - len(steps)))) or "0", 2))
    return np.array(out)


@st.composite
def tables_and_trees(draw):
    """A random table with gaps and categories, and a random tree on it."""
    n = draw(st.integers(2, 20))
    table = pd.DataFrame(
        {
            "x": draw(st.lists(st.one_of(numbers, st.just(np.nan)), min_size=n, max_size=n)),
            "two": draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n)),
            "many": draw(st.lists(st.sampled_from([*"pqrst", None]), min_size=n, max_size=n)),
        }
    )
    binarizer = Binarizer("all", max_levels=3).fit(table)

    def branch(depth):
        if depth == 0 or not binarizer.splits or draw(st.booleans()):
            return None
        rule, _ = binarizer.rule(*draw(st.sampled_from(binarizer.splits)))
        return Branch(rule, branch(depth - 1), branch(depth - 1))

    return table, HardTree.grow(binarizer.sources_, branch(3))


@settings(max_examples=60, deadline=None)
@given(tables_and_trees(), st.integers(0, 1))
def test_every_row_starts_in_its_leaf(case, deeper):
    table, tree = case
    depth = tree.depth + deeper
    for drop_first in ("binary", True, False):
        preprocessor = Preprocessor(drop_first=drop_first)
        x = preprocessor.fit_transform(table).to_numpy()
        weights = routing_from_tree(tree, preprocessor, x, depth)
        assert weights.shape == (2**depth - 1, x.shape[1] + 1)
        assert np.array_equal(soft_leaf(weights, x, depth), expected_leaf(tree, depth)[tree.apply(table)])


@pytest.mark.parametrize("name", ["gbsg2", "veterans", "aids2"])
def test_real_data(name):
    data = load_dataset(name)
    tree = OptimalSurvivalTree(max_depth=3).fit(data).tree_
    preprocessor = Preprocessor()
    x = preprocessor.fit_transform(data.X).to_numpy()
    leaf = soft_leaf(routing_from_tree(tree, preprocessor, x), x, 3)
    assert np.array_equal(leaf, expected_leaf(tree, 3)[tree.apply(data.X)])


def test_training_starts_there_and_lowers_the_objective():
    """The start alone, trained for no round at all, is the tree that the hard one's routing gives."""
    data = load_dataset("veterans")
    hard = OptimalSurvivalTree(max_depth=2).fit(data)
    parameters = SoftParameters(**SoftSurvivalTree(init=hard, **PENALTIES).get_params(deep=False))
    encoder = Preprocessor()
    encoded = data.with_features(encoder.fit_transform(data.X))
    x = encoded.x.numpy()
    routing = routing_from_tree(hard.tree_, encoder, x, 2)
    recipe = parameters.recipe(parameters.given(2), start=routing)
    assert len(recipe.starts) == 1
    still = replace(recipe, training=Training(joint=LbfgsSettings(max_iterations=0)))
    tree, report = fit_tree(encoded, still, Machine(torch.device("cpu")))
    assert np.array_equal(soft_leaf(tree.routing[0].detach().numpy(), x, 2), hard.apply(data))
    soft = SoftSurvivalTree(init=hard, **PENALTIES).fit(data)
    assert soft.depth_ == 2
    assert soft.report_.objective < report.objective


def test_a_hard_tree_and_a_deeper_soft_one():
    data = load_dataset("veterans")
    hard = OptimalSurvivalTree(max_depth=1).fit(data)
    soft = SoftSurvivalTree(depth=2, init=hard.tree_, **PENALTIES).fit(data)
    assert (soft.depth_, soft.tree_.depth) == (2, 2)
    assert SoftSurvivalTree(init=hard.tree_, preset="paper", device="cpu", max_iter=1).fit(data).depth_ == 1


def test_a_single_leaf_is_a_start_too():
    data = load_dataset("veterans")
    soft = SoftSurvivalTree(init=HardTree.grow([], None), l2=1.0, device="cpu").fit(data)
    assert soft.depth_ == 0
    deeper = routing_from_tree(HardTree.grow([], None), None, np.zeros((data.n, 0)), 1)
    assert deeper[0, 0] > 0


def test_numbers_without_preprocessing():
    data = load_dataset("veterans")
    X = pd.DataFrame(Preprocessor().fit_transform(data.X))
    hard = OptimalSurvivalTree(max_depth=2).fit(X, data.y)
    x = X.to_numpy()
    weights = routing_from_tree(hard.tree_, None, x, 2, list(X.columns))
    assert np.array_equal(soft_leaf(weights, x, 2), expected_leaf(hard.tree_, 2)[hard.apply(X)])
    assert SoftSurvivalTree(init=hard, preprocess=False, **PENALTIES).fit(X, data.y).depth_ == 2


def test_a_start_clones_and_cross_validates():
    """Cloning loses the fitted start; it is then fitted to the rows of each fold."""
    data = load_dataset("veterans")
    soft = SoftSurvivalTree(init=OptimalSurvivalTree(max_depth=1), **PENALTIES)
    assert clone(soft).init.max_depth == 1
    assert np.all(cross_val_score(soft, data.X, data.y, cv=3) > 0.4)


def test_penalties_are_still_chosen():
    data = load_dataset("veterans")
    soft = SoftSurvivalTree(init=OptimalSurvivalTree(max_depth=1), l2=1.0, routing_l2=0.1, device="cpu").fit(data)
    assert (soft.selection_["depth"] == 1).all()


AGE = Binarizer("all").fit(pd.DataFrame({"age": [40.0, 50.0, 60.0]})).sources_[0]
X = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "grade": ["I", "II", "I", "II"]})


@pytest.mark.parametrize(
    ("tree", "depth", "sentence"),
    [
        (Branch(Rule(0, threshold=2.5), Branch(Rule(0, threshold=1.5), None, None), None), 1, "depth must be at least"),
        (Branch(Rule(0, threshold=2.5), None, None), None, "fills missing values of 'age' with 50.0 and this fit with"),
    ],
)
def test_starts_that_do_not_fit(tree, depth, sentence):
    preprocessor = Preprocessor().fit(X.assign(age=X["age"] / 2))
    hard = HardTree.grow([AGE], tree)
    with pytest.raises(InvalidParameterError, match=sentence):
        routing_from_tree(hard, preprocessor, preprocessor.transform(X).to_numpy(), depth)


def test_columns_that_are_not_there():
    y = ([True, False, True, True], [1.0, 2.0, 3.0, 4.0])
    hard = OptimalSurvivalTree(max_depth=1, min_samples_leaf=1).fit(X[["age"]], y)
    with pytest.raises(InvalidParameterError, match="init asks the column 'age' as a number, which the features"):
        SoftSurvivalTree(init=hard, **PENALTIES).fit(X[["grade"]], y)
    with pytest.raises(InvalidParameterError, match="as a number"):
        SoftSurvivalTree(init=hard, **PENALTIES).fit(X.assign(age=list("abab")), y)


def test_a_start_of_another_kind():
    y = ([True, False, True, True], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InvalidParameterError, match="an OptimalSurvivalTree or a HardTree, got int"):
        SoftSurvivalTree(init=3, **PENALTIES).fit(X, y)


def test_nothing_is_surer_than_sure():
    """Weights stay within what the trainer calls certain at the rows themselves."""
    data = load_dataset("gbsg2")
    tree = OptimalSurvivalTree(max_depth=3, thresholds="all").fit(data).tree_
    preprocessor = Preprocessor()
    x = preprocessor.fit_transform(data.X).to_numpy()
    weights = routing_from_tree(tree, preprocessor, x)
    odds = np.column_stack([np.ones(len(x)), x]) @ weights.T
    assert np.isfinite(weights).all()
    assert np.abs(np.median(odds, axis=0)).max() < SURE
