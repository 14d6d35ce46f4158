"""The model card: what was fitted, under which settings, and where not to trust it."""

import re

import numpy as np

import softsurv
from softsurv import OptimalSurvivalTree
from softsurv.explore.report_card import card_section, intro, limits_of


def test_limits_name_what_is_thin(lopsided, gbsg2):
    said = " ".join(limits_of(lopsided.tree, lopsided.data, None))
    assert "No training row reached leaf" in said
    beyond = gbsg2.test.with_features(gbsg2.test.X.assign(age=200.0))
    assert f"age in {beyond.n} rows" in " ".join(limits_of(gbsg2.tree, beyond, None))


def test_one_leaf_is_one_leaf(stump):
    assert " with 1 leaf, reported on" in intro(stump.tree, stump.data)


def facts(section):
    """Rows of the tables of a section."""
    return dict(re.findall(r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td>', section))


def test_the_card_tells_of_training_and_not_of_these_rows(optimal):
    found = facts(card_section(optimal.tree, optimal.test, None))
    assert found["training rows"] == str(optimal.train.n)
    assert found["training events"] == str(optimal.train.n_events)
    assert found["leaves"] == str(optimal.tree.tree_.n_leaves)
    assert found["status"] == "optimal"
    assert found["proven lower bound"] == f"{optimal.tree.lower_bound_:.6g}"
    assert found["last training event"] == f"{optimal.tree.unique_times_[-1]:.4g} days"
    assert found["max_depth"] == "3"
    assert found["softsurv"] == softsurv.__version__


def test_the_card_names_the_rows_of_the_report(optimal):
    assert optimal.test.fingerprint() in card_section(optimal.tree, optimal.test, None)
    said = intro(optimal.tree, optimal.test.take([0]))
    assert "reported on 1 row with" in said
    assert said.startswith(f"<p>OptimalSurvivalTree with {optimal.tree.tree_.n_leaves} leaves")


def test_long_arguments_are_cut_and_shown_as_text(optimal):
    tree = OptimalSurvivalTree(thresholds=list(np.arange(100.0)), leaf="nelson_aalen").fit(optimal.train)
    section = card_section(tree, optimal.test, "<days>")
    assert len(facts(section)["thresholds"]) == 120
    assert "<days>" not in section
    assert "&lt;days&gt;" in section


def test_leaves_of_few_events_or_none_are_uncertain(mixed):
    tree = OptimalSurvivalTree(max_depth=2, min_samples_leaf=2, shrinkage=0.0).fit(mixed.data.take(np.arange(30)))
    few = np.flatnonzero(tree.leaf_table_.events < 10)
    (said,) = [one for one in limits_of(tree, mixed.data, None) if "Fewer than 10" in one]
    assert f"in leaf {', '.join(map(str, few))}:" in said
    assert not [one for one in limits_of(tree, mixed.data, None) if "outside the training range" in one]
