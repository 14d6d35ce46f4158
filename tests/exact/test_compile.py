"""What a search compiles: the functions that it calls and no others."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from softsurv.exact.compile import execute, price_of, ready
from softsurv.exact.objectives import label_costs, relative_risk


def test_a_shallow_search_calls_no_recursion():
    calls = ready(relative_risk.TASK, deep=False)
    assert calls.price
    assert calls.solve_two
    assert calls.solve == calls.solve_three == calls.solve_lanes == 0


def test_tasks_do_not_share_their_price():
    assert price_of(relative_risk.TASK) is not price_of(label_costs.TASK)
    assert price_of(relative_risk.TASK).address != price_of(label_costs.TASK).address


def test_a_search_down_to_depth_three_calls_no_recursion_where_lanes_do_it():
    calls = ready(relative_risk.TASK, recursive=False)
    assert calls.solve_three
    assert calls.solve_lanes
    assert calls.solve == 0
    assert ready(relative_risk.TASK, recursive=False, in_lanes=False).solve


def test_a_price_is_made_once_for_each_leaf_cost():
    same = dataclasses.replace(label_costs.TASK)
    assert price_of(same) is price_of(label_costs.TASK)
    changed = dataclasses.replace(label_costs.TASK, leaf_costs=relative_risk.TASK.leaf_costs)
    assert price_of(changed) is not price_of(label_costs.TASK)
    assert price_of(changed).function.__module__ != price_of(label_costs.TASK).function.__module__


def test_a_template_runs_with_names_set_beforehand():
    module = execute("softsurv.exact.base_cases.task_points", "test_only", {"leaf_points": len})
    assert module.leaf_points is len
    assert module.__name__.endswith("task_points_test_only")
    assert sys.modules.pop(module.__name__) is module


def test_a_missing_template_is_told():
    with pytest.raises(ImportError, match=r"template module softsurv\.no_such was not found"):
        execute("softsurv.no_such", "x", {})
