"""What a task promises is checked, and a broken promise told by its sentence."""

from __future__ import annotations

import numpy as np
import pytest

from softsurv.errors import InvalidParameterError
from softsurv.exact.check import check_task
from softsurv.exact.objectives import label_costs, relative_risk, squared_error
from softsurv.exact.task import Task


def test_the_tasks_keep_their_promises():
    rng = np.random.default_rng(0)
    y, ones = rng.normal(size=60), np.ones(60)
    kept = [  # it raises where a promise is broken: see the tests below
        check_task(label_costs.TASK, rng.random((60, 3))),
        check_task(squared_error.TASK, squared_error.statistics(y, ones), squared_error.offset(y, ones)),
    ]
    hazard = rng.random(60) + 0.1
    event = rng.random(60) < 0.6
    kept += [check_task(relative_risk.TASK, relative_risk.statistics(event, hazard), np.where(event, 20.0, 0.0))]
    assert kept == [None] * 3


def not_empty(sums, n, out):
    out[:n] = sums[0, :n] + 1.0


def negative(sums, n, out):
    out[:n] = -sums[0, :n]


def concave(sums, n, out):
    out[:n] = np.sqrt(sums[0, :n])


def of_the_batch(sums, n, out):
    out[:n] = sums[0, :n] * n


def broken(sums, n, out):
    out[:n] = np.where(sums[0, :n] > 0, np.nan, 0.0)


@pytest.mark.parametrize(
    ("cost", "flags", "sentence"),
    [
        (not_empty, {}, "an empty leaf must cost 0"),
        (negative, {}, "at least 0"),
        (concave, {}, "set superadditive=False"),
        (of_the_batch, {}, "its own sums alone"),
        (broken, {}, "costs must be finite"),
        (concave, {"superadditive": False, "linear": True}, "set linear=False"),
    ],
)
def test_a_broken_promise_is_told(cost, flags, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        check_task(Task("broken", 1, cost, **flags), np.random.default_rng(0).random((30, 1)) + 0.1)


def test_statistics_must_be_a_finite_matrix_of_the_task():
    for wrong in (np.zeros(3), np.zeros((0, 2)), np.array([[1.0, np.nan]])):
        with pytest.raises(InvalidParameterError, match="finite matrix with a row per instance"):
            check_task(squared_error.TASK, wrong)
    with pytest.raises(InvalidParameterError, match="must have the 2 columns of task 'squared_error', got 3"):
        check_task(squared_error.TASK, np.ones((4, 3)))


def test_the_sentence_names_rows_that_break_the_promise():
    y = np.array([0.0, 0.0, 3.0])
    with pytest.raises(InvalidParameterError, match=r"for the rows \[.*2.*\]; give Search an offset"):
        check_task(squared_error.TASK, squared_error.statistics(y, np.ones(3)))
