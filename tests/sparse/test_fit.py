"""From encoded data to a fitted tree of rules: the data's own units, and what the fit says of itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from softsurv import SoftSurvivalTree
from softsurv.data.encoding import OutputColumn
from softsurv.data.readers import survival_data
from softsurv.hazards import get_family
from softsurv.soft.parallel import Machine
from softsurv.sparse import fit
from softsurv.sparse.fit import fit_rules, split_data
from softsurv.sparse.folds import Grid
from softsurv.sparse.trials import FamilyTrials
from softsurv.stopping import StopSignal
from softsurv.trees.linear_rule import leaf_of

SMALL = Grid(single_ridges=(0.3, 1e4), ridges=(0.3,), leaves=(1, 2), terms=(1,), shrinkage=((10.0, None),), n_folds=2)


def column(name, kind="number", source=None, level=None, offset=0.0, scale=1.0):
    return OutputColumn(name, source or name, kind, level, offset, scale)


def test_numbers_come_back_in_the_units_of_the_table():
    rng = np.random.default_rng(0)
    raw = np.concatenate([np.round(rng.normal(60, 9, 300), 1), [0.1, 1e-30, 123456.789, 2e15, 0.0, -7.3]])
    offset, scale = raw.mean(), raw.std()
    split = split_data(((raw - offset) / scale)[:, None], [column("age", offset=offset, scale=scale)])
    np.testing.assert_allclose(split.values[0], raw, rtol=1e-11, atol=1e-3)
    plain = split_data(raw[:, None], [column("age")])
    expected = [float(f"{value:.12g}") for value in raw]
    assert plain.values[0].tolist() == expected  # as decimal text is read


def test_which_columns_make_a_rule_alone():
    columns = [
        column("age"), column("sex=M", "level", "sex", "M"), column("grade=1", "level", "grade", "1"),
        column("grade=2", "level", "grade", "2"), column("size is missing", "missing", "size"),
    ]  # fmt: skip
    split = split_data(np.eye(5), columns)
    assert split.single == (0, 1, 4)  # a category of one indicator is a column like others
    assert split.categories == ((2, 3),)


@pytest.fixture(scope="module")
def halves():
    """A level of the feature x0 beyond which the hazard is eight times as high."""
    rng = np.random.default_rng(1)
    x = rng.random((160, 3))
    time = rng.exponential(np.where(x[:, 0] > 0.5, 1.0, 8.0))
    late = rng.exponential(12, 160)
    data = survival_data(x, time=np.minimum(time, late) + 1e-3, event=time <= late)
    columns = [column(name) for name in data.X.columns]
    return data, columns


@pytest.fixture(scope="module")
def fitted(halves):
    data, columns = halves
    return fit_rules(data, columns, [get_family("weibull")], SMALL, machine=Machine(torch.device("cpu")))


def test_the_rule_that_parts_the_rows_is_found(halves, fitted):
    data, _ = halves
    (rule,) = fitted.rules
    assert rule.columns == (0,)
    assert abs(rule.threshold / rule.coefficients[0] - 0.5) < 0.08
    assert fitted.candidate.depth == 1
    assert fitted.collapsed == ()
    high = rule.holds(data.x.numpy().T)
    assert 0 < high.sum() < data.n


def test_the_fit_says_what_was_tried_and_why(halves, fitted):
    assert "leaves" in fitted.reason
    table = fitted.table()
    assert len(table) == len(fitted.tried.trials)
    assert {one.candidate.leaves for one in fitted.tried.trials} == {1, 2}
    assert any(one is fitted.chosen for one in fitted.tried.trials)
    assert fitted.stopped is None
    assert len(fitted.settings) == len(fitted.trees) == len(fitted.covariances) == 1
    covariance = fitted.covariances[0]
    assert covariance.shape[0] == 2
    assert (np.linalg.eigvalsh(covariance) > 0).all()


def test_the_soft_tree_sends_rows_to_the_leaves_of_its_rules(halves, fitted):
    data, _ = halves
    tree, leaf = fitted.trees[0], leaf_of(fitted.rules, data.x.numpy().T)
    with torch.no_grad():
        grid = torch.tensor([1.0], dtype=torch.float64)
        hazard = tree.log_cumulative_hazard(data.x.double(), grid)[0, :, 0].exp()
    means = [float(hazard[torch.as_tensor(leaf == k)].mean()) for k in range(2)]
    assert max(means) > 3 * min(means)


def test_noise_is_one_leaf(halves):
    data, columns = halves
    rng = np.random.default_rng(2)
    noise = survival_data(rng.random((160, 3)), time=data.time.numpy(), event=data.event.numpy())
    fitted = fit_rules(noise, columns, [get_family("weibull")], SMALL, machine=Machine(torch.device("cpu")))
    assert fitted.rules == ()
    assert fitted.trees[0].depth == 0
    assert fitted.lost is None


def test_the_last_fits_leave_time_to_describe_the_leaves(halves, monkeypatch):
    """They went on to the end of the limit, and the tables of the leaves came after it."""
    data, columns = halves
    budget, kept, fit_causes = StopSignal(1000.0), [], fit.fit_causes
    budget.started -= 50.0  # reading took so long
    budget.deadline -= 50.0

    def seen(*args, budget, **kwargs):
        kept.append(machine.budget.left - budget.left)
        return fit_causes(*args, budget=budget, **kwargs)

    monkeypatch.setattr(fit, "fit_causes", seen)
    machine = Machine(torch.device("cpu"), budget=budget)
    assert fit_rules(data, columns, [get_family("weibull")], SMALL, machine=machine).stopped is None
    assert kept
    assert all(50.0 <= seconds < 60.0 for seconds in kept)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_tree_and_its_rules_send_a_row_nearly_at_the_threshold_the_same_way(dtype):
    """Measured genes have values of 1e-11 where others are 0, and 0 is a short threshold."""
    rng = np.random.default_rng(0)
    x = np.round(rng.choice([-1, 1], 120) * rng.uniform(0.02, 0.6, 120), 3)
    x[:4] = 1.1e-11
    time = rng.exponential(np.where(x > -1e-3, 1.0, 9.0)) + 1e-3
    data = survival_data(x[:, None], time=time, event=np.ones(120, bool))
    columns = [column(name) for name in data.X.columns]
    grid = replace(SMALL, leaves=(2,), ridges=(1e4,))
    found = fit_rules(data, columns, [get_family("weibull")], grid, machine=Machine(torch.device("cpu"), dtype))
    (rule,) = found.rules
    assert abs(rule.threshold) > 1e-6
    with torch.no_grad():
        leaf = found.trees[0].apply_leaf(data.x.to(dtype))[0].numpy()
    np.testing.assert_array_equal(leaf, leaf_of(found.rules, data.x.double().numpy().T))


def test_columns_that_are_not_encoded_have_rules_that_the_tree_keeps():
    """Of a narrow column in single precision the tie of the routing is a large share."""
    x = np.random.default_rng(1).random((1000, 1)).round(5) * 1e-3
    time = np.random.default_rng(0).exponential(np.where(x[:, 0] > np.median(x), 1.0, 9.0)) + 1e-3
    tree = SoftSurvivalTree(depth=1, max_terms=1, leaf="weibull", l2=1e4, preprocess=False, dtype="float32")
    tree.fit(x, (np.ones(1000, bool), time))
    np.testing.assert_array_equal(tree.apply(x), leaf_of(tree.tree_.rules, x.T))


def test_trees_that_are_one_leaf_are_not_sought_again_on_all_rows(monkeypatch):
    """With all events at the last time no split changes a prediction: tree after tree was sought again."""
    sought = []
    again = FamilyTrials.found_again
    monkeypatch.setattr(FamilyTrials, "found_again", lambda self, *given: sought.append(1) or again(self, *given))
    rng = np.random.default_rng(1)
    x, event = rng.normal(size=(200, 3)), rng.random(200) < 0.4
    time = np.where(event, 10.0, np.round(rng.uniform(1, 9, 200), 2))
    tree = SoftSurvivalTree(leaf="lognormal").fit(x, (event, time))
    assert tree.export_text().startswith("leaf 0: n 200")
    assert len(sought) == 1
