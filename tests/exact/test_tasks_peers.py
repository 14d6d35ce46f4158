"""The tasks against pystreed and gosdt on real data (extra ``peers``); the long comparisons are scripts."""

from __future__ import annotations

import os
import time

import pytest

pytest.importorskip("pystreed")
pytest.importorskip("gosdt")
import _results
import _tasks
import reproduce_gosdt

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif("SOFTSURV_DATA" not in os.environ, reason="SOFTSURV_DATA does not say where the data lie"),
]


def cases():
    """One small set of each task."""
    X, y = _tasks.classification_sets()["hepatitis"]
    Z, target = _tasks.regression_sets()["servo"]
    F, fair = _tasks.classification_sets()["student-mat-binarized"]
    return [
        _tasks.accuracy("hepatitis", X, y, 3),
        _tasks.accuracy("wine", *_tasks.sklearn_classes()["wine (sklearn)"], 3),
        _tasks.accuracy("hepatitis", X, y, 3, 0.01),
        _tasks.f1_score("hepatitis", X, y, 3),
        *(_tasks.cost_sensitive(name, 1, level, 3) for name in ("car", "heart") for level in ("low", "high")),
        *(_tasks.policy(method, 2) for method in _tasks.POLICY),
        *(_tasks.fair("student-mat", F, fair, kind, 2) for kind in _tasks.FAIRNESS),
        _tasks.regression("servo", Z, target, 3),
    ]


@pytest.mark.filterwarnings("ignore")
def test_same_optimum():
    rows = [_tasks.row(_tasks.compare(case)) for case in cases()]
    assert [row["verdict"] for row in rows] == ["equal"] * len(rows), rows


@pytest.mark.parametrize("cost", [0.1, 0.05])
@pytest.mark.parametrize("name", ["vote", "heart-train-1", "ricci-binarized"])
def test_same_cost_of_leaves(name, cost):
    case = reproduce_gosdt.compare(*_tasks.classification_sets()[name], 4, cost, 60)
    assert reproduce_gosdt.row(name, cost, case)["verdict"] == "equal", case


def test_a_large_parent_leaves_its_child_all_the_memory(monkeypatch):
    """The limit is on what a peer takes beyond what the process held already."""
    monkeypatch.setattr(_results, "MEMORY", 1 << 28)  # far below what numpy, numba and torch have mapped
    assert _results.in_child(lambda: len(bytearray(1 << 26)), 30.0) == 1 << 26
    assert _results.in_child(lambda: len(bytearray(1 << 30)), 30.0) is None


def test_a_peer_that_takes_too_long_is_stopped_and_finished_cases_are_kept(tmp_path):
    assert _results.in_child(lambda: time.sleep(60), 0.2) is None
    assert _results.in_child(lambda: {"a": 1}, 30.0) == {"a": 1}
    results = _results.Results(tmp_path / "folder" / "cases.jsonl")
    assert results.get("one", lambda: {"value": 1}) == {"case": "one", "value": 1}
    again = _results.Results(results.path)
    assert again.get("one", lambda: pytest.fail("computed twice")) == {"case": "one", "value": 1}
