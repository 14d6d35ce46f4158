"""What is tried, and on which rows."""

import math

import numpy as np
import pytest
from oracles.simulated import simulate

from softsurv.data.readers import survival_data
from softsurv.sparse.fit import split_data
from softsurv.sparse.folds import FARTHEST, Grid, in_their_mean, make_folds
from softsurv.sparse.splits import SplitData


def folds_of(data, grid=None, **how):
    split = SplitData(np.ascontiguousarray(data.x.double().numpy().T), tuple(range(data.x.shape[1])), ())
    return make_folds(data, split, grid or Grid(), 0, **how)


@pytest.mark.parametrize("n_folds", [1, 3])
def test_each_fold_trains_on_the_rows_that_it_does_not_hold_out(n_folds):
    fold = folds_of(simulate(50), Grid(n_folds=n_folds))
    assert len(fold.masks) == (1 if n_folds == 1 else n_folds + 1)
    held = fold.held.numpy()
    assert not (held[fold.masks == 1]).any()
    assert (held[fold.masks == 0] > 0).all()
    np.testing.assert_array_equal(fold.n_rows, [len(rows) for rows in fold.rows.folds])
    assert fold.n_rows[-1] == 50
    for mask, rows in zip(fold.masks, fold.rows.folds, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(mask), rows)


@pytest.mark.parametrize("unit", [1.0, 4.0, 2.0**-30, 3.0, 0.01, 1e6])
def test_the_unit_of_the_weights_changes_nothing(unit):
    plain = simulate(50)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    one, other = (
        folds_of(survival_data(plain.X, time=plain.time.numpy(), event=plain.event.numpy(), weight=w))
        for w in (weight, unit * weight)
    )
    np.testing.assert_array_equal(one.rows.weight, other.rows.weight)
    np.testing.assert_array_equal(one.held.numpy(), other.held.numpy())
    assert one.held.sum() == pytest.approx(50)


def test_rows_of_a_subject_stay_together_and_are_added_up():
    plain, n = simulate(60), 60
    subject = np.repeat(np.arange(30), 2)
    start, stop = np.tile([0.0, 1.0], 30), np.tile([1.0, 2.0], 30)
    event = np.where(np.arange(n) % 2 == 1, plain.event.numpy().astype(bool), False)
    data = survival_data(plain.X, start=start, stop=stop, event=event, id=subject)
    fold = folds_of(data)
    for mask in fold.masks:
        assert (mask[::2] == mask[1::2]).all()
    losses = np.random.default_rng(0).random((2, 3, n))
    added = np.sort(fold.by_subject(losses), axis=-1)  # subjects in any order
    np.testing.assert_allclose(added, np.sort(losses.reshape(2, 3, 30, 2).sum(-1), axis=-1))
    alone = folds_of(plain)
    assert alone.by_subject(losses) is losses


def test_events_of_causes_that_do_not_count_make_no_leaf():
    plain = simulate(60)
    cause = np.random.default_rng(0).integers(0, 3, 60)
    data = survival_data(plain.X, time=plain.time.numpy(), cause=cause)
    fold = folds_of(data, counts=np.array([0.0, 1.0]))
    np.testing.assert_array_equal(fold.rows.size, cause == 2)
    np.testing.assert_array_equal(folds_of(data).rows.size, cause > 0)
    assert fold.most == FARTHEST
    assert folds_of(plain).most == math.inf
    assert split_data(np.zeros((2, 0)), []).values.shape == (0, 2)


def test_candidates_are_counted_by_what_is_tried():
    grid = Grid(single_ridges=(0.1, 1.0), ridges=(0.3,), leaves=(1, 2, 4), terms=(1, 3), shrinkage=((1.0, None),) * 3)
    assert grid.n_candidates(2) == 2 * 2 + 2 * 1 * 2 * 3


@pytest.mark.parametrize("unit", [3.0, 0.1, 1e-9, 7e8])
def test_rows_that_weigh_the_same_weigh_one(unit):
    np.testing.assert_array_equal(in_their_mean(np.full(301, unit)), np.ones(301))


def test_small_weights_stay_in_proportion():
    weight = np.array([1e-14, 1.0, 5.0, 0.0])
    np.testing.assert_allclose(in_their_mean(weight), weight / 1.5, rtol=1e-11)


def test_only_ridges_that_are_not_given_are_scaled():
    grid = Grid().scaled(20.0)
    assert grid.single_ridges == (2.0, 6.0, 20.0, 200.0, 2e5)
    assert grid.ridges == (6.0, 600.0)
    assert grid.ridge_scale == 20.0
    given = Grid(single_ridges=(0.3,), ridges=(0.3,), ridge_given=True)
    assert given.scaled(20.0) is given
    assert Grid().scaled(1.0) == Grid()
