"""Fitted attributes that are worked out when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class OnDemand(Generic[Value]):
    """The result of a function, worked out when it is first read. A pickle holds the result alone."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make

    @cached_property
    def value(self) -> Value:
        """The result, worked out once; the function and what it holds are then released."""
        made = self._make()
        del self._make
        return made

    def __getstate__(self) -> dict[str, Any]:
        """The value alone."""
        return {"value": self.value}


class Later(Generic[Value]):
    """A fitted attribute that may be set to an `OnDemand`: reading the attribute then gives its value."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, estimator: None, kind: type) -> Self: ...
    @overload
    def __get__(self, estimator: object, kind: type) -> Value: ...
    def __get__(self, estimator: object | None, kind: type) -> Self | Value:
        if estimator is None:
            return self
        try:
            kept: Value | OnDemand[Value] = vars(estimator)[self.name]
        except KeyError:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {self.name!r}") from None
        return kept.value if isinstance(kept, OnDemand) else kept

    def __set__(self, estimator: object, value: Value | OnDemand[Value]) -> None:
        vars(estimator)[self.name] = value
