"""A fitted tree as one value: through its state and back, and states of earlier versions."""

import numpy as np
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.soft.fitted import FittedSoftTree

GIVEN = {"depth": 1, "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0, "n_restarts": 1, "device": "cpu"}


@pytest.fixture
def saved(tools):
    model = SoftSurvivalTree(**GIVEN).fit(tools.simulate(80))
    return model, *model._state()


def test_a_state_gives_the_tree_back(saved):
    model, arrays, meta = saved
    again = FittedSoftTree.restored(arrays, meta, torch.device("cpu"), 1.0)
    assert again.candidate == model.candidate_
    assert again.report == model.report_
    assert again.time_floor == model.time_floor_
    for name, value in model.tree_.state_dict().items():
        assert torch.equal(again.tree.state_dict()[name], value)
    np.testing.assert_array_equal(again.leaf_table.n, model.leaf_table_.n)


def test_models_of_earlier_versions_are_read(saved):
    """Their time scale was called clock, and the oldest have no floor of the times."""
    model, arrays, meta = saved
    earlier = {("tree.clock" if name == "tree.time_scale" else name): value for name, value in arrays.items()}
    del meta["time_floor"]
    again = FittedSoftTree.restored(earlier, meta, torch.device("cpu"), 0.25)
    assert torch.equal(again.tree.time_scale, model.tree_.time_scale)
    assert again.time_floor == 0.25
