"""The trees of all starts of a dense fit, scored one by one."""

import pytest

from softsurv import SoftSurvivalTree
from softsurv.errors import InvalidParameterError


@pytest.fixture(scope="module")
def dense(rows):
    settings = {"depth": 1, "leaf": "weibull", "max_terms": None, "l2": 1.0, "shrinkage": 1.0, "routing_l2": 0.1}
    return SoftSurvivalTree(**settings, n_restarts=3, device="cpu").fit(*rows)


def test_every_start_has_a_row_and_the_best_one_is_the_tree(dense, rows):
    before = dense.predict(rows[0])
    scores = dense.evaluate_starts(*rows)
    assert len(scores) == 3
    best = scores["objective"].argmin()
    assert scores["objective"][best] == pytest.approx(dense.report_.objective)
    own = dense.evaluate(*rows)
    assert scores.loc[best, ["harrell_c", "ibs"]].tolist() == pytest.approx([own["harrell_c"], own["ibs"]])
    assert (dense.predict(rows[0]) == before).all()  # the fitted tree stays as it is


def test_options_are_those_of_evaluate(dense, rows):
    scores = dense.evaluate_starts(*rows, times=[1.0, 2.0, 3.0])
    assert scores["ibs"].tolist()[0] != dense.evaluate_starts(*rows)["ibs"].tolist()[0]
    assert set(scores["n_times"]) == {3}


def test_a_tree_of_rules_has_no_starts(dense, rows):
    sentence = "evaluate_starts needs the starts of a dense tree that was fitted in this session"
    rules = SoftSurvivalTree(depth=0, leaf="weibull", l2=1.0, device="cpu")
    with pytest.raises(InvalidParameterError, match=sentence):
        rules.evaluate_starts(*rows)
    dense_state = SoftSurvivalTree(**dense.get_params())
    dense_state._keep_starts(None)
    with pytest.raises(InvalidParameterError, match=sentence):
        dense_state.evaluate_starts(*rows)
