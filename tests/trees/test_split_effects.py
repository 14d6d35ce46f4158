"""Sizes of splits against a plain loop, and their independence of sharpness."""

import numpy as np
import pytest
import torch

from softsurv.hazards import get_family
from softsurv.trees.soft_tree import SoftTree
from softsurv.trees.split_effects import split_effects

TIMES = np.array([0.5, 1.0, 2.0])


@pytest.fixture
def tree():
    tree, random = SoftTree(2, 3, get_family("weibull")), torch.Generator().manual_seed(0)
    with torch.no_grad():
        tree.routing.copy_(torch.randn(tree.routing.shape, generator=random, dtype=torch.float64))
        tree.leaves.copy_(torch.randn(tree.leaves.shape, generator=random, dtype=torch.float64))
        tree.time_scale.copy_(torch.tensor([[0.0, 1.0]]))
    return tree


@pytest.fixture
def x():
    return torch.randn(80, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_sizes_are_those_of_a_plain_loop(tree, x):
    split = tree._split(x)[0].detach().numpy()
    z = np.stack([
        tree.predictor(x, torch.as_tensor(TIMES), torch.full((1, 80), k))[0][0].detach().numpy() for k in range(4)
    ])  # fmt: skip
    found = split_effects(tree, x, TIMES)
    for node in range(3):
        gaps, left = [], []
        for i in range(80):
            right = split[0, i] < 0
            if node and right != (node == 2):
                continue
            below = {side: 2 * side + int(split[1 + side, i] < 0) for side in (0, 1)} if node == 0 else None
            pair = (below[0], below[1]) if below else (2 * (node - 1), 2 * (node - 1) + 1)
            gaps.append(((z[pair[0], i] - z[pair[1], i]) ** 2).mean())
            left.append(split[node, i] >= 0)
        p = np.mean(left)
        assert found[node] == pytest.approx(len(gaps) / 80 * np.sqrt(p * (1 - p) * np.mean(gaps)))


def test_sharpness_changes_nothing(tree, x):
    before = split_effects(tree, x, TIMES)
    with torch.no_grad():
        tree.routing *= 7.0
    np.testing.assert_allclose(split_effects(tree, x, TIMES), before)
    assert (before[:2] > 0).all()


def test_a_split_between_equal_leaves_is_nothing(tree, x):
    with torch.no_grad():
        tree.leaves[0, 1] = tree.leaves[0, 0]
    assert split_effects(tree, x, TIMES)[1] == 0


def test_whole_weights_are_repeated_rows(tree, x):
    weight = np.arange(80) % 3 + 1
    repeated = split_effects(tree, x[np.repeat(np.arange(80), weight)], TIMES)
    np.testing.assert_allclose(split_effects(tree, x, TIMES, weight.astype(float)), repeated)
