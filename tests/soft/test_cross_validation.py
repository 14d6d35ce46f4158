"""Folds, settings and starts as stacks, and what is measured on held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles.mixed_data import some_data

from softsurv.data.readers import survival_data
from softsurv.errors import DataWarning, EvaluationWarning
from softsurv.estimators.soft.tree import SoftSurvivalTree
from softsurv.hazards import get_family
from softsurv.soft.cross_validation import (
    cross_validate_many,
    fit_folds,
    folds_of_content,
    make_folds,
    measure_fold,
    prepare_fold,
)
from softsurv.soft.recipe import Candidate, Recipe

SETTING = Recipe(get_family("weibull"), Candidate("weibull", 1, 1.0, 10.0, 1.0), ("random", "random"))


def test_folds_in_parts_equal_folds_in_one_stack(monkeypatch):
    folds = make_folds(some_data(120), 4)
    whole = fit_folds(folds, SETTING)
    monkeypatch.setattr("softsurv.soft.many.stack_size", lambda *a, **k: 1)
    parts = fit_folds(folds, SETTING)
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a.leaves, b.leaves, rtol=1e-2, atol=1e-2)


def test_folds_that_encode_differently_share_a_stack():
    data = some_data(90)
    rare = np.where(np.arange(90) < 2, "rare", np.where(np.arange(90) % 2, "a", "b"))
    data = data.with_features(data.X.assign(kind=rare))
    rows = np.arange(90)
    with pytest.warns(DataWarning, match="not seen in training"):
        folds = [prepare_fold(data, (rows[:60], rows[60:])), prepare_fold(data, (rows[30:], rows[:30]))]
    assert len({fold.train.X.shape[1] for fold in folds}) == 2
    together = fit_folds(folds, SETTING)
    for fold, tree in zip(folds, together, strict=True):
        assert tree.n_features == fold.train.X.shape[1]
        (alone,) = fit_folds([fold], SETTING)
        torch.testing.assert_close(tree.leaves, alone.leaves, rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore:time is 0")
def test_held_out_zeros_and_intervals_are_measured_as_by_the_estimator():
    data = some_data(90)
    time = np.floor(4 * data.time.numpy()) / 4
    upper = np.where(data.event.numpy() | (np.arange(90) % 2 == 0), np.inf, time + 0.25)
    raw = survival_data(data.X, time=time, event=data.event, upper=upper)
    (fold, _) = make_folds(raw, 2, 3, preprocess=False)
    assert (fold.test.time == 0).sum() > 3
    model = SoftSurvivalTree(depth=0, l2=1.0, preprocess=False, device="cpu").fit(fold.train)
    with pytest.warns(EvaluationWarning):
        expected = model.evaluate(fold.test)
    with pytest.warns(EvaluationWarning):
        assert measure_fold(fold, model.tree_) == expected


def test_folds_depend_on_what_rows_say_and_not_on_their_order():
    data = some_data(60)
    order = np.random.default_rng(0).permutation(60)
    plain, turned = folds_of_content(data, 4, 1), folds_of_content(data.take(order), 4, 1)
    held = np.concatenate([test for _, test in plain])
    assert sorted(held.tolist()) == list(range(60))
    for (train, test), (_, other) in zip(plain, turned, strict=True):
        assert sorted([*train, *test]) == list(range(60))
        assert set(test.tolist()) == set(order[other].tolist())
    assert any(set(a[1]) != set(b[1]) for a, b in zip(plain, folds_of_content(data, 4, 2), strict=True))


def test_each_fold_is_encoded_by_its_own_training_rows():
    data = some_data(60)
    rows = np.arange(60)
    fold = prepare_fold(data, (rows[:40], rows[40:]))
    x = fold.train.x.numpy()
    np.testing.assert_allclose(x.mean(0)[x.std(0) > 0.99], 0, atol=1e-6)
    assert fold.test.n == 20
    raw = prepare_fold(data, (rows[:40], rows[40:]), preprocess=False)
    assert raw.train.X.equals(data.take(rows[:40]).X)


def test_recipes_are_measured_as_if_alone():
    folds = make_folds(some_data(90), 3)
    other = Recipe(get_family("weibull"), Candidate("weibull", 0, 1.0))
    both = cross_validate_many(folds, [SETTING, other])
    assert [one.together for one in both] == [6, 3]  # two starts or one, of three folds
    (alone,) = cross_validate_many(folds, [other])
    for one, same, fold in zip(both[1].folds, alone.folds, folds, strict=True):
        own = measure_fold(fold, fit_folds([fold], other)[0])
        assert one.keys() == same.keys() == own.keys()
        numbers = [name for name, value in own.items() if isinstance(value, float) and np.isfinite(value)]
        assert numbers
        for name in numbers:
            assert one[name] == pytest.approx(own[name], abs=0.02)
    assert all(one.seconds > 0 for one in both)
