"""What all chunks share: the time scale and the totals of all rows."""

import numpy as np
import pytest
import torch
from oracles.simulated import simulate

from softsurv.hazards import get_family
from softsurv.soft.problem import make_problem
from softsurv.soft.streaming.axis import make_axis


@pytest.mark.parametrize("family", ["weibull", "loglogistic", "spline_ph"])
def test_the_time_scale_is_that_of_a_fit_in_memory(family):
    data = simulate(50)
    time, event = data.time.numpy(), data.event.numpy().astype(bool)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    axis = make_axis(get_family(family), time, event, weight)
    torch.testing.assert_close(axis.time_scale, make_problem(data, get_family(family)).time_scale[0])
    assert axis.n == 50
    assert axis.total == pytest.approx(weight.sum())
    assert axis.floor == time[time > 0].min() / 2


def test_zero_times_are_raised_to_half_the_smallest():
    time, event = np.array([0.0, 4.0, 1.0]), np.array([True, True, False])
    axis = make_axis(get_family("weibull"), time, event, np.ones(3))
    raised = make_axis(get_family("weibull"), np.array([0.5, 4.0, 1.0]), event, np.ones(3))
    assert axis.floor == 0.5
    assert torch.equal(axis.time_scale, raised.time_scale)
    assert make_axis(get_family("weibull"), np.zeros(2), event[:2], np.ones(2)).floor == 1.0
