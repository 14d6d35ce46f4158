"""How a tree of rules is chosen: folds, paired errors, and the order of preference."""

import numpy as np
import pytest
import torch

from softsurv.data.datasets import load_dataset
from softsurv.data.preprocess import Preprocessor
from softsurv.data.readers import survival_data
from softsurv.errors import InvalidSurvivalDataError
from softsurv.hazards import get_family
from softsurv.soft.parallel import Machine
from softsurv.soft.recipe import Candidate
from softsurv.sparse.choose import try_all
from softsurv.sparse.fit import split_data
from softsurv.sparse.folds import FARTHEST, Grid, make_folds
from softsurv.sparse.prefer import (
    CONSTANT,
    USUAL_RIDGE,
    Trial,
    clearly_own_slopes,
    larger_pays,
    preferred,
    usual_family,
    within_reach,
)
from softsurv.trees.linear_rule import LinearRule

SMALL = Grid(leaves=(1, 2), terms=(1,), shrinkage=((10.0, None),), n_folds=2)
RULE = LinearRule((0,), (1.0,), 0.5)


def trial(mean, noise=0.0, leaves=1, ridge=USUAL_RIDGE, terms=1, shrinkage=10.0, slopes=None, family="loglogistic"):
    """A trial of these mean losses by cause; ``noise`` is what it does otherwise than the others, row by row."""
    depth = (leaves - 1).bit_length()
    candidate = Candidate(family, depth, ridge, shrinkage if depth else 0.0, 0.0, leaves, terms, slopes)
    losses = np.reshape(mean, (-1, 1)) + noise * np.tile([1.0, -1.0], 50)
    return Trial(candidate, losses, (RULE,) * (2**depth - 1), (torch.zeros(1, 1 + leaves, 3),))


FLAT = trial(2.0, ridge=CONSTANT)


@pytest.fixture(scope="module")
def data():
    raw = load_dataset("veterans")
    encoder = Preprocessor()
    return raw.with_features(encoder.fit_transform(raw.X)), encoder.columns_


def test_gap_error_is_that_of_the_mean_of_paired_rows():
    a, b = trial(1.0, 0.4), trial(0.9)
    expected = np.std(a.losses - b.losses, ddof=1) / 10
    assert a.gap_error(b) == pytest.approx(expected)
    assert trial(1.0).gap_error(trial(0.9)) < 1e-12


def test_a_tree_as_good_as_one_leaf_is_preferred_unless_the_simplest_is():
    trials = [FLAT, trial(1.0), trial(1.001, 0.2, leaves=2)]
    assert preferred(trials, "tree")[0] is trials[2]
    assert preferred(trials, "simplest")[0] is trials[1]


def test_a_tree_that_is_worse_is_not_taken():
    trials = [FLAT, trial(1.0), trial(1.03, 0.2, leaves=2)]  # standard error of the gap: 0.02
    assert preferred(trials, "tree")[0] is trials[1]


def test_noise_is_one_leaf():
    trials = [trial(1.0, ridge=CONSTANT), trial(1.1), trial(0.995, 0.2, leaves=2)]
    chosen, reason = preferred(trials, "tree")
    assert chosen is trials[0]
    assert "no setting predicts" in reason


def test_of_equal_trees_the_simplest_is_taken():
    large, small = trial(1.0, 0.3, leaves=4), trial(1.01, leaves=2)
    assert preferred([FLAT, trial(1.2), large, small], "tree")[0] is small
    own, shared = trial(1.0, 0.3, leaves=2, slopes=1.0), trial(1.01, leaves=2)
    assert preferred([FLAT, trial(1.2), own, shared], "tree")[0] is shared
    weak, strong = trial(1.0, 0.3, leaves=2, shrinkage=10.0), trial(1.01, leaves=2, shrinkage=160.0)
    assert preferred([FLAT, trial(1.2), weak, strong], "tree")[0] is strong
    three, one = trial(1.0, 0.3, leaves=2, terms=3), trial(1.01, leaves=2, terms=1)
    assert preferred([FLAT, trial(1.2), three, one], "tree")[0] is one


def test_the_weakest_shrinkage_counts_where_no_other_than_the_next_is_better():
    strong, weak = trial(1.0, leaves=2, shrinkage=160.0), trial(1.1, leaves=2, shrinkage=10.0, slopes=1.0)
    weakest = trial(0.9, leaves=2, shrinkage=1.0, slopes=0.1)
    assert within_reach([strong, weak, weakest]) == [strong, weak]
    assert within_reach([weak, weakest]) == [weak, weakest]
    assert within_reach([weakest]) == [weakest]


def test_larger_trees_are_tried_where_the_largest_are_clearly_better_than_those_of_half_as_many_leaves():
    four, eight = trial(1.1, leaves=4), trial(1.0, 0.1, leaves=8)  # standard error of the gap: 0.01
    assert larger_pays([four, eight])
    assert larger_pays([four, trial(0.9, leaves=6), eight])  # six leaves are more than half of eight
    assert not larger_pays([trial(1.005, leaves=4), eight])
    assert not larger_pays([trial(0.9, leaves=4), eight])
    assert not larger_pays([eight])
    assert not larger_pays([])


