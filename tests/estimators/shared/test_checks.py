"""Checks of arguments: what passes, and the sentence for what does not."""

import numpy as np
import pytest

from softsurv import OptimalClassificationTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import InvalidParameterError, InvalidTimesError
from softsurv.estimators.shared.checks import grid_of, jobs, number, one_of, rows_for_a_leaf, share, whole


@pytest.mark.parametrize(
    ("check", "passes", "refused"),
    [
        (lambda value: whole("n", value, 1), np.int32(3), np.int32(0)),
        (lambda value: number("x", value, 0.0), np.float32(0.5), np.float32(-0.5)),
        (lambda value: number("x", value, 0.0), 2, -2),
        (lambda value: share("x", value), 1, 2),
        (jobs, None, 0),
        (jobs, -1, 0.5),
        (lambda value: rows_for_a_leaf(value, 5), 5, 6),
        (lambda value: one_of("leaf", value, (None, "km")), None, "cox"),
    ],
)
def test_numbers_of_any_library_pass(check, passes, refused):
    assert check(passes) is None
    with pytest.raises(InvalidParameterError):
        check(refused)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: whole("n", True, 0), "n must be an integer >= 0, got True"),
        (lambda: whole("n", 2.0, 0), "n must be an integer >= 0, got 2.0"),
        (lambda: number("x", float("nan"), 0.0), "x must be a finite number >= 0, got nan"),
        (lambda: number("x", float("inf"), 0.0), "x must be a finite number >= 0, got inf"),
        (lambda: number("x", 10**400, 0.0), "x must be a finite number >= 0, got 1000"),
        (lambda: number("x", False, 0.0), "x must be a finite number >= 0, got False"),
        (lambda: share("x", 1.5), r"x must be a number in \[0, 1\], got 1.5"),
        (lambda: share("x", float("nan")), r"x must be a number in \[0, 1\], got nan"),
        (lambda: share("x", "a"), r"x must be a number in \[0, 1\], got 'a'"),
        (lambda: one_of("leaf", 1, (True, "km"), " here"), "leaf must be one of True, 'km' here, got 1"),
        (lambda: jobs(0), "n_jobs must be an integer >= 1, or -1 for all cores, got 0"),
        (lambda: grid_of("a"), "times must be numbers; could not convert"),
        (lambda: grid_of([1.0, float("nan")]), "times must be finite and >= 0, got nan at position 1"),
        (lambda: rows_for_a_leaf(6, 5), "min_samples_leaf must be at most the number of rows, 5, got 6"),
    ],
)
def test_what_is_wrong_is_named(check, sentence):
    with pytest.raises((InvalidParameterError, InvalidTimesError), match=sentence):
        check()


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: OptimalSurvivalTree(level_sets="yes"), "level_sets"),
        (lambda: OptimalSurvivalTree(progress=1), "progress"),
        (lambda: OptimalClassificationTree(path="no"), "path"),
        (lambda: SoftSurvivalTree(preprocess=None), "preprocess"),
    ],
)
def test_flags_are_true_or_false(made, name):
    X, event = np.arange(40.0)[:, None] % 7, np.arange(40) % 2 == 0
    tree = made()
    y = event if isinstance(tree, OptimalClassificationTree) else (event, np.arange(1.0, 41))
    with pytest.raises(InvalidParameterError, match=f"{name} must be True or False"):
        tree.fit(X, y)
