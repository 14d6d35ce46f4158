"""The integrated-Brier-score trees against the reference implementation `osst` on the paper's binarised data.

The reference aborts on a second fit in one process, so each fit has a fork of its own. Its depth_budget counts a
single leaf as depth 1. It works in single precision, hence the tolerance.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.forked import forked

from softsurv.exact.brier.solve import solve_ibs
from softsurv.exact.objectives.brier import IbsScore
from softsurv.nonparametric import censoring_survival, kaplan_meier

pytestmark = pytest.mark.peers
pytest.importorskip("osst")
FOLDER = Path(os.environ.get("SOFTSURV_DATA", "data")) / "osst"
SINGLE_PRECISION = 1e-5

WORKER = """
import pandas as pd
from osst.model.osst import OSST

def fit(job):
    table = pd.read_csv(job["file"])
    table = table[[c for c in table.columns if not c.startswith("Unnamed")]]
    event, y = (pd.DataFrame(table.iloc[:, k].to_numpy()) for k in (-2, -1))
    model = OSST({"regularization": job["complexity"], "depth_budget": job["depth"] + 1,
                  "minimum_captured_points": 7, "look_ahead": True, "model_limit": 1})
    model.fit(table.iloc[:, :-2], event.astype(int), y)
    return {"loss": model.reported_loss, "lower": model.lb, "upper": model.ub, "leaves": model.leaves()}
"""


def load(name):
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there; set SOFTSURV_DATA")
    table = pd.read_csv(path)
    table = table[[column for column in table.columns if not column.startswith("Unnamed")]]
    return table.iloc[:, :-2].to_numpy(), table.iloc[:, -1].to_numpy(float), table.iloc[:, -2].to_numpy(bool)


@pytest.fixture(scope="module")
def reference():
    """Fit of the reference by data set, depth and complexity: a process that imports once and forks for each."""
    with forked(WORKER, stderr=subprocess.DEVNULL) as ask:
        yield lambda name, depth, complexity: ask(
            {"file": str(FOLDER / f"{name}.csv"), "depth": depth, "complexity": complexity}
        )


EVERY = (0.1, 0.05, 0.01, 0.0025, 0.001)
CASES = [
    *((name, 2, EVERY) for name in ("aids", "churn", "credit", "real-estate")),
    *((name, 3, EVERY) for name in ("aids_death", "gbsg2", "servo")),
    *((name, 4, EVERY) for name in ("maintenance", "sync")),
    ("veterans", 5, EVERY),
    ("churn", 3, (0.0025,)),
    ("airfoil", 2, (0.001,)),
    ("insurance", 2, (0.001,)),
    ("employee", 2, (0.001,)),
]


@pytest.mark.parametrize(("name", "depth", "complexities"), CASES)
def test_same_optimum(reference, name, depth, complexities):
    x, time, event = load(name)
    for complexity in complexities:
        theirs = reference(name, depth, complexity)
        ours = solve_ibs(x, time, event, complexity=complexity, max_depth=depth, min_samples_leaf=7)
        assert ours.report.objective == pytest.approx(theirs["upper"], abs=SINGLE_PRECISION)
        assert theirs["lower"] == pytest.approx(theirs["upper"])
        loss = ours.report.objective - complexity * ours.report.details["n_leaves"]
        if theirs["leaves"] == ours.report.details["n_leaves"]:
            assert loss == pytest.approx(theirs["loss"], abs=SINGLE_PRECISION)


@pytest.mark.parametrize("name", ["veterans", "gbsg2", "credit"])
def test_conventions(reference, name):
    """A single leaf's loss: at-risk ties and the time range as stated; the other choices are clearly different."""
    _, time, event = load(name)
    answer = reference(name, 1, 0.1)
    assert answer["leaves"] == 1
    theirs = answer["loss"]
    score = IbsScore.from_columns(time, event)
    rows = np.arange(time.size)
    assert score.leaf_loss(rows) == pytest.approx(theirs, abs=1e-6)
    origin = IbsScore.from_columns(time, event, time_range="origin")
    assert abs(origin.leaf_loss(rows) - theirs) > 2e-5
    events_first = IbsScore(time, event, np.ones(time.size), censoring_curve=censoring_survival(time, event))
    assert abs(events_first.leaf_loss(rows) - theirs) > 2e-5
    assert (score.censoring(time) == kaplan_meier(time, ~event)(time)).all()