def test_rules_are_sought_for_own_slopes_where_these_are_clearly_better_than_shared_ones():
    shared, own = trial(1.1, leaves=2), trial(1.0, 0.1, leaves=2, slopes=1.0)
    assert clearly_own_slopes([shared, own]) == own.candidate
    assert clearly_own_slopes([own]) == own.candidate
    assert clearly_own_slopes([trial(1.005, leaves=2), own]) is None
    assert clearly_own_slopes([trial(0.9, leaves=2), own]) is None


def test_a_better_tree_is_not_given_up_for_a_simple_one():
    best, small = trial(1.0, 0.1, leaves=4, terms=3), trial(1.2, leaves=2)
    assert preferred([FLAT, trial(1.3), best, small], "tree")[0] is best


def test_a_tree_that_predicts_one_cause_worse_must_be_clearly_better_over_all():
    flat, one = trial([2.0, 2.0], ridge=CONSTANT), trial([1.0, 1.0])
    slightly, clearly = trial([1.01, 0.97], 0.1, leaves=2), trial([1.01, 0.94], 0.1, leaves=2)  # errors of 0.02
    no_worse = trial([1.0, 0.98], 0.1, leaves=2)
    chosen, reason = preferred([flat, one, slightly], "tree")
    assert chosen is one
    assert "one cause worse" in reason
    assert preferred([flat, one, clearly], "tree")[0] is clearly
    assert preferred([flat, one, no_worse], "tree")[0] is no_worse
    assert preferred([FLAT, trial(1.0), trial(1.001, 0.2, leaves=2)], "tree")[0].candidate.leaves == 2  # of one cause


def test_the_usual_family_unless_another_is_clearly_better():
    assert usual_family([trial(1.0), trial(0.995, 0.1, family="weibull")]) == "loglogistic"
    assert usual_family([trial(1.0), trial(0.8, 0.1, family="weibull")]) == "weibull"


def test_every_row_is_held_out_once(data):
    rows, columns = data
    fold = make_folds(rows, split_data(rows.x.numpy(), columns), Grid(), seed=0)
    held = fold.held.numpy()
    assert held[-1].sum() == 0  # the last fold trains on all rows
    np.testing.assert_allclose((held > 0).sum(0), 1)
    assert held.sum() == pytest.approx(rows.n)
    assert [len(f) for f in fold.rows.folds][-1] == rows.n


def test_trials_have_a_loss_for_every_row(data):
    rows, columns = data
    split = split_data(rows.x.numpy(), columns)
    tried = try_all(rows, split, [[get_family("weibull")]], SMALL, 0, Machine(torch.device("cpu")))
    assert {t.candidate.leaves for t in tried.trials} == {1, 2}
    assert all(t.losses.shape == (rows.n,) and np.isfinite(t.losses).all() for t in tried.trials)
    again = try_all(rows, split, [[get_family("weibull")]], SMALL, 0, Machine(torch.device("cpu"), workers=2))
    np.testing.assert_array_equal(tried.trials[-1].losses, again.trials[-1].losses)


def test_too_few_events_are_refused(data):
    rows, columns = data
    few = rows.take(np.flatnonzero(~rows.event.numpy())[:9])
    split = split_data(few.x.numpy(), columns)
    with pytest.raises(InvalidSurvivalDataError, match="event must be True in at least 2 rows"):
        try_all(few, split, [[get_family("weibull")]], SMALL, 0, Machine(torch.device("cpu")))


def test_few_censored_rows_do_not_make_fewer_folds(data):
    """Folds need events; that all but three rows had theirs is no reason for two or three folds."""
    rows, columns = data
    few = rows.take(np.concatenate([np.flatnonzero(rows.failed), np.flatnonzero(~rows.failed)[:3]]))
    assert len(make_folds(few, split_data(few.x.numpy(), columns), Grid(), 0).masks) == 5 + 1


def test_a_far_row_counts_so_much_at_most_for_each_cause():
    """A row that is far from all others and lives long: its loss alone would decide."""
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=(199, 1)), [[40.0]], 0)
    time = rng.exponential(np.exp(-np.append(x[:-1, 0], 0.0)))
    time[-1] = time.max()
    data = survival_data(x, time=time, cause=rng.integers(1, 3, 200))
    columns = Preprocessor(scale=False).fit(data.X).columns_
    farthest = {}
    for name, rows in {"causes": data, "one": data.of_cause(1)}.items():
        families = [[get_family("weibull")]] * rows.n_causes
        tried = try_all(rows, split_data(x, columns), families, SMALL, 0, Machine(torch.device("cpu")))
        farthest[name] = max(trial.losses.max() for trial in tried.trials)
    assert farthest["causes"] <= 2 * FARTHEST * 1.0001
    assert farthest["one"] > 20 * FARTHEST
