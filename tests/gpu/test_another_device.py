"""A second device on any machine: torch's lazy tensors, which refuse tensors of the CPU as CUDA does.

What fits there asks nothing of a device but torch's operators. It is slow: small problems.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from oracles.device_paths import ON_HOST, ONCE, PATHS, count_rounds, looks_at_rules

from softsurv import SoftSurvivalTree, load_model
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.hazards import family_names, get_family
from softsurv.soft import fit_stack
from softsurv.soft.objective import Objective
from softsurv.soft.one_pass import operators_alone
from softsurv.soft.optimisers import LbfgsSettings
from softsurv.soft.penalties import Penalties
from softsurv.soft.problem import make_problem
from softsurv.soft.watch import never_waiting

backend = pytest.importorskip("torch._lazy.ts_backend", reason="this torch has no lazy tensors")


def split(table, sizes, dim=0):
    """Consecutive parts of a table."""
    return tuple(table.narrow(dim, end - size, size) for end, size in zip(accumulate(sizes), sizes, strict=True))


@pytest.fixture(scope="module", autouse=True)
def device():
    try:
        backend.init()
    except RuntimeError as error:
        pytest.skip(f"lazy tensors cannot be started here: {error}")
    patch = pytest.MonkeyPatch()
    # lazy tensors lose what was computed so far in `unbind` and `split_with_sizes`
    patch.setattr(torch.Tensor, "unbind", lambda t, dim=0: tuple(t.select(dim, k) for k in range(t.shape[dim])))
    patch.setattr(torch.Tensor, "split_with_sizes", split)
    yield "lazy"
    patch.undo()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.random((60, 3))
    time = rng.exponential(np.exp(-2 * x[:, 0])) + 0.01
    return survival_data(pd.DataFrame(x), time=time, event=rng.random(60) < 0.7)


@pytest.fixture
def few_rounds(monkeypatch):
    """Lazy tensors are slow: single leaves and first leaves are not fitted to the end, here as there."""
    for name in ("SINGLE_LEAF", "FIRST_LEAVES"):
        monkeypatch.setattr(fit_stack, name, LbfgsSettings(max_iterations=2))


@pytest.mark.filterwarnings("ignore:the fit took all its", "ignore:the single-leaf fit")  # they are cut off
@pytest.mark.parametrize("path", PATHS)
def test_each_path_gives_there_what_it_gives_on_the_cpu(path, device, few_rounds):
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


def test_a_tree_of_rules_is_waited_for_once_where_rules_are_sought(device, few_rounds):
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


@pytest.mark.filterwarnings("ignore:the fit took all its")  # few rounds: lazy tensors are slow
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
