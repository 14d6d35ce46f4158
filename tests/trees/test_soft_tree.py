"""SoftTree: prediction along the highest-probability path, the mixture, stacks, gradients."""

import numpy as np
import pytest
import torch

from softsurv.hazards import family_names, get_family
from softsurv.numerics import with_intercept
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.topology import n_leaves

families = pytest.mark.parametrize("name", family_names())
TIMES = torch.tensor([0.1, 0.7, 2.0, 5.0, 30.0], dtype=torch.float64)


def random_tree(name="weibull", depth=2, n_trees=3, p=4, seed=0):
    family = get_family(name)
    tree = SoftTree(depth, p, family, n_trees)
    rng = np.random.default_rng(seed)
    log_time = torch.tensor(rng.standard_normal(50))
    time_scale = family.fit_time_scale(log_time, torch.ones(50, dtype=torch.bool))
    with torch.no_grad():
        for parameter in tree.parameters():
            parameter.copy_(torch.tensor(0.7 * rng.standard_normal(parameter.shape)))
        tree.time_scale.copy_(time_scale.expand(n_trees, -1))
    return tree, torch.tensor(rng.standard_normal((13, p)))


def leaf_survival(tree, number, leaf, row):
    """S of one row in one leaf of one tree, in plain steps, (T,)."""
    family, columns = tree.family, tree.n_features + 1
    b = tree.leaves[number, leaf].detach()
    features = family.time_features(TIMES.log(), tree.time_scale[number])
    value, _ = family.baseline(b[None, columns:], features)
    z = b[0] + (b[1:columns] * row).sum() + value[0]
    return torch.exp(-family.link.cumulative_hazard(z)[0])


@families
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_prediction_is_that_of_the_leaf_on_the_path(name, depth):
    tree, x = random_tree(name, depth)
    with torch.no_grad():
        curves, leaf = tree.survival_function(x, TIMES), tree.apply_leaf(x)
        log_h = tree.log_cumulative_hazard(x, TIMES)
    for number in range(3):
        for i, row in enumerate(x):
            expected = leaf_survival(tree, number, int(leaf[number, i]), row)
            torch.testing.assert_close(curves[number, i], expected)
    torch.testing.assert_close(torch.exp(-log_h.exp()), curves)


@families
@pytest.mark.parametrize("depth", [0, 2])
def test_soft_path_is_the_mixture_of_all_leaves(name, depth):
    tree, x = random_tree(name, depth)
    with torch.no_grad():
        mixture, probability = tree.survival_function(x, TIMES, path="soft"), tree.leaf_probability(x)
    assert probability.shape == (3, 13, n_leaves(depth))
    for i, row in enumerate(x):
        parts = [probability[1, i, k] * leaf_survival(tree, 1, k, row) for k in range(n_leaves(depth))]
        torch.testing.assert_close(mixture[1, i], torch.stack(parts).sum(0))


@families
def test_log_hazard_is_the_slope_of_the_cumulative_hazard(name):
    tree, x = random_tree(name)
    step = 1e-6
    with torch.no_grad():
        up, down = (tree.log_cumulative_hazard(x, TIMES * (1 + d)).exp() for d in (step, -step))
        hazard = tree.log_hazard(x, TIMES).exp()
        some = tree.log_cumulative_hazard(x, TIMES).abs() < 15
    torch.testing.assert_close(hazard[some], ((up - down) / (2 * step * TIMES))[some], rtol=1e-5, atol=1e-9)


