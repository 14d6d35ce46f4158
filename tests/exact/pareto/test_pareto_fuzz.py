"""The searches for measures, constraints and AUC on random problems; for longer runs there is `scripts/fuzz_pareto.py`.

Small problems are compared with all their trees, deep ones with a search that prunes nothing.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import fuzz_pareto

PROBLEMS = {"deep_fair": 5, "estimator": 20, "auc": 30}
"""How many random problems of each target; 40 where nothing is said."""

ABANDONED = "a subset abandoned at its upper bound is kept as solved: wrong optima from depth 6 on"


TARGETS = [
    pytest.param(name, marks=pytest.mark.xfail(reason=ABANDONED, strict=False)) if name == "deep" else name
    for name in fuzz_pareto.TARGETS
]


@pytest.mark.parametrize("target", TARGETS)
def test_the_answer_is_right(target):
    said = {seed: fuzz_pareto.trial(target, seed) for seed in range(PROBLEMS.get(target, 40))}
    assert {seed: message for seed, message in said.items() if message} == {}


@pytest.mark.xfail(reason="a tolerance of 0 leaves no room for the rounding of weighted shares", strict=False)
def test_no_difference_at_all_but_for_rounding():
    assert fuzz_pareto.trial("fair", 925) == ""


@pytest.mark.xfail(reason="a slope that is 0 but for rounding makes the dual problem unbounded", strict=False)
def test_multipliers_where_a_slope_is_zero_but_for_rounding():
    assert fuzz_pareto.trial("survival", 1224) == ""
