"""Additive tasks solved from bins: unit of the objective, labels of leaves, path of sizes, and limits."""

import numpy as np
import pytest

from softsurv.data.binarize import Binarizer
from softsurv.estimators.separable.limits import SearchLimits
from softsurv.estimators.separable.solve import in_unit, problem_of, solve_task
from softsurv.estimators.shared.inputs import binned_rows
from softsurv.exact.memory import Room
from softsurv.exact.objectives import label_costs
from softsurv.results import FitReport, Status
from softsurv.stopping import StopSignal


def limits(depth=2, leaves=None, **changes):
    plain = {"min_leaf": 1, "min_weight": 0.0, "complexity": 0.0, "stop": StopSignal(30.0), "room": Room(1e9)}
    return SearchLimits(depth, leaves, **(plain | changes))


@pytest.fixture(scope="module")
def binned():
    """Forty rows of weights 1 and 2, the class being that of a crossing with two errors."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0], (40, 3))
    label = (X[:, 0] != X[:, 1]).astype(int)
    label[:2] = 1 - label[:2]
    binarizer = Binarizer("all")
    binarizer.fit(X)
    weight = rng.integers(1, 3, 40).astype(float)
    return binned_rows(binarizer, binarizer.filled(X)[0], 40, weight), label


def costs_of(label, weight):
    return label_costs.misclassification(label, 2, weight)


def test_a_mean_is_the_sum_over_the_weights(binned):
    rows, label = binned
    costs, total = costs_of(label, rows.weight), rows.weight.sum()
    plain, mean = (
        solve_task(label_costs.TASK, costs, rows, limits(), label_of=label_costs.best_label, scale=scale, shift=shift)
        for scale, shift in ((1.0, 0.0), (total, -0.25))
    )
    assert plain.report.objective == pytest.approx(rows.weight[:2].sum())  # the crossing, and two errors
    assert mean.report.objective == pytest.approx(plain.report.objective / total - 0.25)
    assert mean.report.lower_bound == pytest.approx(mean.report.objective)
    assert plain.report.status == Status.OPTIMAL
    assert sorted(plain.label.tolist()) == [0, 0, 1, 1]


def test_a_path_has_the_optimum_of_every_number_of_leaves(binned):
    rows, label = binned
    costs = costs_of(label, rows.weight)
    found = solve_task(label_costs.TASK, costs, rows, limits(path=True), label_of=label_costs.best_label)
    assert [size.max_leaves for size in found.path] == [1, 2, 3, 4]
    for size in found.path:
        alone = solve_task(
            label_costs.TASK, costs, rows, limits(leaves=size.max_leaves), label_of=label_costs.best_label
        )
        assert size.objective == pytest.approx(alone.report.objective)
        assert alone.path == ()
        assert len(size.label) == len(size.tree.leaves) <= size.max_leaves


def test_a_cost_per_leaf_is_in_the_unit_of_the_objective(binned):
    rows, label = binned
    problem = problem_of(label_costs.TASK, costs_of(label, rows.weight), rows, limits(complexity=0.1), scale=50.0)
    assert problem.complexity == pytest.approx(5.0)
    dear = solve_task(
        label_costs.TASK, costs_of(label, rows.weight), rows, limits(complexity=50.0), label_of=label_costs.best_label
    )
    assert len(dear.tree.leaves) == 1


def test_least_leaves_are_counted_in_rows_or_in_weight(binned):
    rows, label = binned
    costs = costs_of(label, rows.weight)
    by_rows = problem_of(label_costs.TASK, costs, rows, limits(min_leaf=7))
    assert (by_rows.min_leaf, by_rows.size) == (7, None)
    by_weight = problem_of(label_costs.TASK, costs, rows, limits(min_weight=0.5))
    assert by_weight.min_leaf == pytest.approx(rows.weight.sum() / 2)
    np.testing.assert_array_equal(by_weight.size, rows.weight)
    other = problem_of(label_costs.TASK, costs, rows, limits(min_weight=0.5), weight=np.ones(40))
    assert other.min_leaf == 20


def test_a_report_changes_its_unit_and_nothing_else():
    report = FitReport(Status.TIME_LIMIT, 10.0, 4.0, 2.5, (12.0, 10.0), {"nodes": 3})
    found = in_unit(report, 2.0, 1.0)
    assert (found.objective, found.lower_bound, found.trace) == (6.0, 3.0, (7.0, 6.0))
    assert (found.status, found.seconds, found.details) == (Status.TIME_LIMIT, 2.5, {"nodes": 3})
