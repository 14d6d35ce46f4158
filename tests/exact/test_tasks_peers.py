"""The additive tasks against pystreed on real data (extra ``peers``); the long comparison is a script."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("pystreed")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import _tasks

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif("SOFTSURV_DATA" not in os.environ, reason="SOFTSURV_DATA does not say where the data lie"),
]


def cases():
    """One small set of each task."""
    X, y = _tasks.classification_sets()["hepatitis"]
    Z, time = _tasks.regression_sets()["servo"]
    return [
        _tasks.accuracy("hepatitis", X, y, 3),
        _tasks.accuracy("hepatitis", X, y, 3, 0.01),
        _tasks.cost_sensitive("car", 1, "high", 3),
        *(_tasks.policy(method, 2) for method in _tasks.POLICY),
        _tasks.regression("servo", Z, time, 3),
    ]


@pytest.mark.filterwarnings("ignore")
def test_same_optimum():
    rows = [_tasks.compare(case) for case in cases()]
    assert [row["verdict"] for row in rows] == ["equal"] * len(rows), rows
