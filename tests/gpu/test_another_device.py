"""A second device on any machine: what fits there asks nothing of a device but torch's operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.device_paths import ON_HOST, ONCE, PATHS, count_rounds, looks_at_rules
from oracles.spells import rows_of_kind

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.hazards import family_names, get_family
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.penalties import Penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.watch import never_waiting

try:
    from oracles.second_device import NAME, SecondDevice
except ImportError:
    pytest.skip("this torch has no device that Python can stand in for", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def device():
    with SecondDevice():
        yield NAME


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.random((60, 3))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(60) < 0.7)


@pytest.mark.filterwarnings("ignore:the fit took all its", "ignore:the single-leaf fit")  # they are cut off
@pytest.mark.parametrize("path", PATHS)
def test_each_path_gives_there_what_it_gives_on_the_cpu(path, device):
    expected = PATHS[path]("cpu")
    found = [value.cpu() for value in PATHS[path](device)]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_a_minimisation_of_seven_rounds_takes_seven(device):
    """There and on a CPU, whose host does not wait either."""
    with never_waiting(), operators_alone():
        late = count_rounds("cpu", 7)
    for found in (count_rounds("cpu", 7), late, count_rounds(device, 7)):
        assert len(found) == 7
        assert all(one.moving for one in found)


def test_a_tree_of_rules_is_waited_for_once_where_rules_are_sought(device):
    seen, needs = looks_at_rules(device)
    assert seen["soft/optimisers.minimise"] >= needs  # the recorder works: here looks are not late
    assert 0 < seen[ON_HOST] <= needs
    others = {name.removeprefix("sparse/") for name in seen if name.startswith("sparse/")}
    assert others == ONCE | {ON_HOST.removeprefix("sparse/")}
    assert all(seen[f"sparse/{name}"] <= 2 for name in ONCE)


@pytest.mark.parametrize("family", family_names())
def test_value_and_gradient(data, family, device):
    results = []
    for where in ("cpu", device):
        problem = make_problem(data, get_family(family), n_trees=2, device=where)
        size = problem.design.shape[-1] + problem.family.n_shape
        rng = np.random.default_rng(1)
        routing = torch.tensor(rng.standard_normal((2, 3, problem.design.shape[-1])), device=where)
        leaves = torch.tensor(0.3 * rng.standard_normal((2, 4, size)), device=where)
        one = torch.ones(2, dtype=torch.float64, device=where)
        objective = Objective(problem, 2, Penalties(one, one, one, torch.zeros_like(leaves[:, :1]), one))
        results.append([v.cpu() for v in objective.value_and_gradient(routing, leaves)])
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


SETTINGS = {
    "nodec log-normal": ("events", {"solver": "nodec", "leaf": "lognormal", "max_iter": 1}),
    "nodec splines": ("events", {"solver": "nodec", "leaf": "spline_ph", "max_iter": 1}),
    "fair": ("late causes", {"fairness": 1.0}),
    "fair nodec": ("late causes", {"fairness": 1.0, "solver": "nodec", "max_iter": 1}),
    "float32": ("events", {"dtype": "float32"}),
    "one leaf": ("events", {"depth": 0}),
    "k-means": ("events", {"init": "kmeans"}),
    "histories": ("histories of causes", {}),
    "recurrent": ("recurrent", {}),
}
GIVEN = {"depth": 2, "leaf": "weibull", "max_terms": None, "l2": 1.0, "shrinkage": 10.0, "routing_l2": 1.0}


def trees_of(data, device, settings):
    """Splits and leaves of a fitted soft tree, by cause."""
    tree = SoftSurvivalTree(device=device, **settings).fit(data)
    trees = getattr(tree, "cause_trees_", None) or [tree.tree_]
    assert {one.leaves.device.type for one in trees} == {device}
    return [value.detach().cpu() for one in trees for value in (one.routing, one.leaves)]


@pytest.mark.filterwarnings("ignore:the fit took all its")  # few rounds
@pytest.mark.parametrize(("kind", "changed"), SETTINGS.values(), ids=SETTINGS)
def test_each_setting_gives_there_what_it_gives_on_the_cpu(kind, changed, device):
    settings = GIVEN | {"n_restarts": 2, "max_iter": 8} | changed
    expected, found = (trees_of(rows_of_kind(kind, 60), where, settings) for where in ("cpu", device))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["events", "histories"])
def test_trees_of_rules_are_there_what_they_are_on_the_cpu(kind, device):
    settings = {"leaf": "weibull", "depth": 1, "max_terms": 2, "l2": 1.0, "slope_shrinkage": 5.0}
    expected, found = (trees_of(rows_of_kind(kind, 60), where, settings) for where in ("cpu", device))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:the fit took all its")  # few rounds
@pytest.mark.parametrize("solver", ["lbfgs", "nodec"])
def test_a_fitted_tree_is_saved_there_and_read_elsewhere(data, solver, device, tmp_path):
    settings = {
        "depth": 1,
        "leaf": "weibull",
        "l2": 1.0,
        "shrinkage": 30.0,
        "routing_l2": 1.0,
        "n_restarts": 1,
        "max_iter": 1 if solver == "nodec" else 8,
    }
    here, there = (SoftSurvivalTree(device=d, solver=solver, **settings).fit(data) for d in ("cpu", device))
    assert there.tree_.leaves.device.type == device
    assert there.report_.objective == pytest.approx(here.report_.objective, rel=1e-9)
    np.testing.assert_allclose(there.predict(data.X), here.predict(data.X), rtol=1e-6)
    there.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.tree_.leaves.device.type == "cpu"
    np.testing.assert_allclose(again.predict(data.X), there.predict(data.X), rtol=1e-9)


def test_the_protocol_of_the_paper_runs_there(data, device, monkeypatch):
    """`scripts/reproduce_sst.py` asks for a device by name alone: NODEC-DR gives the same trees there."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "scripts")
    import reproduce_sst

    train = data.take(np.arange(24))
    train = train.with_features(Preprocessor().fit(train.X).transform(train.X))
    curves = []
    for where in ("cpu", device):
        monkeypatch.setattr(reproduce_sst, "choose_device", lambda name, where=where: torch.device(where))
        asked = reproduce_sst.Asked(starts=2)
        starts = reproduce_sst.paper_starts("exponential", 1, "random", train, 0, asked)
        trees = [tree.cpu() for tree in starts.trees]
        curves.append(np.stack([reproduce_sst.soft_curves(tree, train, train)(np.array([0.1, 0.5])) for tree in trees]))
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-6)
