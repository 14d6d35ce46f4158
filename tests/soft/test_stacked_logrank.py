"""Log-rank starts by operators of a device, against those of scikit-survival."""

import numpy as np
import pytest
import torch
from oracles.designs import encoded, normal, outcomes

from softsurv.soft import stacked_logrank
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.stacked_logrank import logrank_start
from softsurv.soft.starts import logrank_routing


@pytest.fixture(autouse=True)
def as_on_a_device():
    with operators_alone():
        yield


def on_device(x, time, event, depth):
    tensors = (torch.tensor(v) for v in (x, time, event, np.unique(time[event])))
    return logrank_start(*tensors, depth).numpy()


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("cells", [2**24, 500])
def test_the_logrank_tree_is_that_of_scikit_survival(depth, ties, cells, monkeypatch):
    monkeypatch.setattr(stacked_logrank, "CELLS", cells)
    x, (time, event) = normal(200), outcomes(200, ties=ties)
    x[:, 1] = np.round(x[:, 1])
    expected = logrank_routing(x, time, event, depth)
    np.testing.assert_allclose(on_device(x, time, event, depth), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["gbsg2", "whas500", "veterans"])
def test_the_logrank_tree_of_real_rows(name):
    data = encoded(name)
    known = data.x.numpy(), data.time.numpy(), data.event.numpy()
    np.testing.assert_allclose(on_device(*known, 2), logrank_routing(*known, 2), rtol=1e-10, atol=1e-10)


def test_a_logrank_tree_without_anything_to_split():
    time, event = outcomes(40)
    x = np.ones((40, 2))
    np.testing.assert_array_equal(on_device(x, time, event, 2), logrank_routing(x, time, event, 2))
    never = np.zeros(40, dtype=bool)
    assert not on_device(normal(40), time, never, 2).any()
