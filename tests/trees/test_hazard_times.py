"""Times at which hazards reach a level, against their closed form, at both ends of what a float holds."""

import numpy as np
import pytest
import torch

from softsurv.trees.hazard_times import above_level, log_hazard_of_mixture, time_of_root


def test_the_hazard_of_a_mixture_is_exact_at_both_ends():
    share = torch.tensor([[0.25], [0.75]], dtype=torch.float64)
    log_hazard = torch.linspace(-650.0, 6.0, 400, dtype=torch.float64)
    found = log_hazard_of_mixture([log_hazard.exp(), 2 * log_hazard.exp()], share)
    small = log_hazard < -40  # there the hazard is the mean of those of the leaves
    torch.testing.assert_close(found[small], log_hazard[small] + np.log(1.75), rtol=1e-14, atol=0.0)
    large = log_hazard > 5  # there the first leaf is all that is left
    torch.testing.assert_close(found[large], (log_hazard[large].exp() - np.log(0.25)).log(), rtol=1e-14, atol=0.0)
    hazard = log_hazard[(log_hazard > -15) & (log_hazard < 5)].exp()
    middle = (-(0.25 * torch.exp(-hazard) + 0.75 * torch.exp(-2 * hazard)).log()).log()
    torch.testing.assert_close(found[(log_hazard > -15) & (log_hazard < 5)], middle, rtol=1e-8, atol=1e-8)
    assert (found[1:] > found[:-1]).all()


def test_a_mixture_of_one_leaf_is_that_leaf():
    hazard = torch.tensor([[1e-300, 1e-9, 0.5, 1.0, 700.0, 1e5, torch.inf], [0.0] * 7], dtype=torch.float64)
    share = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    torch.testing.assert_close(log_hazard_of_mixture(hazard, share), hazard[0].log(), rtol=1e-15, atol=1e-15)


def test_infinite_hazards_are_compared():
    log_hazard = np.array([-np.inf, 0.0, np.inf, np.inf, -np.inf])
    assert above_level(log_hazard, np.array([0.0, -np.inf, 0.0, np.inf, -np.inf])).tolist() == [-700, 700, 700, 0, 0]


@pytest.mark.parametrize("shape", [0.05, 1.0, 30.0])
def test_a_time_is_where_the_hazard_is(shape):
    level = np.array([1e-3, 0.7, 40.0])
    found = time_of_root(lambda y: shape * y - np.log(level), np.full(3, -200.0), np.full(3, 200.0))
    np.testing.assert_allclose(found, level ** (1 / shape), rtol=1e-12)


def test_a_time_that_never_comes_is_infinite():
    assert np.isinf(time_of_root(lambda y: np.minimum(y, 0.0) - 1.0, np.zeros(1), np.full(1, 200.0))).all()
