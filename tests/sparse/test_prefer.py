"""The choice among trials: what holds whatever the losses are. Single cases are in `test_choose`."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softsurv.soft.recipe import Candidate
from softsurv.sparse.prefer import (
    CONSTANT,
    EVER_WEAKER,
    USUAL_RIDGE,
    Trial,
    best_of,
    preferred,
    scaled_ridge,
    usual_family,
    within_reach,
)


def trial(losses, leaves=1, ridge=USUAL_RIDGE, shrinkage=10.0, slopes=None, family="weibull"):
    depth = (leaves - 1).bit_length()
    candidate = Candidate(family, depth, ridge, shrinkage if depth else 0.0, 0.0, leaves, 1, slopes)
    return Trial(candidate, np.atleast_2d(losses), (None,) * (2**depth - 1), (torch.zeros(1, 1 + leaves, 3),))


@st.composite
def several_trials(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    common = rng.normal(size=40)
    made = []
    for leaves in draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=6)):
        losses = common + rng.normal(rng.choice([-0.3, 0.0, 0.3]), draw(st.sampled_from([0.05, 1.0])), 40)
        ridge = (
            float(rng.choice([USUAL_RIDGE, 30.0, CONSTANT])) if leaves == 1 else float(rng.choice([USUAL_RIDGE, 30.0]))
        )
        made.append(trial(losses, leaves, ridge))
    return made


@given(several_trials(), st.sampled_from(["tree", "simplest"]))
def test_what_is_taken_is_one_of_the_trials_and_the_sentence_says_why(trials, prefer):
    taken, reason = preferred(trials, prefer)
    assert any(taken is one for one in trials)
    assert f"{taken.mean:.4g}" in reason
    assert taken.candidate.depth == 0 or "tree" in reason or "leaves" in reason


@given(several_trials(), st.floats(-5, 5), st.sampled_from([1.0, 4.0]))
def test_a_constant_and_a_unit_of_the_losses_change_no_choice(trials, shift, unit):
    moved = [Trial(t.candidate, unit * (t.by_cause + shift), t.rules, t.models) for t in trials]
    place = [id(one) for one in trials].index(id(preferred(trials, "tree")[0]))
    assert preferred(moved, "tree")[0] is moved[place]


@given(several_trials())
def test_a_single_leaf_is_left_only_for_a_tree_within_its_errors(trials):
    taken, _ = preferred(trials, "tree")
    single = [t for t in trials if not t.candidate.depth]
    if taken.candidate.depth and single:
        best = best_of(trials)
        assert any(t.mean - best.mean <= t.gap_error(best) + 1e-12 for t in trials if t.candidate.depth)


def test_the_paired_error_is_of_the_rows_and_none_of_one_row():
    a, b = trial([1.0, 2.0, 6.0]), trial([1.0, 1.0, 1.0])
    assert a.gap_error(b) == pytest.approx(np.std([0.0, 1.0, 5.0], ddof=1) / 3**0.5)
    assert a.gap_error(b) == b.gap_error(a)
    assert trial([1.0]).gap_error(trial([2.0])) == 0.0
    assert np.isnan(trial([]).mean)


def test_losses_of_causes_add_for_each_subject():
    both = trial([[1.0, 2.0], [10.0, 20.0]])
    assert both.losses.tolist() == [11.0, 22.0]
    assert both.mean == 16.5


def test_weaker_shrinkage_counts_only_where_the_step_before_it_is_best():
    first, second, third = EVER_WEAKER
    usual, edge, beyond, last = (
        trial(level * np.ones(4), 2, shrinkage=pair[0], slopes=pair[1])
        for level, pair in ((1.0, (40.0, None)), (0.9, first), (0.5, second), (0.1, third))
    )
    assert within_reach([usual, edge, beyond, last]) == [usual, edge, beyond, last]
    better = trial(0.7 * np.ones(4), 2, shrinkage=40.0)
    assert within_reach([better, edge, beyond, last]) == [better, edge]
    worse = trial(0.95 * np.ones(4), 2, shrinkage=second[0], slopes=second[1])
    assert within_reach([usual, edge, worse, last]) == [usual, edge, worse]
    assert within_reach([beyond, last]) == [beyond, last]
    assert within_reach([last]) == [last]


def test_the_first_family_stays_unless_another_is_surely_better():
    noise = np.tile([0.5, -0.5], 50)
    first = trial(np.ones(100), family="loglogistic")
    assert usual_family([first, trial(0.97 + noise, family="weibull")]) == "loglogistic"
    assert usual_family([first, trial(0.8 + noise, family="weibull")]) == "weibull"


def test_fewer_leaves_are_taken_within_one_error_of_the_best_tree_of_the_usual_ridge():
    """And not within half an error only, which decides on the ridge alone."""
    noise = np.random.default_rng(0).normal(size=100)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    four, one = trial(np.ones(100), leaves=4), trial(np.full(100, 1.5), leaves=1)
    two = trial(1.0 + 0.075 + noise, leaves=2)  # its gap of .075 has the error .1
    assert preferred([one, four, two], "tree")[0] is two
    far = trial(1.0 + 0.125 + noise, leaves=2)
    assert preferred([one, four, far], "tree")[0] is four


def test_slopes_of_their_own_are_taken_only_where_they_are_clearly_better_than_all_others():
    rng = np.random.default_rng(0)
    common = rng.normal(size=200)
    noise = rng.normal(size=200)
    noise -= noise.mean() + 0.01  # far below its standard error
    one, tree = trial(common + 0.1), trial(common, 2)
    null = trial(common + 0.5, ridge=CONSTANT)
    better_by_chance = trial(common + 0.1 * noise, 2, slopes=1.0)
    clearly_better = trial(common - 0.1 + 0.1 * noise, 2, slopes=1.0)
    assert preferred([one, null, tree, better_by_chance], "tree")[0] is tree
    assert preferred([one, null, tree, clearly_better], "tree")[0] is clearly_better
    assert preferred([one, null, better_by_chance], "tree")[0] is better_by_chance  # where it was asked for
    as_good = trial(common + 0.001 * noise)
    assert preferred([as_good, null, trial(common + 0.1, 2), better_by_chance], "tree")[0] is as_good


@given(several_trials(), st.sampled_from([1.0, 7.3, 400.0]))
def test_scaled_ridges_lead_to_the_same_choice(trials, scale):
    moved = [replace(t, candidate=replace(t.candidate, ridge=scaled_ridge(t.candidate.ridge, scale))) for t in trials]
    place = [id(one) for one in trials].index(id(preferred(trials, "tree")[0]))
    assert preferred(moved, "tree", scale)[0] is moved[place]
