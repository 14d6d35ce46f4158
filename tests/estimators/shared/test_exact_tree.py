"""What every optimal tree says of its search, in words and on disk."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from softsurv.data.binarize import Binarizer
from softsurv.data.rules import Rule
from softsurv.estimators.shared.exact_tree import ExactTree, SizedTree, warn_unless_proven
from softsurv.results import FitReport, Status
from softsurv.trees.hard_tree import Branch, HardTree

TABLE = {"age": [40.0, 60.0, np.nan, 70.0], "arm": ["a", "b", None, "a"]}


class Plain(ExactTree, BaseEstimator):
    """The least that an estimator with such a tree must say."""

    def fit(self, X):
        """Nothing is searched for."""

    def leaf_lines(self):
        return [f"number {k}" for k in range(self.tree_.n_leaves)]


def fitted(rule=None):
    tree = Plain()
    tree.binarizer_ = Binarizer().fit(TABLE)
    tree.tree_ = HardTree.grow(tree.binarizer_.sources_, Branch(rule or Rule(0, threshold=50.0), None, None))
    tree.report_ = FitReport(Status.TIME_LIMIT, 3.5, 3.0)
    tree.path_ = (SizedTree(2, 3.5, tree.tree_),)
    return tree


def test_the_search_tells_objective_bound_gap_and_status():
    tree = fitted()
    assert (tree.objective_, tree.lower_bound_, tree.gap_, tree.status_) == (3.5, 3.0, 0.5, Status.TIME_LIMIT)


def test_what_stands_for_missing_values_is_said_of_columns_that_are_asked():
    text = fitted().export_text()
    assert text.endswith("Missing values: age counts as 56.6667.")
    assert "leaf 0: number 0" in text
    assert fitted(Rule(1, levels=("b",))).export_text().endswith("Missing values: arm counts as a.")
    whole = fitted()
    whole.binarizer_ = Binarizer().fit({"age": [40.0, 60.0, 70.0], "arm": ["a", "b", "a"]})
    assert "Missing" not in whole.export_text()


def test_every_export_is_of_the_same_tree():
    tree = fitted()
    space = {}
    exec(tree.export_python("leaf"), space)
    assert [space["leaf"]({"age": age, "arm": "a"}) for age in (40.0, 60.0)] == [0, 1]
    assert "number 1" in tree.export_dot()


@pytest.mark.parametrize("export", ["export_text", "export_dot", "export_python"])
def test_an_unfitted_tree_has_no_export(export):
    with pytest.raises(NotFittedError):
        getattr(Plain(), export)()


def test_the_state_goes_through_json_and_back():
    tree, again = fitted(), Plain()
    again._restore_search(json.loads(json.dumps(tree._search_state())))
    assert again.export_text() == tree.export_text()
    assert again.report_ == tree.report_
    assert [(size.max_leaves, size.objective) for size in again.path_] == [(2, 3.5)]
    assert again.path_[0].tree.export_text() == tree.tree_.export_text()


@pytest.mark.parametrize("status", list(Status))
def test_a_tree_that_is_not_proven_warns_with_a_remedy(status):
    report = FitReport(status, 2.0, 1.5)
    if status in (Status.OPTIMAL, Status.CONDITIONALLY_OPTIMAL, Status.CONTINUED):
        warn_unless_proven(report)  # a warning would be an error
        return
    limit = "memory_limit" if status is Status.MEMORY_LIMIT else "time_limit"
    words, remedy = f"ended at its {str(status).replace('_', ' ')}", f"; raise {limit}, or lower"
    if status is Status.INTERRUPTED:
        words, remedy = "was interrupted", "$"
    with pytest.warns(ConvergenceWarning, match=f"{words} with objective 2 and lower bound 1.5{remedy}"):
        warn_unless_proven(report)
