"""Where warnings point, and how often they are given."""

import subprocess
import sys
import warnings
from collections import Counter
from types import FunctionType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score

from softsurv import OptimalSurvivalTree, SoftSurvivalTree, load_dataset
from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, EvaluationWarning, unsaid, warn
from softsurv.explore import (
    explain,
    export_onnx,
    plot_leaf_curves,
    plot_path,
    plot_tree,
    plot_tree_parts,
    report_html,
    write_report,
)


def _fit(self, X, y=None):
    """Warn of a count that differs, of names with digits, and of what was ignored at first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        warn("a measure", EvaluationWarning)
    warn(f"{len(X) + self.asked} rows are odd", DataWarning)
    warn("column 'x1' is left out", DataWarning)
    warn("column 'x2' is left out", DataWarning)
    warn("a measure", EvaluationWarning)
    return self


class Warns(BaseEstimator):
    """An estimator of softsurv that warns in every fit."""

    fit = FunctionType(_fit.__code__, globals() | {"__name__": "softsurv.somewhere"}, "fit", (None,))

    def __init__(self, asked=1):
        self.asked = asked

    def score(self, X, y=None):
        return 0.0


def given(call):
    """Warnings of a call, and how often."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert {one.filename for one in seen} == {__file__}
    return Counter(str(one.message) for one in seen)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cross_val_score(Warns(), np.zeros((8, 1)), cv=3),
        lambda: GridSearchCV(Warns(), {"asked": [1, 2]}, cv=3).fit(np.zeros((8, 1))),
    ],
)
def test_a_call_of_scikit_learn_is_told_once(call):
    found = given(call)
    assert len(found) == 4
    assert set(found.values()) == {1}
    assert given(call) == found  # the next call is told again


def test_fits_of_ones_own_are_told_each_time():
    assert set(given(lambda: [Warns().fit(np.zeros((8, 1))) for _ in range(2)]).values()) == {2}


def test_a_cross_validation_names_a_column_that_is_left_out_once():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"name": [f"patient {k}" for k in range(120)], "age": rng.integers(30, 80, 120)})
    y = np.array(
        list(zip(rng.random(120) < 0.7, rng.exponential(size=120) + 0.1, strict=True)), [("e", bool), ("t", float)]
    )
    found = given(lambda: cross_val_score(OptimalSurvivalTree(max_depth=1), X, y, cv=3))
    assert sum("'name' is left out" in message for message in found.elements()) == 1


def test_a_report_and_an_evaluation_tell_once_of_new_levels_and_far_values(tmp_path):
    rng = np.random.default_rng(1)
    n = 200
    X = pd.DataFrame({"age": rng.integers(30, 80, n).astype(float), "site": rng.choice(["north", "south"], n)})
    event, time = rng.random(n) < 0.7, rng.exponential(size=n) * np.where(X["age"] > 55, 1, 4) + 0.1
    tree = SoftSurvivalTree(depth=1, leaf="weibull", max_terms=1).fit(X, (event, time))
    new = X.assign(site=np.where(X.index < 9, "west", X["site"]), age=X["age"].where(X.index % 20 != 3, 400.0))
    rows = survival_data(new, event=event, time=time)
    calls = {
        "evaluate": lambda: tree.evaluate(rows),
        "plot_path": lambda: plot_path(tree, rows, new.iloc[[3]]),
        "report": lambda: write_report(tree, rows, tmp_path / "report.html", stability=2),
    }
    for name, call in calls.items():
        found = given(call)
        assert sum("not seen in training" in message for message in found.elements()) == 1, name
        assert sum("far outside the training range" in message for message in found.elements()) <= 1, name
    assert sum("far outside" in message for message in given(lambda: tree.predict(new)).elements()) == 1
    assert not any("far outside" in message for message in given(lambda: explain(tree, new.iloc[[3]])))


def test_what_is_left_unsaid_is_said_later_in_the_same_call():
    def call():
        with unsaid("2 rows"):
            warn("2 rows are odd", DataWarning)
            warn("a measure", EvaluationWarning)
        warn("3 rows are odd", DataWarning)
        warn("4 rows are odd", DataWarning)

    inner = FunctionType(call.__code__, globals() | {"__name__": "softsurv.somewhere"}, "call")
    assert given(inner) == {"a measure": 1, "3 rows are odd": 1}


def test_python_without_docstrings_is_told_where_scikit_survival_needs_them():
    """Its own sentence was of a None in scikit-survival."""
    program = (
        "import numpy as np; from softsurv.soft.starts import logrank_routing; "
        "logrank_routing(np.arange(9.0)[:, None], np.arange(1.0, 10.0), np.ones(9, bool), 1)"
    )
    ended = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("softsurv.errors.SoftsurvError: python -OO leaves out the docstrings"), ended.stderr
    assert not subprocess.run([sys.executable, "-O", "-c", program]).returncode


@pytest.mark.parametrize(
    ("missing", "extra", "call"),
    [
        ("matplotlib", "explore", plot_tree),
        ("matplotlib", "explore", plot_tree_parts),
        ("matplotlib", "explore", plot_leaf_curves),
        ("matplotlib", "explore", lambda tree, data: plot_path(tree, data, data.X.head(1))),
        ("matplotlib", "explore", report_html),
        ("onnx", "onnx", lambda tree, data: export_onnx(tree, "tree.onnx")),
    ],
)
def test_a_missing_package_is_told_with_the_extra_that_brings_it(monkeypatch, missing, extra, call):
    """A module that is None in `sys.modules` is one that cannot be imported."""
    data = load_dataset("veterans")
    tree = OptimalSurvivalTree(max_depth=1).fit(data)
    for name in {missing, *(name for name in sys.modules if name.startswith(f"{missing}."))}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install 'softsurv\[{extra}\]'") as told:
        call(tree, data)
    assert told.value.name.split(".")[0] == missing
