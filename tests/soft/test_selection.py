"""How validation chooses: the usual ridge unless another is surely better, the shallowest depth that is good enough."""

import pytest
import torch

from softsurv.soft.recipe import Candidate
from softsurv.soft.selection import DenseGrid, ScoredCandidate, _simplest_good, _usual_unless_worse

NOISE = torch.tensor([-0.02, -0.01, 0.0, 0.01, 0.02])  # standard error over the five folds 0.007


def trial(loss, ridge=0.3, depth=0, noise=0.0):
    """Held-out losses around ``loss``; ``noise`` scales what the fold adds."""
    return ScoredCandidate(Candidate("loglogistic", depth, ridge), loss + noise * NOISE)


def test_the_usual_ridge_stays_where_the_folds_do_not_tell():
    singles = [trial(1.01, 0.1, noise=1.0), trial(1.01, 0.3, noise=1.0), trial(1.0, 1.0)]
    assert _usual_unless_worse(singles, 2.0).candidate.ridge == 0.3


@pytest.mark.parametrize("better", [0.03, 1.0])
def test_another_ridge_wins_where_it_is_better_for_sure(better):
    singles = [trial(1.05, ridge, noise=1.0) for ridge in (0.03, 0.3, 1.0) if ridge != better] + [trial(1.0, better)]
    assert _usual_unless_worse(singles, 2.0).candidate.ridge == better


def test_no_ridge_at_all_is_a_choice_like_others():
    assert _usual_unless_worse([trial(1.0, 0.0)], 2.0).candidate.ridge == 0.0


def test_a_deeper_tree_must_be_better_for_sure():
    assert _simplest_good([trial(1.01, noise=1.0), trial(1.0, depth=1)], 2.0).depth == 0
    assert _simplest_good([trial(1.05, noise=1.0), trial(1.0, depth=1)], 2.0).depth == 1


def test_between_good_depths_the_shallowest():
    trials = [trial(1.05, noise=1.0), trial(1.01, depth=2, noise=1.0), trial(1.0, depth=3)]
    assert _simplest_good(trials, 2.0).depth == 2


def test_only_penalties_left_to_choose_are_scaled():
    both = DenseGrid().scaled(20.0, ridge=True, routing=True)
    assert (both.ridge, both.routing_l2, both.ridge_scale) == ((0.6, 2.0, 6.0, 20.0), (2.0, 20.0), 20.0)
    neither = DenseGrid(ridge=(0.5,), routing_l2=(0.2,)).scaled(20.0, ridge=False, routing=False)
    assert (neither.ridge, neither.routing_l2, neither.ridge_scale) == ((0.5,), (0.2,), 1.0)
    assert DenseGrid().scaled(1.0, ridge=True, routing=True) == DenseGrid()


def test_the_usual_ridge_of_a_scaled_grid_is_scaled_too():
    singles = [trial(1.0, ridge=ridge) for ridge in (0.6, 2.0, 6.0, 20.0)]
    assert _usual_unless_worse(singles, 2.0, 20.0).candidate.ridge == 6.0
    assert _simplest_good(singles, 2.0, 20.0).ridge == 6.0
