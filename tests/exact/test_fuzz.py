"""The searches for measures, constraints and AUC on random problems; for longer runs there is `scripts/fuzz_pareto.py`.

Small problems are compared with all their trees, deep ones with a search that prunes nothing.
"""

import fuzz_pareto
import pytest

PROBLEMS = {"deep_fair": 5, "estimator": 20, "auc": 30}
"""How many random problems of each target; 40 where nothing is said."""


@pytest.mark.parametrize("target", fuzz_pareto.TARGETS)
def test_the_answer_is_right(target):
    said = {seed: fuzz_pareto.trial(target, seed) for seed in range(PROBLEMS.get(target, 40))}
    assert {seed: message for seed, message in said.items() if message} == {}


def test_no_difference_at_all_but_for_rounding():
    """Shares of fractional weights under a tolerance of 0."""
    assert fuzz_pareto.trial("fair", 925) == ""


def test_multipliers_where_a_slope_is_zero_but_for_rounding():
    """Such a slope would make the dual problem unbounded."""
    assert fuzz_pareto.trial("survival", 1224) == ""


def test_a_constraint_in_tiny_units_of_weight():
    """Weights of a thousandth: a difference of 0.02004 is not within 0.02."""
    assert fuzz_pareto.trial("fair", 9821) == ""
