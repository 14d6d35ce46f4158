"""Quadratic penalties of a stack, and the well that they add up to."""

import pytest
import torch

from softsurv.soft.penalties import Penalties, Well, no_penalties, single_leaf_penalties, tree_penalties

LIKE = torch.zeros(1, dtype=torch.float64)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def some(trees=2, size=8, seed=0):
    torch.manual_seed(seed)
    strengths = torch.rand(4, trees, dtype=torch.float64)
    return Penalties(*strengths[:3], torch.randn(trees, 1, size, dtype=torch.float64), strengths[3])


@pytest.mark.parametrize("counts", [(1.0,), (2.0, 0.5)])
def test_the_well_is_the_sum_of_the_penalties(counts):
    """Of any leaf; each cause has its own block, of which the columns after the first are coefficients."""
    p, columns = some(), 3
    well, leaf = Well.of(p, columns, counts), torch.randn(2, 8, dtype=torch.float64)
    found = well.floor + 0.5 * (well.curvature * (leaf[:, None] - well.centre).square()).sum((1, 2))
    for tree in range(2):
        expected = 0.0
        for times, own, anchor in zip(
            counts, leaf[tree].chunk(len(counts)), p.anchor[tree, 0].chunk(len(counts)), strict=True
        ):
            expected += times * 0.5 * p.l2[tree] * own[1:columns].square().sum()
            expected += times * 0.5 * p.shrinkage[tree] * (own - anchor).square().sum()
            expected += times * 0.5 * p.l2_all[tree] * own.square().sum()
        assert float(found[tree]) == pytest.approx(float(expected))


def test_without_penalties_the_well_is_flat():
    well = Well.of(no_penalties(2, 5, LIKE), 3)
    for part in well:
        assert not part.any()
        assert torch.isfinite(part).all()


def test_a_shrunken_tree_takes_the_ridge_through_its_anchor_alone():
    ridge, shrinkage, zero = numbers(0.3, 0.3), numbers(0.0, 0.2), numbers(0.0, 0.0)
    found = tree_penalties(ridge, shrinkage, numbers(0.1, 0.1), zero, torch.ones(2, 1, 4, dtype=torch.float64))
    assert found.l2.tolist() == [0.3, 0.0]
    assert found.shrinkage.tolist() == [0.0, 0.2]
    assert found.routing_l2.tolist() == [0.1, 0.1]
    alone = single_leaf_penalties(ridge, numbers(0.4, 0.4), 4)
    assert alone.l2.tolist() == [0.3, 0.3]
    assert alone.l2_all.tolist() == [0.4, 0.4]
    assert not alone.shrinkage.any()


def test_penalties_of_some_trees():
    p = some(3)
    part = p.take(torch.tensor([2, 0]))
    for name in ("l2", "shrinkage", "routing_l2", "anchor", "l2_all"):
        assert torch.equal(getattr(part, name), getattr(p, name)[[2, 0]])
