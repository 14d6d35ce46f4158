"""HardTree: routing against a plain loop, exports, JSON, and arrays that are no tree."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.data.binarize import Binarizer
from softsurv.data.encoding import Source
from softsurv.data.rules import Rule
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError, ModelFileError
from softsurv.trees.hard_tree import Branch, HardTree

AGE, JOB = Source("age", None, 50.5), Source("job", ("1", "clerk", 'the "boss"'), "clerk")
TREE = HardTree.grow(
    [AGE, JOB],
    Branch(
        Rule(0, threshold=45.25),
        Branch(Rule(1, levels=('the "boss"',)), None, None),
        Branch(Rule(1, levels=("1", "clerk")), Branch(Rule(0, threshold=60.0), None, None), None),
    ),
    [[0.5, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0], [5.5, 5.0]],
    ["relative risk", "size"],
)
X = pd.DataFrame(
    {
        "age": [45.25, 45.26, np.nan, 30.0, 61.0, 61.0, 70.0],
        "job": ['the "boss"', 1.0, None, "sailor", "clerk", 'the "boss"', 1],
        "unused": 1,
    }
)
LEAVES = [0, 2, 2, 1, 3, 4, 3]


def test_rows_follow_the_rules():
    assert TREE.apply(X).tolist() == LEAVES


def test_rows_walk_from_the_root_to_their_node():
    """Against a walk for each row."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(50, 15, 300), "job": rng.choice(["1", "clerk", 'the "boss"'], 300)})
    table = {name: rows[name].to_numpy() for name in rows}
    for i, node in enumerate(TREE.node_of(table, len(rows)).tolist()):
        at = 0
        while TREE.feature[at] >= 0:
            value = table[TREE.sources[TREE.feature[at]].name][i : i + 1]
            at = int(TREE.left[at] if TREE.rule(at).answers(value)[0] else TREE.right[at])
        assert node == at
    assert TREE.node_of({"age": np.empty(0), "job": np.empty(0, object)}, 0).tolist() == []


def test_shape():
    assert (TREE.n_nodes, TREE.n_leaves, TREE.depth) == (9, 5, 3)
    assert TREE.leaf.tolist() == [-1, -1, 0, 1, -1, -1, 2, 3, 4]
    assert TREE.level.tolist() == [0, 1, 2, 2, 1, 2, 3, 3, 2]
    assert TREE.path(3) == [(0, False), (4, True), (5, False)]
    assert TREE.path(0) == [(0, True), (1, True)]


def test_a_single_leaf():
    tree = HardTree.grow([AGE], None)
    assert (tree.n_leaves, tree.depth, tree.path(0)) == (1, 0, [])
    assert tree.apply(X).tolist() == [0] * 7
    assert tree.export_text() == "leaf 0"
    assert eval_python(tree)({}) == 0


def test_text():
    assert TREE.export_text().splitlines() == [
        "age <= 45.25",
        '    yes: job = "the \\"boss\\""',
        "        yes: leaf 0: relative risk 0.5, size 1",
        "        no:  leaf 1: relative risk 2, size 2",
        "    no:  job in 1, clerk",
        "        yes: age <= 60",
        "            yes: leaf 2: relative risk 3, size 3",
        "            no:  leaf 3: relative risk 4, size 4",
        "        no:  leaf 4: relative risk 5.5, size 5",
    ]
    assert "leaf 4: mine" in TREE.export_text(["mine"] * 5)


def test_dot():
    dot = TREE.export_dot().splitlines()
    assert dot[0] == "digraph tree {"
    assert dot[-1] == "}"
    question = 'job = "the \\"boss\\""'
    assert f"  1 [label={json.dumps(question)}];" in dot
    assert '  0 -> 4 [label="no"];' in dot
    assert '  2 [label="leaf 0\\nrelative risk 0.5, size 1", style=rounded];' in dot
    assert sum("->" in line for line in dot) == TREE.n_nodes - 1


def eval_python(tree, name="leaf_of"):
    scope: dict = {}
    exec(tree.to_python(name), scope)
    return scope[name]


def test_the_python_source_routes_as_the_tree():
    function = eval_python(TREE, "triage")
    assert [function(row) for row in X.to_dict("records")] == LEAVES
    assert function({}) == TREE.apply(X)[2]
    with pytest.raises(InvalidParameterError, match="name must be a Python identifier, got 'my tree'"):
        TREE.to_python("my tree")


def test_json():
    again = HardTree.from_dict(json.loads(json.dumps(TREE.to_dict())))
    assert again.to_dict() == TREE.to_dict()
    assert again.apply(X).tolist() == LEAVES
    leaf = HardTree.grow([AGE], None)
    assert HardTree.from_dict(json.loads(json.dumps(leaf.to_dict()))).value.shape == (1, 0)


