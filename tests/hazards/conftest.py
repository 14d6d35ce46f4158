"""Every registered leaf family, and one of a user's own, for the contract tests."""

import numpy as np
import pytest
import torch

from softsurv import hazards
from softsurv.hazards import LeafFamily, family_names, get_family, register_family
from softsurv.hazards.base import standardise
from softsurv.hazards.links import PROPORTIONAL_ODDS


class Bent(LeafFamily):
    """As a user would write it: log odds rise at one rate before the mean log time and at another after it."""

    name = "bent"
    link = PROPORTIONAL_ODDS
    n_shape = 2

    def time_features(self, log_time, time_scale):
        y = standardise(log_time, time_scale)
        return torch.stack([y, torch.nn.functional.softplus(y), torch.sigmoid(y)], -2)

    def baseline(self, shape, features):
        y, bend, share = (features[..., k : k + 1, :] for k in range(3))
        before, more = (shape[..., k : k + 1].clamp(-20, 20).exp() for k in range(2))
        return before * y + more * bend, (before + more * share).log()


@pytest.fixture(params=[*family_names(), "spline_ph:0", "spline_po:5", "bent"])
def family(request, monkeypatch):
    """One family of the registry, the spline with other numbers of knots, or the user's own."""
    monkeypatch.setattr(hazards, "_REGISTRY", dict(hazards._REGISTRY))
    register_family(Bent)
    name, _, knots = request.param.partition(":")
    return get_family(name, n_knots=int(knots)) if knots else get_family(name)


class Sample:
    """A hundred and twenty censored log times."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.log_time = torch.tensor(2.0 + 0.8 * np.log(rng.weibull(1.3, 120)))
        self.event = torch.tensor(rng.random(120) < 0.6)

    def time_scale(self, family):
        return family.fit_time_scale(self.log_time, self.event)


@pytest.fixture
def sample():
    """Censored log times, with the time scale of a family as a method."""
    return Sample()
