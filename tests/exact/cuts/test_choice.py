"""When cuts are searched one by one: the ways that were measured as the faster ones stay chosen."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.exact.cuts.choice import cuts_pay, kind_of_search
from softsurv.exact.objectives import label_costs, relative_risk
from softsurv.exact.objectives.linear import ERRORS
from softsurv.exact.search import Search
from softsurv.exact.vector_search import VectorSearch


def by_cuts(task, statistics, n_codes, features=5, least=1):
    n = len(statistics)
    codes = np.random.default_rng(1).integers(0, n_codes, (n, features)).astype(np.int32)
    sides = np.full(features, n_codes), np.zeros(features, bool)
    return Search(task, codes, *sides, statistics, min_leaf=least).by_cuts


@pytest.mark.parametrize(("labels", "n_codes", "least", "faster"), [
    (2, 100, 1, True), (2, 60, 1, False), (2, 70, 20, True), (3, 200, 1, True), (3, 100, 1, False), (3, 200, 20, True),
])  # fmt: skip
def test_costs_of_labels_that_are_any_numbers_are_searched_by_cuts_sooner_than_labels(labels, n_codes, least, faster):
    rng = np.random.default_rng(0)
    assert by_cuts(label_costs.TASK, rng.random((600, labels)), n_codes, least=least) == faster


@pytest.mark.parametrize(("n_codes", "least", "faster"), [(90, 1, False), (150, 1, True), (90, 20, True)])
def test_labels_counted_by_bits(n_codes, least, faster):
    label = np.random.default_rng(0).integers(0, 2, 600)
    assert by_cuts(label_costs.TASK, label_costs.misclassification(label, 2), n_codes, least=least) == faster


@pytest.mark.parametrize(
    ("n", "n_codes", "features", "faster"), [(40, 40, 15, True), (90, 60, 10, False), (20, 20, 30, False)]
)
def test_few_rows_of_many_columns_are_searched_by_cuts(n, n_codes, features, faster):
    statistics = np.random.default_rng(0).random((n, 2))
    assert by_cuts(relative_risk.TASK, statistics, n_codes, features) == faster


def test_kinds_of_searches():
    rng = np.random.default_rng(0)
    two, many = rng.integers(0, 2, (100, 2)).astype(float), rng.random((100, 3))
    assert [kind_of_search(True, two, True), kind_of_search(True, many, True)] == ["two labels", "costs"]
    assert [kind_of_search(False, two, True), kind_of_search(False, many, True)] == ["kinds", "lanes"]
    assert kind_of_search(False, many, False) == "other"


def test_a_limit_on_leaves_and_the_costs_of_base_cases_decide():
    codes = np.zeros((600, 5), np.int32)
    assert cuts_pay(codes, 1000, "lanes", limited=True)
    assert not cuts_pay(codes, 1000, "lanes", limited=False)
    assert not cuts_pay(codes, 250, "two costs", limited=False)


@pytest.mark.parametrize(("n_codes", "faster"), [(70, False), (90, True)])
def test_two_counts_are_weighed_in_many_searches(n_codes, faster):
    rng = np.random.default_rng(0)
    codes, sides = rng.integers(0, n_codes, (600, 5)), (np.full(5, n_codes), np.zeros(5, bool))
    errors = label_costs.misclassification(rng.integers(0, 2, 600), 2)
    assert VectorSearch(ERRORS, codes, *sides, errors, depth=3, cuts=True).by_cuts == faster


@pytest.mark.parametrize(("n_codes", "faster"), [(6, False), (11, False), (20, True)])
def test_many_columns_of_few_cuts_are_left_to_the_base_cases(n_codes, faster):
    label = np.random.default_rng(0).integers(0, 2, 150)
    assert by_cuts(label_costs.TASK, label_costs.misclassification(label, 2), n_codes, features=500) == faster
