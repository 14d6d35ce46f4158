"""F1 and group fairness beside pystreed 1.4.0 on its own sets: the same optimum."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from softsurv import OptimalClassificationTree
from softsurv.estimators.separable.fair import OptimalFairClassificationTree
from softsurv.exact.objectives.fairness import KINDS, difference

pystreed = pytest.importorskip("pystreed")
pytestmark = pytest.mark.peers
DATA = Path(os.environ.get("SOFTSURV_DATA", Path(__file__).parents[4] / "shared" / "data"))
PEER_TASKS = dict(zip(KINDS, ("group-fairness", "equality-of-opportunity"), strict=True))


def table(folder, name):
    path = DATA / folder / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here; set SOFTSURV_DATA")
    return np.loadtxt(path, dtype=int)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ["hepatitis", "heart-cleveland", "tic-tac-toe", "vote", "anneal", "yeast"])
def test_same_f1(name, depth):
    data = table("classification", name)
    label, features = data[:, 0], data[:, 1:]
    peer = pystreed.STreeDClassifier("f1-score", max_depth=depth, max_num_nodes=2**depth - 1).fit(features, label)
    tree = OptimalClassificationTree("f1", depth).fit(features, label)
    assert 1 - tree.objective_ == pytest.approx(f1_score(label, peer.predict(features)))
    assert f1_score(label, tree.predict(features)) == pytest.approx(1 - tree.objective_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", [0.01, 0.1])
@pytest.mark.parametrize(
    ("name", "depth"), [("ricci", 3), ("student-mat", 2), ("student-por", 2), ("german-credit", 2)]
)
def test_same_errors_under_a_fairness_constraint(name, depth, kind, tolerance):
    data = table("fairness", f"{name}-binarized")
    label, group, features = data[:, 0], data[:, 1], data[:, 2:]
    peer = pystreed.STreeDGroupFairnessClassifier(
        PEER_TASKS[kind], max_depth=depth, max_num_nodes=2**depth - 1, discrimination_limit=tolerance
    ).fit(data[:, 1:], label)
    tree = OptimalFairClassificationTree(kind, tolerance, depth).fit(features, label, group=group)
    errors = (peer.predict(data[:, 1:]) != label).sum()
    assert tree.objective_ * len(label) == pytest.approx(errors)
    assert difference(tree.predict(features), label, group, kind) <= tolerance + 1e-9
    assert tree.difference_ == pytest.approx(difference(tree.predict(features), label, group, kind))
