"""Fitted attributes that are worked out when they are read."""

from __future__ import annotations

import pickle
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
