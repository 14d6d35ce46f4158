"""Fitted attributes that are worked out when they are read."""

from __future__ import annotations

import gc
import pickle
import weakref
from functools import partial

import pytest

from softsurv.estimators.shared.on_demand import Later, OnDemand

asked: list[int] = []


def made(value: int) -> int:
    """The value, and a note that it was asked for."""
    asked.append(value)
    return value


class Fitted:
    """What a fit sets."""

    size_ = Later[int]()


def test_a_later_attribute_is_worked_out_once_when_it_is_read():
    fitted, before = Fitted(), len(asked)
    with pytest.raises(AttributeError, match="'Fitted' object has no attribute 'size_'"):
        _ = fitted.size_
    fitted.size_ = OnDemand(partial(made, 3))
    assert len(asked) == before
    copy = pickle.loads(pickle.dumps(fitted))
    assert (fitted.size_, fitted.size_, copy.size_) == (3, 3, 3)
    assert len(asked) == before + 1
    fitted.size_ = 4
    assert fitted.size_ == 4


class Rows:
    """Something large that a value is worked out from."""


def test_it_is_worked_out_once_and_lets_its_rows_go():
    calls, rows = [], Rows()
    alive = weakref.ref(rows)
    late = OnDemand(lambda rows=rows: calls.append(rows is not None) or 42)
    del rows
    gc.collect()
    assert calls == []
    assert alive() is not None
    assert (late.value, late.value) == (42, 42)
    assert calls == [True]
    gc.collect()
    assert alive() is None


def test_a_pickle_holds_what_the_function_gave():
    late = OnDemand(lambda: [1, 2])  # a lambda cannot be pickled itself
    again = pickle.loads(pickle.dumps(late))
    assert vars(again) == {"value": [1, 2]}
