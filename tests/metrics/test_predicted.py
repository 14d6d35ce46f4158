"""Survival in the forms of other libraries."""

import numpy as np
import pandas as pd
import pytest
from sksurv.functions import StepFunction

from softsurv.errors import EvaluationWarning, InvalidParameterError, InvalidTimesError
from softsurv.metrics import evaluate, log_hazard_of

TIMES = np.array([1.0, 2.0, 4.0])
SURVIVAL = np.array([[0.9, 0.5, 0.5], [1.0, 0.2, 0.0]])
AT = np.array([0.5, 1.0, 3.9, 4.0, 9.0])
EXPECTED = np.array([[1.0, 0.9, 0.5, 0.5, 0.5], [1.0, 1.0, 0.2, 0.0, 0.0]])
FORMS = {
    "matrix": lambda: log_hazard_of(SURVIVAL, TIMES),
    "frame of lifelines": lambda: log_hazard_of(pd.DataFrame(SURVIVAL.T, index=TIMES)),
    "steps of scikit-survival": lambda: log_hazard_of(np.array([StepFunction(TIMES, y) for y in SURVIVAL], object)),
    "callable": lambda: log_hazard_of(
        lambda at: np.column_stack([np.ones(2), SURVIVAL])[:, np.searchsorted(TIMES, at, "right")]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_curve(form):
    assert np.exp(-np.exp(FORMS[form]()(AT))) == pytest.approx(EXPECTED)


def test_evaluate_takes_survival_in_place_of_hazards():
    rng = np.random.default_rng(0)
    time, event, rate = rng.exponential(size=60) + 0.1, rng.random(60) < 0.7, rng.random(60) + 0.5
    grid = np.unique(time)
    matrix = np.exp(-np.outer(rate, grid))
    wanted = evaluate(time, event, time, event, lambda at: np.log(np.outer(rate, at)), times=grid[:-1])
    found = evaluate(time, event, time, event, survival=matrix, survival_times=grid, times=grid[:-1])
    for name in ("harrell_c", "uno_c", "cd_auc", "ibs"):
        assert found[name] == pytest.approx(wanted[name])


FOLD = np.arange(1.0, 41.0), np.ones(40, dtype=bool)


@pytest.mark.parametrize("grid", [[10.0, 20.0, 30.0], FOLD[0][:30], FOLD[0][10:]], ids=["coarse", "short", "late"])
def test_long_steps_of_given_curves_are_told(grid):
    curves = np.exp(-np.outer(np.linspace(0.02, 0.1, 40), grid))
    forms = [
        {"survival": curves, "survival_times": grid},
        {"survival": pd.DataFrame(curves.T, index=grid)},
        {"survival": [StepFunction(np.asarray(grid), row) for row in curves]},
    ]
    for form in forms:
        with pytest.warns(EvaluationWarning, match=r"of 40 training event times lie in one step; give it .* up to 40"):
            evaluate(*FOLD, *FOLD, **form)


@pytest.mark.parametrize("grid", [FOLD[0], np.linspace(0.5, 40, 20)], ids=["of the events", "even"])
def test_short_steps_are_not_told(grid):
    curves = np.exp(-np.outer(np.linspace(0.02, 0.1, 40), grid))
    assert evaluate(*FOLD, *FOLD, survival=curves, survival_times=grid)["n"] == 40


@pytest.mark.parametrize("given", [{}, {"survival": SURVIVAL, "log_cumulative_hazard": np.log}])
def test_one_of_both_must_be_given(given):
    with pytest.raises(InvalidParameterError, match="and not both"):
        evaluate([1.0, 2.0], [1, 1], [1.0, 2.0], [1, 1], **given)


@pytest.mark.parametrize(
    ("survival", "times", "error"),
    [
        (SURVIVAL, None, InvalidParameterError),
        (SURVIVAL[0], TIMES, InvalidParameterError),
        (SURVIVAL + 0.5, TIMES, InvalidParameterError),
        (SURVIVAL, TIMES[::-1], InvalidTimesError),
        (pd.DataFrame(SURVIVAL.T, index=TIMES), TIMES, InvalidParameterError),
        ([StepFunction(TIMES, SURVIVAL[0])], TIMES, InvalidParameterError),
    ],
)
def test_what_is_no_survival_is_refused(survival, times, error):
    with pytest.raises(error):
        log_hazard_of(survival, times)
