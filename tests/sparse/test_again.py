"""The rules of a known setting on other rows."""

import numpy as np
import pytest
from oracles.simulated import simulate

from softsurv.data.encoding import OutputColumn
from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.soft.recipe import Candidate
from softsurv.sparse.again import rules_again


def parted(seed, n=150):
    """The hazard is eight times as high beyond 0.5 of the second feature."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    time = rng.exponential(np.where(x[:, 1] > 0.5, 1.0, 8.0)) + 1e-3
    return survival_data(x, time=time, event=rng.random(n) < 0.9)


def again(data, leaves=2, terms=1, **how):
    columns = [OutputColumn(name, name, "number") for name in data.X.columns]
    candidate = Candidate("weibull", (leaves - 1).bit_length(), 0.3, 10.0, leaves=leaves, max_terms=terms)
    return rules_again(data, columns, [get_family("weibull")], candidate, **how)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_split_is_found_on_either_sample(seed):
    (rule,) = again(parted(seed))
    assert rule.columns == (1,)
    assert rule.threshold / rule.coefficients[0] == pytest.approx(0.5, abs=0.1)


def test_the_same_rows_give_the_same_rules():
    data = parted(0)
    assert again(data) == again(data)


def test_rules_keep_to_the_setting():
    rules = again(parted(0), leaves=3)
    used = [rule for rule in rules if rule is not None]
    assert len(rules) == 3
    assert 1 <= len(used) <= 2
    assert all(len(rule.columns) == 1 for rule in used)


def test_rows_that_allow_no_tree_have_no_rules():
    few = simulate(12)
    assert again(few) == ()