@families
def test_forward_has_the_gradient_of_every_parameter(name):
    tree, x = random_tree(name, depth=1, n_trees=1)
    seeds = torch.tensor(np.random.default_rng(1).standard_normal((1, 13, 5)))
    (tree(x, TIMES) * seeds).sum().backward()
    for parameter in tree.parameters():
        found = parameter.grad
        with torch.no_grad():
            for at in [(0, 0, 0), (0, -1, 1), (0, 0, -1)]:
                kept = float(parameter[at])
                values = []
                for step in (1e-6, -1e-6):
                    parameter[at] = kept + step
                    values.append(float((tree(x, TIMES) * seeds).sum()))
                parameter[at] = kept
                assert float(found[at]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_each_tree_of_a_stack_is_the_tree_alone():
    tree, x = random_tree("spline_po", depth=2)
    own_rows = torch.stack([x, x + 1, 2 * x])
    with torch.no_grad():
        together = tree.survival_function(own_rows, TIMES)
        for k in range(3):
            one = tree.select(k)
            assert one.n_trees == 1
            torch.testing.assert_close(one.survival_function(own_rows[k], TIMES)[0], together[k])
            torch.testing.assert_close(one.routing_probability(own_rows[k])[0], tree.routing_probability(own_rows)[k])


def test_state_survives_a_round_trip_and_the_smaller_type():
    tree, x = random_tree("spline_ph")
    twin = SoftTree(2, 4, get_family("spline_ph"), 3, dtype=torch.float32)
    twin.load_state_dict(tree.state_dict())
    with torch.no_grad():
        narrow = twin.survival_function(x, TIMES)
        assert narrow.dtype == torch.float32
        torch.testing.assert_close(narrow.double(), tree.survival_function(x, TIMES), rtol=0, atol=1e-5)


def test_intercept_comes_first_also_without_features():
    assert with_intercept(torch.zeros(3, 0)).tolist() == [[1.0]] * 3
    assert with_intercept(torch.tensor([[2.0, 3.0]])).tolist() == [[1.0, 2.0, 3.0]]
    tree = SoftTree(1, 0, get_family("exponential"))
    tree.time_scale[:, 1] = 1.0
    with torch.no_grad():
        assert tree.survival_function(torch.zeros(2, 0), TIMES).shape == (1, 2, 5)


@families
@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_survival_time_is_where_the_curve_crosses_the_level(name, path):
    tree, x = random_tree(name)
    with torch.no_grad():
        for level in (0.9, 0.5, 0.1):
            time = tree.survival_time(x, level, path=path)
            reached = torch.isfinite(time)
            at = torch.where(reached, time, 1.0)
            for number, row in [(0, 0), (1, 5), (2, 12)]:
                if not reached[number, row]:
                    continue
                around = at[number, row] * torch.tensor([0.999999, 1.0, 1.000001], dtype=torch.float64)
                before, here, after = tree.survival_function(x[row : row + 1], around, path=path)[number, 0]
                assert before >= level - 1e-9
                assert after <= level + 1e-9
                assert float(here) == pytest.approx(level, abs=1e-5)


@families
@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_survival_time_looks_at_few_times(name, path, monkeypatch):
    """It looked at 80: the median of one row of splines took 44 ms."""
    tree, x = random_tree(name)
    baseline, looked = SoftTree._baseline_at, []
    monkeypatch.setattr(SoftTree, "_baseline_at", lambda self, at: looked.append(at.shape) or baseline(self, at))
    with torch.no_grad():
        tree.survival_time(x, 0.5, path=path)
    assert 2 < len(looked) <= 25


@pytest.mark.parametrize("path", ["hbp", "soft"])
def test_survival_time_routes_rows_once(path, monkeypatch):
    """Each time that was looked at routed all rows: medians of 20,000 rows in 64 leaves took 4.6 s."""
    tree, x = random_tree("weibull", depth=2)
    split, routed = SoftTree._split, []
    monkeypatch.setattr(SoftTree, "_split", lambda self, rows: routed.append(len(rows)) or split(self, rows))
    with torch.no_grad():
        tree.survival_time(x, 0.5, path=path)
    assert routed == [len(x)]


def test_survival_time_is_infinite_where_the_curve_stays_above():
    tree, x = random_tree("gompertz", depth=0)
    with torch.no_grad():
        tree.leaves[..., -1] = -2.0  # the hazard dies out
        tree.leaves[..., 0] = -8.0
        assert torch.isinf(tree.survival_time(0 * x, 0.5)).all()


def test_collapsing_unused_splits_leaves_the_predictions():
    tree, x = random_tree("weibull", depth=3)
    with torch.no_grad():
        tree.routing[:, 1, 0] = 30.0  # sends everything left
        tree.routing[0, 2, 0] = -30.0
        leaf, curves = tree.apply_leaf(x), tree.survival_function(x, TIMES)
        tree.collapse_empty(x)
        assert torch.equal(tree.apply_leaf(x), leaf)
        torch.testing.assert_close(tree.survival_function(x, TIMES), curves)
        assert (tree.routing[:, 1, 1:] == 0).all()
        again = tree.apply_leaf(100 * x)[:, :, None] // 4  # rows never seen take the same side
        split = (tree.routing_probability(100 * x)[:, :, 1] >= 0.5) | (again[..., 0] == 1)
        assert split.all()
