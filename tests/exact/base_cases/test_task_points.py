"""The objectives of a leaf as the listing calls them."""

from types import SimpleNamespace

import numpy as np
from oracles.plain_python import plain

from softsurv.exact.compile import points_of
from softsurv.exact.objectives.linear import weighted_sums


def test_points_are_the_rule_applied_to_the_sums_of_a_leaf():
    rng = np.random.default_rng(0)
    weights, sums = rng.normal(size=(3, 2, 4)), rng.normal(size=6)  # two more columns than the rule reads
    listing = SimpleNamespace(label=np.zeros((2, 3, 2)), total=np.zeros(6), weights=weights)
    out = np.zeros((3, 2))
    plain(points_of(weighted_sums))(listing, sums, out)
    np.testing.assert_allclose(out, weights @ sums[:4])


def test_each_rule_has_a_module_of_its_own():
    def other(sums, weights, out):
        out[0, 0] = sums[0] + 1.0

    one, two = points_of(weighted_sums), points_of(other)
    assert one is points_of(weighted_sums)
    assert one.function.__module__ != two.function.__module__
    listing = SimpleNamespace(label=np.zeros((2, 1, 1)), total=np.zeros(1), weights=None)
    out = np.zeros((1, 1))
    plain(two)(listing, np.array([4.0]), out)
    assert out[0, 0] == 5.0
