"""Where a soft tree trains."""

import numpy as np
import pytest
import torch

import softsurv
from softsurv import SoftSurvivalTree, load_dataset
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError
from softsurv.estimators.soft import devices
from softsurv.estimators.soft.devices import TREE_ROWS_A_CORE, choose_device, device_of_worker
from softsurv.estimators.soft.parameters import SoftParameters
from softsurv.soft.parallel import workers_of_torch
from softsurv.tune import study


@pytest.fixture
def with_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_auto_takes_a_device_where_it_pays(with_cuda):
    assert choose_device("auto").type == "cuda"
    assert choose_device("auto", 2 * TREE_ROWS_A_CORE, cores=2).type == "cpu"
    assert choose_device("auto", 2 * TREE_ROWS_A_CORE + 1, cores=2).type == "cuda"
    assert choose_device("auto", TREE_ROWS_A_CORE * workers_of_torch()).type == "cpu"
    assert choose_device("cuda:1", 1).index == 1  # as asked


def test_without_a_device_auto_is_the_processor(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(InvalidParameterError, match="torch sees no CUDA device"):
        choose_device("cuda")


@pytest.mark.parametrize("device", ["cuda:2", "meta", "tpu", 3])
def test_what_is_no_device_is_refused(with_cuda, device):
    with pytest.raises(InvalidParameterError, match="device must be"):
        choose_device(device)


def test_workers_take_several_devices_in_turn(with_cuda):
    assert [device_of_worker("auto", k) for k in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert device_of_worker("cpu", 1) == "cpu"


@pytest.fixture
def asked(monkeypatch):
    """The trees times rows for which a device was chosen."""
    found = []

    def chosen(device, tree_rows=None, cores=None):
        found.append(tree_rows)
        return torch.device("cpu")

    monkeypatch.setattr(devices, "choose_device", chosen)
    return found


DENSE = {
    "max_terms": None, "depth": 1, "leaf": "weibull", "l2": 1.0, "shrinkage": 3.0, "routing_l2": 1.0, "init": "random",
    "max_iter": 2,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_a_dense_tree_counts_its_starts_and_a_tree_of_rules_its_rows(asked):
    data = load_dataset("veterans")
    SoftSurvivalTree(n_restarts=3, **DENSE).fit(data)
    SoftSurvivalTree(depth=1, leaf="weibull", l2=1.0, shrinkage=3.0).fit(data)
    assert asked == [3 * data.n, data.n]


@pytest.mark.filterwarnings("ignore")
def test_many_fits_count_settings_folds_and_starts(asked):
    data = load_dataset("veterans")
    settings = [DENSE | {"n_restarts": 3, "l2": ridge} for ridge in (0.1, 1.0)]
    softsurv.fit_many(data, settings=settings)
    space = DENSE | {"n_restarts": 3}
    study(data, n_trials=2, n_folds=2, batch=2, space=space, sampler="random", refit=False, compare_default=False)
    assert asked == [6 * data.n, 12 * data.n]


def test_the_starts_of_the_paper(with_cuda):
    given = SoftSurvivalTree(preset="paper", depth=1).get_params()
    assert SoftParameters(**given).n_starts == 20


@pytest.mark.parametrize("unit", [1e-40, 1e40])
def test_times_that_single_precision_does_not_hold_are_refused(unit):
    """All curves were 1, or 0."""
    data = load_dataset("veterans")
    rows = data.X, (data.event.numpy(), data.time.numpy() * unit)
    tree = SoftSurvivalTree(depth=0, leaf="weibull", l2=0.3, dtype="float32")
    with pytest.raises(
        InvalidSurvivalDataError, match=r'1\.2e-38 to 3\.4e\+38 with dtype="float32", got .*another unit'
    ):
        tree.fit(*rows)
    with pytest.raises(InvalidSurvivalDataError, match="another unit"):
        softsurv.fit_many(*rows, settings=[tree.get_params() | {"depth": 1, "shrinkage": 1.0, "routing_l2": 1.0}])
    assert np.ptp(tree.set_params(dtype="float64").fit(*rows).predict_median(data.X) / unit) > 1
