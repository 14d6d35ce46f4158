"""What a branch node decides by: rules as printed, boundaries, and what each feature adds."""

import re

import numpy as np
import pandas as pd
import pytest

from softsurv import SoftSurvivalTree
from softsurv.data.encoding import Source
from softsurv.data.rules import Rule, rounded_text
from softsurv.explore.splits import QuestionSplit, pushes_of, ranked
from softsurv.explore.view import tree_view

DENSE = {"l2": 1.0, "shrinkage": 0.3, "routing_l2": 0.01, "n_restarts": 1}


def test_rules_are_those_of_the_exported_text(optimal):
    text = optimal.tree.export_text()
    rules = [node.split.text() for node in tree_view(optimal.tree).branches]
    assert rules
    assert all(rule in text for rule in rules)


def test_dense_splits_are_those_of_the_exported_text_in_four_digits(gbsg2):
    """Ten digits are of use beside the table of points alone."""
    full = dict(re.findall(r"points (\w+) > (\S+)$", gbsg2.tree.export_text(), re.MULTILINE))
    shown = dict(re.match(r"points (\w+) > (\S+) ", n.split.text()).groups() for n in tree_view(gbsg2.tree).branches)
    assert shown == {letter: rounded_text(float(value)) for letter, value in full.items()}
    assert all(len(re.sub(r"\D", "", value).lstrip("0")) <= 4 for value in shown.values())


def test_boundaries_are_where_the_margin_is_zero(mixed):
    view = tree_view(mixed.tree)
    row = mixed.data.X.iloc[[4]]
    for node in view.branches:
        (edge,) = node.split.boundaries(view.columns, view.encode(row)[0], "age")
        moved = view.encode(row.assign(age=edge))[0]
        assert node.split.weights[0] + node.split.weights[1:] @ moved == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "text", "effect", "plain", "boundaries"),
    [
        (Rule(0, threshold=45.0), "age <= 45", -1.0, {"missing": None, "threshold": 45.0}, [45.0]),
        (
            Rule(0, levels=("a", "b"), missing=True),
            "age in a, b or missing",
            1.0,
            {"missing": True, "levels": ["a", "b"]},
            [],
        ),
        (Rule(0, missing=True), "age is missing", -1.0, {"missing": True}, []),
    ],
)
def test_a_question_in_words_and_values(rule, text, effect, plain, boundaries):
    split = QuestionSplit(rule, Source("age", None, None))
    assert split.text() == text
    assert split.strengths() == {"age": 1.0}
    assert split.effects() == {"age": effect}
    assert split.plain() == {"source": "age"} | plain
    assert split.boundaries((), np.zeros(0), "age") == boundaries
    assert split.boundaries((), np.zeros(0), "dose") == []
    assert split.pushes(np.zeros(1), np.ones(1)) == {}


def test_long_names_are_shortened_in_a_question():
    split = QuestionSplit(Rule(0, threshold=1.0), Source("a_very_long_name_of_a_column", None, None))
    assert split.text(name_limit=9) == "a_ve…lumn <= 1"


def test_short_names_of_a_tree_differ():
    names = [f"blood_pressure_of_the_{kind}_phase_at_the_first_visit" for kind in ("systolic", "diastolic")]
    texts = [
        QuestionSplit(Rule(0, threshold=1.0), Source(name, None, None), tuple(names)).text(name_limit=28)
        for name in names
    ]
    assert texts == ["blood_…of_the_systolic_phas… <= 1", "blood_…of_the_diastolic_pha… <= 1"]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=names)
    time = rng.weibull(2.0, 300) * np.where(X[names[0]] > 0.3, 1.0, np.where(X[names[1]] > 0, 8.0, 64.0))
    outcome = {"time": time, "event": np.ones(300, bool)}
    rules = SoftSurvivalTree(depth=2, max_terms=1, leaf="weibull").fit(X, **outcome)
    dense = SoftSurvivalTree(depth=1, max_terms=None, leaf="weibull", **DENSE).fit(X, **outcome)
    asked = {node.split.text(name_limit=28).split(" > ")[0] for node in tree_view(rules).branches}
    assert asked == {"blood_…of_the_systolic_phas…", "blood_…of_the_diastolic_pha…"}
    (root,) = tree_view(dense).branches
    assert all(short in root.split.text(name_limit=28) for short in asked)


def test_sizes_are_ranked_against_the_largest():
    assert ranked(("a", "b", "c"), np.array([1.0, 0.0, 4.0])) == {"c": 1.0, "a": 0.25}
    assert list(ranked(("a", "b"), np.array([2.0, 2.0]))) == ["a", "b"]
    assert ranked((), np.zeros(0)) == {}


def test_pushes_are_the_terms_of_the_difference():
    slopes, row, typical = np.array([1.0, -2.0, 3.0]), np.array([2.0, 1.0, 5.0]), np.array([1.0, -1.0, 5.0])
    found = pushes_of(("a", "b", "c"), slopes, row, typical)
    assert found == {"b": -4.0, "a": 1.0}
    assert sum(found.values()) == slopes @ (row - typical)


def test_what_a_dense_split_prints_decides_as_it_does(mixed):
    """Points above the threshold go left, in the data's units."""
    view = tree_view(mixed.tree)
    encoded = view.encode(mixed.data)
    raw = np.array(
        [[column.to_units(v) for v in values] for column, values in zip(view.columns, encoded.T, strict=True)]
    )
    for node in view.branches:
        threshold, coefficients = node.split.printed()
        margin = node.split.weights[0] + encoded @ node.split.weights[1:]
        far = np.abs(margin) > 1e-6 * np.abs(margin).max()
        np.testing.assert_array_equal((coefficients @ raw > threshold)[far], (margin > 0)[far])
        assert set(node.split.sources()) == {"age", "grade", "marker"}
