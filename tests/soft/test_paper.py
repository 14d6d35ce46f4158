"""The published settings: regression of the reassignment, spline start, order of the thresholds."""

import pytest

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError
from softsurv.soft import bfgs, nodec, paper


def test_the_two_thresholds_come_in_either_order():
    printed, text = paper.balance("printed"), paper.balance("text")
    assert (printed.moderate, printed.high) == (0.1, 0.3)
    assert (text.moderate, text.high) == (0.3, 0.1)
    assert printed.decayed(0.5).high == pytest.approx(0.15)
    assert printed.decayed(0.5).weighs_wanted


@pytest.mark.parametrize(
    ("family", "init", "start"),
    [("weibull", "random", "random"), ("loglogistic", "kmeans", "own"), ("spline_po", "random", "spline")],
)
def test_leaves_begin_as_printed(family, init, start):
    assert paper.training(family, init).leaf_start == start


def test_every_start_of_a_preset_has_its_scores(tools):
    data = tools.simulate(120, 3)
    tree = SoftSurvivalTree(depth=1, preset="paper", device="cpu", max_iter=1).fit(data)
    table = tree.evaluate_starts(data)
    assert len(table) == paper.RESTARTS
    best = table.loc[table["objective"].idxmin()]
    assert best["objective"] == pytest.approx(tree.report_.objective)
    assert best["harrell_c"] == tree.evaluate(data)["harrell_c"]
    assert table["harrell_c"].nunique() > 1


def test_starts_are_there_for_dense_trees_of_this_session_alone(tools, tmp_path):
    from softsurv import load_model

    data = tools.simulate(120, 3)
    tree = SoftSurvivalTree(depth=1, preset="paper", device="cpu", max_iter=1).fit(data)
    tree.save(tmp_path / "model")
    with pytest.raises(InvalidParameterError, match="fit again"):
        load_model(tmp_path / "model").evaluate_starts(data)


def test_more_coefficients_than_a_matrix_has_room_for_are_refused_before_any_work(tools, monkeypatch):
    tree = SoftSurvivalTree(depth=2, preset="paper", leaf="weibull", device="cpu", max_iter=1)
    # 3 features: the root has 4 coefficients, all leaves 4 * 5 together
    monkeypatch.setattr(bfgs, "MATRIX_BYTES", 20 * 20 * 8 - 1)
    monkeypatch.setattr(nodec, "branch_step", None)
    with pytest.raises(InvalidParameterError, match=r"at most 19 coefficients.*got 20.*leave columns out, lower depth"):
        tree.fit(tools.simulate(60, 3))
