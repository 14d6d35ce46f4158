"""Folds, splits and mini-batches: balance, coverage, determinism, sentences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softsurv.data.partition import stratified_folds, stratified_split
from softsurv.errors import InvalidParameterError, InvalidSurvivalDataError

EVENTS = st.tuples(st.integers(2, 40), st.integers(0, 60)).map(lambda c: np.arange(sum(c)) % 1000 < c[0])


@settings(max_examples=60, deadline=None)
@given(event=EVENTS, n_splits=st.integers(2, 10), seed=st.integers(0, 2**31))
def test_folds_cover_all_rows_once_and_are_balanced_within_one(event, n_splits, seed):
    if event.sum() < n_splits:
        with pytest.raises(InvalidSurvivalDataError, match="one for each fold"):
            stratified_folds(event, n_splits, seed)
        return
    folds = stratified_folds(event, n_splits, seed)
    assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(len(event)))
    for train, test in folds:
        assert np.array_equal(np.union1d(train, test), np.arange(len(event)))
        assert len(np.intersect1d(train, test)) == 0
    for count in (event, ~event, np.ones_like(event)):
        sizes = [count[test].sum() for _, test in folds]
        assert max(sizes) - min(sizes) <= 1


@settings(max_examples=60, deadline=None)
@given(event=EVENTS, test_size=st.floats(0.05, 0.95), seed=st.integers(0, 2**31))
def test_split_has_the_asked_sizes_and_an_event_on_each_side(event, test_size, seed):
    train, test = stratified_split(event, test_size, seed)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(event)))
    assert event[train].any()
    assert event[test].any()
    assert abs(event[test].sum() - test_size * event.sum()) <= 1
    assert abs((~event)[test].sum() - test_size * (~event).sum()) <= 2


@pytest.mark.parametrize(
    "make", [lambda e, s: stratified_folds(e, 3, s)[0][1], lambda e, s: stratified_split(e, 0.3, s)[1]]
)
def test_same_seed_same_rows_other_seed_other_rows(make):
    event = np.arange(60) % 3 == 0
    assert np.array_equal(make(event, 4), make(event, 4))
    assert not np.array_equal(make(event, 4), make(event, 5))


def test_order_of_rows_is_shuffled_into_folds():
    event = np.arange(100) < 50
    first = stratified_folds(event, 5, 0)[0][1]
    assert not np.array_equal(first, np.arange(0, 100, 5))


def test_tensors_are_taken():
    event = torch.arange(20) % 2 == 0
    assert len(stratified_folds(event, 4)) == 4


def test_few_events_are_named_with_the_remedy():
    event = np.array([True, True, True, False, False, False])
    with pytest.raises(InvalidSurvivalDataError, match="got 3; use at most 3 folds"):
        stratified_folds(event, 5)
    with pytest.raises(InvalidSurvivalDataError, match="at least 2 rows"):
        stratified_split(np.array([True, False, False]), 0.5)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: stratified_folds(np.ones(4, bool), 1), "n_splits must be an integer >= 2, got 1"),
        (lambda: stratified_folds(np.ones(4, bool), 2.0), "n_splits must be an integer"),
        (lambda: stratified_split(np.ones(4, bool), 1.0), "test_size must be a share"),
        (lambda: stratified_split(np.ones(4, bool), 2), "test_size must be a share"),
    ],
)
def test_wrong_settings_are_named(call, match):
    with pytest.raises(InvalidParameterError, match=match):
        call()


@pytest.mark.parametrize("event", [[0, 1, 1], np.ones((2, 2), bool)])
def test_event_must_be_a_bool_vector(event):
    with pytest.raises(InvalidSurvivalDataError, match="one-dimensional bool"):
        stratified_folds(event, 2)