def test_arrays_are_frozen():
    with pytest.raises(ValueError, match="read-only"):
        TREE.threshold[0] = 3.0
    with pytest.raises(AttributeError):
        TREE.feature = np.zeros(9)


@st.composite
def tables_and_trees(draw):
    """A random table, coded, and a random tree on the codes."""
    n = draw(st.integers(1, 25))
    table = pd.DataFrame(
        {
            "x": draw(st.lists(st.one_of(st.floats(-9, 9), st.just(np.nan)), min_size=n, max_size=n)),
            "k": draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)),
            "c": draw(st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=n, max_size=n)),
        }
    )
    binarizer = Binarizer("all", max_levels=3).fit(table)
    splits = binarizer.splits

    def branch(depth):
        if depth == 0 or not splits or draw(st.booleans()):
            return None
        feature, code = draw(st.sampled_from(splits))
        return feature, code, branch(depth - 1), branch(depth - 1)

    return table, binarizer, branch(4)


def grown(binarizer, plan):
    """The plan on codes as branches in the data's units."""
    if plan is None:
        return None
    feature, code, yes, no = plan
    rule, swapped = binarizer.rule(feature, code)
    sides = (grown(binarizer, yes), grown(binarizer, no))
    return Branch(rule, *(sides[::-1] if swapped else sides))


def slow_path(binarizer, plan, codes):
    """The answers of one coded row, by the definition of a split on codes."""
    if plan is None:
        return ()
    feature, code, yes, no = plan
    answer = bool(codes[feature] == code if binarizer.columns_[feature].nominal else codes[feature] <= code)
    return ((feature, code, answer), *slow_path(binarizer, yes if answer else no, codes))


@settings(max_examples=60, deadline=None)
@given(tables_and_trees())
def test_units_route_as_codes_do(case):
    """Rows share a leaf of the tree in units exactly where they share a path through the codes."""
    table, binarizer, plan = case
    tree = HardTree.grow(binarizer.sources_, grown(binarizer, plan))
    leaves = tree.apply(table)
    assert np.array_equal(leaves, tree.leaf_of(*binarizer.filled(table)))
    paths = [slow_path(binarizer, plan, row) for row in binarizer.codes(table)]
    assert len({*zip(leaves.tolist(), paths, strict=True)}) == len(set(paths)) == len(set(leaves.tolist()))
    function = eval_python(tree)
    assert [function(row) for row in table.to_dict("records")] == leaves.tolist()


def test_a_column_that_is_not_asked_may_be_missing():
    tree = HardTree.grow([AGE, JOB], Branch(Rule(0, threshold=45.0), None, None))
    assert tree.apply(X[["age"]]).tolist() == [1, 1, 1, 0, 1, 1, 1]
    with pytest.raises(InvalidSurvivalDataError, match="none named 'age'; add or rename columns"):
        tree.apply(X[["job"]])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"feature": []}, "one entry per node"),
        ({"left": [1, -1]}, "one entry per node"),
        ({"left": [2, -1, -1], "right": [1, -1, -1]}, "every node but the root once, in preorder"),
        ({"left": [1, 2, -1]}, "every node but the root once, in preorder"),
        ({"feature": [1, -1, -1]}, "feature must be below 1, got 1"),
        ({"threshold": [np.nan] * 3}, "node 0 must ask 'age' by its kind"),
        ({"levels": [("I",), (), ()]}, "node 0 must ask 'age' by its kind"),
        ({"value": np.zeros((3, 1))}, r"value must have shape \(leaves, names\) = \(2, 1\), got \(3, 1\)"),
    ],
)
def test_arrays_that_are_no_tree(changes, sentence):
    good = {
        "feature": [0, -1, -1],
        "threshold": [1.0, np.nan, np.nan],
        "levels": [(), (), ()],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "value": np.zeros((2, 1)),
    }
    assert HardTree(sources=(AGE,), value_names=("n",), **good).n_leaves == 2
    with pytest.raises(InvalidParameterError, match=sentence):
        HardTree(sources=(AGE,), value_names=("n",), **(good | changes))
    state = {key: np.asarray(v).tolist() if key != "levels" else v for key, v in (good | changes).items()}
    sources = [{"name": "age", "levels": None, "fill": 50.5}]
    with pytest.raises(ModelFileError, match="damaged"):
        HardTree.from_dict({"format": 1, "sources": sources, "value_names": ["n"], **state})


def test_a_damaged_state():
    with pytest.raises(ModelFileError, match="tree state must have format 1, got 2"):
        HardTree.from_dict(TREE.to_dict() | {"format": 2})
    state = TREE.to_dict()
    del state["left"]
    with pytest.raises(ModelFileError, match="incomplete or damaged: 'left'"):
        HardTree.from_dict(state)
